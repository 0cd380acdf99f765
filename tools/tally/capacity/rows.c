#include "tools/tally/capacity/rows.h"

static const char *sampled(const struct rows *r, const struct schema_column *c, uint64_t n) {
    const struct sample *s = r->input ? r->input->sample : NULL;
    return s ? s->rows[chance_of(n) % s->n].literals[c->ordinal] : NULL;
}

/* The number of a key column's literal. A clustering column with a range, except the last one,
 * spreads the rows evenly and in order over the range, so rows share values. */
static uint64_t ordered(const struct rows *r, const struct schema_column *c, const struct literal_spec *s,
                        uint64_t rank, uint64_t row) {
    if (c->kind == COLUMN_PARTITION_KEY) return rank;
    if (!s || !s->has_range || c->position + 1 == r->t->n_clustering) return row;
    uint64_t span = (uint64_t)(s->range_high - s->range_low) + 1;
    return (uint64_t)((double)(row % r->per_partition) * (double)span / (double)r->per_partition);
}

int rows_value(const struct rows *r, const struct schema_column *c, uint64_t rank, uint64_t row, uint64_t n,
               struct buf *out, struct err *e) {
    const struct literal_spec *s = workload_value_find(r->values, c->name);
    const char *literal = sampled(r, c, n);
    if (!s && r->input) s = workload_value_find(r->input->values, c->name);
    if (schema_column_is_key(c)) {
        /* A key without a specification gets the length of the key in a sample row. */
        int64_t length = literal ? (int64_t)strlen(literal) - 2 : -1; /* quotes, or 0x */
        if (c->type->id == CQL_BLOB) length /= 2;
        const struct literal_spec as_sampled = {.has_size = true, .size_low = length, .size_high = length};
        if (!s && literal && length >= 0) s = &as_sampled;
        return literal_make(out, c->type, s, LITERAL_ORDERED, ordered(r, c, s, rank, row), c->name, e);
    }
    if (s || !r->input || !r->input->sample)
        return literal_make(out, c->type, s, LITERAL_RANDOM, n ^ chance_of(c->ordinal), c->name, e);
    if (literal) buf_put_str(out, literal);
    return literal ? 0 : 1;
}

static int put_counters(const struct rows *r, uint64_t rank, uint64_t row, struct buf *out, struct err *e) {
    const struct schema_table *t = r->t;
    const char *comma = "";
    buf_printf(out, "UPDATE \"%s\".\"%s\" SET ", t->keyspace->name, t->name);
    for (uint32_t i = 0; i < t->n_columns; i++) {
        const struct schema_column *c = &t->columns[i];
        if (schema_column_is_key(c)) continue;
        buf_printf(out, "%s\"%s\" = \"%s\" + 1", comma, c->name, c->name);
        comma = ", ";
    }
    for (uint32_t i = 0; i < t->n_partition_key + t->n_clustering; i++) {
        buf_printf(out, " %s \"%s\" = ", i ? "AND" : "WHERE", t->columns[i].name);
        if (rows_value(r, &t->columns[i], rank, row, 0, out, e)) return -1;
    }
    return 0;
}

int rows_insert(const struct rows *r, uint64_t rank, uint64_t row, uint64_t n, struct buf *out, struct err *e) {
    const struct schema_table *t = r->t;
    bool statics = row == UINT64_MAX;
    struct buf values;
    uint32_t put = 0;
    size_t from = out->n;
    int rc = 0;
    if (t->is_counter) return statics ? 0 : put_counters(r, rank, row, out, e);
    buf_init(&values, 0);
    buf_printf(out, "INSERT INTO \"%s\".\"%s\" (", t->keyspace->name, t->name);
    for (uint32_t i = 0; rc >= 0 && i < t->n_columns; i++) {
        const struct schema_column *c = &t->columns[i];
        if (statics ? c->kind == COLUMN_CLUSTERING || c->kind == COLUMN_REGULAR : c->kind == COLUMN_STATIC) continue;
        size_t before = values.n;
        if (i) buf_put_str(&values, ", ");
        rc = rows_value(r, c, rank, statics ? 0 : row, n, &values, e);
        if (rc > 0) values.n = before;
        if (rc) continue;
        put += !schema_column_is_key(c);
        buf_printf(out, "%s\"%s\"", i ? ", " : "", c->name);
    }
    buf_printf(out, ") VALUES (%.*s)", SLICE_FMT(buf_slice(&values)));
    buf_fini(&values);
    if (statics && !put) out->n = from; /* the row has no static data */
    return rc < 0 ? -1 : 0;
}
