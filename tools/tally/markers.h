/* The bind markers of a statement: position in the text, column, statement of a batch, and position
 * in the list of an IN. The server's own parser finds them; names and types come from the prepared
 * statement. */
#pragma once

#include "cql/cql.h"
#include "cql/syntax/ast.h"
#include "system_schema/objects/schema.h"

struct world;

struct marker {
    struct slice at; /* in the text: ? or :name */
    const struct result_column *bind;
    uint32_t statement; /* of a batch, from 0 */
    bool is_list;       /* holds the whole list of an IN */
    bool is_json;       /* of INSERT JSON */
    bool in_list;       /* of an IN */
    uint32_t element;   /* of that list, from 0 */
};

struct markers {
    struct cql_prepared *prepared;
    uint32_t n, n_statements; /* n_statements: of a batch; else 1 */
    struct marker *list;
    const struct ast_stmt **statements;
};

/* Finds the markers of the text, which the arena outlives; k->prepared holds that text prepared. Returns -1 with
 * ERR_CONFIG. */
int markers_find(struct slice text, struct arena *a, struct markers *k, struct err *e) MUST_CHECK;
/* Replaces each :name by ?, so that the prepared statement names the marker by its column. *out is in
 * the arena, or the text itself when that is not CQL. Returns -1 when memory is short. */
int markers_unname(struct slice text, struct arena *a, struct slice *out, struct err *e) MUST_CHECK;
/* Whether the statement reads or writes static data of the table: it names a static column or all
 * columns, inserts JSON, or deletes a partition. */
bool markers_use_statics(struct slice text, const struct markers *k, const struct schema_table *t);
/* Puts a value in place of each marker: numbers are 1, texts have MADE_UP_BYTES characters, lists of
 * IN and collections one element, and the rows of a batch differ. *out is the text itself when it has
 * no markers, or when it is not CQL; else it is in the arena, and *made_up. -1 if the world refuses
 * to prepare the text, or a type has no made-up values. */
enum { MADE_UP_BYTES = 20 };
bool markers_are_in(struct slice text, struct arena *a);
int markers_fill(struct world *w, struct slice text, struct arena *a, struct slice *out, bool *made_up,
                 struct err *e) MUST_CHECK;
