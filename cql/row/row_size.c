#include "cql/row/row_size.h"

#include "cql/row/cell_form.h"
#include "metering/size/size.h"

/* ---- a partition ---- */

void row_sizer_init(struct row_sizer *s, const struct row_view *view, const struct op_cost *rules) {
    const struct row_view_layout *l = view->layout;
    *s = (struct row_sizer){.view = view,
                            .rule = size_rule_of(rules->size_model, l->table->n_columns),
                            .timestamp_size = rules->timestamp_size};
    s->as_sent = l->flat && l->flat_keys && !l->has_timestamps && rules->size_model != SIZE_CURRENT;
}

void row_sizer_partition(struct row_sizer *s) {
    const struct schema_table *t = s->view->layout->table;
    struct size_sum sum = {0};
    size_add_row(&sum, &s->rule);
    for (uint32_t i = 0; i < t->n_partition_key; i++)
        size_add_partition_key(&sum, &s->rule, t->columns[i].type, s->view->values[i]);
    s->around = sum.bytes;
    s->plain_around = sum.bytes + (uint64_t)s->rule.ck_column * t->n_clustering;
}

/* ---- columns ---- */

/* Adds a column with the cells of a collection whose value the view does not build. */
static void add_cells(struct size_sum *to, const struct size_rule *rule, const struct row_view *v,
                      const struct schema_column *c) {
    uint32_t n;
    const struct eng_cell *cells = row_view_cells(v, c, &n);
    uint64_t size;
    if (!v->layout->places[c->id].multicell || !cell_size(c->type, rule->values, cells, n, &size)) return;
    to->n_columns++;
    to->bytes += rule->column + size;
}

/* Statics or regulars. */
static void add_values(struct size_sum *to, const struct size_rule *rule, const struct row_view *v, uint32_t from,
                       uint32_t n) {
    const struct schema_column *columns = v->layout->table->columns;
    for (uint32_t i = from; i < from + n; i++) {
        if (!value_is_null(v->values[i])) size_add_column(to, rule, columns[i].type, v->values[i]);
        else if (UNLIKELY(v->runs[i].n)) add_cells(to, rule, v, &columns[i]);
    }
}

/* Expired cells count until they are removed, as if they had not expired. */
static void add_expired(struct size_sum *to, const struct size_rule *rule, const struct row_view *v,
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
        if (!place.multicell) size = cql_value_size(t, rule->values, value_of_slice(c->value));
        else if (cell_size(t, rule->values, c, 1, &size) && !cell_size(t, rule->values, NULL, 0, &around) && !first)
            size -= around;
        to->n_columns += first;
        to->bytes += size + (first ? rule->column : 0);
        last = c->column;
    }
}

/* ---- a row ---- */

void row_size_add_any(struct size_sum *to, const struct row_sizer *s) {
    const struct row_view *v = s->view;
    const struct schema_table *t = v->layout->table;
    const struct size_rule *rule = &s->rule;
    struct size_sum row = {.rows = 1, .bytes = s->around};
    for (uint32_t i = t->n_partition_key, n = i + t->n_clustering; i < n; i++)
        size_add_clustering(&row, rule, t->columns[i].type, v->values[i]);
    add_values(&row, rule, v, t->n_columns - t->n_regular, t->n_regular);
    if (UNLIKELY(v->row->n_expired)) add_expired(&row, rule, v, v->row);
    if (UNLIKELY(v->layout->has_timestamps))
        size_add_timestamps(&row, (uint64_t)s->timestamp_size * (row.n_columns + v->row->n_deletions));
    const struct eng_row *r = v->row;
    bool expiring = v->row_flags & ENG_CELL_EXPIRING;
    if (UNLIKELY(v->layout->has_ttl || expiring || r->live_ttl || r->marker_expired || r->n_expired)) {
        uint64_t cells = r->n_expired;
        if (v->layout->has_ttl) { /* all cells of columns that the table has now */
            for (uint32_t i = t->n_columns - t->n_regular; i < t->n_columns; i++) cells += v->runs[i].n;
        } else { /* those that expire */
            for (uint32_t i = 0; expiring && i < r->n_cells; i++)
                cells += (r->cells[i].flags & ENG_CELL_EXPIRING) != 0;
        }
        if (v->layout->has_ttl || cells || r->live_ttl || r->marker_expired)
            size_add_ttl(&row, rule, cells + t->n_partition_key + t->n_clustering);
    }
    size_sum_add(to, &row);
}

void row_size_add_static(struct size_sum *to, const struct row_view *v) {
    const struct size_rule rule = size_rule_of_statics();
    const struct schema_table *t = v->layout->table;
    size_add_row(to, &rule);
    for (uint32_t i = 0; i < t->n_partition_key; i++)
        size_add_partition_key(to, &rule, t->columns[i].type, v->values[i]);
    add_values(to, &rule, v, t->n_partition_key + t->n_clustering, t->n_static);
    if (UNLIKELY(v->statics && v->statics->n_expired)) add_expired(to, &rule, v, v->statics);
}

void row_size_add_markers(struct size_sum *to, const struct row_sizer *s, uint32_t n) {
    struct size_sum one = {.rows = 1, .bytes = s->around};
    size_add_timestamps(&one, s->timestamp_size);
    for (uint32_t i = 0; i < n; i++) size_sum_add(to, &one);
}
