#include "cql/row/cell_form.h"

#include "base/stop_check.h"
#include "metering/size/size.h"

void cell_map_put(struct slice key, struct slice value, struct buf *out) {
    buf_uvarint(out, key.p ? key.n : 0);
    if (key.p) buf_put_slice(out, key);
    buf_put_slice(out, value);
}

int cell_map_split(struct slice cell_value, struct slice *key, struct slice *value) {
    struct rd r = rd_of(cell_value);
    uint64_t n = rd_uvarint(&r);
    *key = n ? rd_bytes(&r, n) : (struct slice){0};
    if (r.bad) return -1;
    *value = slice_of(r.p, rd_left(&r));
    return 0;
}

static int damaged(struct err *e) { return err_set(e, ERR_SERVER, "A stored collection element is damaged"); }

int cell_map_key(const struct cql_type *map, const struct eng_cell *cell, struct arena *a, struct value *out,
                 struct err *e) {
    struct slice key, value;
    if (cell_map_split(cell->value, &key, &value)) return damaged(e);
    *out = value_of_slice(key);
    if (key.p) return 0;
    struct buf b;
    buf_init(&b, 0);
    struct rd r = rd_of(cell->path);
    int rc = cql_key_decode(map->args[0], false, &r, &b) ? damaged(e) : 0;
    if (rc == 0) key = arena_dup(a, buf_slice(&b));
    if (rc == 0 && (buf_failed(&b) || !key.p)) rc = err_nomem(e);
    *out = value_of_slice(key);
    buf_fini(&b);
    return rc;
}

static bool is_element(const struct eng_cell *c) {
    return (c->flags & ENG_CELL_HAS_PATH) && !(c->flags & (ENG_CELL_TOMBSTONE | ENG_CELL_COMPLEX_DELETION));
}

static int put_collection(const struct cql_type *t, const struct eng_cell *cells, uint32_t n, struct buf *out,
                          struct err *e) {
    uint32_t live = 0;
    for (uint32_t i = 0; i < n; i++) live += is_element(&cells[i]);
    if (live == 0) return 0;
    cql_collection_begin(live, out);
    for (uint32_t i = 0; i < n; i++) {
        if (UNLIKELY(i % STOP_CHECK_CELLS == STOP_CHECK_CELLS - 1) && stop_check_run()) return -1;
        if (!is_element(&cells[i])) continue;
        struct slice key = {0}, value = cells[i].value;
        if (t->id == CQL_MAP && cell_map_split(cells[i].value, &key, &value)) return damaged(e);
        if (key.p) {
            cql_elem_put(value_of_slice(key), out);
        } else if (t->id == CQL_MAP) { /* decode the path in place, then set its length */
            size_t at = out->n;
            struct rd r = rd_of(cells[i].path);
            buf_u32(out, 0);
            if (cql_key_decode(t->args[0], false, &r, out)) return buf_failed(out) ? 0 : damaged(e);
            if (!buf_failed(out)) buf_patch_u32(out, at, (uint32_t)(out->n - at - 4));
        }
        cql_elem_put(value_of_slice(value), out);
    }
    return 0;
}

static int put_udt(const struct cql_type *t, const struct eng_cell *cells, uint32_t n, struct buf *out, struct err *e) {
    uint32_t field = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!is_element(&cells[i])) continue;
        if (cells[i].path.n != 2) return damaged(e);
        uint32_t at = load_u16(cells[i].path.p);
        if (at >= t->n_args) continue;
        for (; field < at; field++) cql_elem_put(value_null(), out);
        cql_elem_put(value_of_slice(cells[i].value), out);
        field = at + 1;
    }
    if (field == 0) return 0;
    for (; field < t->n_args; field++) cql_elem_put(value_null(), out);
    return 0;
}

int cell_assemble(const struct cql_type *t, const struct eng_cell *cells, uint32_t n, struct arena *a,
                  struct value *out, struct err *e) {
    struct buf b;
    buf_init(&b, a->limit - a->used);
    *out = value_null();
    int rc = t->id == CQL_UDT ? put_udt(t, cells, n, &b, e) : put_collection(t, cells, n, &b, e);
    if (rc == 0 && (b.n || buf_failed(&b))) {
        struct slice s = buf_failed(&b) ? (struct slice){0} : arena_dup(a, buf_slice(&b));
        if (s.p) *out = value_of_slice(s);
        else rc = 1;
    }
    buf_fini(&b);
    return rc;
}

/* ---- sizes ---- */

static uint64_t entry_size(const struct cql_type *t, enum size_model model, const struct eng_cell *c,
                           struct buf *scratch) {
    struct slice key, value;
    if (cell_map_split(c->value, &key, &value)) return 0;
    if (!key.p) {
        struct rd r = rd_of(c->path);
        buf_clear(scratch, 1 << 16);
        if (cql_key_decode(t->args[0], false, &r, scratch)) return 0;
        key = buf_slice(scratch);
    }
    return cql_item_size(t, model, 0, value_of_slice(key)) + cql_item_size(t, model, 1, value_of_slice(value));
}

bool cell_size(const struct cql_type *t, enum size_model model, const struct eng_cell *cells, uint32_t n,
               uint64_t *size) {
    uint32_t live = 0;
    struct buf scratch;
    *size = cql_items_size(model);
    buf_init(&scratch, 0);
    for (uint32_t i = 0; i < n; i++) {
        if (!is_element(&cells[i])) continue;
        live++;
        if (t->id == CQL_MAP) *size += entry_size(t, model, &cells[i], &scratch);
        else if (t->id != CQL_UDT) *size += cql_item_size(t, model, 0, value_of_slice(cells[i].value));
    }
    for (uint32_t field = 0, i = 0; t->id == CQL_UDT && field < t->n_args; field++) {
        struct value v = value_null(); /* as fields without a cell are */
        for (; i < n && (!is_element(&cells[i]) || cells[i].path.n != 2 || load_u16(cells[i].path.p) <= field); i++)
            if (is_element(&cells[i]) && cells[i].path.n == 2) v = value_of_slice(cells[i].value);
        *size += cql_item_size(t, model, field, v);
    }
    buf_fini(&scratch);
    return live > 0;
}
