/* The grammar of CQL (Cassandra 3.11 to 5.0, and what Amazon Keyspaces adds). Actions only build nodes; what a name means is decided later.
 *
 * Terms (values) and selectors are two grammars, as in Cassandra: a bare name is a selector and never a term. COUNT, TTL, WRITETIME,
 * MAP, FROZEN and the type names are plain identifiers here. JSON and DISTINCT behind SELECT, which may also be columns, are told
 * apart by parse.c, which looks one token ahead. */
%name cqli_lemon
%token_prefix T_
%token_type {struct token}
%extra_argument {struct parse *p}
%start_symbol input
%stack_size 800
%include {
#include "cql/build.h"
#include "cql/grammar.h"
#define cqli_lemon_ENGINEALWAYSONSTACK 1
#define YYNOERRORRECOVERY 1
#ifndef NDEBUG
#define NDEBUG 1 /* lemon's own trace and name tables */
#endif
}
%syntax_error { cqli_reject(p, TOKEN, NULL); }
%stack_overflow { cqli_refuse(p, "The statement is nested too deeply"); }

%fallback IDENT ACCESS AGGREGATE AGGREGATES ALL ANN AS BETWEEN CALLED CAST CIDRS CLUSTER CLUSTERING COMPACT
  CONTAINS COUNTER CUSTOM DATACENTERS DEFAULT DISTINCT EXISTS FILTERING FINALFUNC FUNCTION FUNCTIONS GENERATED
  GROUP HASHED IDENTITY INITCOND INPUT INTERNALS JSON KEY KEYSPACES LANGUAGE LIKE LIST LOGIN MASKED MBEAN
  MBEANS NOSUPERUSER ONLY OPTIONS PARTITION PASSWORD PER PERMISSION PERMISSIONS REPLACE RESTORE RETURNS ROLE
  ROLES SELECT_MASKED SFUNC STATIC STORAGE STYPE SUPERUSER SUPERUSERS TABLES TIMESTAMP TRIGGER TTL TYPE TYPES
  UNMASK UNSET USER USERS VALUES.

%token ENTRIES FULL NORECURSIVE EXPR EMPTY_NAME.
%left PLUS MINUS.
%left STAR SLASH PERCENT.
%nonassoc COLON. /* (type) :marker, rather than (key) : value in a map of a selector */

%type nm {struct token}
%type cnm {struct token}
%type name {const char *}
%type cname {const char *}
%type table {struct ast_name}
%type names {struct seq *}
%type cnames {struct seq *}

input ::= one. 
input ::= one semis.
semis ::= SEMI.
semis ::= semis SEMI.
one ::= stmt(S). { cqli_stmt_end(p, S); p->stmt = S; }

%type stmt {struct ast_stmt *}
stmt(A) ::= select(B). { A = B; }
stmt(A) ::= dml(B). { A = B; }
stmt(A) ::= batch(B). { A = B; }
stmt(A) ::= ddl(B). { A = B; }
stmt(A) ::= describe(B). { A = B; }
stmt(A) ::= access(B). { A = B; }

/* ---- names ---- */

nm(A) ::= IDENT(B). { A = B; }
nm(A) ::= QNAME(B). { A = B; }
cnm(A) ::= nm(B). { A = B; }
cnm(A) ::= EMPTY_NAME(B). { A = B; }
name(A) ::= nm(B). { A = cqli_ident(p, B); }
cname(A) ::= cnm(B). { A = cqli_ident(p, B); }
table(A) ::= name(B). { A = cqli_name(NULL, B); }
table(A) ::= name(B) DOT name(C). { A = cqli_name(B, C); }
table(A) ::= QMARK(T). { A = cqli_name(NULL, cqli_ident(p, T)); cqli_refuse(p, "Bind variables cannot be used for table names"); }
table(A) ::= QMARK(T) DOT name(C). { A = cqli_name(cqli_ident(p, T), C); cqli_refuse(p, "Bind variables cannot be used for keyspace names"); }
names(A) ::= name(B). { A = cqli_push(p, SEQ(p, const char *), &B); }
names(A) ::= names(B) COMMA name(C). { A = cqli_push(p, B, &C); }
cnames(A) ::= cname(B). { A = cqli_push(p, SEQ(p, const char *), &B); }
cnames(A) ::= cnames(B) COMMA cname(C). { A = cqli_push(p, B, &C); }

%type if_exists {bool}
%type if_not_exists {bool}
if_exists(A) ::= . { A = false; }
if_exists(A) ::= IF EXISTS. { A = true; }
if_not_exists(A) ::= . { A = false; }
if_not_exists(A) ::= IF NOT EXISTS. { A = true; }

/* ---- types ---- */

%type type {struct ast_type *}
%type generic {struct ast_type *}
%type type_args {struct seq *}
%type type_arg {struct type_arg}
type(A) ::= nm(B). { A = cqli_type(p, NULL, cqli_ident(p, B), B); }
type(A) ::= nm(B) DOT nm(C). { A = cqli_type(p, cqli_ident(p, B), cqli_ident(p, C), C); }
type(A) ::= generic(B). { A = B; }
type(A) ::= STRING(B). { A = cqli_type_class(p, B); }
generic(A) ::= IDENT(B) LT(O) type_args(C) GT. { A = cqli_type_args(p, B, C, O); }
generic(A) ::= SET(B) LT(O) type_args(C) GT. { A = cqli_type_args(p, B, C, O); }
type_args(A) ::= type_arg(B). { A = cqli_push(p, SEQ(p, struct type_arg), &B); }
type_args(A) ::= type_args(B) COMMA(K) type_arg(C). { C.comma = K; A = cqli_push(p, B, &C); }
type_arg(A) ::= type(B). { A = (struct type_arg){.type = B}; }
type_arg(A) ::= INTEGER(B). { A = (struct type_arg){.number = B}; }

/* ---- literals and markers ---- */

%type literal {struct ast_expr *}
%type marker {struct ast_expr *}
%type int_value {struct ast_expr *}
literal(A) ::= STRING(B). { A = cqli_literal(p, LIT_STRING, B); }
literal(A) ::= INTEGER(B). { A = cqli_literal(p, LIT_INTEGER, B); }
literal(A) ::= FLOAT(B). { A = cqli_literal(p, LIT_FLOAT, B); }
literal(A) ::= BOOLEAN(B). { A = cqli_literal(p, LIT_BOOLEAN, B); }
literal(A) ::= DURATION(B). { A = cqli_literal(p, LIT_DURATION, B); }
literal(A) ::= UUID(B). { A = cqli_literal(p, LIT_UUID, B); }
literal(A) ::= HEX(B). { A = cqli_literal(p, LIT_HEX, B); }
literal(A) ::= POSITIVE_NAN(B). { A = cqli_float(p, "NaN", B); }
literal(A) ::= NEGATIVE_NAN(B). { A = cqli_float(p, "NaN", B); }
literal(A) ::= POSITIVE_INFINITY(B). { A = cqli_float(p, "Infinity", B); }
literal(A) ::= NEGATIVE_INFINITY(B). { A = cqli_float(p, "-Infinity", B); }
marker(A) ::= QMARK(B). { A = cqli_bind(p, NULL, B); }
marker(A) ::= COLON(B) name(C). { A = cqli_bind(p, C, B); }
int_value(A) ::= INTEGER(B). { A = cqli_literal(p, LIT_INTEGER, B); }
int_value(A) ::= marker(B). { A = B; }

/* ---- terms ---- */

%type term {struct ast_expr *}
%type simple_term {struct ast_expr *}
%type tuple {struct ast_expr *}
%type term_map {struct ast_expr *}
%type terms {struct seq *}
%type terms_opt {struct seq *}
%type map_terms {struct seq *}
%type udt_fields {struct seq *}
%type function_name {struct ast_name}
%type function_at {struct function_at}
%type plain_function {struct token}
term(A) ::= simple_term(B). { A = B; }
term(A) ::= MINUS(T) simple_term(B). { A = cqli_expr1(p, EXPR_NEG, T.text.p, B); }
term(A) ::= term(B) PLUS term(C). { A = cqli_expr2(p, EXPR_ADD, B, C); }
term(A) ::= term(B) MINUS term(C). { A = cqli_expr2(p, EXPR_SUB, B, C); }
term(A) ::= term(B) STAR term(C). { A = cqli_expr2(p, EXPR_MUL, B, C); }
term(A) ::= term(B) SLASH term(C). { A = cqli_expr2(p, EXPR_DIV, B, C); }
term(A) ::= term(B) PERCENT term(C). { A = cqli_expr2(p, EXPR_MOD, B, C); }
simple_term(A) ::= literal(B). { A = B; }
simple_term(A) ::= NULL(B). { A = cqli_null(p, B); }
simple_term(A) ::= marker(B). { A = B; }
simple_term(A) ::= LBRACKET(T) terms_opt(B) RBRACKET. { A = cqli_seq_expr(p, EXPR_LIST, T, B); }
simple_term(A) ::= LBRACE(T) terms_opt(B) RBRACE. { A = cqli_seq_expr(p, EXPR_SET, T, B); }
simple_term(A) ::= LBRACE(T) map_terms(B) RBRACE. { A = cqli_seq_expr(p, EXPR_MAP, T, B); }
simple_term(A) ::= LBRACE(T) udt_fields(B) RBRACE. { A = cqli_udt(p, T, B); }
simple_term(A) ::= tuple(B). { A = B; }
simple_term(A) ::= function_at(F) LP terms_opt(B) RP. { A = cqli_call(p, F.name, F.at, B); }
simple_term(A) ::= LP(T) hint_type(B) RP simple_term(C). { A = cqli_hint(p, T, B, C); }
simple_term(A) ::= CAST(T) LP term(B) AS type(C) RP. { A = cqli_cast(p, T, B, C); }
tuple(A) ::= LP(T) terms(B) RP. { A = cqli_seq_expr(p, EXPR_TUPLE, T, B); }
%type hint_type {struct ast_type *}
hint_type(A) ::= nm(B). { A = cqli_type(p, NULL, cqli_ident(p, B), B); }
hint_type(A) ::= nm(B) DOT nm(C). { A = cqli_type(p, cqli_ident(p, B), cqli_ident(p, C), C); }
hint_type(A) ::= generic(B). { A = B; }
function_at(A) ::= plain_function(B). { A = (struct function_at){.name = {NULL, cqli_ident(p, B)}, .at = B.text.p}; }
function_at(A) ::= nm(B) DOT plain_function(C). {
    A = (struct function_at){.name = {cqli_ident(p, B), cqli_ident(p, C)}, .at = B.text.p};
}
function_name(A) ::= function_at(B). { A = B.name; }
plain_function(A) ::= nm(B). { A = B; }
plain_function(A) ::= TOKEN(B). { A = B; }
terms(A) ::= term(B). { A = cqli_push(p, SEQ(p, struct ast_expr *), &B); }
terms(A) ::= terms(B) COMMA term(C). { A = cqli_push(p, B, &C); }
terms_opt(A) ::= . { A = SEQ(p, struct ast_expr *); }
terms_opt(A) ::= terms(B). { A = B; }
map_terms(A) ::= term(B) COLON term(C). { A = cqli_push(p, cqli_push(p, SEQ(p, struct ast_expr *), &B), &C); }
map_terms(A) ::= map_terms(B) COMMA term(C) COLON term(D). { A = cqli_push(p, cqli_push(p, B, &C), &D); }
udt_fields(A) ::= name(B) COLON term(C). {
    struct udt_field f = {.name = B, .value = C};
    A = cqli_push(p, SEQ(p, struct udt_field), &f);
}
udt_fields(A) ::= udt_fields(B) COMMA name(C) COLON term(D). {
    struct udt_field f = {.name = C, .value = D};
    A = cqli_push(p, B, &f);
}

/* ---- selectors: a postfix chain, decided in analysis ---- */

%type sel {struct ast_expr *}
%type sel_group {struct ast_expr *}
%type sel_simple {struct ast_expr *}
%type sel_paren {struct seq *}
%type sel_chain {struct ast_expr *}
%type sels {struct seq *}
%type sels_opt {struct seq *}
%type map_sels {struct seq *}
%type subscript_bound {struct ast_expr *}
sel(A) ::= sel_group(B). { A = B; }
sel(A) ::= sel(B) PLUS sel(C). { A = cqli_expr2(p, EXPR_ADD, B, C); }
sel(A) ::= sel(B) MINUS sel(C). { A = cqli_expr2(p, EXPR_SUB, B, C); }
sel(A) ::= sel(B) STAR sel(C). { A = cqli_expr2(p, EXPR_MUL, B, C); }
sel(A) ::= sel(B) SLASH sel(C). { A = cqli_expr2(p, EXPR_DIV, B, C); }
sel(A) ::= sel(B) PERCENT sel(C). { A = cqli_expr2(p, EXPR_MOD, B, C); }
sel_group(A) ::= sel_simple(B). { A = B; }
sel_group(A) ::= MINUS(T) sel_group(B). { A = cqli_expr1(p, EXPR_NEG, T.text.p, B); }
sel_simple(A) ::= literal(B). { A = B; }
sel_simple(A) ::= NULL(B). { A = cqli_null(p, B); }
sel_simple(A) ::= marker(B). { A = B; }
sel_simple(A) ::= sel_chain(B). { A = B; }
sel_simple(A) ::= LP(T) sels(B) RP. [PLUS] { A = cqli_seq_expr(p, EXPR_TUPLE, T, B); }
sel_simple(A) ::= LP(T) sels(B) RP sel_simple(C). { A = cqli_hint_expr(p, T, B, C); }
sel_simple(A) ::= LP(T) generic(B) RP sel_simple(C). { A = cqli_hint(p, T, B, C); }
sel_simple(A) ::= CAST(B). { A = cqli_column(p, "cast", B); }
sel_chain(A) ::= nm(B). { A = cqli_column(p, cqli_ident(p, B), B); }
sel_chain(A) ::= TOKEN(T) LP sels_opt(B) RP. { A = cqli_call(p, cqli_name(NULL, "token"), T.text.p, B); }
sel_chain(A) ::= CAST(T) LP sel(B) AS type(C) RP. { A = cqli_cast(p, T, B, C); }
sel_chain(A) ::= LBRACKET(T) sels_opt(B) RBRACKET. { A = cqli_seq_expr(p, EXPR_LIST, T, B); }
sel_chain(A) ::= LBRACE(T) sels_opt(B) RBRACE. { A = cqli_seq_expr(p, EXPR_SET, T, B); }
sel_chain(A) ::= LBRACE(T) map_sels(B) RBRACE. { A = cqli_seq_expr(p, EXPR_MAP, T, B); }
sel_chain(A) ::= sel_chain(B) DOT name(C). { A = cqli_field(p, B, C); }
sel_chain(A) ::= LP(T) sels(B) RP DOT name(C). { A = cqli_field(p, cqli_seq_expr(p, EXPR_TUPLE, T, B), C); }
sel_chain(A) ::= sel_chain(B) LBRACKET term(C) RBRACKET. {
    struct ast_expr *args[] = {B, C};
    A = cqli_expr(p, EXPR_ELEMENT, B->source.p, 2, args);
}
sel_chain(A) ::= sel_chain(B) LBRACKET subscript_bound(C) RANGE subscript_bound(D) RBRACKET. {
    struct ast_expr *args[] = {B, C, D};
    A = cqli_expr(p, EXPR_RANGE, B->source.p, 3, args);
}
sel_chain(A) ::= sel_chain(B) LP(T) sels_opt(C) RP. { A = cqli_call_chain(p, B, C, T); }
sel_chain(A) ::= sel_chain(B) LP STAR(T) RP. { A = cqli_call_star(p, B, T); }
subscript_bound(A) ::= . { A = NULL; }
subscript_bound(A) ::= term(B). { A = B; }
sels(A) ::= sel(B). { A = cqli_push(p, SEQ(p, struct ast_expr *), &B); }
sels(A) ::= sels(B) COMMA sel(C). { A = cqli_push(p, B, &C); }
sels_opt(A) ::= . { A = SEQ(p, struct ast_expr *); }
sels_opt(A) ::= sels(B). { A = B; }
map_sels(A) ::= sel(B) COLON sel(C). { A = cqli_push(p, cqli_push(p, SEQ(p, struct ast_expr *), &B), &C); }
map_sels(A) ::= map_sels(B) COMMA sel(C) COLON sel(D). { A = cqli_push(p, cqli_push(p, B, &C), &D); }

/* ---- SELECT ---- */

%type select {struct ast_stmt *}
%type select_list {struct seq *}
%type selectors {struct seq *}
%type selector {struct ast_selector}
%type json_opt {bool}
%type distinct_opt {bool}
%type allow_filtering {bool}
%type where_opt {struct seq *}
%type group_by {struct seq *}
%type order_by {struct seq *}
%type orderings {struct seq *}
%type ordering {struct ast_ordering}
%type order_dir {bool}
%type limit {struct ast_expr *}
%type partition_limit {struct ast_expr *}
select(A) ::= SELECT(T) json_opt(J) distinct_opt(D) select_list(L) FROM table(N) where_opt(W) group_by(G) order_by(O)
              partition_limit(P) limit(M) allow_filtering(F). {
    A = cqli_stmt(p, STMT_SELECT, T);
    A->select = (struct ast_select){
        .table = N, .json = J, .distinct = D, .allow_filtering = F, .n_selectors = L->n, .selectors = L->p, .where = cqli_where(W),
        .n_group_by = G ? G->n : 0, .group_by = G ? G->p : NULL, .n_order_by = O ? O->n : 0, .order_by = O ? O->p : NULL,
        .limit = M, .per_partition_limit = P,
    };
}
json_opt(A) ::= . { A = false; }
json_opt(A) ::= JSON. { A = true; }
distinct_opt(A) ::= . { A = false; }
distinct_opt(A) ::= DISTINCT. { A = true; }
select_list(A) ::= STAR(T). {
    struct ast_selector s = {.expr = cqli_expr(p, EXPR_STAR, T.text.p, 0, NULL)};
    A = cqli_push(p, SEQ(p, struct ast_selector), &s);
}
select_list(A) ::= selectors(B). { A = B; }
selectors(A) ::= selector(B). { A = cqli_push(p, SEQ(p, struct ast_selector), &B); }
selectors(A) ::= selectors(B) COMMA selector(C). { A = cqli_push(p, B, &C); }
selector(A) ::= sel(B). { A = (struct ast_selector){.expr = B}; }
selector(A) ::= sel(B) AS name(C). { A = (struct ast_selector){.expr = B, .alias = C}; }
where_opt(A) ::= . { A = NULL; }
where_opt(A) ::= WHERE relations(B). { A = B; }
group_by(A) ::= . { A = NULL; }
group_by(A) ::= GROUP BY sels(B). { A = B; }
order_by(A) ::= . { A = NULL; }
order_by(A) ::= ORDER BY orderings(B). { A = B; }
orderings(A) ::= ordering(B). { A = cqli_push(p, SEQ(p, struct ast_ordering), &B); }
orderings(A) ::= orderings(B) COMMA ordering(C). { A = cqli_push(p, B, &C); }
ordering(A) ::= cname(B) order_dir(D). { A = (struct ast_ordering){.column = B, .desc = D}; }
ordering(A) ::= cname(B) ANN OF term(C) order_dir(D). { A = (struct ast_ordering){.column = B, .ann_of = C, .desc = D}; }
order_dir(A) ::= . { A = false; }
order_dir(A) ::= ASC. { A = false; }
order_dir(A) ::= DESC. { A = true; }
partition_limit(A) ::= . { A = NULL; }
partition_limit(A) ::= PER PARTITION LIMIT int_value(B). { A = B; }
limit(A) ::= . { A = NULL; }
limit(A) ::= LIMIT int_value(B). { A = B; }
allow_filtering(A) ::= . { A = false; }
allow_filtering(A) ::= ALLOW FILTERING. { A = true; }

/* ---- relations ---- */

%type relations {struct seq *}
%type relation {struct ast_relation *}
%type compare {enum ast_op}
%type in_op {enum ast_op}
%type contains_op {enum ast_op}
%type in_values {struct seq *}
%type multi_value {struct ast_expr *}
%type multi_values {struct seq *}
relations(A) ::= relation(B). { A = cqli_push(p, SEQ(p, struct ast_relation *), &B); }
relations(A) ::= relations(B) AND relation(C). { A = cqli_push(p, B, &C); }
compare(A) ::= EQ. { A = OP_EQ; }
compare(A) ::= NEQ. { A = OP_NEQ; }
compare(A) ::= LT. { A = OP_LT; }
compare(A) ::= LTE. { A = OP_LTE; }
compare(A) ::= GT. { A = OP_GT; }
compare(A) ::= GTE. { A = OP_GTE; }
in_op(A) ::= IN. { A = OP_IN; }
in_op(A) ::= NOT IN. { A = OP_NOT_IN; }
contains_op(A) ::= CONTAINS. { A = OP_CONTAINS; }
contains_op(A) ::= CONTAINS KEY. { A = OP_CONTAINS_KEY; }
contains_op(A) ::= NOT CONTAINS. { A = OP_NOT_CONTAINS; }
contains_op(A) ::= NOT CONTAINS KEY. { A = OP_NOT_CONTAINS_KEY; }
in_values(A) ::= LP terms_opt(B) RP. { A = B; }

relation(A) ::= cname(B) compare(O) term(C). { A = cqli_relation(p, REL_COLUMN, cqli_one_name(p, B), O, C); }
relation(A) ::= cname(B) LIKE term(C). { A = cqli_relation(p, REL_COLUMN, cqli_one_name(p, B), OP_LIKE, C); }
relation(A) ::= cname(B) IS NOT NULL. { A = cqli_relation(p, REL_COLUMN, cqli_one_name(p, B), OP_IS_NOT_NULL, NULL); }
relation(A) ::= cname(B) contains_op(O) term(C). { A = cqli_relation(p, REL_COLUMN, cqli_one_name(p, B), O, C); }
relation(A) ::= cname(B) BETWEEN term(C) AND term(D). {
    A = cqli_relation(p, REL_COLUMN, cqli_one_name(p, B), OP_BETWEEN, C);
    A->value2 = D;
}
relation(A) ::= cname(B) in_op(O) in_values(C). { A = cqli_in(p, cqli_relation(p, REL_COLUMN, cqli_one_name(p, B), O, NULL), C); }
relation(A) ::= cname(B) in_op(O) marker(C). { A = cqli_relation(p, REL_COLUMN, cqli_one_name(p, B), O, C); }
relation(A) ::= cname(B) LBRACKET term(E) RBRACKET compare(O) term(C). {
    A = cqli_relation(p, REL_COLUMN, cqli_one_name(p, B), O, C);
    A->element = E;
}
relation(A) ::= TOKEN LP cnames(B) RP compare(O) term(C). { A = cqli_relation(p, REL_TOKEN, B, O, C); }
relation(A) ::= TOKEN LP cnames(B) RP BETWEEN term(C) AND term(D). {
    A = cqli_relation(p, REL_TOKEN, B, OP_BETWEEN, C);
    A->value2 = D;
}
relation(A) ::= LP cnames(B) RP compare(O) multi_value(C). { A = cqli_relation(p, REL_TUPLE, B, O, C); }
relation(A) ::= LP cnames(B) RP BETWEEN multi_value(C) AND multi_value(D). {
    A = cqli_relation(p, REL_TUPLE, B, OP_BETWEEN, C);
    A->value2 = D;
}
relation(A) ::= LP cnames(B) RP in_op(O) marker(C). { A = cqli_relation(p, REL_TUPLE, B, O, C); }
relation(A) ::= LP cnames(B) RP in_op(O) LP multi_values(C) RP. { A = cqli_in(p, cqli_relation(p, REL_TUPLE, B, O, NULL), C); }
relation(A) ::= LP cnames(B) RP in_op(O) LP RP. {
    A = cqli_in(p, cqli_relation(p, REL_TUPLE, B, O, NULL), SEQ(p, struct ast_expr *));
}
relation(A) ::= LP relation(B) RP. { A = B; }
relation(A) ::= EXPR name(B) COMMA term(C) RP. {
    A = cqli_relation(p, REL_CUSTOM, NULL, OP_EQ, C);
    A->index = cqli_name(NULL, B);
}
multi_value(A) ::= tuple(B). { A = B; }
multi_value(A) ::= marker(B). { A = B; }
multi_values(A) ::= multi_value(B). { A = cqli_push(p, SEQ(p, struct ast_expr *), &B); }
multi_values(A) ::= multi_values(B) COMMA multi_value(C). { A = cqli_push(p, B, &C); }

/* ---- INSERT, UPDATE, DELETE ---- */

%type dml {struct ast_stmt *}
%type insert_into {struct ast_stmt *}
%type using_opt {struct ast_using *}
%type using_items {struct ast_using *}
%type json_value {struct ast_expr *}
%type default_opt {bool}
dml(A) ::= INSERT(T) INTO table(N) LP cnames(C) RP VALUES LP terms(V) RP if_not_exists(I) using_opt(U). {
    A = cqli_stmt(p, STMT_INSERT, T);
    A->insert = (struct ast_insert){.table = N, .n_columns = C->n, .columns = C->p, .values = V->p, .using = *U};
    A->insert.conditions.if_not_exists = I;
    if (C->n != V->n) cqli_invalid(p, "Unmatched column names/values");
}
dml(A) ::= INSERT(T) INTO table(N) JSON json_value(V) default_opt(D) if_not_exists(I) using_opt(U). {
    A = cqli_stmt(p, STMT_INSERT, T);
    A->insert = (struct ast_insert){.table = N, .json = V, .json_default_unset = D, .using = *U};
    A->insert.conditions.if_not_exists = I;
}
json_value(A) ::= STRING(B). { A = cqli_literal(p, LIT_STRING, B); }
json_value(A) ::= marker(B). { A = B; }
default_opt(A) ::= . { A = false; }
default_opt(A) ::= DEFAULT NULL. { A = false; }
default_opt(A) ::= DEFAULT UNSET. { A = true; }
using_opt(A) ::= . { A = NEW(p, struct ast_using); }
using_opt(A) ::= USING using_items(B). { A = B; }
using_items(A) ::= TIMESTAMP int_value(B). { A = NEW(p, struct ast_using); A->timestamp = B; }
using_items(A) ::= TTL int_value(B). { A = NEW(p, struct ast_using); A->ttl = B; }
using_items(A) ::= using_items(B) AND TIMESTAMP int_value(C). { A = B; A->timestamp = C; }
using_items(A) ::= using_items(B) AND TTL int_value(C). { A = B; A->ttl = C; }

%type assignments {struct seq *}
%type assignment {struct ast_assignment *}
%type conditions_opt {struct ast_conditions *}
%type conditions {struct seq *}
%type condition {struct ast_relation *}
dml(A) ::= UPDATE(T) table(N) using_opt(U) SET assignments(S) WHERE relations(W) conditions_opt(C). {
    A = cqli_stmt(p, STMT_UPDATE, T);
    A->update = (struct ast_update){
        .table = N, .n_assignments = S->n, .assignments = S->p, .where = cqli_where(W), .conditions = *C, .using = *U,
    };
}
assignments(A) ::= assignment(B). { A = cqli_assign(p, SEQ(p, struct ast_assignment), B); }
assignments(A) ::= assignments(B) COMMA assignment(C). { A = cqli_assign(p, B, C); }
assignment(A) ::= cname(C) EQ term(V). {
    A = NEW(p, struct ast_assignment);
    *A = (struct ast_assignment){.op = ASSIGN_SET, .column = C, .value = V};
}
assignment(A) ::= cname(C) EQ term(V) PLUS cname(O). {
    A = NEW(p, struct ast_assignment);
    *A = (struct ast_assignment){.op = ASSIGN_PREPEND, .column = C, .operand = O, .value = V};
    cqli_assign_operand(p, A, "X = <value> + X");
}
assignment(A) ::= cname(C) EQ cname(O) PLUS term(V). {
    A = NEW(p, struct ast_assignment);
    *A = (struct ast_assignment){.op = ASSIGN_ADD, .column = C, .operand = O, .value = V};
    cqli_assign_operand(p, A, "X = X +<value>");
}
assignment(A) ::= cname(C) EQ cname(O) MINUS term(V). {
    A = NEW(p, struct ast_assignment);
    *A = (struct ast_assignment){.op = ASSIGN_SUB, .column = C, .operand = O, .value = V};
    cqli_assign_operand(p, A, "X = X -<value>");
}
assignment(A) ::= cname(C) EQ cname(O) INTEGER(V). { /* X = X -3: the sign belongs to the number */
    A = NEW(p, struct ast_assignment);
    *A = (struct ast_assignment){.op = ASSIGN_ADD, .column = C, .operand = O, .value = cqli_literal(p, LIT_INTEGER, V)};
    cqli_assign_operand(p, A, V.text.p[0] == '-' ? "X = X - <value>" : "X = X + <value>");
}
assignment(A) ::= cname(C) PLUS_EQ term(V). {
    A = NEW(p, struct ast_assignment);
    *A = (struct ast_assignment){.op = ASSIGN_ADD, .column = C, .value = V};
}
assignment(A) ::= cname(C) MINUS_EQ term(V). {
    A = NEW(p, struct ast_assignment);
    *A = (struct ast_assignment){.op = ASSIGN_SUB, .column = C, .value = V};
}
assignment(A) ::= cname(C) LBRACKET term(E) RBRACKET EQ term(V). {
    A = NEW(p, struct ast_assignment);
    *A = (struct ast_assignment){.op = ASSIGN_ELEMENT, .column = C, .element = E, .value = V};
}
assignment(A) ::= cname(C) DOT name(F) EQ term(V). {
    A = NEW(p, struct ast_assignment);
    *A = (struct ast_assignment){.op = ASSIGN_FIELD, .column = C, .field = F, .value = V};
}

conditions_opt(A) ::= . { A = NEW(p, struct ast_conditions); }
conditions_opt(A) ::= IF EXISTS. { A = NEW(p, struct ast_conditions); A->if_exists = true; }
conditions_opt(A) ::= IF conditions(B). { A = NEW(p, struct ast_conditions); A->n = B->n; A->relations = B->p; }
conditions(A) ::= condition(B). { A = cqli_push(p, SEQ(p, struct ast_relation *), &B); }
conditions(A) ::= conditions(B) AND condition(C). { A = cqli_push(p, B, &C); }
%type condition_lhs {struct ast_relation *}
condition_lhs(A) ::= cname(B). { A = cqli_relation(p, REL_COLUMN, cqli_one_name(p, B), OP_EQ, NULL); }
condition_lhs(A) ::= cname(B) LBRACKET term(E) RBRACKET. {
    A = cqli_relation(p, REL_COLUMN, cqli_one_name(p, B), OP_EQ, NULL);
    A->element = E;
}
condition_lhs(A) ::= cname(B) DOT name(F). {
    A = cqli_relation(p, REL_COLUMN, cqli_one_name(p, B), OP_EQ, NULL);
    A->field = F;
}
condition(A) ::= condition_lhs(B) compare(O) term(C). { A = B; A->op = O; A->value = C; }
condition(A) ::= condition_lhs(B) contains_op(O) term(C). { A = B; A->op = O; A->value = C; }
condition(A) ::= condition_lhs(B) in_op(O) in_values(C). { A = cqli_in(p, B, C); A->op = O; }
condition(A) ::= condition_lhs(B) in_op(O) marker(C). { A = B; A->op = O; A->value = C; }

%type deletions {struct seq *}
%type deletions_opt {struct seq *}
%type deletion {struct ast_deletion}
%type using_timestamp {struct ast_expr *}
dml(A) ::= DELETE(T) deletions_opt(D) FROM table(N) using_timestamp(U) WHERE relations(W) conditions_opt(C). {
    A = cqli_stmt(p, STMT_DELETE, T);
    A->delete_ = (struct ast_delete){.table = N, .where = cqli_where(W), .conditions = *C, .using.timestamp = U};
    if (D) A->delete_.n_deletions = D->n, A->delete_.deletions = D->p;
}
deletions_opt(A) ::= . { A = NULL; }
deletions_opt(A) ::= deletions(B). { A = B; }
deletions(A) ::= deletion(B). { A = cqli_push(p, SEQ(p, struct ast_deletion), &B); }
deletions(A) ::= deletions(B) COMMA deletion(C). { A = cqli_push(p, B, &C); }
deletion(A) ::= cname(B). { A = (struct ast_deletion){.column = B}; }
deletion(A) ::= cname(B) LBRACKET term(C) RBRACKET. { A = (struct ast_deletion){.column = B, .element = C}; }
deletion(A) ::= cname(B) DOT name(C). { A = (struct ast_deletion){.column = B, .field = C}; }
using_timestamp(A) ::= . { A = NULL; }
using_timestamp(A) ::= USING TIMESTAMP int_value(B). { A = B; }

/* ---- BATCH ---- */

%type batch {struct ast_stmt *}
%type batch_kind {enum ast_batch_kind}
%type batch_stmts {struct seq *}
%type batch_one {struct ast_stmt *}
batch(A) ::= BEGIN(T) batch_kind(K) BATCH using_opt(U) batch_stmts(S) APPLY BATCH. {
    A = cqli_stmt(p, STMT_BATCH, T);
    A->batch = (struct ast_batch){.kind = K, .n = S->n, .stmts = S->p, .using = *U};
}
batch_kind(A) ::= . { A = BATCH_LOGGED; }
batch_kind(A) ::= UNLOGGED. { A = BATCH_UNLOGGED; }
batch_kind(A) ::= COUNTER. { A = BATCH_COUNTER; }
batch_stmts(A) ::= . { A = SEQ(p, struct ast_stmt *); }
batch_stmts(A) ::= batch_stmts(B) batch_one(C) semi_opt. { A = cqli_push(p, B, &C); }
batch_one(A) ::= dml(B). { cqli_stmt_end(p, B); A = B; }
semi_opt ::= .
semi_opt ::= SEMI.

/* ---- USE, TRUNCATE, keyspaces ---- */

%type ddl {struct ast_stmt *}
ddl(A) ::= USE(T) name(N). { A = cqli_stmt(p, STMT_USE, T); A->use.keyspace = N; }
ddl(A) ::= TRUNCATE(T) table_word_opt table(N). { A = cqli_other(p, STMT_TRUNCATE, T); A->other->truncate.table = N; }
table_word_opt ::= .
table_word_opt ::= COLUMNFAMILY.
keyspace_word ::= KEYSPACE.
keyspace_word ::= SCHEMA.
ddl(A) ::= CREATE(T) keyspace_word if_not_exists(I) name(N) WITH props(P). {
    A = cqli_stmt(p, STMT_CREATE_KEYSPACE, T);
    A->keyspace = (struct ast_keyspace){.name = N, .if_not_exists = I, .props = *P};
}
ddl(A) ::= ALTER(T) keyspace_word if_exists(I) name(N) WITH props(P). {
    A = cqli_stmt(p, STMT_ALTER_KEYSPACE, T);
    A->keyspace = (struct ast_keyspace){.name = N, .if_exists = I, .props = *P};
}
ddl(A) ::= ALTER(T) keyspace_word if_exists(I) name(N) ADD nm(W) eq_opt prop_map(M). {
    A = cqli_stmt(p, STMT_ALTER_KEYSPACE, T);
    A->keyspace = (struct ast_keyspace){.name = N, .if_exists = I, .add_tags = true, .tags = M};
    if (!cqli_token_is(W, "tags")) cqli_reject(p, W, NULL);
}
ddl(A) ::= ALTER(T) keyspace_word if_exists(I) name(N) DROP nm(W) eq_opt prop_map(M). {
    A = cqli_stmt(p, STMT_ALTER_KEYSPACE, T);
    A->keyspace = (struct ast_keyspace){.name = N, .if_exists = I, .drop_tags = true, .tags = M};
    if (!cqli_token_is(W, "tags")) cqli_reject(p, W, NULL);
}
ddl(A) ::= DROP(T) keyspace_word if_exists(I) name(N). {
    A = cqli_stmt(p, STMT_DROP_KEYSPACE, T);
    A->keyspace = (struct ast_keyspace){.name = N, .if_exists = I};
}
eq_opt ::= .
eq_opt ::= EQ.

/* ---- properties ---- */

%type props {struct ast_props *}
%type props_opt {struct ast_props *}
%type prop_value {struct ast_prop_value *}
%type prop_map {struct ast_prop_value *}
%type prop_entries {struct seq *}
%type prop_item {struct ast_prop_value *}
props_opt(A) ::= . { A = cqli_props(p); }
props_opt(A) ::= WITH props(B). { A = B; }
props(A) ::= name(B) EQ prop_value(C). { A = cqli_prop_add(p, cqli_props(p), B, C); }
props(A) ::= props(B) AND name(C) EQ prop_value(D). { A = cqli_prop_add(p, B, C, D); }
prop_value(A) ::= literal(B). { A = cqli_prop_literal(p, B); }
prop_value(A) ::= IDENT(B). { A = cqli_prop_word(p, B); }
prop_value(A) ::= prop_map(B). { A = B; }
prop_map(A) ::= LBRACE RBRACE. { A = cqli_prop_map(p, SEQ(p, struct prop_entry)); }
prop_map(A) ::= LBRACE prop_entries(B) RBRACE. { A = cqli_prop_map(p, B); }
prop_entries(A) ::= prop_item(K) COLON prop_item(V). {
    struct prop_entry e = {.key = K, .value = V};
    A = cqli_push(p, SEQ(p, struct prop_entry), &e);
}
prop_entries(A) ::= prop_entries(B) COMMA prop_item(K) COLON prop_item(V). {
    struct prop_entry e = {.key = K, .value = V};
    A = cqli_push(p, B, &e);
}
prop_item(A) ::= literal(B). { A = cqli_prop_literal(p, B); }
prop_item(A) ::= prop_map(B). { A = B; }
prop_item(A) ::= marker(B). { A = cqli_prop_bind(p, B); }

/* Properties of a table or a view. */
%type table_props_opt {struct ast_props *}
%type table_props {struct ast_props *}
%type clusterings {struct seq *}
%type clustering {struct ast_ordering}
table_props_opt(A) ::= . { A = cqli_props(p); }
table_props_opt(A) ::= WITH table_props(B). { A = B; }
table_props(A) ::= name(B) EQ prop_value(C). { A = cqli_prop_add(p, cqli_props(p), B, C); }
table_props(A) ::= COMPACT STORAGE. { A = cqli_props(p); A->compact_storage = true; }
table_props(A) ::= CLUSTERING ORDER BY LP clusterings(B) RP. { A = cqli_props(p); cqli_table_props(p, A, B); }
table_props(A) ::= table_props(B) AND name(C) EQ prop_value(D). { A = cqli_prop_add(p, B, C, D); }
table_props(A) ::= table_props(B) AND COMPACT STORAGE. { A = B; A->compact_storage = true; }
table_props(A) ::= table_props(B) AND CLUSTERING ORDER BY LP clusterings(C) RP. { A = B; cqli_table_props(p, A, C); }
clusterings(A) ::= clustering(B). { A = cqli_push(p, SEQ(p, struct ast_ordering), &B); }
clusterings(A) ::= clusterings(B) COMMA clustering(C). { A = cqli_push(p, B, &C); }
clustering(A) ::= name(B) ASC. { A = (struct ast_ordering){.column = B}; }
clustering(A) ::= name(B) DESC. { A = (struct ast_ordering){.column = B, .desc = true}; }

/* ---- tables ---- */

%type table_body {struct ast_create_table *}
%type table_items {struct ast_create_table *}
%type key_columns {struct ast_create_table *}
%type column {struct ast_column *}
%type plain_column {struct ast_column *}
%type plain_columns {struct seq *}
%type is_static {bool}
%type is_primary {bool}
%type mask_opt {struct ast_column_mask *}
%type mask {struct ast_column_mask *}
ddl(A) ::= CREATE(T) COLUMNFAMILY if_not_exists(I) table(N) LP table_items(B) RP table_props_opt(P). {
    A = cqli_stmt(p, STMT_CREATE_TABLE, T);
    A->create_table = *B;
    A->create_table.table = N, A->create_table.if_not_exists = I, A->create_table.props = *P;
}
table_items(A) ::= column(C). { A = cqli_table_column(p, NEW(p, struct ast_create_table), C); }
table_items(A) ::= key_columns(B). { A = B; }
table_items(A) ::= table_items(B) COMMA. { A = B; }
table_items(A) ::= table_items(B) COMMA column(C). { A = cqli_table_column(p, B, C); }
table_items(A) ::= table_items(B) COMMA key_columns(C). { A = cqli_table_key(p, B, C); }
column(A) ::= plain_column(B) is_primary(P). { A = B; A->primary_key = P; }
plain_column(A) ::= name(B) type(C) is_static(S) mask_opt(M). {
    A = NEW(p, struct ast_column);
    *A = (struct ast_column){.name = B, .type = C, .is_static = S, .mask = M};
}
plain_columns(A) ::= plain_column(B). { A = cqli_push(p, SEQ(p, struct ast_column), B); }
plain_columns(A) ::= plain_columns(B) COMMA plain_column(C). { A = cqli_push(p, B, C); }
is_static(A) ::= . { A = false; }
is_static(A) ::= STATIC. { A = true; }
is_primary(A) ::= . { A = false; }
is_primary(A) ::= PRIMARY KEY. { A = true; }
mask_opt(A) ::= . { A = NULL; }
mask_opt(A) ::= mask(B). { A = B; }
mask(A) ::= MASKED WITH DEFAULT. { A = cqli_mask(p, cqli_name(NULL, "mask_default"), NULL); }
mask(A) ::= MASKED WITH function_name(F) LP terms_opt(B) RP. { A = cqli_mask(p, F, B); }
key_columns(A) ::= PRIMARY KEY LP partition_key(B) clustering_key(C) RP. { A = cqli_key(p, B, C); }
%type partition_key {struct seq *}
%type clustering_key {struct seq *}
partition_key(A) ::= name(B). { A = cqli_one_name(p, B); }
partition_key(A) ::= LP names(B) RP. { A = B; }
clustering_key(A) ::= . { A = NULL; }
clustering_key(A) ::= COMMA names(B). { A = B; }

%type alter_table {struct ast_stmt *}
%type drop_names {struct seq *}
%type renames {struct seq *}
%type drop_timestamp {struct ast_expr *}
alter_table(A) ::= ALTER(T) COLUMNFAMILY if_exists(I) table(N). {
    A = cqli_stmt(p, STMT_ALTER_TABLE, T);
    A->alter_table = (struct ast_alter_table){.table = N, .if_exists = I};
}
ddl(A) ::= alter_table(B) ADD if_not_exists(I) plain_column(C). { A = cqli_alter_columns(p, B, ALTER_TABLE_ADD, cqli_push(p, SEQ(p, struct ast_column), C)); A->alter_table.column_if_not_exists = I; }
ddl(A) ::= alter_table(B) ADD if_not_exists(I) LP plain_columns(C) RP. {
    A = cqli_alter_columns(p, B, ALTER_TABLE_ADD, C);
    A->alter_table.column_if_not_exists = I;
}
ddl(A) ::= alter_table(B) ADD if_not_exists nm(W) eq_opt prop_map(M). {
    A = B;
    A->alter_table.op = ALTER_TABLE_ADD_TAGS, A->alter_table.tags = M;
    if (!cqli_token_is(W, "tags")) cqli_reject(p, W, NULL);
}
ddl(A) ::= alter_table(B) DROP if_exists nm(W) eq_opt prop_map(M). {
    A = B;
    A->alter_table.op = ALTER_TABLE_DROP_TAGS, A->alter_table.tags = M;
    if (!cqli_token_is(W, "tags")) cqli_reject(p, W, NULL);
}
ddl(A) ::= alter_table(B) DROP if_exists(I) drop_names(C) drop_timestamp(D). {
    A = cqli_alter_columns(p, B, ALTER_TABLE_DROP, C);
    A->alter_table.column_if_exists = I, A->alter_table.drop_timestamp = D;
}
ddl(A) ::= alter_table(B) DROP COMPACT STORAGE. { A = B; A->alter_table.op = ALTER_TABLE_DROP_COMPACT_STORAGE; }
ddl(A) ::= alter_table(B) ALTER if_exists(I) cname(C) TYPE type(D). {
    struct ast_column c = {.name = C, .type = D};
    A = cqli_alter_columns(p, B, ALTER_TABLE_ALTER_TYPE, cqli_push(p, SEQ(p, struct ast_column), &c));
    A->alter_table.column_if_exists = I;
}
ddl(A) ::= alter_table(B) ALTER if_exists(I) cname(C) mask(M). {
    struct ast_column c = {.name = C, .mask = M};
    A = cqli_alter_columns(p, B, ALTER_TABLE_MASK, cqli_push(p, SEQ(p, struct ast_column), &c));
    A->alter_table.column_if_exists = I;
}
ddl(A) ::= alter_table(B) ALTER if_exists(I) cname(C) DROP MASKED. {
    struct ast_column c = {.name = C};
    A = cqli_alter_columns(p, B, ALTER_TABLE_DROP_MASK, cqli_push(p, SEQ(p, struct ast_column), &c));
    A->alter_table.column_if_exists = I;
}
ddl(A) ::= alter_table(B) RENAME if_exists(I) renames(C). {
    A = B;
    A->alter_table.op = ALTER_TABLE_RENAME, A->alter_table.column_if_exists = I;
    A->alter_table.n_renames = cqli_split_pairs(p, C, &A->alter_table.rename_from, &A->alter_table.rename_to);
}
ddl(A) ::= alter_table(B) WITH props(C). { A = B; A->alter_table.op = ALTER_TABLE_WITH; A->alter_table.props = *C; }
drop_names(A) ::= nm(B). {
    struct ast_column c = {.name = cqli_ident(p, B)};
    A = cqli_push(p, SEQ(p, struct ast_column), &c);
}
drop_names(A) ::= LP drop_list(B) RP. { A = B; }
%type drop_list {struct seq *}
drop_list(A) ::= name(B). {
    struct ast_column c = {.name = B};
    A = cqli_push(p, SEQ(p, struct ast_column), &c);
}
drop_list(A) ::= drop_list(B) COMMA name(C). {
    struct ast_column c = {.name = C};
    A = cqli_push(p, B, &c);
}
drop_timestamp(A) ::= . { A = NULL; }
drop_timestamp(A) ::= USING TIMESTAMP INTEGER(B). { A = cqli_literal(p, LIT_INTEGER, B); }
renames(A) ::= name(B) TO name(C). { A = cqli_push(p, cqli_push(p, SEQ(p, const char *), &B), &C); }
renames(A) ::= renames(B) AND name(C) TO name(D). { A = cqli_push(p, cqli_push(p, B, &C), &D); }

ddl(A) ::= DROP(T) COLUMNFAMILY if_exists(I) table(N). { A = cqli_stmt(p, STMT_DROP_TABLE, T); A->drop = (struct ast_drop){.name = N, .if_exists = I}; }
ddl(A) ::= RESTORE(T) COLUMNFAMILY table(N) FROM COLUMNFAMILY table(F) props_opt(P). {
    A = cqli_other(p, STMT_RESTORE_TABLE, T);
    A->other->restore = (struct ast_restore_table){.table = N, .from = F, .props = *P};
}

/* ---- types ---- */

%type type_fields {struct seq *}
%type type_field {struct ast_column}
%type alter_type {struct ast_stmt *}
ddl(A) ::= CREATE(T) TYPE if_not_exists(I) table(N) LP type_fields(F) RP. {
    A = cqli_stmt(p, STMT_CREATE_TYPE, T);
    A->create_type = (struct ast_create_type){.name = N, .if_not_exists = I};
    A->create_type.n_fields = cqli_split_columns(p, F, &A->create_type.field_names, &A->create_type.field_types);
}
type_fields(A) ::= type_field(B). { A = cqli_push(p, SEQ(p, struct ast_column), &B); }
type_fields(A) ::= type_fields(B) COMMA. { A = B; }
type_fields(A) ::= type_fields(B) COMMA type_field(C). { A = cqli_push(p, B, &C); }
type_field(A) ::= name(B) type(C). { A = (struct ast_column){.name = B, .type = C}; }
alter_type(A) ::= ALTER(T) TYPE if_exists(I) table(N). {
    A = cqli_other(p, STMT_ALTER_TYPE, T);
    A->other->alter_type = (struct ast_alter_type){.name = N, .if_exists = I};
}
ddl(A) ::= alter_type(B) ADD if_not_exists(I) name(C) type(D). {
    struct ast_alter_type *x = &B->other->alter_type;
    A = B;
    x->op = ALTER_TYPE_ADD, x->field = C, x->type = D, x->field_if_not_exists = I;
}
ddl(A) ::= alter_type(B) ALTER name(C) TYPE type(D). {
    struct ast_alter_type *x = &B->other->alter_type;
    A = B;
    x->op = ALTER_TYPE_ALTER, x->field = C, x->type = D;
}
ddl(A) ::= alter_type(B) RENAME if_exists(I) renames(C). {
    struct ast_alter_type *x = &B->other->alter_type;
    A = B;
    x->op = ALTER_TYPE_RENAME, x->field_if_exists = I;
    x->n_renames = cqli_split_pairs(p, C, &x->rename_from, &x->rename_to);
}
ddl(A) ::= DROP(T) TYPE if_exists(I) table(N). { A = cqli_stmt(p, STMT_DROP_TYPE, T); A->drop = (struct ast_drop){.name = N, .if_exists = I}; }

/* ---- indexes, views, triggers ---- */

%type custom_opt {bool}
%type index_name_opt {const char *}
%type index_targets {struct seq *}
%type index_targets_opt {struct seq *}
%type index_target {struct ast_index_target}
%type using_class_opt {struct token}
ddl(A) ::= CREATE(T) custom_opt(C) INDEX if_not_exists(I) index_name_opt(X) ON table(N) LP index_targets_opt(L) RP using_class_opt(U)
           props_opt(P). {
    A = cqli_other(p, STMT_CREATE_INDEX, T);
    A->other->create_index = (struct ast_create_index){
        .name.name = X, .table = N, .custom = C, .if_not_exists = I, .n_targets = L->n, .targets = L->p, .props = *P,
        .has_class = U.code != 0, .using_class = U.code ? cqli_token_text(p, U) : (struct slice){0},
    };
}
custom_opt(A) ::= . { A = false; }
custom_opt(A) ::= CUSTOM. { A = true; }
index_name_opt(A) ::= . { A = NULL; }
index_name_opt(A) ::= name(B). { A = B; }
index_targets_opt(A) ::= . { A = SEQ(p, struct ast_index_target); }
index_targets_opt(A) ::= index_targets(B). { A = B; }
index_targets(A) ::= index_target(B). { A = cqli_push(p, SEQ(p, struct ast_index_target), &B); }
index_targets(A) ::= index_targets(B) COMMA index_target(C). { A = cqli_push(p, B, &C); }
index_target(A) ::= cname(B). { A = (struct ast_index_target){.column = B}; }
index_target(A) ::= VALUES LP cname(B) RP. { A = (struct ast_index_target){.kind = INDEX_VALUES, .column = B}; }
index_target(A) ::= nm(K) LP cname(B) RP. {
    A = (struct ast_index_target){.kind = INDEX_KEYS, .column = B};
    if (!cqli_token_is(K, "keys")) cqli_reject(p, K, NULL);
}
index_target(A) ::= ENTRIES LP cname(B) RP. { A = (struct ast_index_target){.kind = INDEX_ENTRIES, .column = B}; }
index_target(A) ::= FULL LP cname(B) RP. { A = (struct ast_index_target){.kind = INDEX_FULL, .column = B}; }
using_class_opt(A) ::= . { A = (struct token){0}; }
using_class_opt(A) ::= USING STRING(B). { A = B; }
ddl(A) ::= DROP(T) INDEX if_exists(I) table(N). { A = cqli_stmt(p, STMT_DROP_INDEX, T); A->drop = (struct ast_drop){.name = N, .if_exists = I}; }

ddl(A) ::= CREATE(T) MATERIALIZED VIEW if_not_exists(I) table(N) AS SELECT select_list(L) FROM table(F) where_opt(W) key_columns(K)
           table_props_opt(P). {
    A = cqli_other(p, STMT_CREATE_VIEW, T);
    A->other->create_view = (struct ast_create_view){
        .name = N, .table = F, .if_not_exists = I, .n_selectors = L->n, .selectors = L->p, .where = cqli_where(W),
        .n_partition_key = K->n_partition_key, .n_clustering = K->n_clustering, .partition_key = K->partition_key,
        .clustering = K->clustering, .props = *P,
    };
}
ddl(A) ::= ALTER(T) MATERIALIZED VIEW if_exists(I) table(N) WITH props(P). {
    A = cqli_other(p, STMT_ALTER_VIEW, T);
    A->other->alter_view = (struct ast_alter_view){.name = N, .if_exists = I, .props = *P};
}
ddl(A) ::= DROP(T) MATERIALIZED VIEW if_exists(I) table(N). { A = cqli_stmt(p, STMT_DROP_VIEW, T); A->drop = (struct ast_drop){.name = N, .if_exists = I}; }

ddl(A) ::= CREATE(T) TRIGGER if_not_exists(I) name(X) ON table(N) USING STRING(C). {
    A = cqli_other(p, STMT_CREATE_TRIGGER, T);
    A->other->trigger = (struct ast_trigger){.name = X, .table = N, .if_not_exists = I, .using_class = cqli_token_text(p, C)};
}
ddl(A) ::= DROP(T) TRIGGER if_exists(I) name(X) ON table(N). {
    A = cqli_other(p, STMT_DROP_TRIGGER, T);
    A->other->trigger = (struct ast_trigger){.name = X, .table = N, .if_exists = I};
}

/* ---- functions and aggregates ---- */

%type or_replace {bool}
%type function_args {struct seq *}
%type function_args_opt {struct seq *}
%type types {struct seq *}
%type types_opt {struct seq *}
%type type_list_opt {struct seq *}
%type on_null {bool}
%type function_id {const char *}
%type final_opt {const char *}
%type init_opt {struct ast_expr *}
function_id(A) ::= plain_function(B). { A = cqli_ident(p, B); }
ddl(A) ::= CREATE(T) or_replace(R) FUNCTION if_not_exists(I) function_name(N) LP function_args_opt(L) RP on_null(O) ON NULL INPUT
           RETURNS type(Y) LANGUAGE IDENT(G) AS STRING(S). {
    A = cqli_other(p, STMT_CREATE_FUNCTION, T);
    struct ast_create_function *f = &A->other->create_function;
    *f = (struct ast_create_function){
        .name = N, .or_replace = R, .if_not_exists = I, .called_on_null = O, .returns = Y, .language = cqli_ident(p, G), .body = cqli_token_text(p, S),
    };
    f->n_args = cqli_split_columns(p, L, &f->arg_names, &f->arg_types);
}
or_replace(A) ::= . { A = false; }
or_replace(A) ::= OR REPLACE. { A = true; }
function_args_opt(A) ::= . { A = SEQ(p, struct ast_column); }
function_args_opt(A) ::= function_args(B). { A = B; }
function_args(A) ::= type_field(B). { A = cqli_push(p, SEQ(p, struct ast_column), &B); }
function_args(A) ::= function_args(B) COMMA type_field(C). { A = cqli_push(p, B, &C); }
on_null(A) ::= RETURNS NULL. { A = false; }
on_null(A) ::= CALLED. { A = true; }
ddl(A) ::= CREATE(T) or_replace(R) AGGREGATE if_not_exists(I) function_name(N) LP types_opt(L) RP SFUNC function_id(F) STYPE type(Y)
           final_opt(X) init_opt(V). {
    A = cqli_other(p, STMT_CREATE_AGGREGATE, T);
    A->other->create_aggregate = (struct ast_create_aggregate){
        .name = N, .or_replace = R, .if_not_exists = I, .n_args = L->n, .arg_types = L->p, .sfunc = F, .finalfunc = X, .stype = Y,
        .initcond = V,
    };
}
final_opt(A) ::= . { A = NULL; }
final_opt(A) ::= FINALFUNC function_id(B). { A = B; }
init_opt(A) ::= . { A = NULL; }
init_opt(A) ::= INITCOND term(B). { A = B; }
types_opt(A) ::= . { A = SEQ(p, struct ast_type *); }
types_opt(A) ::= types(B). { A = B; }
types(A) ::= type(B). { A = cqli_push(p, SEQ(p, struct ast_type *), &B); }
types(A) ::= types(B) COMMA type(C). { A = cqli_push(p, B, &C); }
type_list_opt(A) ::= . { A = NULL; }
type_list_opt(A) ::= LP types_opt(B) RP. { A = B; }
%type drop_function_kind {enum stmt_kind}
drop_function_kind(A) ::= FUNCTION. { A = STMT_DROP_FUNCTION; }
drop_function_kind(A) ::= AGGREGATE. { A = STMT_DROP_AGGREGATE; }
ddl(A) ::= DROP(T) drop_function_kind(K) if_exists(I) function_name(N) type_list_opt(L). {
    A = cqli_other(p, K, T);
    A->other->drop_function = (struct ast_drop_function){.name = N, .if_exists = I, .has_args = L != NULL};
    if (L) A->other->drop_function.n_args = L->n, A->other->drop_function.arg_types = L->p;
}

/* ---- DESCRIBE ---- */

%type describe {struct ast_stmt *}
%type describe_what {struct ast_describe}
%type internals {bool}
describe(A) ::= describe_word(T) describe_what(D) internals(I). {
    A = cqli_stmt(p, STMT_DESCRIBE, T);
    A->describe = D;
    A->describe.internals = I;
}
%type describe_word {struct token}
describe_word(A) ::= DESCRIBE(B). { A = B; }
describe_word(A) ::= DESC(B). { A = B; }
internals(A) ::= . { A = false; }
internals(A) ::= WITH INTERNALS. { A = true; }
describe_what(A) ::= CLUSTER. { A = (struct ast_describe){.kind = DESCRIBE_CLUSTER}; }
describe_what(A) ::= SCHEMA. { A = (struct ast_describe){.kind = DESCRIBE_SCHEMA}; }
describe_what(A) ::= FULL SCHEMA. { A = (struct ast_describe){.kind = DESCRIBE_SCHEMA, .full = true}; }
describe_what(A) ::= KEYSPACES. { A = (struct ast_describe){.kind = DESCRIBE_KEYSPACES}; }
describe_what(A) ::= KEYSPACE keyspace_opt(N). { A = (struct ast_describe){.kind = DESCRIBE_KEYSPACE, .name.name = N}; }
describe_what(A) ::= ONLY KEYSPACE keyspace_opt(N). { A = (struct ast_describe){.kind = DESCRIBE_KEYSPACE, .only = true, .name.name = N}; }
describe_what(A) ::= TABLES. { A = (struct ast_describe){.kind = DESCRIBE_TABLES}; }
describe_what(A) ::= COLUMNFAMILY table(N). { A = (struct ast_describe){.kind = DESCRIBE_TABLE, .name = N}; }
describe_what(A) ::= INDEX table(N). { A = (struct ast_describe){.kind = DESCRIBE_INDEX, .name = N}; }
describe_what(A) ::= MATERIALIZED VIEW table(N). { A = (struct ast_describe){.kind = DESCRIBE_VIEW, .name = N}; }
describe_what(A) ::= TYPES. { A = (struct ast_describe){.kind = DESCRIBE_TYPES}; }
describe_what(A) ::= TYPE table(N). { A = (struct ast_describe){.kind = DESCRIBE_TYPE, .name = N}; }
describe_what(A) ::= FUNCTIONS. { A = (struct ast_describe){.kind = DESCRIBE_FUNCTIONS}; }
describe_what(A) ::= FUNCTION function_name(N). { A = (struct ast_describe){.kind = DESCRIBE_FUNCTION, .name = N}; }
describe_what(A) ::= AGGREGATES. { A = (struct ast_describe){.kind = DESCRIBE_AGGREGATES}; }
describe_what(A) ::= AGGREGATE function_name(N). { A = (struct ast_describe){.kind = DESCRIBE_AGGREGATE, .name = N}; }
describe_what(A) ::= name(N). { A = (struct ast_describe){.kind = DESCRIBE_GENERIC, .name.name = N}; }
describe_what(A) ::= name(K) DOT name(N). { A = (struct ast_describe){.kind = DESCRIBE_GENERIC, .name = {K, N}}; }
%type keyspace_opt {const char *}
keyspace_opt(A) ::= . { A = NULL; }
keyspace_opt(A) ::= name(B). { A = B; }

/* ---- roles, users, permissions, identities ---- */

%type access {struct ast_stmt *}
%type role_name {const char *}
%type user_name {const char *}
%type role_options_opt {struct ast_role_options *}
%type role_options {struct ast_role_options *}
%type role_option {struct ast_role_options *}
%type user_options {struct ast_role_options *}
%type user_super {struct ast_role_options *}
%type strings {struct seq *}
role_name(A) ::= name(B). { A = B; }
role_name(A) ::= STRING(B). { A = cqli_ident(p, B); }
role_name(A) ::= QMARK(B). { A = cqli_ident(p, B); cqli_refuse(p, "Bind variables cannot be used for role names"); }
user_name(A) ::= IDENT(B). { A = cqli_exact(p, B); }
user_name(A) ::= STRING(B). { A = cqli_ident(p, B); }
user_name(A) ::= QNAME(B). {
    A = cqli_ident(p, B);
    cqli_refuse(p, "Quoted strings are are not supported for user names and USER is deprecated, please use ROLE");
}
access(A) ::= CREATE(T) ROLE if_not_exists(I) role_name(N) role_options_opt(O). {
    A = cqli_other(p, STMT_CREATE_ROLE, T);
    A->other->role = (struct ast_role){.name = N, .if_not_exists = I, .options = *O};
}
access(A) ::= ALTER(T) ROLE if_exists(I) role_name(N) role_options_opt(O). {
    A = cqli_other(p, STMT_ALTER_ROLE, T);
    A->other->role = (struct ast_role){.name = N, .if_exists = I, .options = *O};
}
access(A) ::= DROP(T) ROLE if_exists(I) role_name(N). {
    A = cqli_other(p, STMT_DROP_ROLE, T);
    A->other->role = (struct ast_role){.name = N, .if_exists = I};
}
access(A) ::= CREATE(T) USER if_not_exists(I) user_name(N) user_options(O). {
    A = cqli_other(p, STMT_CREATE_ROLE, T);
    A->other->role = (struct ast_role){.name = N, .user = true, .if_not_exists = I, .options = *O};
}
access(A) ::= ALTER(T) USER if_exists(I) user_name(N) user_options(O). {
    A = cqli_other(p, STMT_ALTER_ROLE, T);
    A->other->role = (struct ast_role){.name = N, .user = true, .if_exists = I, .options = *O};
}
access(A) ::= DROP(T) USER if_exists(I) user_name(N). {
    A = cqli_other(p, STMT_DROP_ROLE, T);
    A->other->role = (struct ast_role){.name = N, .user = true, .if_exists = I};
}
user_options(A) ::= user_super(B). { A = B; }
user_options(A) ::= WITH PASSWORD STRING(S) user_super(B). { A = B; A->given |= ROLE_PASSWORD; A->password = cqli_token_text(p, S); }
user_options(A) ::= WITH HASHED PASSWORD STRING(S) user_super(B). { A = B; A->given |= ROLE_HASHED_PASSWORD; A->password = cqli_token_text(p, S); }
user_options(A) ::= WITH GENERATED PASSWORD user_super(B). { A = B; A->given |= ROLE_GENERATED_PASSWORD; }
user_super(A) ::= . { A = NEW(p, struct ast_role_options); }
user_super(A) ::= SUPERUSER. { A = NEW(p, struct ast_role_options); A->given = ROLE_SUPERUSER; A->superuser = true; }
user_super(A) ::= NOSUPERUSER. { A = NEW(p, struct ast_role_options); A->given = ROLE_SUPERUSER; }
role_options_opt(A) ::= . { A = NEW(p, struct ast_role_options); }
role_options_opt(A) ::= WITH role_options(B). { A = B; }
role_options(A) ::= role_option(B). { A = cqli_role_options(p, NEW(p, struct ast_role_options), B); }
role_options(A) ::= role_options(B) AND role_option(C). { A = cqli_role_options(p, B, C); }
role_option(A) ::= PASSWORD EQ STRING(S). { A = cqli_role_option(p, ROLE_PASSWORD); A->password = cqli_token_text(p, S); }
role_option(A) ::= HASHED PASSWORD EQ STRING(S). { A = cqli_role_option(p, ROLE_HASHED_PASSWORD); A->password = cqli_token_text(p, S); }
role_option(A) ::= GENERATED PASSWORD. { A = cqli_role_option(p, ROLE_GENERATED_PASSWORD); }
role_option(A) ::= OPTIONS EQ prop_map(M). { A = cqli_role_option(p, ROLE_OPTIONS); A->options = M; }
role_option(A) ::= SUPERUSER EQ BOOLEAN(B). { A = cqli_role_option(p, ROLE_SUPERUSER); A->superuser = cqli_token_is(B, "true"); }
role_option(A) ::= LOGIN EQ BOOLEAN(B). { A = cqli_role_option(p, ROLE_LOGIN); A->login = cqli_token_is(B, "true"); }
role_option(A) ::= ACCESS TO ALL DATACENTERS. { A = cqli_role_option(p, ROLE_DATACENTERS); A->all_datacenters = true; }
role_option(A) ::= ACCESS TO DATACENTERS LBRACE strings(S) RBRACE. {
    A = cqli_role_option(p, ROLE_DATACENTERS);
    A->n_datacenters = S->n, A->datacenters = S->p;
}
role_option(A) ::= ACCESS FROM ALL CIDRS. { A = cqli_role_option(p, ROLE_CIDRS); A->all_cidrs = true; }
role_option(A) ::= ACCESS FROM CIDRS LBRACE strings(S) RBRACE. {
    A = cqli_role_option(p, ROLE_CIDRS);
    A->n_cidrs = S->n, A->cidrs = S->p;
}
strings(A) ::= STRING(B). { struct slice s = cqli_token_text(p, B); A = cqli_push(p, SEQ(p, struct slice), &s); }
strings(A) ::= strings(B) COMMA STRING(C). { struct slice s = cqli_token_text(p, C); A = cqli_push(p, B, &s); }

%type permission {enum ast_permission}
%type permissions {struct seq *}
%type permission_list {struct ast_permissions}
%type resource {struct ast_resource}
permission(A) ::= CREATE. { A = PERMISSION_CREATE; }
permission(A) ::= ALTER. { A = PERMISSION_ALTER; }
permission(A) ::= DROP. { A = PERMISSION_DROP; }
permission(A) ::= SELECT. { A = PERMISSION_SELECT; }
permission(A) ::= MODIFY. { A = PERMISSION_MODIFY; }
permission(A) ::= AUTHORIZE. { A = PERMISSION_AUTHORIZE; }
permission(A) ::= DESCRIBE. { A = PERMISSION_DESCRIBE; }
permission(A) ::= EXECUTE. { A = PERMISSION_EXECUTE; }
permission(A) ::= UNMASK. { A = PERMISSION_UNMASK; }
permission(A) ::= SELECT_MASKED. { A = PERMISSION_SELECT_MASKED; }
permission_word_opt ::= .
permission_word_opt ::= PERMISSION.
permissions(A) ::= permission(B) permission_word_opt. { A = cqli_push(p, SEQ(p, enum ast_permission), &B); }
permissions(A) ::= permissions(B) COMMA permission(C) permission_word_opt. { A = cqli_push(p, B, &C); }
permission_list(A) ::= ALL. { A = (struct ast_permissions){0}; }
permission_list(A) ::= ALL PERMISSIONS. { A = (struct ast_permissions){0}; }
permission_list(A) ::= permissions(B). { A = (struct ast_permissions){.n = B->n, .items = B->p}; }
resource(A) ::= ALL KEYSPACES. { A = (struct ast_resource){.kind = RESOURCE_ALL_KEYSPACES}; }
resource(A) ::= KEYSPACE name(N). { A = (struct ast_resource){.kind = RESOURCE_KEYSPACE, .name.name = N}; }
resource(A) ::= ALL TABLES IN KEYSPACE name(N). { A = (struct ast_resource){.kind = RESOURCE_ALL_TABLES, .name.name = N}; }
resource(A) ::= COLUMNFAMILY table(N). { A = (struct ast_resource){.kind = RESOURCE_TABLE, .name = N}; }
resource(A) ::= table(N). { A = (struct ast_resource){.kind = RESOURCE_TABLE, .name = N}; }
resource(A) ::= ALL ROLES. { A = (struct ast_resource){.kind = RESOURCE_ALL_ROLES}; }
resource(A) ::= ROLE role_name(N). { A = (struct ast_resource){.kind = RESOURCE_ROLE, .name.name = N}; }
resource(A) ::= ALL FUNCTIONS. { A = (struct ast_resource){.kind = RESOURCE_ALL_FUNCTIONS}; }
resource(A) ::= ALL FUNCTIONS IN KEYSPACE name(N). { A = (struct ast_resource){.kind = RESOURCE_ALL_FUNCTIONS_IN, .name.name = N}; }
resource(A) ::= FUNCTION function_name(N) LP types_opt(L) RP. {
    A = (struct ast_resource){.kind = RESOURCE_FUNCTION, .name = N, .n_args = L->n, .arg_types = L->p};
}
resource(A) ::= ALL MBEANS. { A = (struct ast_resource){.kind = RESOURCE_ALL_MBEANS}; }
resource(A) ::= MBEAN STRING(S). { A = (struct ast_resource){.kind = RESOURCE_MBEAN, .mbean = cqli_token_text(p, S)}; }
resource(A) ::= MBEANS STRING(S). { A = (struct ast_resource){.kind = RESOURCE_MBEANS, .mbean = cqli_token_text(p, S)}; }
access(A) ::= GRANT(T) permission_list(L) ON resource(R) TO role_name(N). {
    A = cqli_other(p, STMT_GRANT, T);
    A->other->grant = (struct ast_grant){.permissions = L, .resource = R, .grantee = N};
}
access(A) ::= REVOKE(T) permission_list(L) ON resource(R) FROM role_name(N). {
    A = cqli_other(p, STMT_REVOKE, T);
    A->other->grant = (struct ast_grant){.permissions = L, .resource = R, .grantee = N};
}
access(A) ::= GRANT(T) role_name(G) TO role_name(N). {
    A = cqli_other(p, STMT_GRANT, T);
    A->other->grant = (struct ast_grant){.granted_role = G, .grantee = N};
}
access(A) ::= REVOKE(T) role_name(G) FROM role_name(N). {
    A = cqli_other(p, STMT_REVOKE, T);
    A->other->grant = (struct ast_grant){.granted_role = G, .grantee = N};
}
%type on_opt {struct ast_resource}
%type of_opt {const char *}
%type norecursive {bool}
access(A) ::= LIST(T) permission_list(L) on_opt(R) of_opt(O) norecursive(N). {
    A = cqli_other(p, STMT_LIST, T);
    A->other->list = (struct ast_list){.kind = LIST_PERMISSIONS, .permissions = L, .resource = R, .of = O, .norecursive = N};
}
access(A) ::= LIST(T) ROLES of_opt(O) norecursive(N). {
    A = cqli_other(p, STMT_LIST, T);
    A->other->list = (struct ast_list){.kind = LIST_ROLES, .of = O, .norecursive = N};
}
access(A) ::= LIST(T) USERS. { A = cqli_other(p, STMT_LIST, T); A->other->list.kind = LIST_USERS; }
access(A) ::= LIST(T) SUPERUSERS. { A = cqli_other(p, STMT_LIST, T); A->other->list.kind = LIST_SUPERUSERS; }
on_opt(A) ::= . { A = (struct ast_resource){0}; }
on_opt(A) ::= ON resource(B). { A = B; }
of_opt(A) ::= . { A = NULL; }
of_opt(A) ::= OF role_name(B). { A = B; }
norecursive(A) ::= . { A = false; }
norecursive(A) ::= NORECURSIVE. { A = true; }

%type identity {struct token}
identity(A) ::= IDENT(B). { A = B; }
identity(A) ::= STRING(B). { A = B; }
identity(A) ::= QNAME(B). { A = B; cqli_refuse(p, "Quoted strings are are not supported for identity"); }
access(A) ::= ADD(T) IDENTITY if_not_exists(I) identity(U) TO ROLE identity(R). {
    A = cqli_other(p, STMT_ADD_IDENTITY, T);
    A->other->identity = (struct ast_identity){.identity = cqli_token_text(p, U), .role = cqli_exact(p, R), .if_not_exists = I};
}
access(A) ::= DROP(T) IDENTITY if_exists(I) identity(U). {
    A = cqli_other(p, STMT_DROP_IDENTITY, T);
    A->other->identity = (struct ast_identity){.identity = cqli_token_text(p, U), .if_exists = I};
}

%code {
/* What may stand in a state: tokens that are shifted, and the rule by which it reduces (-1: none, -2: several). */
static int look_at_state(int state, bool *shifts) {
    int rule = -1;
    for (int t = 0; t < YYNTOKEN; t++) {
        int i = yy_shift_ofst[state] + t;
        shifts[t] = false;
        if (yy_lookahead[i] != t) continue;
        int act = yy_action[i];
        if (act == YY_ACCEPT_ACTION || act <= YY_MAX_SHIFTREDUCE) shifts[t] = true;
        else if (act >= YY_MIN_REDUCE) rule = rule == -1 || rule == act - YY_MIN_REDUCE ? act - YY_MIN_REDUCE : -2;
    }
    return rule;
}

/* Leaves every optional part that the parser stands in, as Cassandra's LL parser would before it names the token it wants. */
static void find_expected(struct parse *p, yyParser *y) {
    YYACTIONTYPE states[YYSTACKDEPTH];
    int n = 0;
    for (yyStackEntry *e = y->yystack; e <= y->yytos; e++) states[n++] = e->stateno;
    for (int step = 0; step < YYSTACKDEPTH; step++) {
        if (states[n - 1] == YY_ACCEPT_ACTION) { /* a whole statement: only its end can follow */
            memset(p->shifts, 0, sizeof(p->shifts));
            p->shifts[0] = true;
            break;
        }
        int rule = states[n - 1] > YY_MAX_SHIFT ? states[n - 1] - YY_MIN_REDUCE : look_at_state(states[n - 1], p->shifts);
        if (p->shifts[T_PLUS] && p->shifts[T_STAR]) p->after_term = true;
        if (rule < 0) break;
        n += yyRuleInfoNRhs[rule];
        if (n < 1 || n >= YYSTACKDEPTH) break;
        states[n] = yy_find_reduce_action(states[n - 1], yyRuleInfoLhs[rule]);
        n++;
    }
}

/* One run of lemon over the tokens of p. Here because the parser's struct and tables are private to this file. */
void cqli_run(struct parse *p, struct token (*next)(struct parse *p)) {
    yyParser y;
    cqli_lemonInit(&y);
    for (;;) {
        struct token t = next(p);
        if (t.code == T_ERROR) break;
        cqli_lemon(&y, t.code, t, p);
        if (p->failed || p->rejected) break;
        p->prev = t;
        if (!t.code) break;
    }
    if (p->rejected && !p->expecting) find_expected(p, &y);
    cqli_lemonFinalize(&y);
}

_Static_assert(YYNTOKEN <= PARSE_TOKENS_MAX, "shifts holds every token");

bool cqli_falls_back(uint16_t code) { return code < YYNTOKEN && cqli_lemonFallback(code) == T_IDENT; }
}
