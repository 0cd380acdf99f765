/* The row sink that writes RESULT Rows straight into the output buffer (v5 specification, section
 * 4.2.5.2).
 *
 *   kind 2 | flags | columns | [paging state] [new metadata id] [column specs] | rows | row, row, ...
 *
 * Paging state, changed metadata and the number of rows are known only at the end: np_rows_end
 * patches and inserts them.
 */
#pragma once

#include "cql/cql.h"
#include "native_protocol/response.h"

enum { NP_RESPONSE_MAX = 64 << 20 };

struct np_rows {
    struct row_sink sink;
    struct np_reply *reply;
    bool skip_metadata; /* asked by the client */
    struct cql_client *client;
    struct slice statement; /* the id in an EXECUTE */
    bool specs;         /* they precede the rows */
    const struct result_meta *meta; /* NULL before begin */
    size_t flags_at, specs_at, count_at;
    uint32_t count;
    struct err *err;
};

/* The reply is not open yet, or its message is still empty. err gets the error when a response grows too large. */
void np_rows_init(struct np_rows *rows, struct np_reply *reply, bool skip_metadata, struct cql_client *client,
                  struct slice statement, struct err *err);
/* Completes the message. */
void np_rows_end(struct np_rows *rows, const struct cql_result *result);
