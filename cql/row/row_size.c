#include "cql/row/row_size.h"

#include "cql/row/cell_form.h"
#include "metering/size/size.h"

/* Adds the cells of a collection whose value the view does not build. */
static void add_cells(struct size_parts *p, enum size_model model, const struct row_view *v,
                      const struct schema_column *c) {
    uint32_t n;
    const struct eng_cell *cells = row_view_cells(v, c, &n);
    uint64_t size;
    if (!v->layout->places[c->id].multicell || !cell_size(c->type, model, cells, n, &size)) return;
    p->n_columns++;
    p->column_bytes += size;
}

/* Sums in registers: this runs for every row that is read. */
static void add_values(struct size_parts *p, enum size_model model, const struct row_view *v, uint32_t from,
                       uint32_t to) {
    const struct schema_column *columns = v->layout->table->columns;
    uint64_t n = 0, bytes = 0;
    for (uint32_t i = from; i < to; i++) {
        if (value_is_null(v->values[i])) {
            if (UNLIKELY(v->runs[i].n)) add_cells(p, model, v, &columns[i]);
            continue;
        }
        n++;
        bytes += cql_value_size(columns[i].type, model, v->values[i]);
    }
    p->n_columns += n;
    p->column_bytes += bytes;
}

/* Columns are the partition key, the clustering key, then statics and regulars. */
static void add_columns(struct size_parts *p, enum size_model model, const struct row_view *v,
                        enum schema_column_kind kind) {
    const struct schema_table *t = v->layout->table;
    uint32_t rows = t->n_partition_key, statics = rows + t->n_clustering, regulars = statics + t->n_static;
    p->rows++;
    for (uint32_t i = 0; i < rows; i++) size_add_partition_key(p, model, t->columns[i].type, v->values[i]);
    if (kind == COLUMN_STATIC) {
        add_values(p, model, v, statics, regulars);
        return;
    }
    for (uint32_t i = rows; i < statics; i++) size_add_clustering(p, model, t->columns[i].type, v->values[i]);
    if (LIKELY(v->measured && model != SIZE_CURRENT)) {
        p->n_columns += v->n_regular;
        p->column_bytes += v->regular_bytes;
        return;
    }
    add_values(p, model, v, regulars, t->n_columns);
}

/* Expired cells count until they are removed, as if they had not expired. */
static void add_expired(struct size_parts *p, enum size_model model, const struct row_view *v,
                        const struct eng_row *row) {
    const struct row_view_layout *l = v->layout;
    uint32_t last = UINT32_MAX;
    for (uint32_t i = row->n_cells; i < row->n_cells + row->n_expired; i++) {
        const struct eng_cell *c = &row->cells[i];
        struct row_view_place place = l->places[c->column < l->n_ids ? c->column : l->n_ids];
        if (place.ordinal == UINT16_MAX) continue;
        const struct cql_type *t = l->table->columns[place.ordinal].type;
        bool first = !v->runs[place.ordinal].n && c->column != last;
        uint64_t around = 0, size = 0;
        if (!place.multicell) size = cql_value_size(t, model, value_of_slice(c->value));
        else if (cell_size(t, model, c, 1, &size) && !cell_size(t, model, NULL, 0, &around) && !first) size -= around;
        p->n_columns += first;
        p->column_bytes += size;
        last = c->column;
    }
}

static void add_ttl(struct size_parts *p, const struct row_view *v) {
    const struct schema_table *t = v->layout->table;
    const struct eng_row *row = v->row;
    uint64_t cells = row->n_expired;
    if (v->layout->has_ttl) { /* all cells of columns that the table has now */
        for (uint32_t i = t->n_columns - t->n_regular; i < t->n_columns; i++) cells += v->runs[i].n;
    } else { /* those that expire */
        for (uint32_t i = 0; v->row_flags & ENG_CELL_EXPIRING && i < row->n_cells; i++)
            cells += (row->cells[i].flags & ENG_CELL_EXPIRING) != 0;
        if (!cells && !row->live_ttl && !row->marker_expired) return;
    }
    p->ttl_rows++;
    p->ttl_cells += cells + t->n_partition_key + t->n_clustering;
}

/* Whether it is worth a look; flags may be those of the static row, which was looked at before. */
static bool may_have_ttl(const struct row_view *v) {
    return v->layout->has_ttl || v->row_flags & ENG_CELL_EXPIRING || v->row->live_ttl || v->row->marker_expired ||
           v->row->n_expired;
}

void row_size_add_any(struct size_parts *p, const struct op_cost *rules, const struct row_view *v) {
    uint64_t columns = p->n_columns;
    add_columns(p, rules->size_model, v, COLUMN_REGULAR);
    if (UNLIKELY(v->row->n_expired)) add_expired(p, rules->size_model, v, v->row);
    if (UNLIKELY(v->layout->has_timestamps))
        p->timestamp_bytes += rules->timestamp_size * (p->n_columns - columns + v->row->n_deletions);
    if (UNLIKELY(may_have_ttl(v))) add_ttl(p, v);
}

void row_size_add_static(struct size_parts *p, const struct row_view *v) {
    add_columns(p, SIZE_DOCUMENTED_2022, v, COLUMN_STATIC);
    if (UNLIKELY(v->statics && v->statics->n_expired)) add_expired(p, SIZE_DOCUMENTED_2022, v, v->statics);
}

void row_size_add_markers(struct size_parts *p, const struct op_cost *rules, const struct row_view *v, uint32_t n) {
    const struct schema_table *t = v->layout->table;
    struct size_parts one = {.rows = 1, .timestamp_bytes = rules->timestamp_size};
    for (uint32_t i = 0; i < t->n_partition_key; i++)
        size_add_partition_key(&one, rules->size_model, t->columns[i].type, v->values[i]);
    for (uint32_t i = 0; i < n; i++) size_parts_add(p, &one);
}
