/* system_metering.metrics: the ledger's minutes under the names and dimensions of CloudWatch's
 * namespace AWS/Cassandra ("Amazon Keyspaces metrics and dimensions",
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/metrics-dimensions.html). The ledger keeps
 * the least and the largest sample of ConsumedReadCapacityUnits, ConsumedWriteCapacityUnits, the
 * latencies and the rows returned. Each sample of the other figures is 1. */
#include <stdlib.h>

#include "base/array.h"
#include "server/metering_gauges.h"

struct metrics {
    const struct metric_want *want;
    size_t n, cap;
    struct metric *list;
};

static bool wants(const struct metric_want *w, const char *name, const char *keyspace, const char *table) {
    return (!w->name || !strcmp(w->name, name)) && (!w->keyspace || !strcmp(w->keyspace, keyspace)) &&
           (!w->table || !strcmp(w->table, table));
}

static int put(struct metrics *all, const struct metric *m) {
    if (!wants(all->want, m->name, m->keyspace, m->table)) return 0;
    if (array_room(&all->list, all->n, &all->cap, sizeof(*all->list))) return -1;
    all->list[all->n++] = *m;
    return 0;
}

/* span NULL: each sample is 1. */
static int put_figure(struct metrics *all, const struct table_stats *t, uint32_t minute, const struct figure_info *info,
                      const char *operation, uint64_t sum, const struct span *span) {
    bool known = span ? span->n > 0 : sum > 0;
    if (!*info->cloudwatch || !known) return 0;
    struct metric m = {.name = info->cloudwatch,
                       .unit = info->unit,
                       .operation = operation,
                       .minute = minute,
                       .sum = (double)sum * info->scale};
    m.samples = span ? span->n : sum;
    m.least = (span ? (double)span->min : 1) * info->scale;
    m.most = (span ? (double)span->max : 1) * info->scale;
    memcpy(m.keyspace, t->keyspace, sizeof(m.keyspace));
    memcpy(m.table, t->name, sizeof(m.table));
    return put(all, &m);
}

/* A minute from the ledger file of an older server has sums only, and no samples in its spans. */
static const struct span *known(const struct span *s) { return s && s->n ? s : NULL; }

static int put_minute(struct metrics *all, const struct table_stats *t, const struct stats_minute *m) {
    const struct span *spans = m->cell.spans;
    for (unsigned f = 0; t->object && f < FIGURES; f++) {
        const struct span *span = f == FIGURE_READ_UNITS    ? &spans[SPAN_READ_UNITS]
                                  : f == FIGURE_WRITE_UNITS ? &spans[SPAN_WRITE_UNITS]
                                                            : NULL;
        if (put_figure(all, t, m->minute, figure_info(f), "", m->cell.f.n[f], known(span))) return -1;
    }
    for (unsigned o = 0; o < OPERATIONS; o++)
        for (unsigned f = 0; f < OPERATION_FIGURES; f++) {
            const struct span *span = f == OF_LATENCY    ? &spans[SPAN_LATENCY + o]
                                      : f == OF_RETURNED ? &spans[SPAN_RETURNED + o]
                                                         : NULL;
            if (put_figure(all, t, m->minute, operation_figure_info(f), operation_name(o), m->cell.f.of[o][f],
                           known(span)))
                return -1;
        }
    return 0;
}

static int take_table(void *arg, const struct table_stats *t, uint32_t second) {
    struct metrics *all = arg;
    struct stats_minute any = {.minute = second / 60};
    if (all->want->table && (strcmp(all->want->table, t->name) || strcmp(all->want->keyspace, t->keyspace))) return 0;
    for (uint32_t minute = second / 60 - STATS_MINUTES + 1; minute <= second / 60; minute++) {
        const struct stats_minute *m = stats_minute(t, minute);
        if (m && all->want->names_only) cell_add(&any.cell, &m->cell);
        else if (m && put_minute(all, t, m)) return -1;
    }
    return all->want->names_only ? put_minute(all, t, &any) : 0;
}

/* ---- gauges (gauge.def) ---- */

/* Takes the billable sizes of tables. Counting one reads only the parts of the table that have
 * changed since the last count. */
static int take_sizes(const struct system_metering *m, const struct schema *schema,
                      const struct stop_check *stop_check, const struct metric_want *want, struct gauges *gauges,
                      struct err *e) {
    uint32_t minute = (uint32_t)(clock_wall_us(m->clock) / 60000000);
    for (uint32_t i = 0; i < schema->n_spaces; i++) {
        const struct schema_space *space = schema->spaces[i];
        struct schema_table_cursor c = schema_tables_begin(&space->tables);
        for (const struct schema_table *t; !space->keyspace->is_system && (t = schema_tables_next(&c));) {
            struct table_size size = {0};
            if (!wants(want, gauge_info(GAUGE_BILLABLE)->cloudwatch, space->keyspace->name, t->name)) continue;
            if (!want->names_only && !want->without_sizes &&
                cql_table_billable_bytes(m->db, schema, t, stop_check, &size, e))
                return -1;
            if (gauges_put(gauges, GAUGE_BILLABLE, space->keyspace->name, t->name, minute, (double)size.bytes))
                return err_nomem(e);
        }
    }
    return 0;
}

/* Collects all metrics that are wanted; the caller frees the list. */
static int gather(struct system_metering *m, const struct schema *schema, const struct stop_check *stop_check,
                  struct metrics *all, struct err *e) {
    struct gauges gauges = {0};
    int rc = ledger_tables(m->ledger, take_table, all) || ledger_gone(m->ledger, take_table, all) ||
                     gauges_take(&gauges, m)
                 ? err_nomem(e)
                 : take_sizes(m, schema, stop_check, all->want, &gauges, e);
    for (size_t i = 0; !rc && i < gauges.n; i++) {
        const struct gauge *g = &gauges.list[i];
        const struct gauge_info *info = gauge_info(g->id);
        struct metric one = {.name = info->cloudwatch,
                             .unit = info->unit,
                             .operation = "",
                             .minute = g->minute,
                             .sum = g->value,
                             .least = g->value,
                             .most = g->value,
                             .samples = 1};
        memcpy(one.keyspace, g->keyspace, sizeof(one.keyspace));
        memcpy(one.table, g->table, sizeof(one.table));
        if (put(all, &one)) rc = err_nomem(e);
    }
    free(gauges.list);
    return rc;
}

int metering_each_metric(void *arg, const struct schema *schema, const struct metric_want *want, metric_fn fn,
                         void *fn_arg, struct err *e) {
    struct metrics all = {.want = want};
    const struct stop_check stop_check = {0};
    int rc = gather(arg, schema, &stop_check, &all, e);
    /* Skip OTHER, an operation that CloudWatch does not have. */
    for (size_t i = 0; !rc && i < all.n; i++)
        if (strcmp(all.list[i].operation, operation_name(OPERATION_OTHER))) rc = fn(fn_arg, &all.list[i]);
    free(all.list);
    return rc;
}

/* ---- as rows ---- */

static int by_name(const void *a, const void *b) {
    const struct metric *x = a, *y = b;
    int c = strcmp(x->name, y->name);
    if (!c) c = strcmp(x->keyspace, y->keyspace);
    if (!c) c = strcmp(x->table, y->table);
    if (!c) c = strcmp(x->operation, y->operation);
    return c ? c : (x->minute > y->minute) - (x->minute < y->minute);
}

YIELDS_METERING(metrics) {
    enum { PERIOD_S = 60 };
    const struct metric_want want = {.without_sizes = !row_out_wants(ro, 0, gauge_info(GAUGE_BILLABLE)->cloudwatch)};
    struct metrics all = {.want = &want};
    int rc = gather(metering_of(ro->table), ro->ctx->schema, &ro->ctx->stop_check, &all, ro->ctx->err);
    if (all.n) qsort(all.list, all.n, sizeof(*all.list), by_name);
    for (size_t i = 0; !rc && i < all.n; i++) {
        const struct metric *m = &all.list[i];
        if (!row_out_wants(ro, 0, m->name)) continue;
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
        rc = row_out_emit(ro);
    }
    free(all.list);
    return rc;
}
