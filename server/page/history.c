#include "server/page/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SECONDS_MOST = 10 /* that one sample may cover */ };

static const struct series_info infos[] = {
#define SERIES(id, name_, gauge_, what_) {.name = name_, .what = what_, .gauge = gauge_},
#include "server/page/series.def"
#undef SERIES
};

const struct series_info *series_info(enum series s) { return &infos[s]; }

struct history_table *history_find(struct page_history *h, uint32_t object) {
    for (struct history_table *t = h->tables; object && t < h->tables + HISTORY_TABLES; t++)
        if (t->object == object) return t;
    return NULL;
}

/* ---- watched tables ---- */

static void unwatch(struct page_history *h, struct history_table *t) {
    ledger_watch(h->o.ledger, (uint32_t)(t - h->tables), 0);
    history_file_forget(h, t);
    history_table_close(t);
}

static double minute_load(const struct table_stats *t, uint32_t second) {
    const struct stats_minute *m = stats_minute(t, second / 60 - 1);
    const uint64_t *n = m ? m->cell.f.n : NULL;
    return n ? (double)usage_load(n[FIGURE_READ_UNITS], n[FIGURE_WRITE_UNITS]) : 0;
}

/* A free entry, or the one whose table has had the least load, if that is less than load. */
static struct history_table *entry_for(struct page_history *h, double load) {
    struct history_table *least = NULL;
    for (struct history_table *t = h->tables; t < h->tables + HISTORY_TABLES; t++) {
        if (!t->object) return t;
        double its = t->seen + 120 < h->second ? 0 : t->minute_load; /* it may be idle */
        if (its >= load) continue;
        least = t;
        load = its;
    }
    return least;
}

/* Begins to watch the table, if there is an entry for it. */
static void watch(struct page_history *h, const struct history_candidate *c) {
    struct err e = {0};
    struct history_table *t = entry_for(h, c->minute_load);
    if (!t) return;
    if (t->object) unwatch(h, t);
    uint8_t *image = calloc(1, history_image_bytes());
    if (!image || history_table_open(t, image, &e)) {
        free(image);
        return; /* without memory the table is not watched; it is tried again */
    }
    t->object = c->object;
    snprintf(t->keyspace, sizeof(t->keyspace), "%s", c->keyspace);
    snprintf(t->name, sizeof(t->name), "%s", c->name);
    t->seen = h->second;
    t->last = c->last;
    t->last_latencies = c->last_latencies;
    t->counts = true;
    ledger_watch(h->o.ledger, (uint32_t)(t - h->tables), t->object);
    ledger_ranges(h->o.ledger, (uint32_t)(t - h->tables), t->last_ranges);
}

/* ---- a second ---- */

static float quantile_ms(const struct history_table *t, const struct latencies *now, double q) {
    struct latencies since = *now;
    for (int i = 0; i < LATENCY_SLOTS; i++) since.n[i] -= t->last_latencies.n[i];
    return (float)(latencies_quantile(&since, q) / 1000);
}

static uint64_t sum_of(const struct figures *f, enum operation_figure of) {
    uint64_t sum = 0;
    for (int o = 0; o < OPERATIONS; o++) sum += f->of[o][of];
    return sum;
}

/* The figures since the last sample, as rates. */
static void set_values(struct history_table *t, const struct table_stats *b) {
    struct figures d = b->total;
    float *v = t->values, per = 1 / (float)t->seconds;
    for (int i = 0; i < FIGURES; i++) d.n[i] = d.n[i] > t->last.n[i] ? d.n[i] - t->last.n[i] : 0; /* less: taken back */
    for (int o = 0; o < OPERATIONS; o++)
        for (int i = 0; i < OPERATION_FIGURES; i++) {
            uint64_t last = t->last.of[o][i];
            d.of[o][i] = d.of[o][i] > last ? d.of[o][i] - last : 0;
        }
    v[SERIES_READ_UNITS] = (float)d.n[FIGURE_READ_UNITS] / 2 * per;
    v[SERIES_WRITE_UNITS] = (float)d.n[FIGURE_WRITE_UNITS] * per;
    v[SERIES_STATIC_UNITS] = (float)d.n[FIGURE_STATIC_WRITE_UNITS] * per;
    v[SERIES_ENTITIES] = (float)d.n[FIGURE_ENTITIES] * per;
    v[SERIES_READ_THROTTLES] = (float)sum_of(&d, OF_READ_THROTTLES) * per;
    v[SERIES_WRITE_THROTTLES] = (float)sum_of(&d, OF_WRITE_THROTTLES) * per;
    v[SERIES_PARTITION_THROTTLES] = (float)sum_of(&d, OF_PARTITION_THROTTLES) * per;
    v[SERIES_CONNECTION_THROTTLES] = (float)sum_of(&d, OF_CONNECTION_THROTTLES) * per;
    v[SERIES_GUIDANCE] = (float)d.n[FIGURE_GUIDANCE] * per;
    for (int c = 0; c < 4; c++) v[SERIES_POINT + c] = (float)d.n[FIGURE_POINT_READS + c] * per;
    v[SERIES_ROWS_READ] = v[SERIES_ROWS_RETURNED] = 0;
    for (int c = 0; c < 4; c++) v[SERIES_ROWS_READ] += (float)d.n[FIGURE_POINT_SCANNED + c] * per;
    for (int c = 0; c < 4; c++) v[SERIES_ROWS_RETURNED] += (float)d.n[FIGURE_POINT_RETURNED + c] * per;
    v[SERIES_SCANNED] = (float)(d.n[FIGURE_TABLE_SCAN_SCANNED] + d.n[FIGURE_PARTITION_RANGE_SCANNED]) * per;
    v[SERIES_REQUESTS] = (float)sum_of(&d, OF_REQUESTS) * per;
    v[SERIES_USER_ERRORS] = (float)sum_of(&d, OF_USER_ERRORS) * per;
    v[SERIES_SYSTEM_ERRORS] = (float)sum_of(&d, OF_SYSTEM_ERRORS) * per;
    v[SERIES_P50] = quantile_ms(t, &b->latencies, 0.5);
    v[SERIES_P99] = quantile_ms(t, &b->latencies, 0.99);
}

/* Under the ledger's lock. */
static int take_table(void *arg, const struct table_stats *b, uint32_t second) {
    struct page_history *h = arg;
    struct history_table *t = history_find(h, b->object);
    double load = minute_load(b, second);
    if (!t && b->object && (!h->candidate.object || load > h->candidate.minute_load)) {
        h->candidate = (struct history_candidate){.object = b->object, .minute_load = load, .last = b->total,
                                                  .last_latencies = b->latencies};
        memcpy(h->candidate.keyspace, b->keyspace, sizeof(b->keyspace));
        memcpy(h->candidate.name, b->name, sizeof(b->name));
    }
    if (!t) return 0;
    t->seconds = t->counts ? h->since : 0; /* the first sample after a restart says where counting begins */
    if (t->seconds) set_values(t, b);
    t->last = b->total;
    t->last_latencies = b->latencies;
    t->counts = true;
    t->seen = h->second;
    t->minute_load = load;
    return 0;
}

static void add_partitions(struct page_history *h, uint32_t second) {
    size_t n;
    struct ledger_partition *all = ledger_partition_usage(h->o.ledger, &n);
    for (size_t i = 0; all && i < n; i++) {
        const struct shard_partition *p = &all[i].p;
        struct history_table *t = history_find(h, p->object);
        if (!t) continue;
        const struct usage_window *w = &p->usage.last_second;
        const float last_second[RANGE_FIGURES] = {[RANGE_READ_HALVES] = (float)w->n[USAGE_READ_HALVES],
                                                  [RANGE_WRITE_UNITS] = (float)w->n[USAGE_WRITE_UNITS],
                                                  [RANGE_THROTTLES] = (float)w->n[USAGE_THROTTLES],
                                                  [RANGE_ENTITIES] = (float)w->n[USAGE_ENTITIES]};
        const uint64_t sums[RANGE_FIGURES] = {[RANGE_READ_HALVES] = usage_all(&p->usage, USAGE_READ_HALVES),
                                              [RANGE_WRITE_UNITS] = usage_all(&p->usage, USAGE_WRITE_UNITS),
                                              [RANGE_THROTTLES] = usage_all(&p->usage, USAGE_THROTTLES),
                                              [RANGE_ENTITIES] = usage_all(&p->usage, USAGE_ENTITIES)};
        parts_count(&t->parts, second, p->token, slice_of(p->key, p->key_n), sums, last_second);
    }
    free(all);
}

static void add_table(struct page_history *h, struct history_table *t, uint32_t second) {
    uint32_t now[SHARD_RANGES][RANGE_FIGURES];
    float values[SHARD_RANGES * RANGE_FIGURES];
    double read = 0, write = 0;
    if (h->o.capacity && h->o.capacity(h->o.arg, t->object, &read, &write)) {
        t->values[SERIES_READ_CAPACITY] = (float)read;
        t->values[SERIES_WRITE_CAPACITY] = (float)write;
    }
    ledger_ranges(h->o.ledger, (uint32_t)(t - h->tables), now);
    for (uint32_t r = 0; r < SHARD_RANGES; r++)
        for (uint32_t f = 0; f < RANGE_FIGURES; f++)
            values[r * RANGE_FIGURES + f] = (float)(now[r][f] - t->last_ranges[r][f]) / (float)t->seconds;
    for (uint32_t s = second - t->seconds + 1; s <= second; s++) {
        rings_add(&t->series, s, t->values);
        rings_add(&t->ranges, s, values);
    }
    memcpy(t->last_ranges, now, sizeof(now));
    t->seconds = 0;
}

void history_sample(struct page_history *h) {
    uint32_t second = (uint32_t)(clock_wall_us(h->o.clock) / 1000000) - 1;
    pthread_mutex_lock(&h->lock);
    if (second > h->second) {
        h->since = second - h->second < SECONDS_MOST ? second - h->second : 1;
        h->second = second;
        h->candidate.object = 0;
        ledger_touched(h->o.ledger, take_table, h);
        bool any = false;
        for (struct history_table *t = h->tables; t < h->tables + HISTORY_TABLES; t++) {
            any = any || (t->object && t->seen == second);
            if (t->object && t->seconds) add_table(h, t, second);
        }
        if (any) add_partitions(h, second);
        if (h->candidate.object) watch(h, &h->candidate);
    }
    if (second / 60 != h->saved) {
        h->saved = second / 60;
        for (struct history_table *t = h->tables; h->o.exists && t < h->tables + HISTORY_TABLES; t++)
            if (t->object && !h->o.exists(h->o.arg, t->object)) unwatch(h, t);
        history_file_save(h);
    }
    pthread_mutex_unlock(&h->lock);
}

/* ---- life ---- */

/* The time until the next second of the wall clock has just ended. */
static int64_t until_sample_us(void) {
    enum { SECOND_US = 1000000, AFTER_US = 20000 };
    return SECOND_US - clock_wall_us(&clock_real) % SECOND_US + AFTER_US;
}

static int64_t sample(void *arg) {
    history_sample(arg);
    return until_sample_us();
}

struct page_history *history_open_still(const struct history_options *o, struct err *e) {
    struct page_history *h = calloc(1, sizeof(*h));
    if (!h) return err_null(err_nomem(e));
    h->o = *o;
    h->fd = -1;
    pthread_mutex_init(&h->lock, NULL);
    ticker_init(&h->ticker, sample, h);
    if (o->path) history_file_open(h);
    for (uint32_t i = 0; i < HISTORY_TABLES; i++)
        if (h->tables[i].object) ledger_watch(o->ledger, i, h->tables[i].object);
    return h;
}

struct page_history *history_open(const struct history_options *o, struct err *e) {
    struct page_history *h = history_open_still(o, e);
    if (!h) return NULL;
    if (!ticker_start(&h->ticker, until_sample_us(), e)) return h;
    history_close(h);
    return NULL;
}

void history_close(struct page_history *h) {
    ticker_stop(&h->ticker);
    if (h->fd >= 0) {
        history_file_save(h);
        close(h->fd);
    }
    for (struct history_table *t = h->tables; t < h->tables + HISTORY_TABLES; t++) history_table_close(t);
    ticker_fini(&h->ticker);
    pthread_mutex_destroy(&h->lock);
    free(h);
}
