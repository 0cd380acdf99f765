/* The functions that the grammar's actions call to build nodes. Inside cql only.
 *
 * Life: cql_parse makes a struct parse on its stack, feeds the tokens to lemon, and drops it. No
 * builder ever returns NULL: without memory it sets the error and hands out the parse's scratch
 * node, and the tree is thrown away at the next token. */
#pragma once

#include "base/name_tree.h"
#include "cql/syntax/ast.h"
#include "cql/syntax/ast_other.h"
#include "cql/syntax/token.h"

enum {
    EXPR_DEPTH_MAX = 200, /* of one expression; what walks a tree may recurse that deep */
    PARSE_SCRATCH = 1024, /* bytes; at least the largest node */
};

/* A growing array in the arena; p is the finished array. */
struct seq {
    uint32_t n, cap, size;
    void *p;
};

/* The names that a CREATE TABLE has used so far. */
struct naming {
    const char *table; /* as the statement has it */
    struct name_tree columns, ordered;
    bool keyed;
};

struct parse {
    struct arena *arena;
    struct err *err;
    struct slice text;
    struct token prev;      /* the last token that was consumed */
    struct ast_stmt *stmt;  /* the result */
    struct seq *binds;      /* of const char * */
    struct name_tree named; /* what the clause at hand has named so far: assigned columns, properties */
    struct naming *naming;  /* of the CREATE TABLE at hand; NULL if it is none */
    const char *noted;      /* a syntax error to report at the end; NULL if none so far */
    bool cassandra_words;   /* errors have the words of cassandra mode */
    bool failed;            /* err is set */
    bool rejected;
    struct token offender;  /* with rejected: the token that cannot be here */
    const char *expected;   /* with rejected: the only token that can be here; NULL if several can */
    /* the next tokens: whether JSON and DISTINCT are words of SELECT depends on the token after them */
    struct token_reader reader;
    struct token ahead;
    bool has_ahead;
    _Alignas(16) uint8_t scratch[PARSE_SCRATCH];
};

/* There is no memory: sets the error and returns the scratch node, zeroed. */
void *cqli_nomem(struct parse *p);
void *cqli_new(struct parse *p, size_t size);
#define NEW(p, type) ((type *)cqli_new((p), sizeof(type)))

struct seq *cqli_seq(struct parse *p, size_t size);
/* Returns s. */
struct seq *cqli_push(struct parse *p, struct seq *s, const void *item);
/* Appends to an array without a capacity: it doubles at powers of two. Returns the array. */
void *cqli_append(struct parse *p, void *items, uint32_t *n, size_t size, const void *item);
#define SEQ(p, type) cqli_seq((p), sizeof(type))

/* Rejects the token: it cannot be here. Only the first call has an effect. */
void cqli_reject(struct parse *p, struct token t);
/* Likewise, from the grammar's tables. can: for each of the n codes, whether it can be here. */
void cqli_reject_by_table(struct parse *p, struct token t, const bool *can, uint16_t n);
/* Runs the generated parser; next gives the tokens. */
void cqli_run(struct parse *p, struct token (*next)(struct parse *p));
/* Reads the most frequent statements by hand: SELECT of columns or *, with relations by = < <= > >= to
 * literals and ?, and LIMIT; INSERT of literals and ?. Names in them are quoted or no words of CQL. This takes
 * half of the grammar's time and saves an eighth of the CPU of an unprepared read or insert. p is as for
 * cqli_run. Returns NULL for another statement, a wrong one, or if memory is exhausted; the caller then
 * discards the nodes and initialises p again.
 * P1. The tree that it returns equals the grammar's tree of the text in every slice. */
struct ast_stmt *cqli_plain(struct parse *p) MUST_CHECK;
/* cql_parse by the grammar alone. */
struct ast_stmt *cqli_parse_by_grammar(struct arena *a, struct slice text, bool cassandra_words,
                                       struct err *e) MUST_CHECK;
/* Whether the keyword's token falls back to IDENT in the grammar. */
bool cqli_falls_back(uint16_t code);
/* ERR_INVALID: Cassandra stops reading, and reports this instead of a noted fault. */
void cqli_invalid(struct parse *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* ERR_SYNTAX with this text. Only the first call has an effect. */
void cqli_refuse(struct parse *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* ERR_SYNTAX with this text after the whole statement has been read, as in Cassandra. The first call wins,
 * also over a later refusal or rejection. */
void cqli_note(struct parse *p, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ---- names and literals ---- */
const char *cqli_ident(struct parse *p, struct token t); /* lower-cased; a quoted name or a string as it is */
const char *cqli_exact(struct parse *p, struct token t); /* without folding */
struct slice cqli_token_text(struct parse *p, struct token t);
struct ast_name cqli_name(const char *keyspace, const char *name);
bool cqli_token_is(struct token t, const char *word);
/* Rejects words of CQL, which are names elsewhere: of users, identities, languages. */
void cqli_no_word(struct parse *p, struct token t);
/* One of the words that are names, but not of functions or types, without quotes. */
bool cqli_is_no_function(struct slice name);

/* ---- expressions ---- */
struct ast_expr *cqli_literal(struct parse *p, enum cql_literal kind, struct token t);
struct ast_expr *cqli_float(struct parse *p, const char *text, struct token t);
struct ast_expr *cqli_null(struct parse *p, struct token t);
struct ast_expr *cqli_bind(struct parse *p, const char *name, struct token first);
struct ast_expr *cqli_column(struct parse *p, const char *name, struct token t);
/* args in order; NULL ones (open bounds) are kept. source runs from first to the last token consumed. */
struct ast_expr *cqli_expr(struct parse *p, enum ast_expr_kind kind, const uint8_t *first, uint32_t n,
                           struct ast_expr *const *args);
struct ast_expr *cqli_expr1(struct parse *p, enum ast_expr_kind kind, const uint8_t *first, struct ast_expr *a);
struct ast_expr *cqli_expr2(struct parse *p, enum ast_expr_kind kind, struct ast_expr *a, struct ast_expr *b);
struct ast_expr *cqli_seq_expr(struct parse *p, enum ast_expr_kind kind, struct token first, struct seq *args);
struct function_at {
    struct ast_name name;
    const uint8_t *at; /* in the text */
};
struct ast_expr *cqli_call(struct parse *p, struct ast_name f, const uint8_t *first, struct seq *args);
/* A call on what must be a chain of one or two names. */
struct ast_expr *cqli_call_chain(struct parse *p, struct ast_expr *chain, struct seq *args, struct token paren);
struct ast_expr *cqli_call_star(struct parse *p, struct ast_expr *chain, struct token star);
struct ast_expr *cqli_field(struct parse *p, struct ast_expr *of, const char *field);
struct ast_expr *cqli_cast(struct parse *p, struct token first, struct ast_expr *x, struct ast_type *t);
struct ast_expr *cqli_hint(struct parse *p, struct token first, struct ast_type *t, struct ast_expr *x);
/* (exprs) x of a selector: exprs must be one name, which then is a type. */
struct ast_expr *cqli_hint_expr(struct parse *p, struct token first, struct seq *exprs, struct ast_expr *x);

struct udt_field {
    const char *name;
    struct ast_expr *value;
};
struct ast_expr *cqli_udt(struct parse *p, struct token first, struct seq *fields);

/* ---- types ---- */
struct type_arg {
    struct ast_type *type; /* NULL for a number */
    struct token number, comma; /* comma: before it */
};
struct ast_type *cqli_type(struct parse *p, const char *keyspace, const char *name, struct token t);
struct ast_type *cqli_native_type(struct parse *p, struct token t); /* of CAST */
struct ast_type *cqli_type_args(struct parse *p, struct token name, struct seq *args, struct token open);
/* int, text, ...: a type without arguments that is built in. */
bool cqli_type_is_native(const char *name);
/* The name of a user type in a statement about it. Names of built-in types must be quoted. */
struct ast_name cqli_user_type(struct parse *p, const char *keyspace, struct token name);
struct ast_type *cqli_type_class(struct parse *p, struct token t);

/* ---- relations ---- */
struct ast_relation *cqli_relation(struct parse *p, enum ast_relation_kind kind, struct seq *lhs, enum ast_op op,
                                   struct ast_expr *value);
struct seq *cqli_one_name(struct parse *p, const char *name);
/* values NULL: r->value is a marker */
struct ast_relation *cqli_in(struct parse *p, struct ast_relation *r, struct seq *values);
struct ast_where cqli_where(struct seq *relations);

/* ---- properties ---- */
struct ast_prop_value *cqli_prop_literal(struct parse *p, const struct ast_expr *literal);
struct ast_prop_value *cqli_prop_word(struct parse *p, struct token t);
/* An item of a map: Cassandra reads any term there, and refuses all but literals when the statement has been read. */
struct ast_prop_value *cqli_prop_term(struct parse *p, const struct ast_expr *term);
/* Notes faults in the map of the property name: keys and values that are no literals, and keys named twice. */
void cqli_prop_check_map(struct parse *p, const char *name, const struct ast_prop_value *map);
struct prop_entry {
    struct ast_prop_value *key, *value;
};
struct ast_prop_value *cqli_prop_map(struct parse *p, struct seq *entries);
struct ast_props *cqli_prop_add(struct parse *p, struct ast_props *props, const char *name, struct ast_prop_value *v);

/* ---- statements ---- */
struct ast_stmt *cqli_stmt(struct parse *p, enum stmt_kind kind, struct token first);
/* With a zeroed struct ast_other. */
struct ast_stmt *cqli_other(struct parse *p, enum stmt_kind kind, struct token first);
/* The closing of a statement: where its text ends, and its markers. */
void cqli_stmt_end(struct parse *p, struct ast_stmt *s);
/* Adds an assignment unless it contradicts an earlier one ("Multiple incompatible setting of column c"). */
struct seq *cqli_assign(struct parse *p, struct seq *s, const struct ast_assignment *a);
void cqli_assign_operand(struct parse *p, const struct ast_assignment *a, const char *form);
void cqli_table_props(struct parse *p, struct ast_props *props, struct seq *order);
struct ast_stmt *cqli_create_table(struct parse *p, struct token first, struct ast_name table, bool if_not_exists);
struct ast_create_table *cqli_table_column(struct parse *p, struct ast_create_table *t, const struct ast_column *c);
struct ast_create_table *cqli_table_key(struct parse *p, struct ast_create_table *t,
                                        const struct ast_create_table *key);
struct ast_create_table *cqli_key(struct parse *p, struct seq *partition, struct seq *clustering);
/* The text of a string that names an MBean, or (plural) several by a pattern. Refuses other strings. */
struct slice cqli_object_name(struct parse *p, struct token t, bool plural);
/* Whether Java's javax.management.ObjectName accepts the text. *pattern: it contains * or ? as placeholders. */
bool object_name_read(struct slice s, bool *pattern);
struct ast_stmt *cqli_alter_columns(struct parse *p, struct ast_stmt *s, enum ast_alter_table_op op,
                                    struct seq *columns);
/* A sequence a, b, a, b ... of names to two arrays; the length of each. */
uint32_t cqli_split_pairs(struct parse *p, struct seq *pairs, const char ***a, const char ***b);
/* Names and types of a sequence of struct ast_column. */
uint32_t cqli_split_columns(struct parse *p, struct seq *columns, const char ***names, struct ast_type ***types);
struct ast_role_options *cqli_role_option(struct parse *p, enum ast_role_option option);
struct ast_role_options *cqli_role_options(struct parse *p, struct ast_role_options *all,
                                           const struct ast_role_options *one);
