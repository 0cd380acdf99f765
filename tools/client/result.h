/* Reads RESULT Rows: the columns with their types, then one row after the other
 * (native_protocol_v5.spec, section 4.2.5.2). Values point into the response; everything else lives
 * in the caller's arena.
 */
#pragma once

#include "tools/client/wire.h"
#include "types/type.h"

struct client_column {
    const char *keyspace, *table, *name;
    const struct cql_type *type;
};

struct client_columns {
    uint32_t n;
    struct client_column *list;
};

struct client_rows {
    struct client_columns columns;
    struct slice paging_state; /* p NULL: there is no further page */
    uint32_t n, given;
    struct rd at;
    struct value *values; /* of the current row */
};

/* -1 and ERR_PROTOCOL: the response is no Rows, or cannot be decoded. */
int client_rows_open(const struct wire_response *r, struct arena *a, struct client_rows *out, struct err *e) MUST_CHECK;
/* false: no row is left. */
bool client_rows_next(struct client_rows *r);
/* RESULT Prepared: the statement's id, the id of its result metadata (v5; else p NULL) and its bind
 * markers. */
struct client_prepared {
    struct slice id, result_id;
    struct client_columns binds;
    uint32_t n_pk;
    uint16_t *pk; /* indexes of the binds that form the partition key; n_pk 0: unknown */
};
int client_prepared_read(const struct wire_response *r, struct arena *a, struct client_prepared *out,
                         struct err *e) MUST_CHECK;

/* ---- values of the current row by column name; null, 0 or "" for a null or missing column ---- */

struct value client_value(const struct client_rows *r, const char *column);
/* For columns of any integer type, counter, timestamp and boolean. */
int64_t client_int(const struct client_rows *r, const char *column);
/* For the same columns, and for float and double. */
double client_double(const struct client_rows *r, const char *column);
/* For text columns; the result is a copy in the arena. */
const char *client_text(const struct client_rows *r, struct arena *a, const char *column);
