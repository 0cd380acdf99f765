/* A compiled statement: what PREPARE keeps and QUERY makes for one run. Inside cql only.
 *
 * Each kind of statement has one row (cql/syntax/stmt.def), which names its functions: compile, once
 * per text and schema generation, and run, per execution. compile fills its parts of cql_statement
 * and stores its plan in plan; everything is in the statement's arena and points into the
 * tables that it uses, which it holds. run is const on it: many threads may run one prepared
 * statement at a time.
 */
#pragma once

#include "cql/request/compile.h"
#include "cql/request/request.h"

struct statement_ops;

struct cql_statement {
    enum stmt_kind kind;
    const struct statement_ops *ops;
    const struct ast_stmt *ast;
    const struct schema *schema;       /* that it was compiled in; the compiling caller holds the reference */
    const struct schema_table *table;  /* that it reads or writes; NULL for others */
    const struct catalog_change *change; /* that it makes to the schema; NULL if none */
    const char *keyspace; /* of the object that it names, if it has neither table nor change */
    /* all of them, a batch's too; it holds as long as each has the columns that it was compiled for */
    const struct table_use *tables;
    struct bind_specs binds;
    /* A marker is for a collection, tuple, vector, varint or decimal, or is used with JSON or a
     * function: evaluating its value costs more than copying its bytes. */
    bool works_on_values;
    bool late;                         /* only checked: it is compiled when it runs, each time */
    struct result_meta result;         /* n 0: no rows */
    uint32_t n_pk;                     /* see prepared_info */
    uint16_t *pk_indexes;
    struct compat compat;              /* for the checks at run time, which take a copy (compat_in) */
    void *plan;                        /* the kind's own */
};

struct statement_ops {
    /* c->arena, c->schema and c->binds are set. -1 with c->err. */
    int (*compile)(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out);
    /* NULL for changes of the schema, which cql.c passes to the catalogue. Bound values are
     * r->eval.values, complete and in marker order, wire-checked by term_eval. */
    enum cql_outcome (*run)(struct cql_run *r, const struct cql_statement *s);
    /* The next part, after a run or a more that answered CQL_AGAIN; NULL where run never does. */
    enum cql_outcome (*more)(struct cql_run *r, const struct cql_statement *s);
    /* PREPARE's check, for statements that Cassandra otherwise checks when they run; NULL means
     * PREPARE compiles the statement. */
    int (*check)(struct compile *c, const struct ast_stmt *ast);
};

/* Compiles a tree with the functions of its kind. */
struct cql_statement *statement_compile(struct compile *c, const struct ast_stmt *ast,
                                        const struct statement_ops *ops) MUST_CHECK;
/* Finds the table a statement names, with the session's keyspace as default; fills the error
 * ("No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename"). */
const struct schema_table *statement_table(struct compile *c, const struct ast_name *name) MUST_CHECK;
