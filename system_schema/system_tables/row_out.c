#include "system_schema/system_tables/row_out.h"

#include "base/ip_address.h"

int row_out_init(struct row_out *ro, const struct virtual_context *ctx, const struct schema_table *table,
                 virtual_row_fn row, void *arg) {
    *ro = (struct row_out){.ctx = ctx, .table = table, .row = row, .arg = arg};
    ro->values = ARENA_ARRAY(ctx->arena, table->n_columns, struct value);
    return ro->values ? 0 : err_nomem(ctx->err);
}

void row_out_begin(struct row_out *ro) {
    for (uint32_t i = 0; i < ro->table->n_columns; i++) ro->values[i] = value_null();
}

int row_out_emit(struct row_out *ro) { return ro->failed ? err_nomem(ro->ctx->err) : ro->row(ro->arg, ro->values); }

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

/* Copies the bytes into the request's arena. */
static void put(struct row_out *ro, const char *column, const void *p, size_t n) {
    if (!schema_column_find(ro->table, column)) return;
    struct slice copy = arena_dup(ro->ctx->arena, slice_of(p, n));
    if (!copy.p) ro->failed = true;
    row_bytes(ro, column, copy);
}

void row_text(struct row_out *ro, const char *column, const char *text) {
    if (text) row_bytes(ro, column, slice_str(text));
}

void row_text_copy(struct row_out *ro, const char *column, const char *text) {
    if (*text) put(ro, column, text, strlen(text));
    else row_text(ro, column, "");
}

void row_bool(struct row_out *ro, const char *column, bool v) { put(ro, column, &(uint8_t){v}, 1); }

void row_int(struct row_out *ro, const char *column, int32_t v) {
    uint8_t bytes[4];
    store_u32(bytes, (uint32_t)v);
    put(ro, column, bytes, sizeof bytes);
}

void row_long(struct row_out *ro, const char *column, int64_t v) {
    uint8_t bytes[8];
    store_u64(bytes, (uint64_t)v);
    put(ro, column, bytes, sizeof bytes);
}

void row_double(struct row_out *ro, const char *column, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    row_long(ro, column, (int64_t)bits);
}

void row_inet(struct row_out *ro, const char *column, const char *numeric) {
    struct ip_address a;
    if (numeric && ip_address_parse(numeric, &a)) put(ro, column, a.bytes, a.n);
}

static void put_item(struct buf *b, struct slice item) {
    buf_u32(b, (uint32_t)item.n);
    buf_put_slice(b, item);
}

static void put_buf(struct row_out *ro, const char *column, struct buf *b) {
    if (buf_failed(b)) ro->failed = true;
    else put(ro, column, b->p, b->n);
    buf_fini(b);
}

void row_texts(struct row_out *ro, const char *column, uint32_t n, const char *const *texts) {
    struct buf b;
    buf_init(&b, 0);
    buf_u32(&b, n);
    for (uint32_t i = 0; i < n; i++) put_item(&b, slice_str(texts[i]));
    put_buf(ro, column, &b);
}

void row_bools(struct row_out *ro, const char *column, uint32_t n, const bool *values) {
    struct buf b;
    buf_init(&b, 0);
    buf_u32(&b, n);
    for (uint32_t i = 0; i < n; i++) {
        uint8_t byte = values[i];
        put_item(&b, slice_of(&byte, 1));
    }
    put_buf(ro, column, &b);
}

static void put_map(struct buf *b, uint32_t n, const struct schema_option *entries, size_t skip) {
    buf_u32(b, n);
    for (uint32_t i = 0; i < n; i++) {
        put_item(b, slice_str(entries[i].name + skip));
        put_item(b, slice_str(entries[i].value));
    }
}

void row_map(struct row_out *ro, const char *column, uint32_t n, const struct schema_option *entries) {
    struct buf b;
    buf_init(&b, 0);
    put_map(&b, n, entries, 0);
    put_buf(ro, column, &b);
}

/* Ignores the first skip bytes of each name, which are the same in all n entries. */
static void put_nested(struct buf *b, uint32_t n, const struct schema_option *entries, size_t skip) {
    buf_u8(b, '{');
    for (uint32_t i = 0, end; i < n; i = end) {
        const char *name = entries[i].name + skip;
        size_t length = strcspn(name, ".");
        buf_printf(b, "%s'%.*s': ", i ? ", " : "", (int)length, name);
        end = i + 1;
        while (name[length] && end < n && strncmp(entries[end].name + skip, name, length + 1) == 0) end++;
        if (name[length]) {
            put_nested(b, end - i, entries + i, skip + length + 1);
            continue;
        }
        const char *text = entries[i].value;
        bool is_bool = strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
        bool is_number = *text && !text[strspn(text, "0123456789.-")];
        buf_printf(b, is_bool || is_number ? "%s" : "'%s'", text);
    }
    buf_u8(b, '}');
}

void row_nested(struct row_out *ro, const char *column, uint32_t n, const struct schema_option *entries) {
    struct buf b;
    buf_init(&b, 0);
    put_nested(&b, n, entries, 0);
    put_buf(ro, column, &b);
}

void row_map_of_maps(struct row_out *ro, const char *column, uint32_t n, const struct schema_option *entries) {
    struct buf b;
    buf_init(&b, 0);
    buf_u32(&b, 0);
    uint32_t groups = 0;
    for (uint32_t i = 0, end; i < n; i = end, groups++) {
        size_t length = strcspn(entries[i].name, ".");
        size_t skip = entries[i].name[length] ? length + 1 : length;
        for (end = i + 1; end < n && strncmp(entries[end].name, entries[i].name, skip) == 0; end++) continue;
        put_item(&b, slice_of(entries[i].name, length));
        size_t at = b.n;
        buf_u32(&b, 0);
        put_map(&b, end - i, entries + i, skip);
        if (!buf_failed(&b)) buf_patch_u32(&b, at, (uint32_t)(b.n - at - 4));
    }
    if (!buf_failed(&b)) buf_patch_u32(&b, 0, groups);
    put_buf(ro, column, &b);
}
