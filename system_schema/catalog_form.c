/* The persisted form of a keyspace or table definition. Version 1:
 *
 *   keyspace: version u8 | durable_writes u8 | replication | options
 *   table:    version u8 | id 16 | created_ms u64 | ids given uvarint | columns uvarint, each: name | type as CQL | kind u8 |
 *             position uvarint | desc u8 | id uvarint | options
 *   options, replication: count uvarint, each: name | value         a text: length uvarint | bytes
 */
#include "system_schema/catalog_state.h"

enum { FORM_VERSION = 1, MAX_FORM_ITEMS = 65536 };

static void put_text(struct buf *out, const char *s) {
    buf_uvarint(out, strlen(s));
    buf_put_str(out, s);
}

static void put_options(struct buf *out, uint32_t n, const struct schema_option *options) {
    buf_uvarint(out, n);
    for (uint32_t i = 0; i < n; i++) {
        put_text(out, options[i].name);
        put_text(out, options[i].value);
    }
}

void keyspace_form(const struct schema_keyspace *ks, struct buf *out) {
    buf_u8(out, FORM_VERSION);
    buf_u8(out, ks->durable_writes);
    put_options(out, ks->n_replication, ks->replication);
    put_options(out, ks->n_options, ks->options);
}

void table_form(const struct schema_table *t, struct buf *out) {
    buf_u8(out, FORM_VERSION);
    buf_put(out, t->id, sizeof t->id);
    buf_u64(out, (uint64_t)t->created_ms);
    buf_uvarint(out, t->n_column_ids);
    buf_uvarint(out, t->n_columns);
    struct buf type;
    buf_init(&type, 0);
    for (uint32_t i = 0; i < t->n_columns; i++) {
        const struct schema_column *col = &t->columns[i];
        put_text(out, col->name);
        buf_clear(&type, 4096);
        cql_type_print(col->type, &type);
        if (buf_failed(&type)) out->failed = true;
        buf_uvarint(out, type.n);
        buf_put_slice(out, buf_slice(&type));
        buf_u8(out, (uint8_t)col->kind);
        buf_uvarint(out, col->position);
        buf_u8(out, col->desc);
        buf_uvarint(out, col->id);
    }
    buf_fini(&type);
    put_options(out, t->n_options, t->options);
}

static const char *get_text(struct rd *rd, struct arena *a) {
    uint64_t n = rd_uvarint(rd);
    struct slice s = rd_bytes(rd, n);
    if (rd->bad) return "";
    struct slice copy = arena_dup(a, s);
    if (!copy.p) rd->bad = true;
    return copy.p ? (const char *)copy.p : "";
}

static const struct schema_option *get_options(struct rd *rd, struct arena *a, uint32_t *n) {
    uint64_t count = rd_uvarint(rd);
    if (count > MAX_FORM_ITEMS) rd->bad = true;
    struct schema_option *options = rd->bad || count == 0 ? NULL : ARENA_ARRAY(a, count, struct schema_option);
    if (count && !options) rd->bad = true;
    for (uint64_t i = 0; !rd->bad && i < count; i++) {
        options[i].name = get_text(rd, a);
        options[i].value = get_text(rd, a);
    }
    *n = rd->bad ? 0 : (uint32_t)count;
    return options;
}

int keyspace_unform(struct slice form, struct arena *a, struct schema_keyspace *ks, struct err *e) {
    struct rd rd = rd_of(form);
    uint8_t version = rd_u8(&rd);
    ks->durable_writes = rd_u8(&rd) != 0;
    ks->replication = get_options(&rd, a, &ks->n_replication);
    ks->options = get_options(&rd, a, &ks->n_options);
    if (rd.bad || version != FORM_VERSION) return err_set(e, ERR_SERVER, "the catalogue's record of keyspace %s is damaged", ks->name);
    return 0;
}

static int get_column(struct rd *rd, struct arena *a, const char *keyspace, struct schema_column *col, struct err *e) {
    col->name = get_text(rd, a);
    struct slice type = slice_str(get_text(rd, a));
    uint8_t kind = rd_u8(rd);
    col->position = (uint32_t)rd_uvarint(rd);
    col->desc = rd_u8(rd) != 0;
    col->id = (uint32_t)rd_uvarint(rd);
    if (rd->bad || kind > COLUMN_REGULAR) {
        rd->bad = true;
        return 0;
    }
    col->kind = (enum schema_column_kind)kind;
    col->type = cql_type_parse(a, type, keyspace, NULL, NULL, e);
    return col->type ? 0 : -1;
}

int table_unform(struct slice form, struct arena *a, const char *keyspace, struct schema_table *t, struct err *e) {
    struct rd rd = rd_of(form);
    struct table_parts parts = {.name = t->name};
    uint8_t version = rd_u8(&rd);
    struct slice id = rd_bytes(&rd, sizeof t->id);
    if (id.p) memcpy(t->id, id.p, sizeof t->id);
    t->created_ms = (int64_t)rd_u64(&rd);
    uint64_t ids = rd_uvarint(&rd), n = rd_uvarint(&rd);
    if (rd.bad || version != FORM_VERSION || ids > MAX_FORM_ITEMS || n > ids) goto damaged;
    parts.n_column_ids = (uint32_t)ids;
    parts.n_columns = (uint32_t)n;
    parts.columns = ARENA_ARRAY(a, n, struct schema_column);
    if (!parts.columns) return err_nomem(e);
    for (uint64_t i = 0; i < n && !rd.bad; i++)
        if (get_column(&rd, a, keyspace, &parts.columns[i], e)) return -1;
    parts.options = get_options(&rd, a, &parts.n_options);
    if (rd.bad) goto damaged;
    return table_assemble(a, &parts, t, e);
damaged:
    return err_set(e, ERR_SERVER, "the catalogue's record of table %s.%s is damaged", keyspace, t->name);
}
