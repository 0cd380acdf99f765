/* The grammar of CQL (Cassandra 3.11 to 5.0, and what Amazon Keyspaces adds). Actions only build nodes; what a name means is decided later.
 *
 * Terms (values) and selectors are two grammars, as in Cassandra: a bare name is a selector and never a term. COUNT, TTL, WRITETIME,
 * MAP, FROZEN and the type names are plain identifiers here. JSON and DISTINCT after SELECT may also be columns; parse.c decides
 * by the next token.
 *
 * grammar_schema.y and grammar_access.y contain the rest; the build joins the three. */
%name cqli_lemon
%token_prefix T_
%token_type {struct token}
%extra_argument {struct parse *p}
%start_symbol input
%stack_size 1600
%include {
#include "cql/syntax/build.h"
#include "cql/syntax/grammar.h"
#define cqli_lemon_ENGINEALWAYSONSTACK 1
#define YYNOERRORRECOVERY 1
#ifndef NDEBUG
#define NDEBUG 1 /* lemon's own trace and name tables */
#endif
static const char no_keyspace_marker[] = "Bind variables cannot be used for keyspace names";
}
%syntax_error {
  /* what has an action in the parser's state, but for what falls back to IDENT */
  bool can[YYNTOKEN];
  int row = yy_shift_ofst[yypParser->yytos->stateno];
  for (int code = 0; code < YYNTOKEN; code++)
    can[code] = row + code >= 0 && row + code < YY_NLOOKAHEAD && yy_lookahead[row + code] == code;
  cqli_reject_by_table(p, TOKEN, can, YYNTOKEN);
}
%stack_overflow { cqli_refuse(p, "The statement is nested too deeply"); }

%fallback IDENT ACCESS AGGREGATE AGGREGATES ALL ANN AS CALLED CAST CIDRS CLUSTER CLUSTERING COMPACT
  CONTAINS COUNTER CUSTOM DATACENTERS DEFAULT DISTINCT EXISTS FILTERING FINALFUNC FUNCTION FUNCTIONS
  GROUP HASHED IDENTITY INITCOND INPUT INTERNALS JSON KEY KEYSPACES LANGUAGE LIKE LIST LOGIN MASKED MBEAN
  MBEANS NOSUPERUSER ONLY OPTIONS PARTITION PASSWORD PER PERMISSION PERMISSIONS REPLACE RESTORE RETURNS ROLE
  ROLES SELECT_MASKED SFUNC STATIC STORAGE STYPE SUPERUSER TABLES TIMESTAMP TRIGGER TTL TYPE TYPES
  UNMASK UNSET USER USERS VALUES.

%token ENTRIES FULL NORECURSIVE EXPR EMPTY_NAME.
%left PLUS MINUS.
%left STAR SLASH PERCENT.
%nonassoc COLON. /* (type) :marker, rather than (key) : value in a map of a selector */

%type nm {struct token}
%type cnm {struct token}
%type name {const char *}
%type keyspace {const char *}
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
keyspace(A) ::= name(B). { A = B; }
keyspace(A) ::= QMARK(B). { A = cqli_ident(p, B); cqli_refuse(p, no_keyspace_marker); }
cname(A) ::= cnm(B). { A = cqli_ident(p, B); }
table(A) ::= name(B). { A = cqli_name(NULL, B); }
table(A) ::= name(B) DOT name(C). { A = cqli_name(B, C); }
table(A) ::= QMARK(T). { A = cqli_name(NULL, cqli_ident(p, T)); cqli_refuse(p, "Bind variables cannot be used for table names"); }
table(A) ::= QMARK(T) DOT name(C). { A = cqli_name(cqli_ident(p, T), C); cqli_refuse(p, no_keyspace_marker); }
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
simple_term(A) ::= CAST(T) LP term(B) AS cast_type(C) RP. { A = cqli_cast(p, T, B, C); }
%type cast_type {struct ast_type *}
cast_type(A) ::= nm(B). { A = cqli_native_type(p, B); }
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
plain_function(A) ::= nm(B). { A = B; if (cqli_is_no_function(B.text)) cqli_reject(p, B); }
plain_function(A) ::= TOKEN(B). { A = B; }
terms(A) ::= term(B). { A = cqli_push(p, SEQ(p, struct ast_expr *), &B); }
terms(A) ::= terms(B) COMMA term(C). { A = cqli_push(p, B, &C); }
terms_opt(A) ::= . { A = SEQ(p, struct ast_expr *); }
terms_opt(A) ::= terms(B). { A = B; }
map_terms(A) ::= term(B) COLON term(C). { A = cqli_push(p, cqli_push(p, SEQ(p, struct ast_expr *), &B), &C); }
map_terms(A) ::= map_terms(B) COMMA term(C) COLON term(D). { A = cqli_push(p, cqli_push(p, B, &C), &D); }
%type field_name {const char *}
field_name(A) ::= name(B). { A = B; }
field_name(A) ::= CAST(B). { A = cqli_ident(p, B); }
udt_fields(A) ::= field_name(B) COLON term(C). {
    struct udt_field f = {.name = B, .value = C};
    A = cqli_push(p, SEQ(p, struct udt_field), &f);
}
udt_fields(A) ::= udt_fields(B) COMMA field_name(C) COLON term(D). {
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
sel_simple(A) ::= sel_chain(B). { A = B; }
sel_simple(A) ::= LP(T) sels(B) RP. [PLUS] { A = cqli_seq_expr(p, EXPR_TUPLE, T, B); }
sel_simple(A) ::= LP(T) sels(B) RP sel_simple(C). { A = cqli_hint_expr(p, T, B, C); }
sel_simple(A) ::= LP(T) generic(B) RP sel_simple(C). { A = cqli_hint(p, T, B, C); }
sel_simple(A) ::= CAST(B). { A = cqli_column(p, "cast", B); }
sel_chain(A) ::= literal(B). { A = B; }
sel_chain(A) ::= NULL(B). { A = cqli_null(p, B); }
sel_chain(A) ::= marker(B). { A = B; }
sel_chain(A) ::= nm(B). { A = cqli_column(p, cqli_ident(p, B), B); }
sel_chain(A) ::= TOKEN(T) LP sels_opt(B) RP. { A = cqli_call(p, cqli_name(NULL, "token"), T.text.p, B); }
sel_chain(A) ::= CAST(B) DOT name(C). { A = cqli_field(p, cqli_column(p, "cast", B), C); }
sel_chain(A) ::= CAST(T) LP sel(B) AS cast_type(C) RP. { A = cqli_cast(p, T, B, C); }
sel_chain(A) ::= LBRACKET(T) sels_opt(B) RBRACKET. { A = cqli_seq_expr(p, EXPR_LIST, T, B); }
sel_chain(A) ::= LBRACE(T) sels_opt(B) RBRACE. { A = cqli_seq_expr(p, EXPR_SET, T, B); }
sel_chain(A) ::= LBRACE(T) map_sels(B) RBRACE. { A = cqli_seq_expr(p, EXPR_MAP, T, B); }
sel_chain(A) ::= sel_chain(B) DOT name(C). { A = cqli_field(p, B, C); }
sel_chain(A) ::= LP(T) sels(B) RP DOT name(C). { A = cqli_field(p, cqli_seq_expr(p, EXPR_TUPLE, T, B), C); }
sel_chain(A) ::= sel_chain(B) LBRACKET term(C) RBRACKET. {
    struct ast_expr *args[] = {B, C};
    A = cqli_expr(p, EXPR_ELEMENT, B->source.p, 2, args);
}
sel_chain(A) ::= sel_chain(B) LBRACKET(T) subscript_bound(C) RANGE subscript_bound(D) RBRACKET. {
    if (!C && !D) cqli_reject(p, T);
    struct ast_expr *args[] = {B, C, D};
    A = cqli_expr(p, EXPR_RANGE, B->source.p, 3, args);
}
sel_chain(A) ::= sel_chain(B) DOT TOKEN LP(T) sels_opt(C) RP. { A = cqli_call_chain(p, cqli_field(p, B, "token"), C, T); }
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
contains_op(A) ::= CONTAINS. { A = OP_CONTAINS; }
contains_op(A) ::= CONTAINS KEY. { A = OP_CONTAINS_KEY; }
in_values(A) ::= LP terms_opt(B) RP. { A = B; }

relation(A) ::= cname(B) compare(O) term(C). { A = cqli_relation(p, REL_COLUMN, cqli_one_name(p, B), O, C); }
relation(A) ::= cname(B) LIKE term(C). { A = cqli_relation(p, REL_COLUMN, cqli_one_name(p, B), OP_LIKE, C); }
relation(A) ::= cname(B) IS NOT NULL. { A = cqli_relation(p, REL_COLUMN, cqli_one_name(p, B), OP_IS_NOT_NULL, NULL); }
relation(A) ::= cname(B) contains_op(O) term(C). { A = cqli_relation(p, REL_COLUMN, cqli_one_name(p, B), O, C); }
relation(A) ::= cname(B) in_op(O) in_values(C). { A = cqli_in(p, cqli_relation(p, REL_COLUMN, cqli_one_name(p, B), O, NULL), C); }
relation(A) ::= cname(B) in_op(O) marker(C). { A = cqli_relation(p, REL_COLUMN, cqli_one_name(p, B), O, C); }
relation(A) ::= cname(B) LBRACKET term(E) RBRACKET compare(O) term(C). {
    A = cqli_relation(p, REL_COLUMN, cqli_one_name(p, B), O, C);
    A->element = E;
}
relation(A) ::= TOKEN LP cnames(B) RP compare(O) term(C). { A = cqli_relation(p, REL_TOKEN, B, O, C); }
relation(A) ::= LP cnames(B) RP compare(O) multi_value(C). { A = cqli_relation(p, REL_TUPLE, B, O, C); }
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
    A->insert.unmatched = C->n != V->n;
    if (V->n < C->n) A->insert.n_columns = V->n;
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
%type condition_column {const char *}
condition_column(A) ::= cname(B). { A = B; }
condition_column(A) ::= EXISTS(B). { A = cqli_ident(p, B); }
%type condition_lhs {struct ast_relation *}
condition_lhs(A) ::= condition_column(B). { A = cqli_relation(p, REL_COLUMN, cqli_one_name(p, B), OP_EQ, NULL); }
condition_lhs(A) ::= condition_column(B) LBRACKET term(E) RBRACKET. {
    A = cqli_relation(p, REL_COLUMN, cqli_one_name(p, B), OP_EQ, NULL);
    A->element = E;
}
condition_lhs(A) ::= condition_column(B) DOT name(F). {
    A = cqli_relation(p, REL_COLUMN, cqli_one_name(p, B), OP_EQ, NULL);
    A->field = F;
}
condition(A) ::= condition_lhs(B) compare(O) term(C). { A = B; A->op = O; A->value = C; }
condition(A) ::= condition_column(B) contains_op(O) term(C). { A = cqli_relation(p, REL_COLUMN, cqli_one_name(p, B), O, C); }
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

%code {
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
    cqli_lemonFinalize(&y);
}

bool cqli_falls_back(uint16_t code) { return code < YYNTOKEN && cqli_lemonFallback(code) == T_IDENT; }
}
