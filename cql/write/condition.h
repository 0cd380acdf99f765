/* IF conditions of UPDATE and DELETE: one column, element or field against a value (Cassandra's
 * ColumnCondition).
 *
 * Life: compiled with the statement; each run binds the values once and matches the bound condition
 * against the row as it is under the partition's lock. The memory that a bound condition points to
 * lives until the request ends.
 */
#pragma once

#include "cql/expr/term.h"
#include "engine/row.h"
#include "system_schema/objects/schema.h"

struct condition; /* immutable, in the statement's arena */

struct bound_condition {
    const struct condition *condition;
    struct value element;      /* index or key */
    uint32_t n_values;         /* IN: those that are set; else 1 */
    const struct value *values;
};

/* The name of a part of a column, such as key(c), in the statement's arena. Returns NULL if memory
 * is exhausted. */
const char *condition_part_name(struct compile *c, const char *fmt, const char *column) MUST_CHECK;
/* NULL with ERR_INVALID in Cassandra's words. */
struct condition *condition_compile(struct compile *c, const struct schema_table *t,
                                    const struct ast_relation *rel) MUST_CHECK;
const struct schema_column *condition_column(const struct condition *c);
/* out->condition is set; the request's values are its statement's. */
int condition_bind(struct cql_run *r, struct bound_condition *out) MUST_CHECK;
/* Checks the index or key; Cassandra does so after the whole batch is bound. */
int condition_check_element(struct cql_run *r, const struct bound_condition *b) MUST_CHECK;
/* row: resolved, or the static row; NULL if none. 1, 0, or -1 with the request's err. */
int condition_match(const struct bound_condition *b, struct cql_run *r, const struct eng_row *row) MUST_CHECK;
