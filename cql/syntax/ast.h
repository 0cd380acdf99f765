/* The syntax trees that the grammar builds: statements as the user wrote them, names unresolved, in
 * the arena of the parse.
 *
 * Life: cql_parse makes one ast_stmt; analysis (select.c, modify_compile.c, stmt_<name>.c) reads it.
 * Identifiers are lower-cased unless they were quoted. The trees do not depend on the schema.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "types/type.h"

enum stmt_kind {
#define STMT(id, ...) STMT_##id,
#include "cql/syntax/stmt.def"
#undef STMT
    STMT_KINDS
};

struct ast_name {
    const char *keyspace; /* NULL when not qualified */
    const char *name;
};

/* ---- types as written ---- */

struct ast_type {
    const char *name;     /* "int", "list", "frozen", "tuple", "vector", a user type, or a 'quoted.java.Class' */
    const char *keyspace; /* of a user type, or NULL */
    bool quoted_class;    /* name was a string literal */
    uint32_t n_args;
    struct ast_type **args;
    uint32_t dimension;   /* vector */
    struct slice source;  /* its name in the query text */
};

/* ---- expressions: terms, selectors and functions share one form ---- */

enum ast_expr_kind {
    EXPR_LITERAL,   /* literal, text */
    EXPR_NULL,
    EXPR_BIND,      /* bind */
    EXPR_NAME,      /* name: a column; also what COUNT, TTL, WRITETIME ... are called on */
    EXPR_STAR,      /* the * of SELECT * and COUNT(*) */
    EXPR_FIELD,     /* args[0] . name */
    EXPR_ELEMENT,   /* args[0] [ args[1] ] */
    EXPR_RANGE,     /* args[0] [ args[1] .. args[2] ]; either bound may be NULL */
    EXPR_CALL,      /* name(args), keyspace may qualify it */
    EXPR_CAST,      /* CAST(args[0] AS type) */
    EXPR_TYPE_HINT, /* (type) args[0] */
    EXPR_LIST,      /* [args] : a list or a vector */
    EXPR_SET,       /* {args}; empty braces are an empty set until the receiver says map */
    EXPR_MAP,       /* {args[0]: args[1], ...}: keys and values alternate */
    EXPR_UDT,       /* {names[0]: args[0], ...} */
    EXPR_TUPLE,     /* (args) */
    EXPR_NEG,       /* - args[0] */
    EXPR_ADD, EXPR_SUB, EXPR_MUL, EXPR_DIV, EXPR_MOD, /* args[0], args[1] */
};

struct ast_expr {
    enum ast_expr_kind kind;
    enum cql_literal literal;
    struct slice text;  /* of a literal, unquoted; numbers with their sign, hex with 0x */
    int32_t bind;       /* index of the marker, from 0, in order of appearance */
    const char *keyspace, *name;
    bool quoted;        /* EXPR_CALL: the name is in quotes, and so none of WRITETIME, MAXWRITETIME and TTL */
    struct ast_type *type;
    uint32_t n_args;
    struct ast_expr **args;
    const char **names;     /* EXPR_UDT: one per arg */
    struct slice source;    /* this expression in the query text */
    uint16_t depth;         /* of the tree below, bounded by the parser: recursion over it is safe */
};

struct ast_binds { /* of a statement, in order */
    uint32_t n;
    const char **names; /* NULL for ? ; the name for :name */
};

/* ---- relations ---- */

enum ast_op {
    OP_EQ, OP_NEQ, OP_LT, OP_LTE, OP_GT, OP_GTE, OP_IN, OP_CONTAINS, OP_CONTAINS_KEY, OP_LIKE, OP_IS_NOT_NULL, OP_ANN,
};
const char *ast_op_text(enum ast_op op);

enum ast_relation_kind {
    REL_COLUMN,  /* lhs[0] op value; with element or field set: lhs[0][element] op value, lhs[0].field op value */
    REL_TUPLE,   /* (lhs...) op value: value is a tuple, a bind, or for IN values[] */
    REL_TOKEN,   /* TOKEN(lhs...) op value */
    REL_CUSTOM,  /* expr(index, value) */
};

struct ast_relation {
    enum ast_relation_kind kind;
    uint32_t n_lhs;
    const char **lhs;
    struct ast_expr *element;
    const char *field;
    enum ast_op op;
    /* the right side: one expression; for IN either in_list (values in parentheses) or one bind marker (in_bind) */
    struct ast_expr *value;
    bool in_list;
    uint32_t n_values;
    struct ast_expr **values;
    struct ast_name index; /* REL_CUSTOM */
};

struct ast_where {
    uint32_t n;
    struct ast_relation **relations;
};

/* IF EXISTS, IF NOT EXISTS, or IF condition AND ... (relations of kind REL_COLUMN). */
struct ast_conditions {
    bool if_exists, if_not_exists;
    uint32_t n;
    struct ast_relation **relations;
};

struct ast_using { /* either may be NULL */
    struct ast_expr *timestamp, *ttl, *timeout;
};

/* ---- properties: WITH a = b AND c = {...} ---- */

enum ast_prop_kind {
    PROP_LITERAL,
    PROP_NAME, /* a bare word */
    PROP_MAP,
    PROP_BIND, /* a marker; only in statements that the parser refuses, as PROP_TERM */
    PROP_TERM, /* any other term */
};
struct ast_prop_value {
    enum ast_prop_kind kind;
    enum cql_literal literal;
    struct slice text; /* of all but a map; of PROP_BIND and PROP_TERM as errors quote them */
    uint32_t n;        /* map entries; CUSTOM_PROPERTIES and AUTOSCALING_SETTINGS nest */
    struct ast_prop_value **keys, **values;
};
struct ast_prop {
    const char *name;
    struct ast_prop_value *value;
};
struct ast_props {
    uint32_t n;
    struct ast_prop *props;
    /* CREATE TABLE and CREATE MATERIALIZED VIEW only */
    bool compact_storage;
    uint32_t n_order;
    struct ast_ordering *order;
    struct ast_expr *id; /* WITH ID = uuid */
    const struct table_settings *settings; /* of the AWS API, which has no text; NULL if none */
};
struct ast_ordering {
    const char *column;
    bool desc;
    struct ast_expr *ann_of; /* ORDER BY v ANN OF [...] */
};

/* ---- statements ---- */

struct ast_selector {
    struct ast_expr *expr; /* EXPR_STAR alone: all columns */
    const char *alias;     /* or NULL */
};

struct ast_select {
    struct ast_name table;
    bool json, distinct, allow_filtering;
    uint32_t n_selectors;
    struct ast_selector *selectors;
    struct ast_where where;
    uint32_t n_group_by;
    struct ast_expr **group_by;
    uint32_t n_order_by;
    struct ast_ordering *order_by;
    struct ast_expr *limit, *per_partition_limit;
};

struct ast_insert {
    struct ast_name table;
    uint32_t n_columns; /* as many values; both 0 for INSERT JSON */
    bool unmatched;     /* there were more of one than of the other */
    const char **columns;
    struct ast_expr **values;
    struct ast_expr *json; /* INSERT JSON: a string literal or a bind marker */
    bool json_default_unset;
    struct ast_conditions conditions;
    struct ast_using using;
};

enum ast_assign_op {
    ASSIGN_SET,           /* column = value */
    ASSIGN_ADD,           /* column = column + value, column += value */
    ASSIGN_SUB,           /* column = column - value, column -= value */
    ASSIGN_PREPEND,       /* column = value + column */
    ASSIGN_ELEMENT,       /* column[element] = value */
    ASSIGN_FIELD,         /* column.field = value */
};
struct ast_assignment {
    enum ast_assign_op op;
    const char *column;
    const char *operand; /* the column named on the right side of ADD, SUB, PREPEND; NULL for += and -= */
    struct ast_expr *element;
    const char *field;
    struct ast_expr *value;
};

struct ast_update {
    struct ast_name table;
    uint32_t n_assignments;
    struct ast_assignment *assignments;
    struct ast_where where;
    struct ast_conditions conditions;
    struct ast_using using;
};

struct ast_deletion {
    const char *column;
    struct ast_expr *element; /* column[element] */
    const char *field;        /* column.field */
};
struct ast_delete {
    struct ast_name table;
    uint32_t n_deletions; /* 0 means whole rows */
    struct ast_deletion *deletions;
    struct ast_where where;
    struct ast_conditions conditions;
    struct ast_using using;
};

enum ast_batch_kind { BATCH_LOGGED, BATCH_UNLOGGED, BATCH_COUNTER };
struct ast_batch {
    enum ast_batch_kind kind;
    uint32_t n;
    struct ast_stmt **stmts; /* INSERT, UPDATE, DELETE */
    struct ast_using using;
};

struct ast_use {
    const char *keyspace;
};

struct ast_keyspace { /* CREATE, ALTER, DROP */
    const char *name;
    bool if_not_exists, if_exists;
    struct ast_props props;
    bool add_tags, drop_tags; /* ALTER KEYSPACE ... ADD TAGS / DROP TAGS */
    struct ast_prop_value *tags;
};

struct ast_column {
    const char *name;
    struct ast_type *type;
    bool is_static, primary_key;
    bool masked; /* 5.0: MASKED WITH f(args) */
};

struct ast_create_table {
    struct ast_name table;
    bool if_not_exists;
    uint32_t n_columns;
    struct ast_column *columns;
    uint32_t n_partition_key, n_clustering; /* of PRIMARY KEY (...); 0 and 0 when only a column carries PRIMARY KEY */
    const char **partition_key, **clustering;
    bool has_primary_key;
    struct ast_props props;
};

enum ast_alter_table_op {
    ALTER_TABLE_ADD, ALTER_TABLE_DROP, ALTER_TABLE_ALTER_TYPE, ALTER_TABLE_RENAME, ALTER_TABLE_WITH,
    ALTER_TABLE_ADD_TAGS, ALTER_TABLE_DROP_TAGS, ALTER_TABLE_DROP_COMPACT_STORAGE, ALTER_TABLE_MASK,
    ALTER_TABLE_DROP_MASK,
};
struct ast_alter_table {
    struct ast_name table;
    bool if_exists, column_if_exists, column_if_not_exists;
    enum ast_alter_table_op op;
    uint32_t n_columns;
    struct ast_column *columns; /* ADD; DROP, ALTER TYPE, MASK use the name (and type) */
    uint32_t n_renames;
    const char **rename_from, **rename_to;
    struct ast_expr *drop_timestamp; /* DROP ... USING TIMESTAMP */
    struct ast_props props;
    struct ast_prop_value *tags;
    /* Set by a change of Application Auto Scaling: it takes effect at once, the table stays ACTIVE, and the change
     * replaces the state of that service for reads or writes (settings_merge). */
    bool at_once;
    unsigned targets;
};

struct ast_drop { /* TABLE, TYPE, INDEX, VIEW: name and IF EXISTS */
    struct ast_name name;
    bool if_exists;
};

enum ast_describe_kind {
    DESCRIBE_CLUSTER, DESCRIBE_SCHEMA, DESCRIBE_KEYSPACES, DESCRIBE_KEYSPACE, DESCRIBE_TABLES, DESCRIBE_TABLE,
    DESCRIBE_INDEX, DESCRIBE_VIEW, DESCRIBE_TYPES, DESCRIBE_TYPE, DESCRIBE_FUNCTIONS, DESCRIBE_FUNCTION,
    DESCRIBE_AGGREGATES, DESCRIBE_AGGREGATE, DESCRIBE_GENERIC,
};
struct ast_describe {
    enum ast_describe_kind kind;
    bool full;      /* DESCRIBE FULL SCHEMA */
    bool only;      /* DESCRIBE ONLY KEYSPACE */
    bool internals; /* WITH INTERNALS */
    struct ast_name name;
};

struct ast_create_type {
    struct ast_name name;
    bool if_not_exists;
    uint32_t n_fields;
    const char **field_names;
    struct ast_type **field_types;
};

/* Statements that are recognised and not executed keep their own structs here when an issue makes them run. */
struct ast_other; /* cql/syntax/ast_other.h */

struct ast_stmt {
    enum stmt_kind kind;
    struct ast_binds binds; /* of the outermost statement; markers of a batch's statements are numbered through */
    struct slice source;    /* the statement in the query text, without the closing semicolon */
    union {
        struct ast_select select;
        struct ast_insert insert;
        struct ast_update update;
        struct ast_delete delete_;
        struct ast_batch batch;
        struct ast_use use;
        struct ast_keyspace keyspace;
        struct ast_create_table create_table;
        struct ast_alter_table alter_table;
        struct ast_drop drop;
        struct ast_describe describe;
        struct ast_create_type create_type;
        struct ast_other *other;
    };
};

/* One statement, with or without a closing semicolon. NULL and ERR_SYNTAX ("line 1:7 no viable
 * alternative at input 'x' (...)"), or ERR_INVALID for what Cassandra refuses while parsing. text
 * must outlive the tree. cassandra_words: the mode whose words errors have. */
struct ast_stmt *cql_parse(struct arena *a, struct slice text, bool cassandra_words, struct err *e) MUST_CHECK;
/* Parses a type as a column's definition contains it. Returns NULL with ERR_INVALID if the text is something
 * else. text must outlive the tree. */
struct ast_type *cql_parse_type(struct arena *a, struct slice text, struct err *e) MUST_CHECK;
/* Returns the kind of statement that the first word begins, SELECT to BATCH, or STMT_KINDS for other words. */
enum stmt_kind cql_parse_kind(struct slice text);
/* A value as errors quote it: every marker is a ?. */
void ast_quote_expr(const struct ast_expr *x, struct buf *out);
/* A selector as its result column is named: "system.token(k)", "writetime(v)", "count". */
void ast_print_selector(const struct ast_expr *x, struct buf *out);
void ast_print_type(const struct ast_type *t, struct buf *out);
/* name, or "Name" when it needs quotes (reserved word, capitals, other characters). */
void ast_print_name(const char *name, struct buf *out);
/* Returns the table that a SELECT, INSERT, UPDATE or DELETE names, or NULL for other statements. */
const struct ast_name *ast_table(const struct ast_stmt *s);
/* WHERE and IF of a statement; NULL where its kind has none. */
const struct ast_where *ast_where(const struct ast_stmt *s);
const struct ast_conditions *ast_conditions(const struct ast_stmt *s);

/* Columns of stmt.def. */
enum stmt_category { STMT_IS_QUERY, STMT_IS_DML, STMT_IS_DDL, STMT_IS_DCL, STMT_IS_OTHER };
const char *stmt_words(enum stmt_kind kind);
/* STMT_KINDS is of STMT_IS_OTHER. */
enum stmt_category stmt_category(enum stmt_kind kind);
/* It reads or writes rows: SELECT, INSERT, UPDATE, DELETE, BATCH. */
static inline bool stmt_is_data(enum stmt_kind kind) { return stmt_category(kind) <= STMT_IS_DML; }
