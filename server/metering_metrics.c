/* system_metering.metrics: the ledger's minutes under the names and dimensions of CloudWatch's namespace AWS/Cassandra ("Amazon Keyspaces metrics and dimensions",
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/metrics-dimensions.html). A figure that has none of its own least and most (ConsumedReadCapacityUnits has, and the
 * latencies) was counted one by one: each of its samples is 1. */
#include <stdlib.h>

#include "server/metering_gauges.h"

struct metric {
    const char *name, *unit;
    const char *operation; /* "": has no such dimension */
    char keyspace[BOOK_NAME], table[BOOK_NAME];
    uint32_t minute;
    double sum, least, most;
    uint64_t samples;
};

struct metrics {
    size_t n, cap;
    struct metric *list;
};

static int put(struct metrics *all, const struct metric *m) {
    if (all->n == all->cap) {
        size_t cap = all->cap ? 2 * all->cap : 256;
        struct metric *list = realloc(all->list, cap * sizeof(*list));
        if (!list) return -1;
        all->list = list;
        all->cap = cap;
    }
    all->list[all->n++] = *m;
    return 0;
}

/* span NULL: counted one by one. */
static int put_figure(struct metrics *all, const struct book_table *t, uint32_t minute, const struct figure_info *info, const char *operation,
                      uint64_t sum, const struct span *span) {
    bool known = span ? span->n > 0 : sum > 0;
    if (!*info->cloudwatch || !known) return 0;
    struct metric m = {.name = info->cloudwatch, .unit = info->unit, .operation = operation, .minute = minute, .sum = (double)sum * info->scale};
    m.samples = span ? span->n : sum;
    m.least = (span ? (double)span->min : 1) * info->scale;
    m.most = (span ? (double)span->max : 1) * info->scale;
    memcpy(m.keyspace, t->keyspace, sizeof(m.keyspace));
    memcpy(m.table, t->name, sizeof(m.table));
    return put(all, &m);
}

static const struct span *span_of_figure(const struct book_minute *m, enum figure f) {
    if (f == FIGURE_READ_UNITS) return &m->cell.spans[SPAN_READ_UNITS];
    return f == FIGURE_WRITE_UNITS ? &m->cell.spans[SPAN_WRITE_UNITS] : NULL;
}

static const struct span *span_of_operation(const struct book_minute *m, enum operation o, enum operation_figure f) {
    if (f == OF_LATENCY) return &m->cell.spans[SPAN_LATENCY + o];
    return f == OF_RETURNED ? &m->cell.spans[SPAN_RETURNED + o] : NULL;
}

/* After a restart, a minute knows its sums and no more. */
static const struct span *known(const struct span *s) { return s && s->n ? s : NULL; }

static int put_minute(struct metrics *all, const struct book_table *t, const struct book_minute *m) {
    for (unsigned f = 0; t->object && f < FIGURES; f++)
        if (put_figure(all, t, m->minute, figure_info(f), "", m->cell.f.n[f], known(span_of_figure(m, f)))) return -1;
    for (unsigned o = 0; o < OPERATIONS; o++)
        for (unsigned f = 0; f < OPERATION_FIGURES; f++)
            if (put_figure(all, t, m->minute, operation_figure_info(f), operation_name(o), m->cell.f.of[o][f], known(span_of_operation(m, o, f))))
                return -1;
    return 0;
}

static int take_table(void *arg, const struct book_table *t, uint32_t second) {
    for (uint32_t minute = second / 60 - BOOK_MINUTES + 1; minute <= second / 60; minute++) {
        const struct book_minute *m = book_minute(t, minute);
        if (m && put_minute(arg, t, m)) return -1;
    }
    return 0;
}

/* ---- what is no count (gauge.def) ---- */

static int put_gauge(struct metrics *all, const struct gauge *g) {
    const struct gauge_info *info = gauge_info(g->id);
    struct metric m = {.name = info->cloudwatch, .unit = info->unit, .operation = "", .minute = g->minute, .sum = g->value, .least = g->value, .most = g->value,
                       .samples = 1};
    memcpy(m.keyspace, g->keyspace, sizeof(m.keyspace));
    memcpy(m.table, g->table, sizeof(m.table));
    return put(all, &m);
}

/* Counts what has changed of each table since it was last counted. */
static int take_sizes(struct row_out *ro, struct gauges *gauges) {
    const struct system_metering *m = metering_of(ro->table);
    const struct virtual_context *ctx = ro->ctx;
    uint32_t minute = (uint32_t)(clock_wall_us(m->clock) / 60000000);
    if (!row_out_wants(ro, 0, gauge_info(GAUGE_BILLABLE)->cloudwatch)) return 0;
    for (uint32_t i = 0; i < ctx->schema->n_spaces; i++) {
        const struct schema_space *space = ctx->schema->spaces[i];
        struct schema_table_cursor c = schema_tables_begin(&space->tables);
        for (const struct schema_table *t; !space->keyspace->is_system && (t = schema_tables_next(&c));) {
            struct table_size size;
            if (cql_table_billable_bytes(m->db, ctx->schema, t, &ctx->patience, &size, ctx->err)) return -1;
            if (gauges_put(gauges, GAUGE_BILLABLE, space->keyspace->name, t->name, minute, (double)size.bytes)) return err_nomem(ctx->err);
        }
    }
    return 0;
}

static int put_gauges(struct row_out *ro, struct metrics *all) {
    struct gauges gauges = {0};
    int rc = gauges_take(&gauges, metering_of(ro->table)) ? err_nomem(ro->ctx->err) : take_sizes(ro, &gauges);
    for (size_t i = 0; !rc && i < gauges.n; i++)
        if (put_gauge(all, &gauges.list[i])) rc = err_nomem(ro->ctx->err);
    free(gauges.list);
    return rc;
}

static int by_name(const void *a, const void *b) {
    const struct metric *x = a, *y = b;
    int c = strcmp(x->name, y->name);
    if (!c) c = strcmp(x->keyspace, y->keyspace);
    if (!c) c = strcmp(x->table, y->table);
    if (!c) c = strcmp(x->operation, y->operation);
    return c ? c : (x->minute > y->minute) - (x->minute < y->minute);
}

static int emit(struct row_out *ro, const struct metric *m) {
    enum { PERIOD_S = 60 };
    row_out_begin(ro);
    row_text(ro, "metric_name", m->name);
    row_text(ro, "keyspace_name", m->keyspace);
    row_text(ro, "table_name", m->table);
    row_text(ro, "operation", m->operation);
    row_long(ro, "period_start", (int64_t)m->minute * PERIOD_S * 1000);
    row_double(ro, "maximum", m->most);
    row_double(ro, "minimum", m->least);
    row_int(ro, "period", PERIOD_S);
    row_count(ro, "sample_count", m->samples);
    row_double(ro, "sum", m->sum);
    row_text(ro, "unit", m->unit);
    return row_out_emit(ro);
}

YIELDS_METERING(metrics) {
    struct row_out ro;
    struct metrics all = {0};
    if (row_out_init(&ro, ctx, table, row, arg)) return -1;
    int rc = ledger_tables(metering_of(table)->ledger, take_table, &all) ? err_nomem(ctx->err) : put_gauges(&ro, &all);
    if (all.n) qsort(all.list, all.n, sizeof(*all.list), by_name);
    for (size_t i = 0; !rc && i < all.n; i++)
        if (row_out_wants(&ro, 0, all.list[i].name)) rc = emit(&ro, &all.list[i]);
    free(all.list);
    return rc;
}
