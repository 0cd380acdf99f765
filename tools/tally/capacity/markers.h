/* The bind markers of a workload's statement: position in the text, column, statement of a batch,
 * and position in the list of an IN. The server's own parser finds them; names and types come from
 * the prepared statement. */
#pragma once

#include "cql/cql.h"
#include "cql/syntax/ast.h"
#include "system_schema/objects/schema.h"
#include "tools/tally/capacity/workload.h"

struct marker {
    struct slice at; /* in the text */
    const struct result_column *bind;
    uint32_t statement; /* of a batch, from 0 */
    bool in_list;       /* of an IN */
    uint32_t element;   /* of that list, from 0 */
};

struct markers {
    struct cql_prepared *prepared;
    uint32_t n, n_statements; /* n_statements: of a batch; else 1 */
    struct marker *list;
    const struct ast_stmt **statements;
};

/* Finds the markers of s->text; k->prepared holds that text prepared. -1: ERR_CONFIG. */
int markers_find(const struct workload_statement *s, struct arena *a, struct markers *k, struct err *e) MUST_CHECK;
/* Whether the statement reads or writes static data of the table: it names a static column or all
 * columns, inserts JSON, or deletes a partition. */
bool markers_use_statics(const struct workload_statement *s, const struct markers *k, const struct schema_table *t);
