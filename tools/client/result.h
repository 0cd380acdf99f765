/* RESULT Rows as a client reads them: columns with their types, and the rows one after the other
 * (native_protocol_v5.spec, section 4.2.5.2). Everything points into the response, or lives in the
 * arena that was handed down.
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

/* -1 and ERR_PROTOCOL: it is no Rows, or cannot be read. */
int client_rows_open(const struct wire_response *r, struct arena *a, struct client_rows *out, struct err *e) MUST_CHECK;
/* false: there is none left. */
bool client_rows_next(struct client_rows *r);
/* A PREPARED's id, the id of its result metadata (v5; else p NULL) and what is to be bound. */
struct client_prepared {
    struct slice id, result_id;
    struct client_columns binds;
    uint32_t n_pk;
    uint16_t *pk; /* binds that make up the partition key; n_pk 0: not known */
};
int client_prepared_read(const struct wire_response *r, struct arena *a, struct client_prepared *out,
                         struct err *e) MUST_CHECK;

/* ---- values of the current row by the name of their column; nothing, 0 or "" where there is none
 * or it is null ---- */

struct value client_value(const struct client_rows *r, const char *column);
/* Of any integer type, a counter, a timestamp, a boolean. */
int64_t client_int(const struct client_rows *r, const char *column);
/* Of those, and of float and double. */
double client_double(const struct client_rows *r, const char *column);
/* Of a text; a copy in the arena. */
const char *client_text(const struct client_rows *r, struct arena *a, const char *column);
