#include "cql/row/row_view.h"

#include "base/hot.h"
#include "cql/row/cell_form.h"
#include "cql/row/row_key.h"

const struct row_view_layout *row_view_layout_new(const struct schema_table *t, const bool *wanted, struct arena *a) {
    struct row_view_layout *l = ARENA_NEW(a, struct row_view_layout);
    if (!l) return NULL;
    l->table = t;
    l->has_ttl = schema_has_ttl(t);
    l->has_timestamps = schema_has_client_timestamps(t);
    for (uint32_t i = t->n_partition_key + t->n_clustering; i < t->n_columns; i++)
        if (t->columns[i].id >= l->n_ids) l->n_ids = t->columns[i].id + 1;
    l->places = ARENA_ARRAY(a, l->n_ids + 1, struct row_view_place);
    l->ordinals = ARENA_ARRAY(a, l->n_ids + 1, uint16_t);
    if (!l->places || !l->ordinals) return NULL;
    for (uint32_t i = 0; i <= l->n_ids; i++) l->places[i].ordinal = l->ordinals[i] = UINT16_MAX;
    l->key_is_int = t->n_clustering == 1 && schema_clustering(t, 0)->type->id == CQL_INT;
    l->key_desc = l->key_is_int && schema_clustering(t, 0)->desc;
    l->flat = l->flat_keys = true;
    for (uint32_t i = 0; i < t->n_partition_key + t->n_clustering; i++)
        if (cql_type_is_collection(t->columns[i].type) || t->columns[i].type->id == CQL_UDT) l->flat_keys = false;
    for (uint32_t i = t->n_partition_key + t->n_clustering; i < t->n_columns; i++) {
        const struct cql_type *type = t->columns[i].type;
        if (cql_type_is_collection(type) || type->id == CQL_UDT) l->flat = false;
        bool multicell = cql_type_is_multicell(t->columns[i].type);
        l->places[t->columns[i].id] = (struct row_view_place){.ordinal = (uint16_t)i,
                                                              .multicell = multicell,
                                                              .assembled = multicell && (!wanted || wanted[i])};
        l->ordinals[t->columns[i].id] = (uint16_t)i;
    }
    return l;
}

const struct row_view_layout *row_view_layout_of_cells(const struct schema_table *t, struct arena *a) {
    const bool *none = ARENA_ARRAY(a, t->n_columns, bool);
    return none ? row_view_layout_new(t, none, a) : NULL;
}

int row_view_init(struct row_view *v, const struct row_view_layout *layout, uint32_t rows, struct arena *a,
                  struct err *e) {
    uint32_t n = layout->table->n_columns;
    *v = (struct row_view){.layout = layout, .arena = a, .stride = n + 1 /* an int key's bytes */};
    v->room = arena_alloc(a, (size_t)rows * v->stride * sizeof(*v->room));
    v->runs = ARENA_ARRAY(a, n, struct row_view_run);
    if (!v->room || !v->runs) return err_nomem(e);
    v->first = v->values = v->room;
    v->end = v->room + (size_t)rows * v->stride;
    for (uint32_t i = 0; i < n; i++) v->values[i] = value_null();
    v->laid = (struct eng_layout){.places = layout->ordinals, .n_ids = layout->n_ids, .values = v->values,
                                  .from = n - layout->table->n_regular, .to = n};
    v->mark = v->row_mark = arena_mark(a);
    return 0;
}

static void clear(struct row_view *v, enum schema_column_kind kind) {
    const struct schema_table *t = v->layout->table;
    uint32_t statics = t->n_partition_key + t->n_clustering, regulars = statics + t->n_static;
    uint32_t end = kind == COLUMN_STATIC ? regulars : t->n_columns;
    struct value *restrict values = v->values;
    struct row_view_run *restrict runs = v->runs;
    for (uint32_t i = kind == COLUMN_STATIC ? statics : regulars; i < end; i++) {
        values[i] = value_null();
        runs[i] = (struct row_view_run){0};
    }
}

/* Cells are sorted by column: those of one column follow one another. */
static int take_cells(struct row_view *v, const struct eng_row *row, struct err *e) {
    const struct row_view_layout *l = v->layout;
    const struct eng_cell *cells = row->cells, *end = cells + row->n_cells;
    v->row_flags = 0;
    for (const struct eng_cell *c = cells, *next; c < end; c = next) {
        struct row_view_place place = l->places[c->column < l->n_ids ? c->column : l->n_ids];
        v->row_flags |= c->flags;
        for (next = c + 1; UNLIKELY(place.multicell) && next < end && next->column == c->column; next++)
            v->row_flags |= next->flags;
        if (UNLIKELY(place.ordinal == UINT16_MAX)) continue;
        v->runs[place.ordinal] = (struct row_view_run){.first = (uint32_t)(c - cells), .n = (uint32_t)(next - c)};
        if (LIKELY(!place.multicell)) v->values[place.ordinal] = value_of_slice(c->value);
        if (LIKELY(!place.assembled)) continue;
        const struct schema_column *column = &l->table->columns[place.ordinal];
        int rc = cell_assemble(column->type, c, (uint32_t)(next - c), v->arena, &v->values[place.ordinal], e);
        if (rc > 0)
            err_set(e, ERR_SERVER, "The value of column %s is larger than what one request may take of memory",
                    column->name);
        if (rc) return -1;
    }
    return 0;
}

/* For a row as nearly all are: one cell per column, of which only the value is used. */
static void take_plain(struct row_view *v, const struct eng_row *row) {
    const struct row_view_place *places = v->layout->places;
    struct value *restrict values = v->values;
    struct row_view_run *restrict runs = v->runs;
    uint32_t n_ids = v->layout->n_ids;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < row->n_cells; i++) {
        const struct eng_cell *c = &row->cells[i];
        uint16_t ordinal = places[c->column < n_ids ? c->column : n_ids].ordinal;
        if (UNLIKELY(ordinal == UINT16_MAX)) continue;
        values[ordinal] = value_of_slice(c->value);
        runs[ordinal] = (struct row_view_run){.first = i, .n = 1};
        bytes += c->value.n;
    }
    v->row_flags = 0;
    v->regular_bytes = bytes;
}

int row_view_partition(struct row_view *v, struct slice key, const struct eng_row *statics, struct err *e) {
    arena_rewind(v->arena, v->mark);
    v->statics = statics;
    v->row = NULL;
    clear(v, COLUMN_STATIC);
    if (statics && take_cells(v, statics, e)) return -1;
    v->row_mark = arena_mark(v->arena);
    return row_key_split(v->layout->table, key, v->values, e);
}

int row_view_keep_statics(struct row_view *v, struct err *e) {
    const struct eng_row *from = v->statics;
    struct arena *a = v->arena;
    if (!from) return 0;
    arena_rewind(a, v->mark); /* collections are assembled again from the copied cells */
    clear(v, COLUMN_STATIC);
    v->row = v->statics = NULL;
    uint32_t n = from->n_cells + from->n_expired;
    struct eng_row *to = ARENA_NEW(a, struct eng_row);
    struct eng_cell *cells = ARENA_ARRAY(a, n + 1, struct eng_cell);
    if (!to || !cells) return err_nomem(e);
    for (uint32_t i = 0; i < n; i++) {
        cells[i] = from->cells[i];
        if (cells[i].path.n && !(cells[i].path = arena_dup(a, cells[i].path)).p) return err_nomem(e);
        if (cells[i].value.n && !(cells[i].value = arena_dup(a, cells[i].value)).p) return err_nomem(e);
    }
    *to = *from;
    to->cells = cells;
    v->statics = to;
    if (take_cells(v, to, e)) return -1;
    v->row_mark = arena_mark(v->arena);
    return 0;
}

static int take_key(struct row_view *v, const struct eng_row *row, struct err *e) {
    uint32_t n = v->layout->table->n_clustering;
    struct value *keys = v->values + v->layout->table->n_partition_key;
    if (row_view_int_key(v, row)) return 0;
    if (row_key_decode(v->layout->table, row->ck, row->key_image, v->arena, keys, e)) return -1;
    v->ck_bytes = 0;
    for (uint32_t i = 0; i < n; i++) v->ck_bytes += (uint64_t)keys[i].n;
    return 0;
}

int row_view_row(struct row_view *v, const struct eng_row *row, struct err *e) {
    const struct schema_table *t = v->layout->table;
    if (v->values == v->first) arena_rewind(v->arena, v->row_mark);
    v->row = row;
    v->row_flags = 0;
    if (row && row->laid_out) {
        v->measured = true;
        v->regular_bytes = v->laid.bytes;
        return take_key(v, row, e);
    }
    clear(v, COLUMN_REGULAR);
    v->measured = row && row->plain && v->layout->flat;
    if (v->measured) take_plain(v, row);
    else if (row && row->n_cells && take_cells(v, row, e)) return -1;
    if (row) return take_key(v, row, e);
    for (uint32_t i = 0; i < t->n_clustering; i++) v->values[t->n_partition_key + i] = value_null();
    return 0;
}

const struct eng_cell *row_view_cells(const struct row_view *v, const struct schema_column *c, uint32_t *n) {
    const struct eng_row *row = c->kind == COLUMN_STATIC ? v->statics : v->row;
    struct row_view_run run = v->runs[c->ordinal];
    *n = row ? run.n : 0;
    return *n ? &row->cells[run.first] : NULL;
}

struct row_view_time row_view_time(const struct row_view *v, const struct schema_column *c) {
    uint32_t n;
    const struct eng_cell *cells = row_view_cells(v, c, &n);
    struct row_view_time out = {.ts = ENG_NO_TS, .expiry = ENG_NO_EXPIRY};
    for (uint32_t i = 0; i < n; i++) {
        if (cells[i].flags & (ENG_CELL_COMPLEX_DELETION | ENG_CELL_TOMBSTONE)) continue;
        if (out.present && cells[i].ts <= out.ts) continue;
        out =
            (struct row_view_time){.present = true, .ts = cells[i].ts, .ttl = cells[i].ttl, .expiry = cells[i].expiry};
    }
    return out;
}
