#include "cql/write/multicell.h"

#include "base/hot.h"
#include "cql/row/cell_form.h"

enum { UUID_BYTES = 16 };
/* Inserting or removing a list element moves the following ones; the limit of one statement. */
enum { MOVED_MAX = 1 << 24 };

/* Bytes that Cassandra 5.0 adds to the value and path of a cell, and to the cells of a column that may have
 * several, for their deletion; measured. */
enum { DATA_CELL = 20, DATA_COMPLEX = 12 };

/* Ticks of 100 ns: from the Gregorian epoch of UUIDs to 1970, and from there to 2010-01-01. The
 * time of a prepended element is mirrored around 2010, so that it sorts before all existing
 * elements (Lists.Prepender). */
#define TICKS_1582_TO_1970 INT64_C(0x01B21DD213814000)
#define TICKS_1970_TO_2010 (INT64_C(1262304000) * 10000000)

int cells_init(struct cell_writer *w, uint32_t capacity) {
    w->n = 0;
    w->data_bytes = 0;
    w->complex = NULL;
    w->unsorted = false;
    w->capacity = capacity ? capacity : 1;
    w->cells = arena_alloc(w->arena, w->capacity * sizeof *w->cells);
    return w->cells ? 0 : err_nomem(w->err);
}

SELDOM static int double_capacity(struct cell_writer *w) {
    struct eng_cell *more = ARENA_ARRAY(w->arena, (size_t)w->capacity * 2, struct eng_cell);
    if (!more) return err_nomem(w->err);
    memcpy(more, w->cells, w->n * sizeof *more);
    w->cells = more;
    w->capacity *= 2;
    return 0;
}

static inline struct eng_cell *cell_new(struct cell_writer *w) {
    if (UNLIKELY(w->n == w->capacity) && double_capacity(w)) return NULL;
    return &w->cells[w->n++];
}

void cells_finish(struct cell_writer *w, struct eng_row *row) {
    row->n_cells = w->n;
    row->cells = w->cells;
    if (w->unsorted) eng_row_sort(row);
}

/* Operations run column by column. */
static void count_complex(struct cell_writer *w, const struct schema_column *c) {
    if (w->complex == c) return;
    w->complex = c;
    w->data_bytes += DATA_COMPLEX;
}

static inline int put_live(struct cell_writer *w, const struct schema_column *c, struct slice path,
                           struct slice value) {
    struct eng_cell *cell = cell_new(w);
    if (!cell) return -1;
    *cell = (struct eng_cell){
        .column = c->id, .ts = w->ts, .ttl = w->ttl, .expiry = ENG_NO_EXPIRY, .path = path, .value = value};
    w->data_bytes += DATA_CELL + value.n;
    if (path.p) {
        cell->flags |= ENG_CELL_HAS_PATH;
        count_complex(w, c);
    }
    if (w->ttl) {
        cell->flags |= ENG_CELL_EXPIRING;
        cell->expiry = w->now + w->ttl;
    }
    return 0;
}

static int put_tombstone(struct cell_writer *w, const struct schema_column *c, struct slice path) {
    struct eng_cell *cell = cell_new(w);
    if (!cell) return -1;
    *cell =
        (struct eng_cell){.column = c->id, .flags = ENG_CELL_TOMBSTONE, .ts = w->ts, .expiry = w->now, .path = path};
    w->data_bytes += DATA_CELL;
    if (path.p) {
        cell->flags |= ENG_CELL_HAS_PATH;
        count_complex(w, c);
    }
    return 0;
}

static int put_complex_deletion(struct cell_writer *w, const struct schema_column *c, int64_t ts) {
    struct eng_cell *cell = cell_new(w);
    if (!cell) return -1;
    *cell = (struct eng_cell){.column = c->id, .flags = ENG_CELL_COMPLEX_DELETION, .ts = ts, .expiry = w->now};
    count_complex(w, c);
    return 0;
}

static int key_path(struct cell_writer *w, const struct cql_type *t, struct slice v, struct slice *path, bool *exact) {
    struct buf b;
    buf_init(&b, 0);
    if (cql_key_encode(t, false, v, &b, exact, w->err)) {
        buf_fini(&b);
        return -1;
    }
    *path = arena_take(w->arena, &b);
    return path->p ? 0 : err_nomem(w->err);
}

/* ---- elements ---- */

static int null_element(struct err *e) { return err_invalid(e, "null is not supported inside collections"); }

static int bad_collection(struct err *e) { return err_invalid(e, "Invalid collection value"); }

static int put_list(struct cell_writer *w, const struct schema_column *c, struct slice v, bool prepend) {
    struct cql_elems it;
    struct value item;
    if (cql_elems_open(c->type, v, &it)) return bad_collection(w->err);
    uint32_t n = it.left;
    if (n == 0) return 0;
    int64_t first = eng_write_ticks(w->eng, w->now_us, n);
    if (prepend) {
        first = 2 * TICKS_1970_TO_2010 - (first + n - 1);
        w->unsorted = true;
    }
    for (uint32_t i = 0; cql_elems_next(&it, &item); i++) {
        /* The path of an element is a version 1 UUID: [time_low 4][time_mid 2][version and time_hi 2]
         * [variant and clock sequence 2][node 6]. Ticks (since 1970) are unique in the process and
         * follow the wall clock, so the rest may be fixed. */
        uint8_t uuid[UUID_BYTES];
        uint64_t ticks = (uint64_t)(first + i + TICKS_1582_TO_1970);
        struct slice path = {0};
        bool exact = true;
        if (value_is_null(item)) return null_element(w->err);
        store_u32(uuid, (uint32_t)ticks);
        store_u16(uuid + 4, (uint16_t)(ticks >> 32));
        store_u16(uuid + 6, (uint16_t)(0x1000 | (ticks >> 48 & 0x0fff)));
        store_u64(uuid + 8, UINT64_C(0x8000010000000000));
        if (key_path(w, cql_type_scalar(CQL_TIMEUUID), slice_of(uuid, sizeof uuid), &path, &exact) ||
            put_live(w, c, path, value_slice(item)))
            return -1;
        w->data_bytes += sizeof uuid;
    }
    return 0;
}

static int put_map_entry(struct cell_writer *w, const struct schema_column *c, struct value key, struct value v) {
    struct slice path = {0};
    bool exact = true;
    if (value_is_null(key) || value_is_null(v)) return null_element(w->err);
    if (key_path(w, c->type->args[0], value_slice(key), &path, &exact)) return -1;
    struct buf b;
    buf_init(&b, 0);
    cell_map_put(exact ? (struct slice){0} : value_slice(key), value_slice(v), &b);
    struct slice cell = arena_take(w->arena, &b);
    if (!cell.p) return err_nomem(w->err);
    w->data_bytes += value_slice(key).n + value_slice(v).n - cell.n; /* put_live adds cell.n */
    return put_live(w, c, path, cell);
}

/* The elements of sets and maps come in the order of their type, not of their paths. */
static int put_elements(struct cell_writer *w, const struct schema_column *c, struct slice v) {
    if (c->type->id == CQL_LIST) return put_list(w, c, v, false);
    struct cql_elems it;
    struct value item, mapped;
    if (cql_elems_open(c->type, v, &it)) return bad_collection(w->err);
    uint32_t from = w->n;
    w->unsorted = true;
    while (cql_elems_next(&it, &item)) {
        if (c->type->id == CQL_SET) {
            struct slice path = {0};
            bool exact = true;
            if (value_is_null(item)) return null_element(w->err);
            if (key_path(w, c->type->args[0], value_slice(item), &path, &exact)) return -1;
            /* Equal elements that differ in bytes (1.5 and 1.50) are adjacent, because a set's value
             * is sorted: the first is kept. */
            if (w->n > from && slice_eq(w->cells[w->n - 1].path, path)) continue;
            if (put_live(w, c, path, value_slice(item))) return -1;
        } else if (!cql_elems_next(&it, &mapped)) {
            return bad_collection(w->err);
        } else if (put_map_entry(w, c, item, mapped)) {
            return -1;
        }
    }
    return 0;
}

static int field_path(struct cell_writer *w, uint16_t field, struct slice *path) {
    uint8_t *p = arena_alloc(w->arena, 2);
    if (!p) return err_nomem(w->err);
    store_u16(p, field);
    *path = slice_of(p, 2);
    w->data_bytes += 2;
    return 0;
}

/* ---- operations ---- */

int cells_set(struct cell_writer *w, const struct schema_column *c, struct value v) {
    static const struct slice no_path;
    return value_is_null(v) ? put_tombstone(w, c, no_path) : put_live(w, c, no_path, value_slice(v));
}

int cells_replace(struct cell_writer *w, const struct schema_column *c, struct value v) {
    if (put_complex_deletion(w, c, w->overwrite_ts)) return -1;
    if (value_is_null(v)) return 0;
    if (c->type->id != CQL_UDT) return put_elements(w, c, value_slice(v));
    struct cql_elems it;
    struct value item;
    if (cql_elems_open(c->type, value_slice(v), &it)) return bad_collection(w->err);
    for (uint16_t i = 0; i < c->type->n_args && cql_elems_next(&it, &item); i++) {
        struct slice path = {0};
        if (value_is_null(item)) continue;
        if (field_path(w, i, &path) || put_live(w, c, path, value_slice(item))) return -1;
    }
    return 0;
}

int cells_delete(struct cell_writer *w, const struct schema_column *c) {
    static const struct slice no_path;
    return cql_type_is_multicell(c->type) ? put_complex_deletion(w, c, w->ts) : put_tombstone(w, c, no_path);
}

int cells_add(struct cell_writer *w, const struct schema_column *c, struct value v, bool prepend) {
    if (value_is_null(v)) return 0;
    return prepend ? put_list(w, c, value_slice(v), true) : put_elements(w, c, value_slice(v));
}

int cells_discard(struct cell_writer *w, const struct schema_column *c, struct value key) {
    struct slice path = {0};
    bool exact = true;
    w->unsorted = true;
    w->data_bytes += value_slice(key).n;
    return key_path(w, c->type->args[0], value_slice(key), &path, &exact) || put_tombstone(w, c, path) ? -1 : 0;
}

const struct eng_cell *cells_of(const struct eng_row *row, const struct schema_column *c, uint32_t *n) {
    *n = 0;
    if (!row) return NULL;
    uint32_t i = 0;
    while (i < row->n_cells && row->cells[i].column != c->id) i++;
    while (i < row->n_cells && row->cells[i].column == c->id &&
           (row->cells[i].flags & (ENG_CELL_TOMBSTONE | ENG_CELL_COMPLEX_DELETION)))
        i++;
    while (i + *n < row->n_cells && row->cells[i + *n].column == c->id) ++*n;
    return *n ? &row->cells[i] : NULL;
}

/* Applies one cell of the column. Returns -1 with ERR_INVALID when the operations of the statement move too
 * much. */
static int apply_to_list(struct list_view *v, const struct eng_cell *cell, struct arena *a, struct err *e) {
    uint32_t at = 0;
    for (uint32_t end = v->n; at < end;) {
        uint32_t mid = (at + end) / 2;
        if (slice_cmp(v->cells[mid].path, cell->path) < 0) at = mid + 1;
        else end = mid;
    }
    bool there = at < v->n && slice_eq(v->cells[at].path, cell->path), dead = cell->flags & ENG_CELL_TOMBSTONE;
    struct eng_cell *here = &v->cells[at];
    if (there) { /* the rule that reconciles rows (engine/row.h) */
        bool same_time = cell->ts == here->ts;
        bool wins = same_time ? dead || slice_cmp(cell->value, here->value) > 0 : cell->ts > here->ts;
        if (!wins) return 0;
    }
    if (there && !dead) {
        *here = *cell;
        return 0;
    }
    if (!there && dead) return 0;
    v->moved += v->n - at;
    if (v->moved > MOVED_MAX)
        return err_invalid(e, "The list operations of one statement may not move more than %d elements", MOVED_MAX);
    if (!dead && v->n == v->capacity) {
        struct eng_cell *more = ARENA_ARRAY(a, 2 * (size_t)v->capacity, struct eng_cell);
        if (!more) return err_nomem(e);
        memcpy(more, v->cells, v->n * sizeof *more);
        v->cells = more;
        v->capacity *= 2;
    }
    here = &v->cells[at];
    memmove(dead ? here : here + 1, dead ? here + 1 : here, (v->n - at - dead) * sizeof *here);
    if (!dead) *here = *cell;
    v->n = dead ? v->n - 1 : v->n + 1;
    return 0;
}

/* The list as the next operation sees it. */
static int list_now(struct cell_writer *w, const struct schema_column *c, const struct eng_row *current,
                    const struct eng_cell **cells, uint32_t *n) {
    *cells = cells_of(current, c, n);
    if (!w->repeats) return 0;
    struct list_view *v = &w->list;
    if (v->column != c) {
        uint32_t capacity = *n + 16;
        *v = (struct list_view){.column = c, .n = *n, .capacity = capacity, .moved = v->moved,
                                .cells = ARENA_ARRAY(w->arena, capacity, struct eng_cell)};
        if (!v->cells) return err_nomem(w->err);
        if (*n) memcpy(v->cells, *cells, *n * sizeof *v->cells);
    }
    for (; v->seen < w->n; v->seen++)
        if (w->cells[v->seen].column == c->id && apply_to_list(v, &w->cells[v->seen], w->arena, w->err)) return -1;
    *cells = v->cells;
    *n = v->n;
    return 0;
}

static int subtract_from_list(struct cell_writer *w, const struct schema_column *c, struct slice v,
                              const struct eng_row *current) {
    uint32_t n;
    const struct eng_cell *cells;
    if (list_now(w, c, current, &cells, &n)) return -1;
    w->unsorted = true;
    for (uint32_t i = 0; i < n; i++) {
        struct cql_elems it;
        struct value item;
        if (cql_elems_open(c->type, v, &it)) return bad_collection(w->err);
        while (cql_elems_next(&it, &item)) {
            /* byte by byte, as Cassandra does: 1.0 is not 1.00 */
            if (value_is_null(item) || !slice_eq(cells[i].value, value_slice(item))) continue;
            if (put_tombstone(w, c, cells[i].path)) return -1;
            w->data_bytes += UUID_BYTES;
            break;
        }
    }
    return 0;
}

int cells_subtract(struct cell_writer *w, const struct schema_column *c, struct value v,
                   const struct eng_row *current) {
    if (value_is_null(v)) return 0;
    if (c->type->id == CQL_LIST) return subtract_from_list(w, c, value_slice(v), current);
    /* A set, and the keys that are removed from a map, are [int n] and n times [int length][bytes]. */
    const struct cql_type set = {.id = CQL_SET, .n_args = 1, .args = c->type->args};
    struct cql_elems it;
    struct value item;
    if (cql_elems_open(&set, value_slice(v), &it)) return bad_collection(w->err);
    while (cql_elems_next(&it, &item)) {
        if (value_is_null(item)) return null_element(w->err);
        if (cells_discard(w, c, item)) return -1;
    }
    return 0;
}

int cells_put(struct cell_writer *w, const struct schema_column *c, struct value key, struct value v) {
    if (value_is_null(v)) return cells_discard(w, c, key);
    w->unsorted = true;
    return put_map_entry(w, c, key, v);
}

int cells_list_set(struct cell_writer *w, const struct schema_column *c, struct value index, struct value v,
                   const struct eng_row *current, bool deleting) {
    uint32_t n;
    const struct eng_cell *cells;
    if (list_now(w, c, current, &cells, &n)) return -1;
    int32_t at = index.n == 4 ? (int32_t)load_u32(index.p) : -1;
    if (n == 0) {
        return deleting ? err_invalid(w->err, "Attempted to delete an element from a list which is null")
                        : err_invalid(w->err, "Attempted to set an element on a list which is null");
    }
    if (at < 0 || (uint32_t)at >= n) return err_invalid(w->err, "List index %d out of bound, list has size %u", at, n);
    if (value_is_unset(v)) return 0;
    w->unsorted = true;
    w->data_bytes += UUID_BYTES;
    return value_is_null(v) ? put_tombstone(w, c, cells[at].path) : put_live(w, c, cells[at].path, value_slice(v));
}

int cells_field(struct cell_writer *w, const struct schema_column *c, uint16_t field, struct value v) {
    struct slice path = {0};
    w->unsorted = true;
    if (field_path(w, field, &path)) return -1;
    return value_is_null(v) ? put_tombstone(w, c, path) : put_live(w, c, path, value_slice(v));
}
