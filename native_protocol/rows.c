#include "native_protocol/rows.h"

#include "base/hot.h"
#include "native_protocol/response.h"

static int rows_begin(struct row_sink *s, const struct result_meta *meta) {
    struct np_rows *r = (struct np_rows *)s;
    struct buf *out = r->reply->out;
    np_reply_open(r->reply, NP_RESULT);
    r->meta = meta;
    r->specs = !r->skip_metadata || meta->always ||
               (meta->change && r->reply->version < 5 && !cql_client_has_columns(r->client, r->statement, meta));
    buf_u32(out, RESULT_ROWS);
    r->flags_at = out->n;
    buf_u32(out, 0);
    buf_u32(out, meta->n);
    r->specs_at = out->n;
    if (r->specs) np_put_columns(out, r->reply->version, meta);
    r->count_at = out->n;
    buf_u32(out, 0);
    return buf_failed(out) ? err_nomem(r->err) : 0;
}

SELDOM static int put_in_new_room(struct np_rows *r, const struct value *values) {
    size_t total = 4 * (size_t)r->meta->n;
    for (uint32_t i = 0; i < r->meta->n; i++) total += values[i].n < 0 ? 0 : (size_t)values[i].n;
    struct buf *out = np_reply_room(r->reply, total, r->err);
    if (!out) return -1;
    uint8_t *p = buf_reserve(out, total);
    if (!p || !values_put(p, p + total, values, r->meta->n)) return err_nomem(r->err);
    buf_advance(out, total);
    return 0;
}

static int rows_rows(struct row_sink *s, const struct value *const *rows, uint32_t n) {
    struct np_rows *r = (struct np_rows *)s;
    uint32_t columns = r->meta->n, i = 0;
    while (i < n) {
        size_t room;
        struct buf *out = np_reply_space(r->reply, &room);
        uint8_t *p = room ? out->p + out->n : NULL, *next;
        const uint8_t *end = p + room;
        for (; room && i < n && (next = values_put(p, end, rows[i], columns)); i++) p = next;
        if (room) out->n = (size_t)(p - out->p);
        if (i < n && put_in_new_room(r, rows[i++])) return -1;
    }
    r->count += n;
    if (UNLIKELY(np_reply_size(r->reply) > NP_RESPONSE_MAX))
        return err_set(r->err, ERR_SERVER, "The response is larger than %u bytes; ask for smaller pages",
                       (unsigned)NP_RESPONSE_MAX);
    return 0;
}

static void rows_restart(struct row_sink *s) {
    struct np_rows *r = (struct np_rows *)s;
    np_reply_restart(r->reply);
    r->meta = NULL;
    r->count = 0;
}

static size_t rows_bytes(const struct row_sink *s) {
    const struct np_rows *r = (const struct np_rows *)s;
    return np_reply_size(r->reply);
}

void np_rows_init(struct np_rows *rows, struct np_reply *reply, bool skip_metadata, struct cql_client *client,
                  struct slice statement, struct err *err) {
    *rows = (struct np_rows){
        .sink = {.begin = rows_begin,
                 .rows = rows_rows,
                 .restart = rows_restart,
                 .bytes = rows_bytes},
        .reply = reply,
        .skip_metadata = skip_metadata,
        .client = client,
        .statement = statement,
        .err = err,
    };
}

/* Inserts the parts between the column count and the column specs or rows written
 * already. */
static void insert_before_specs(struct np_rows *r, const struct cql_result *result, bool changed) {
    struct buf *out = r->reply->out;
    size_t end = out->n;
    if (result->paging_state.p) {
        buf_u32(out, (uint32_t)result->paging_state.n);
        buf_put_slice(out, result->paging_state);
    }
    if (changed) {
        buf_u16(out, sizeof(r->meta->id));
        buf_put(out, r->meta->id, sizeof(r->meta->id));
        if (!r->specs) np_put_columns(out, r->reply->version, r->meta);
    }
    size_t n = out->n - end;
    if (!n || !buf_reserve(out, n)) return;
    /* written behind the rows, moved before them: open the gap, then copy from the moved end */
    memmove(out->p + r->specs_at + n, out->p + r->specs_at, out->n - r->specs_at);
    memcpy(out->p + r->specs_at, out->p + out->n, n);
}

void np_rows_end(struct np_rows *r, const struct cql_result *result) {
    struct buf *out = r->reply->out;
    bool changed = result->meta_changed && r->reply->version >= 5;
    bool specs = r->specs || changed;
    uint32_t flags = specs ? np_metadata_flags(r->meta) : NP_META_NO_METADATA;
    if (result->paging_state.p) flags |= NP_META_MORE_PAGES;
    if (changed) flags |= NP_META_CHANGED;
    if (buf_failed(out)) return;
    buf_patch_u32(out, r->flags_at, flags);
    buf_patch_u32(out, r->count_at, r->count);
    insert_before_specs(r, result, changed);
}
