#include "server/metering_gauges.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"

const struct gauge_info *gauge_info(enum gauge_id id) {
    static const struct gauge_info infos[GAUGES] = {
#define GAUGE(id, cloudwatch_, unit_, per_table_, what_) \
    {.cloudwatch = cloudwatch_, .unit = unit_, .per_table = per_table_, .what = what_},
#include "server/gauge.def"
#undef GAUGE
    };
    return &infos[id];
}

int gauges_put(struct gauges *all, enum gauge_id id, const char *keyspace, const char *table, uint32_t minute,
               double value) {
    if (array_room(&all->list, all->n, &all->cap, sizeof(*all->list))) return -1;
    struct gauge *g = &all->list[all->n++];
    *g = (struct gauge){.id = id, .minute = minute, .value = value};
    snprintf(g->keyspace, sizeof(g->keyspace), "%s", keyspace);
    snprintf(g->table, sizeof(g->table), "%s", table);
    return 0;
}

/* ---- provisioned tables: their capacity and its use ---- */

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

int gauges_take(struct gauges *all, const struct system_metering *m) {
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
