/* system_metering.metrics and /metrics: the ledger's minutes under the names and dimensions of
 * CloudWatch's namespace AWS/Cassandra ("Amazon Keyspaces metrics and dimensions",
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/metrics-dimensions.html), and gauges. The
 * ledger keeps the least and the largest sample of ConsumedReadCapacityUnits,
 * ConsumedWriteCapacityUnits, the latencies and the rows returned. Each sample of the other figures
 * is 1. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "server/metrics.h"

/* ---- gauges: values of the present moment, not sums of events (gauge.def) ---- */

enum gauge_id {
#define GAUGE(id, cloudwatch, unit, per_table, what) GAUGE_##id,
#include "server/gauge.def"
#undef GAUGE
    GAUGES
};

struct gauge_info {
    const char *cloudwatch, *unit, *what;
    bool per_table;
};

struct gauge {
    enum gauge_id id;
    char keyspace[STATS_NAME], table[STATS_NAME]; /* "": the gauge is of the account */
    uint32_t minute; /* since 1970; the current minute, or the one before for use of capacity */
    double value;
};
struct gauges {
    size_t n, cap;
    struct gauge *list; /* the caller frees it */
};

static const struct gauge_info *gauge_info(enum gauge_id id) {
    static const struct gauge_info infos[GAUGES] = {
#define GAUGE(id, cloudwatch_, unit_, per_table_, what_) \
    {.cloudwatch = cloudwatch_, .unit = unit_, .per_table = per_table_, .what = what_},
#include "server/gauge.def"
#undef GAUGE
    };
    return &infos[id];
}

static int gauges_put(struct gauges *all, enum gauge_id id, const char *keyspace, const char *table, uint32_t minute,
                      double value) {
    if (array_room(&all->list, all->n, &all->cap, sizeof(*all->list))) return -1;
    struct gauge *g = &all->list[all->n++];
    *g = (struct gauge){.id = id, .minute = minute, .value = value};
    snprintf(g->keyspace, sizeof(g->keyspace), "%s", keyspace);
    snprintf(g->table, sizeof(g->table), "%s", table);
    return 0;
}

/* The units that a table used in the last whole minute. */
struct used {
    uint32_t object;
    double read, write; /* units a second */
};

/* The use of provisioned capacity, for reads or for writes. */
struct use {
    double used, provisioned; /* units a second of all tables */
    double highest;           /* percent, of the table with the highest use */
};

struct taking {
    struct gauges *all;
    uint32_t minute; /* the ledger's current minute */
    size_t n, cap;
    struct used *list; /* sorted by object, as the ledger's tables are */
    struct use read, write;
};

static int take_used(void *arg, const struct table_stats *t, uint32_t second) {
    struct taking *k = arg;
    k->minute = second / 60;
    const struct stats_minute *m = stats_minute(t, k->minute - 1);
    if (!m) return 0;
    if (array_room(&k->list, k->n, &k->cap, sizeof(*k->list))) return -1;
    k->list[k->n++] = (struct used){.object = t->object, .read = (double)m->cell.f.n[FIGURE_READ_UNITS] / 2 / 60,
                                    .write = (double)m->cell.f.n[FIGURE_WRITE_UNITS] / 60};
    return 0;
}

static int by_object(const void *key, const void *element) {
    uint32_t a = *(const uint32_t *)key, b = ((const struct used *)element)->object;
    return (a > b) - (a < b);
}

static void add_use(struct use *to, double used, double provisioned) {
    double percent = 100 * used / provisioned;
    to->used += used;
    to->provisioned += provisioned;
    if (percent > to->highest) to->highest = percent;
}

static int take_provisioned(void *arg, const struct limit_table *t) {
    struct taking *k = arg;
    if (!t->read.provisioned) return 0;
    const struct used *u = k->n ? bsearch(&t->object, k->list, k->n, sizeof(*k->list), by_object) : NULL;
    double read = (double)capacity_rate(&t->read, INT64_MAX), write = (double)capacity_rate(&t->write, INT64_MAX);
    add_use(&k->read, u ? u->read : 0, read);
    add_use(&k->write, u ? u->write : 0, write);
    if (gauges_put(k->all, GAUGE_PROVISIONED_READ, t->keyspace, t->table, k->minute, read)) return -1;
    return gauges_put(k->all, GAUGE_PROVISIONED_WRITE, t->keyspace, t->table, k->minute, write);
}

/* Collects all gauges except the sizes of tables. There are gauges of use only when a table is
 * provisioned. Returns -1 if memory is exhausted. */
static int gauges_take(struct gauges *all, const struct system_metering *m) {
    static const struct {
        enum gauge_id id;
        enum limit_id limit;
    } quotas[] = {
        {GAUGE_ACCOUNT_READS, LIMIT_ACCOUNT_READ},
        {GAUGE_ACCOUNT_WRITES, LIMIT_ACCOUNT_WRITE},
        {GAUGE_TABLE_READS, LIMIT_TABLE_READ},
        {GAUGE_TABLE_WRITES, LIMIT_TABLE_WRITE},
    };
    const int64_t *values = admission_options(m->admission)->values.of;
    struct taking k = {.all = all, .minute = (uint32_t)(clock_wall_us(m->clock) / 60000000)};
    int rc = ledger_tables(m->ledger, take_used, &k) || admission_tables(m->admission, take_provisioned, &k);
    const struct {
        enum gauge_id id;
        double percent;
    } uses[] = {{GAUGE_ACCOUNT_READ_USE, 100 * k.read.used / k.read.provisioned},
                {GAUGE_ACCOUNT_WRITE_USE, 100 * k.write.used / k.write.provisioned},
                {GAUGE_TABLE_READ_USE, k.read.highest},
                {GAUGE_TABLE_WRITE_USE, k.write.highest}};
    for (size_t i = 0; !rc && k.read.provisioned > 0 && i < ARRAY_LEN(uses); i++)
        rc = gauges_put(all, uses[i].id, "", "", k.minute - 1, uses[i].percent);
    for (size_t i = 0; !rc && i < ARRAY_LEN(quotas); i++)
        rc = gauges_put(all, quotas[i].id, "", "", k.minute, (double)values[quotas[i].limit]);
    free(k.list);
    return rc ? -1 : 0;
}

/* ---- metrics, by minute ---- */

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

static int put_table(void *arg, const struct table_stats *t, uint32_t second) {
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

/* Adds the billable sizes of tables. Counting one reads only the parts of the table that have
 * changed since the last count. */
static int count_sizes(const struct system_metering *m, const struct schema *schema,
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
    int rc = ledger_tables(m->ledger, put_table, all) || ledger_gone(m->ledger, put_table, all) ||
                     gauges_take(&gauges, m)
                 ? err_nomem(e)
                 : count_sizes(m, schema, stop_check, all->want, &gauges, e);
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

/* ---- /metrics ---- */

struct total {
    char keyspace[STATS_NAME], table[STATS_NAME];
    struct figures f;
};
struct totals {
    bool per_table;
    size_t n, cap;
    struct total *list;
};

static int add_total(void *arg, const struct table_stats *t, uint32_t second) {
    struct totals *all = arg;
    (void)second;
    if (!all->per_table && all->n) {
        figures_add(&all->list[0].f, &t->total);
        return 0;
    }
    if (array_room(&all->list, all->n, &all->cap, sizeof(*all->list))) return -1;
    struct total *to = &all->list[all->n++];
    *to = (struct total){.f = t->total};
    memcpy(to->keyspace, t->keyspace, sizeof(to->keyspace));
    memcpy(to->table, t->name, sizeof(to->table));
    return 0;
}

/* ConsumedReadCapacityUnits becomes aws_cassandra_consumed_read_capacity_units_total. end:
 * "_total" for counters, "" for gauges. */
static void put_name(struct buf *out, const char *cloudwatch, const char *end) {
    buf_put_str(out, "aws_cassandra");
    for (const char *c = cloudwatch; *c; c++) {
        bool begins = isupper((unsigned char)*c) &&
                      (c == cloudwatch || !isupper((unsigned char)c[-1]) || islower((unsigned char)c[1]));
        if (begins) buf_put_str(out, "_");
        buf_u8(out, (uint8_t)tolower((unsigned char)*c));
    }
    buf_put_str(out, end);
}

static void put_label(struct buf *out, const char *name, const char *value, bool *first) {
    buf_printf(out, "%s%s=", *first ? "{" : ",", name);
    buf_json_str(out, slice_str(value));
    *first = false;
}

static void put_value(struct buf *out, const struct totals *all, const struct total *t, const struct figure_info *info,
                      const char *operation, uint64_t n) {
    bool first = true;
    put_name(out, info->cloudwatch, "_total");
    if (all->per_table) {
        put_label(out, "keyspace", t->keyspace, &first);
        put_label(out, "table_name", t->table, &first);
    }
    if (operation) put_label(out, "operation", operation, &first);
    buf_printf(out, "%s %.15g\n", first ? "" : "}", (double)n * info->scale);
}

static void put_header(struct buf *out, const char *cloudwatch, const char *unit, const char *what, bool is_gauge) {
    const char *end = is_gauge ? "" : "_total";
    buf_put_str(out, "# HELP ");
    put_name(out, cloudwatch, end);
    buf_printf(out, " %s (%s, %s)\n# TYPE ", cloudwatch, what, unit);
    put_name(out, cloudwatch, end);
    buf_put_str(out, is_gauge ? " gauge\n" : " counter\n");
}

/* The counts of refusals by limit, of all tables. */
struct refusals {
    bool per_table;
    struct limit_counts counts[LIMITS];
    struct buf *out;
};

static void put_refusals(const struct limit_counts counts[LIMITS], const struct limit_table *t, struct buf *out) {
    for (int i = 0; i < LIMITS; i++)
        for (int enforced = 0; enforced < 2; enforced++) {
            uint64_t n = enforced ? counts[i].refused : counts[i].shadowed;
            bool first = true;
            if (!counts[i].refused && !counts[i].shadowed) continue;
            buf_put_str(out, family_name(FAMILY_REFUSALS));
            if (t) {
                put_label(out, "keyspace", t->keyspace, &first);
                put_label(out, "table_name", t->table, &first);
            }
            put_label(out, "limit", limit_info((enum limit_id)i)->name, &first);
            put_label(out, "enforced", enforced ? "true" : "false", &first);
            buf_printf(out, "} %llu\n", (unsigned long long)n);
        }
}

static int add_refusals(void *arg, const struct limit_table *t) {
    struct refusals *r = arg;
    if (r->per_table) put_refusals(t->counts, t, r->out);
    for (int i = 0; i < LIMITS; i++) {
        r->counts[i].refused += t->counts[i].refused;
        r->counts[i].shadowed += t->counts[i].shadowed;
    }
    return 0;
}

/* Puts the billable size of each table as it was last counted, and how long ago that was. Sizes
 * are not counted here: that may scan a table, and /metrics must answer at once. */
static int put_last_sizes(const struct system_metering *m, struct gauges *all, struct buf *ages) {
    const struct schema *s = catalog_schema(m->catalog);
    int64_t now_us = clock_wall_us(m->clock);
    int rc = 0;
    for (uint32_t i = 0; i < s->n_spaces && !rc; i++) {
        struct schema_table_cursor c = schema_tables_begin(&s->spaces[i]->tables);
        for (const struct schema_table *t; !rc && (t = schema_tables_next(&c));) {
            uint64_t bytes;
            int64_t counted_us = cql_table_billable_last(m->db, t, &bytes);
            bool first = true;
            if (!counted_us) continue;
            rc = gauges_put(all, GAUGE_BILLABLE, t->keyspace->name, t->name, 0, (double)bytes);
            buf_put_str(ages, family_name(FAMILY_BILLABLE_AGE));
            put_label(ages, "keyspace", t->keyspace->name, &first);
            put_label(ages, "table_name", t->name, &first);
            buf_printf(ages, "} %.15g\n", now_us > counted_us ? (double)(now_us - counted_us) / 1000000 : 0);
        }
    }
    schema_unref(s);
    return rc;
}

static void put_gauges(const struct system_metering *m, bool per_table, struct buf *out) {
    struct gauges all = {0};
    struct buf ages;
    buf_init(&ages, 0);
    if (gauges_take(&all, m) || (per_table && put_last_sizes(m, &all, &ages)) || buf_failed(&ages)) out->failed = true;
    for (unsigned id = 0; id < GAUGES; id++) {
        const struct gauge_info *info = gauge_info((enum gauge_id)id);
        bool any = false;
        for (size_t i = 0; (per_table || !info->per_table) && i < all.n; i++) {
            const struct gauge *g = &all.list[i];
            bool first = true;
            if (g->id != id) continue;
            if (!any) put_header(out, info->cloudwatch, info->unit, info->what, true);
            any = true;
            put_name(out, info->cloudwatch, "");
            if (info->per_table) {
                put_label(out, "keyspace", g->keyspace, &first);
                put_label(out, "table_name", g->table, &first);
            }
            buf_printf(out, "%s %.15g\n", first ? "" : "}", g->value);
        }
    }
    if (ages.n) family_put_header(out, FAMILY_BILLABLE_AGE);
    buf_put_slice(out, buf_slice(&ages));
    buf_fini(&ages);
    free(all.list);
}

void ledger_metrics(struct system_metering *m, bool per_table, struct buf *out) {
    struct totals all = {.per_table = per_table};
    if (ledger_tables(m->ledger, add_total, &all)) out->failed = true;
    if (!all.n && !per_table) { /* nothing was posted yet: show zeros */
        struct table_stats none = {0};
        if (add_total(&all, &none, 0)) out->failed = true;
    }
    struct figures dropped = ledger_dropped(m->ledger);
    if (!per_table && all.n) figures_add(&all.list[0].f, &dropped);
    for (unsigned f = 0; f < FIGURES; f++) {
        const struct figure_info *info = figure_info(f);
        if (!*info->cloudwatch) continue;
        put_header(out, info->cloudwatch, info->unit, info->what, false);
        for (size_t i = 0; i < all.n; i++) put_value(out, &all, &all.list[i], info, NULL, all.list[i].f.n[f]);
    }
    for (unsigned f = 0; f < OPERATION_FIGURES; f++) {
        const struct figure_info *info = operation_figure_info(f);
        put_header(out, info->cloudwatch, info->unit, info->what, false);
        for (size_t i = 0; i < all.n; i++)
            for (unsigned o = 0; o < OPERATIONS; o++)
                put_value(out, &all, &all.list[i], info, operation_name(o), all.list[i].f.of[o][f]);
    }
    put_gauges(m, per_table, out);
    struct refusals r = {.per_table = per_table, .out = out};
    family_put_header(out, FAMILY_REFUSALS);
    (void)admission_tables(m->admission, add_refusals, &r); /* never ends early */
    if (!per_table) put_refusals(r.counts, NULL, out);
    free(all.list);
}
