#include "system_schema/system_tables/row_out.h"

#include "base/ip_address.h"

int row_out_init(struct row_out *ro, const struct virtual_context *ctx, const struct schema_table *table,
                 virtual_row_fn row, void *arg) {
    *ro = (struct row_out){.ctx = ctx, .table = table, .row = row, .arg = arg};
    ro->values = ARENA_ARRAY(ctx->arena, table->n_columns, struct value);
    for (uint32_t i = 0; ro->values && i < table->n_columns; i++) ro->values[i] = value_null();
    return ro->values ? 0 : err_nomem(ctx->err);
}

int row_out_emit(struct row_out *ro) {
    int rc = ro->failed ? err_nomem(ro->ctx->err) : ro->row(ro->arg, ro->values);
    for (uint32_t i = 0; i < ro->table->n_columns; i++) ro->values[i] = value_null();
    return rc;
}

bool row_out_wants(const struct row_out *ro, uint32_t i, const char *text) {
    return !ro->ctx->key || value_is_null(ro->ctx->key[i]) || slice_is(value_slice(ro->ctx->key[i]), text);
}

struct value virtual_given(const struct virtual_change *change, const struct schema_table *t, const char *column) {
    return change->values[schema_column_find(t, column)->ordinal];
}

bool row_out_passed(const struct row_out *ro, const char *text) {
    return ro->ctx->after && slice_cmp(slice_str(text), value_slice(ro->ctx->after[0])) < 0;
}

void row_bytes(struct row_out *ro, const char *column, struct slice bytes) {
    const struct schema_column *col = schema_column_find(ro->table, column);
    if (col && bytes.p) ro->values[col->ordinal] = value_of_slice(bytes);
}

void row_bytes_copy(struct row_out *ro, const char *column, const void *p, size_t n) {
    if (!schema_column_find(ro->table, column)) return;
    struct slice copy = arena_dup(ro->ctx->arena, slice_of(p, n));
    if (!copy.p) ro->failed = true;
    row_bytes(ro, column, copy);
}

void row_text(struct row_out *ro, const char *column, const char *text) {
    if (text) row_bytes(ro, column, slice_str(text));
}

void row_names(struct row_out *ro, const struct schema_table *t) {
    row_text(ro, "keyspace_name", t->keyspace->name);
    row_text(ro, "table_name", t->name);
}

void row_text_copy(struct row_out *ro, const char *column, const char *text) {
    if (text && *text) row_bytes_copy(ro, column, text, strlen(text));
    else row_text(ro, column, text);
}

void row_bool(struct row_out *ro, const char *column, bool v) { row_bytes_copy(ro, column, &(uint8_t){v}, 1); }

void row_int(struct row_out *ro, const char *column, int32_t v) {
    uint8_t bytes[4];
    store_u32(bytes, (uint32_t)v);
    row_bytes_copy(ro, column, bytes, sizeof bytes);
}

void row_long(struct row_out *ro, const char *column, int64_t v) {
    uint8_t bytes[8];
    store_u64(bytes, (uint64_t)v);
    row_bytes_copy(ro, column, bytes, sizeof bytes);
}

void row_double(struct row_out *ro, const char *column, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    row_long(ro, column, (int64_t)bits);
}

void row_inet(struct row_out *ro, const char *column, const char *numeric) {
    struct ip_address a;
    if (numeric && ip_address_parse(numeric, &a)) row_bytes_copy(ro, column, a.bytes, a.n);
}

static void put_item(struct buf *b, struct slice item) {
    buf_u32(b, (uint32_t)item.n);
    buf_put_slice(b, item);
}

void row_buf(struct row_out *ro, const char *column, struct buf *b) {
    if (buf_failed(b)) ro->failed = true;
    else row_bytes_copy(ro, column, b->p, b->n);
    buf_fini(b);
}

void row_texts(struct row_out *ro, const char *column, uint32_t n, const char *const *texts) {
    struct buf b;
    buf_init(&b, 0);
    buf_u32(&b, n);
    for (uint32_t i = 0; i < n; i++) put_item(&b, slice_str(texts[i]));
    row_buf(ro, column, &b);
}

void row_bools(struct row_out *ro, const char *column, uint32_t n, const bool *values) {
    struct buf b;
    buf_init(&b, 0);
    buf_u32(&b, n);
    for (uint32_t i = 0; i < n; i++) {
        uint8_t byte = values[i];
        put_item(&b, slice_of(&byte, 1));
    }
    row_buf(ro, column, &b);
}

void row_map(struct row_out *ro, const char *column, uint32_t n, const struct schema_option *entries) {
    struct buf b;
    buf_init(&b, 0);
    buf_u32(&b, n);
    for (uint32_t i = 0; i < n; i++) {
        put_item(&b, slice_str(entries[i].name));
        put_item(&b, slice_str(entries[i].value));
    }
    row_buf(ro, column, &b);
}
