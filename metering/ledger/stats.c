#include "metering/ledger/stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const struct figure_info infos[] = {
#define FIGURE(id_, scale_, cloudwatch_, unit_, what_) \
    {.id = #id_, .cloudwatch = cloudwatch_, .unit = unit_, .what = what_, .scale = scale_},
#include "metering/ledger/figure.def"
#undef FIGURE
};

static const struct figure_info operation_infos[] = {
#define OPERATION_FIGURE(id_, scale_, cloudwatch_, unit_, what_) \
    {.id = #id_, .cloudwatch = cloudwatch_, .unit = unit_, .what = what_, .scale = scale_},
#include "metering/ledger/operation_figure.def"
#undef OPERATION_FIGURE
};

const struct figure_info *figure_info(enum figure f) { return &infos[f]; }
const struct figure_info *operation_figure_info(enum operation_figure f) { return &operation_infos[f]; }

const char *operation_name(enum operation o) {
    static const char *const names[] = {
#define OPERATION(id) #id,
#include "metering/ledger/operation.def"
#undef OPERATION
    };
    return names[o];
}

/* The least latency of a slot. */
static double floor_of(uint32_t slot) { return slot < 4 ? slot : (4 + slot % 4) * ldexp(1, (int)(slot / 4) - 1); }

double latencies_quantile(const struct latencies *l, double q) {
    uint64_t all = 0, below = 0;
    for (uint32_t i = 0; i < LATENCY_SLOTS; i++) all += l->n[i];
    for (uint32_t i = 0; all && i < LATENCY_SLOTS; i++) {
        below += l->n[i];
        if ((double)below >= q * (double)all) return (floor_of(i) + floor_of(i + 1)) / 2;
    }
    return 0;
}

void span_merge(struct span *to, const struct span *from) {
    if (!from->n) return;
    if (!to->n || from->min < to->min) to->min = from->min;
    if (from->max > to->max) to->max = from->max;
    to->n += from->n;
}

void cell_add(struct cell *to, const struct cell *from) {
    figures_add(&to->f, &from->f);
    for (int i = 0; i < SPANS; i++) span_merge(&to->spans[i], &from->spans[i]);
    latencies_add(&to->latencies, &from->latencies);
}

void stats_table_free(struct table_stats *t) {
    for (int i = 0; i < STATS_MINUTES; i++) free(t->minutes[i]);
    free(t->limits.p);
    free(t);
}

void stats_fini(struct stats *b) {
    for (uint32_t i = 0; i < b->tables.n; i++) stats_table_free(stats_at(b, i));
    for (uint32_t i = 0; i < b->gone.n; i++) stats_table_free(stats_gone_at(b, i));
    object_list_fini(&b->tables);
    object_list_fini(&b->gone);
    for (int i = 0; i < STATS_SHARDS; i++) free(b->shards[i].p);
    free(b->roles.p);
    free(b->id.p);
    *b = (struct stats){0};
}

struct table_stats *stats_find(const struct stats *b, uint32_t object) { return object_list_find(&b->tables, object); }

struct table_stats *stats_open(struct stats *b, uint32_t object, const char *keyspace, const char *name) {
    struct table_stats *t = stats_find(b, object);
    if (t) return t;
    if (!(t = calloc(1, sizeof(*t)))) return NULL;
    t->object = object;
    snprintf(t->keyspace, sizeof(t->keyspace), "%s", keyspace ? keyspace : "");
    snprintf(t->name, sizeof(t->name), "%s", name ? name : "");
    if (!object_list_add(&b->tables, t)) return t;
    stats_table_free(t);
    return NULL;
}

/* The cell of a minute, emptied when its slot held an older minute. Returns NULL if no memory, or
 * the slot holds a newer minute. */
static struct stats_minute *minute_open(struct table_stats *t, uint32_t minute) {
    struct stats_minute **at = &t->minutes[minute % STATS_MINUTES];
    if (!*at && !(*at = calloc(1, sizeof(**at)))) return NULL;
    if ((*at)->minute > minute) return NULL;
    t->overran = t->overran || ((*at)->minute != minute && (*at)->changed);
    if ((*at)->minute != minute) **at = (struct stats_minute){.minute = minute};
    return *at;
}

int stats_add(struct table_stats *t, uint32_t second, const struct cell *cell) {
    struct stats_minute *m = minute_open(t, second / 60);
    struct stats_second *s = &t->seconds[second % STATS_SECONDS];
    const struct figures *f = &cell->f;
    t->changed = t->unreported = true;
    figures_add(&t->total, f);
    latencies_add(&t->latencies, &cell->latencies);
    if (s->second < second) *s = (struct stats_second){.second = second};
    if (s->second == second) { /* else the slot holds a newer second */
        s->read_units += (uint32_t)f->n[FIGURE_READ_UNITS];
        s->write_units += (uint32_t)f->n[FIGURE_WRITE_UNITS];
        s->entities += (uint32_t)f->n[FIGURE_ENTITIES];
        for (int o = 0; o < OPERATIONS; o++)
            s->throttles += (uint32_t)(f->of[o][OF_READ_THROTTLES] + f->of[o][OF_WRITE_THROTTLES]);
    }
    if (!m) return t->minutes[second / 60 % STATS_MINUTES] ? 0 : -1;
    cell_add(&m->cell, cell);
    m->changed = true;
    return 0;
}

void stats_touch(struct stats *b, struct table_stats *t) {
    if (t->touched || b->n_touched == STATS_TOUCHED) return;
    t->touched = true;
    b->touched[b->n_touched++] = t;
}

void stats_untouch(struct stats *b) {
    for (uint32_t i = 0; i < b->n_touched; i++) b->touched[i]->touched = false;
    b->n_touched = 0;
}

static void reverse(uint64_t *left, uint64_t *from) {
    uint64_t n = *left < *from ? *left : *from;
    *from -= n;
    *left -= n;
}

void stats_reverse(struct table_stats *t, uint32_t second, const struct figures *f) {
    struct figures left = *f;
    for (uint32_t minute = second / 60, i = 0; i < 2; i++) {
        struct stats_minute *m = t->minutes[(minute - i) % STATS_MINUTES];
        if (!m || m->minute != minute - i) continue;
        for (int k = 0; k < FIGURES; k++) reverse(&left.n[k], &m->cell.f.n[k]);
        for (int o = 0; o < OPERATIONS; o++)
            for (int k = 0; k < OPERATION_FIGURES; k++) reverse(&left.of[o][k], &m->cell.f.of[o][k]);
        m->changed = true;
    }
    struct figures taken = *f;
    figures_sub(&taken, &left);
    figures_sub(&t->total, &taken);
    t->changed = t->unreported = true;
}

/* The file can repeat a minute while the statistics keep it: the newer record replaces the older
 * one. A minute too old to be kept is only added to the totals. */
int stats_put_minute(struct table_stats *t, uint32_t minute, const struct cell *cell) {
    struct stats_minute *m = minute_open(t, minute);
    if (!m && !t->minutes[minute % STATS_MINUTES]) return -1;
    if (m) figures_sub(&t->total, &m->cell.f);
    figures_add(&t->total, &cell->f);
    if (m) m->cell = *cell;
    return 0;
}

static void forget_gone(struct stats *b, uint32_t object) {
    struct table_stats *t = object_list_remove(&b->gone, object);
    if (t) stats_table_free(t);
}

void stats_drop(struct stats *b, uint32_t object) {
    struct table_stats *t = object_list_remove(&b->tables, object);
    int i = 0; /* the first minute */
    if (!t) return;
    if (t->touched) stats_untouch(b);
    figures_add(&b->dropped, &t->total);
    t->total = (struct figures){0};
    forget_gone(b, object);
    if (b->gone.n == STATS_GONE) forget_gone(b, stats_gone_at(b, 0)->object);
    while (i < STATS_MINUTES && !t->minutes[i]) i++;
    if (i == STATS_MINUTES || object_list_add(&b->gone, t)) stats_table_free(t);
}

int stats_blob_set(struct stats_blob *m, struct slice bytes) {
    if (slice_eq(stats_blob_bytes(m), bytes)) return 0;
    uint8_t *p = realloc(m->p, bytes.n + 1);
    if (!p) return -1;
    if (bytes.n) memcpy(p, bytes.p, bytes.n);
    *m = (struct stats_blob){.p = p, .n = (uint32_t)bytes.n, .changed = true};
    return 0;
}

const struct stats_second *stats_second(const struct table_stats *t, uint32_t second) {
    const struct stats_second *s = &t->seconds[second % STATS_SECONDS];
    return s->second == second && second ? s : NULL;
}

const struct stats_minute *stats_minute(const struct table_stats *t, uint32_t minute) {
    const struct stats_minute *m = t->minutes[minute % STATS_MINUTES];
    return m && m->minute == minute ? m : NULL;
}
