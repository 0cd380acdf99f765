/* system_metering.metrics: the ledger's minutes under the names and dimensions of CloudWatch's namespace AWS/Cassandra ("Amazon Keyspaces metrics and dimensions",
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/metrics-dimensions.html). A figure that has none of its own least and most (ConsumedReadCapacityUnits has, and the
 * latencies) was counted one by one: each of its samples is 1. */
#include <stdio.h>
#include <stdlib.h>

#include "server/system_metering.h"

struct metric {
    const struct figure_info *info;
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
    struct metric m = {.info = info, .operation = operation, .minute = minute, .sum = (double)sum * info->scale};
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
    for (unsigned f = 0; f < FIGURES; f++)
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

/* What is no count: the capacity of provisioned tables and the account's quotas, as they are in this minute. */
static int put_gauge(struct metrics *all, const struct figure_info *info, uint32_t minute, const char *keyspace, const char *table, int64_t value) {
    struct metric m = {.info = info, .operation = "", .minute = minute, .sum = (double)value, .least = (double)value, .most = (double)value, .samples = 1};
    snprintf(m.keyspace, sizeof(m.keyspace), "%s", keyspace);
    snprintf(m.table, sizeof(m.table), "%s", table);
    return put(all, &m);
}

static const struct figure_info provisioned_read = {.cloudwatch = "ProvisionedReadCapacityUnits", .unit = "Count"};
static const struct figure_info provisioned_write = {.cloudwatch = "ProvisionedWriteCapacityUnits", .unit = "Count"};

struct gauges {
    struct metrics *all;
    uint32_t minute;
};

static int take_provisioned(void *arg, const struct limit_table *t) {
    struct gauges *g = arg;
    if (!t->read.provisioned) return 0;
    if (put_gauge(g->all, &provisioned_read, g->minute, t->keyspace, t->table, capacity_rate(&t->read, INT64_MAX))) return -1;
    return put_gauge(g->all, &provisioned_write, g->minute, t->keyspace, t->table, capacity_rate(&t->write, INT64_MAX));
}

static int put_quotas(struct gauges *g, const struct limit_values *values) {
    static const struct {
        struct figure_info info;
        enum limit_id limit;
    } quotas[] = {
        {{.cloudwatch = "AccountMaxReads", .unit = "Count"}, LIMIT_ACCOUNT_READ},
        {{.cloudwatch = "AccountMaxWrites", .unit = "Count"}, LIMIT_ACCOUNT_WRITE},
        {{.cloudwatch = "AccountMaxTableLevelReads", .unit = "Count"}, LIMIT_TABLE_READ},
        {{.cloudwatch = "AccountMaxTableLevelWrites", .unit = "Count"}, LIMIT_TABLE_WRITE},
    };
    for (size_t i = 0; i < ARRAY_LEN(quotas); i++)
        if (put_gauge(g->all, &quotas[i].info, g->minute, "", "", values->of[quotas[i].limit])) return -1;
    return 0;
}

static int put_gauges(struct metrics *all, const struct system_metering *m) {
    struct gauges g = {.all = all, .minute = (uint32_t)(clock_wall_us(m->clock) / 60000000)};
    if (admission_tables(m->admission, take_provisioned, &g)) return -1;
    return put_quotas(&g, &admission_options(m->admission)->values);
}

static int by_name(const void *a, const void *b) {
    const struct metric *x = a, *y = b;
    int c = strcmp(x->info->cloudwatch, y->info->cloudwatch);
    if (!c) c = strcmp(x->keyspace, y->keyspace);
    if (!c) c = strcmp(x->table, y->table);
    if (!c) c = strcmp(x->operation, y->operation);
    return c ? c : (x->minute > y->minute) - (x->minute < y->minute);
}

static int emit(struct row_out *ro, const struct metric *m) {
    enum { PERIOD_S = 60 };
    row_out_begin(ro);
    row_text(ro, "metric_name", m->info->cloudwatch);
    row_text(ro, "keyspace_name", m->keyspace);
    row_text(ro, "table_name", m->table);
    row_text(ro, "operation", m->operation);
    row_long(ro, "period_start", (int64_t)m->minute * PERIOD_S * 1000);
    row_double(ro, "maximum", m->most);
    row_double(ro, "minimum", m->least);
    row_int(ro, "period", PERIOD_S);
    row_count(ro, "sample_count", m->samples);
    row_double(ro, "sum", m->sum);
    row_text(ro, "unit", m->info->unit);
    return row_out_emit(ro);
}

YIELDS_METERING(metrics) {
    struct row_out ro;
    struct metrics all = {0};
    if (row_out_init(&ro, ctx, table, row, arg)) return -1;
    const struct system_metering *m = metering_of(table);
    int rc = ledger_tables(m->ledger, take_table, &all) || put_gauges(&all, m) ? err_nomem(ctx->err) : 0;
    if (all.n) qsort(all.list, all.n, sizeof(*all.list), by_name);
    for (size_t i = 0; !rc && i < all.n; i++)
        if (row_out_wants(&ro, 0, all.list[i].info->cloudwatch)) rc = emit(&ro, &all.list[i]);
    free(all.list);
    return rc;
}
