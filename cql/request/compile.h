/* The context in which a statement is compiled, and what compiling finds out about its bind
 * markers. Inside cql only. */
#pragma once

#include "cql/syntax/ast.h"
#include "keyspaces/compat.h"
#include "system_schema/objects/schema.h"
#include "system_schema/system_tables/virtual.h"
#include "types/value.h"

/* The column or argument that a value is for, as the PREPARED response names it. The names live
 * with the table or in the statement's arena. */
struct receiver {
    const char *keyspace, *table, *name;
    const struct cql_type *type;
};

static inline struct receiver receiver_of(const struct schema_table *t, const char *name, const struct cql_type *type) {
    return (struct receiver){.keyspace = t->keyspace->name, .table = t->name, .name = name, .type = type};
}

/* Filled while a statement is compiled: one per marker, type NULL until known. */
struct bind_specs {
    uint32_t n;
    struct receiver *specs;
    const char *const *names; /* ast_binds.names */
    bool worked_on;           /* the statement has a function or JSON, which may use bound values */
};

/* A table that a statement reads or writes. */
struct table_use {
    const struct schema_table *table;
    struct table_use *next;
};

struct term_scope;
struct term_search;
struct cql_run;
struct cql_statement;

struct compile {
    struct arena *arena; /* of the prepared statement */
    const struct schema *schema;
    const char *keyspace; /* the session's, for unqualified functions and types; may be NULL */
    enum partitioner_id partitioner; /* the session's */
    struct bind_specs *binds;
    struct compat compat;  /* for refusals: the statement and, once known, its table */
    struct table_use *tables; /* those that statement_table found */
    bool prepares;         /* for PREPARE, which checks less of a change of the schema (statement_ops.check) */
    /* a statement of a batch, which checks some things when it has all its statements
     * (cql/write/batch.c) */
    bool in_batch;
    struct err *err;
    struct cql_reading reading; /* of literals; "now" is when the statement is compiled, as in Cassandra */
    /* the row that expressions may read (expr/selector.h); NULL if they are values of the statement */
    struct term_scope *scope;
    struct term_search *search; /* term_compile's own: the budget for finding types, and the types found */
    /* Checks that the client's role may change the schema so. The statement's compile calls it
     * before any error that would reveal which objects exist; NULL if the check is done when the
     * statement runs. */
    int (*permit)(struct cql_run *r, const struct cql_statement *s);
    struct cql_run *asked_by;
};
