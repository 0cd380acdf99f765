/* What compiling a statement is given, and what it learns of the statement's bind markers. Inside cql only. */
#pragma once

#include "cql/syntax/ast.h"
#include "keyspaces/compat.h"
#include "system_schema/schema.h"
#include "types/value.h"

/* What a value is for, as PREPARED tells it. Names live with the table or in the statement's arena. */
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
    bool worked_on;           /* a function or JSON is in the statement, and may be given what is bound */
};

/* A table that a statement reads or writes. */
struct table_use {
    const struct schema_table *table;
    struct table_use *next;
};

struct term_scope;
struct term_search;
struct cql_request;
struct cql_statement;

struct compile {
    struct arena *arena; /* of the prepared statement */
    const struct schema *schema;
    const char *keyspace; /* the session's, for unqualified functions and types; may be NULL */
    struct bind_specs *binds;
    struct compat compat;  /* whose use it is: the statement, once its table is known that, too */
    struct table_use *tables; /* those that statement_table found */
    bool prepares;         /* for PREPARE, which looks at less of a change of the schema (statement_ops.check) */
    /* what is compiled is a statement of a batch, which checks some of it when it has all (cql/write/batch.c) */
    bool in_batch;
    struct err *err;
    int64_t now_us; /* the timestamp literal "now": of when the statement is compiled, as in Cassandra */
    /* the row that expressions may look at (expr/selector.h); NULL: they are values of the statement */
    struct term_scope *scope;
    struct term_search *search; /* term_compile's own: what finding types may cost, and has found */
    /* May the one who asks change the schema so? Asked by what compiles such a statement before it
     * tells what is there; NULL: asked when it runs. */
    int (*permit)(struct cql_request *r, const struct cql_statement *s);
    struct cql_request *asked_by;
};
