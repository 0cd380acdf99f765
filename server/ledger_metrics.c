#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "server/metering_gauges.h"

struct total {
    char keyspace[STATS_NAME], table[STATS_NAME];
    struct figures f;
};
struct totals {
    bool per_table;
    size_t n, cap;
    struct total *list;
};

static int take(void *arg, const struct table_stats *t, uint32_t second) {
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

/* The counts of refusals, by limit. */
struct refusals {
    uint64_t refused[LIMITS], shadowed[LIMITS];
};

static int take_refusals(void *arg, const struct limit_table *t) {
    struct refusals *r = arg;
    for (int i = 0; i < LIMITS; i++) {
        r->refused[i] += t->counts[i].refused;
        r->shadowed[i] += t->counts[i].shadowed;
    }
    return 0;
}

/* ---- gauges (gauge.def) ---- */

/* Puts the billable size of each table as it was last counted, and how long ago that was. Sizes
 * are not counted here: that may scan a table, and /metrics must answer at once. */
static int take_sizes(const struct system_metering *m, struct gauges *all, struct buf *ages) {
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
            buf_put_str(ages, "tally_billable_size_age_seconds");
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
    if (gauges_take(&all, m) || (per_table && take_sizes(m, &all, &ages)) || buf_failed(&ages)) out->failed = true;
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
    if (ages.n)
        buf_put_str(out, "# HELP tally_billable_size_age_seconds Since the table's billable size was counted\n# TYPE "
                         "tally_billable_size_age_seconds gauge\n");
    buf_put_slice(out, buf_slice(&ages));
    buf_fini(&ages);
    free(all.list);
}

void ledger_metrics(struct system_metering *m, bool per_table, struct buf *out) {
    struct totals all = {.per_table = per_table};
    if (ledger_tables(m->ledger, take, &all)) out->failed = true;
    if (!all.n && !per_table) { /* nothing was posted yet: show zeros */
        struct table_stats none = {0};
        if (take(&all, &none, 0)) out->failed = true;
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
    struct refusals r = {0};
    (void)admission_tables(m->admission, take_refusals, &r); /* never ends early */
    buf_put_str(out, "# HELP tally_limit_refusals_total Requests over a limit: enforced, or only counted\n# TYPE "
                     "tally_limit_refusals_total counter\n");
    for (int i = 0; i < LIMITS; i++) {
        if (!r.refused[i] && !r.shadowed[i]) continue;
        const char *name = limit_info((enum limit_id)i)->name;
        buf_printf(out, "tally_limit_refusals_total{limit=\"%s\",enforced=\"true\"} %llu\n", name,
                   (unsigned long long)r.refused[i]);
        buf_printf(out, "tally_limit_refusals_total{limit=\"%s\",enforced=\"false\"} %llu\n", name,
                   (unsigned long long)r.shadowed[i]);
    }
    free(all.list);
}
