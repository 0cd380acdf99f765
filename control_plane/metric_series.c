#include "control_plane/metric_series.h"

#include <math.h>
#include <stdlib.h>

#include "access/access.h"

static const char NAMESPACE[] = "AWS/Cassandra";

int metric_check_permission(struct call *c) {
    const struct resource on = {RESOURCE_OF_TABLE, "system_metering", "metrics"};
    if (!c->role) return 0;
    const struct role_set *roles = access_roles(c->o->access);
    bool may = role_permissions(roles, c->role, &on) & 1u << MAY_SELECT;
    role_set_unref(roles);
    if (may) return 0;
    return call_fail(c, API_AccessDeniedException,
                     "User %s has no SELECT permission on <table %s.%s> or any of its parents", c->role, on.keyspace,
                     on.name);
}

/* ---- members of the request ---- */

static double seconds_of(const struct doc *d) { return d->kind == DOC_REAL ? d->real : (double)d->whole; }

int metric_span_take(struct call *c, enum api_error invalid, struct metric_span *out) {
    enum { MINUTE = 60 };
    const double start = seconds_of(doc_get(c->in, "StartTime")), end = seconds_of(doc_get(c->in, "EndTime")),
                 most = 1e11;
    if (!(start > -most && start < most && end > -most && end < most))
        return call_fail(c, invalid, "The parameters StartTime and EndTime must be moments.");
    if (!(start < end))
        return call_fail(c, invalid, "The parameter StartTime must be less than the parameter EndTime.");
    out->start = (int64_t)floor(start / MINUTE) * MINUTE;
    out->end = (int64_t)ceil(end / MINUTE) * MINUTE; /* a minute that begins before it counts */
    return 0;
}

int metric_period_check(struct call *c, enum api_error invalid, int64_t period) {
    static const int64_t shorter[] = {1, 5, 10, 20, 30};
    for (size_t i = 0; i < ARRAY_LEN(shorter); i++)
        if (period == shorter[i]) return 0;
    return period % 60 == 0
               ? 0
               : call_fail(c, invalid,
                           "The parameter Period must be a value in the set [1, 5, 10, 20, 30] or a multiple of 60.");
}

int metric_name_take(struct call *c, const struct doc *d, struct metric_name *out) {
    const struct doc *namespace = doc_get(d, "Namespace"), *name = doc_get(d, "MetricName"),
                     *dimensions = doc_get(d, "Dimensions");
    *out = (struct metric_name){.known = namespace && slice_is(namespace->text, NAMESPACE) && name,
                                .keyspace = "",
                                .table = "",
                                .operation = ""};
    for (const struct doc *x = dimensions ? dimensions->first : NULL; x; x = x->next) {
        struct slice of = doc_get(x, "Name")->text;
        const char **to = slice_is(of, "Keyspace")    ? &out->keyspace
                          : slice_is(of, "TableName") ? &out->table
                          : slice_is(of, "Operation") ? &out->operation
                                                      : NULL;
        const char *value = to ? doc_text(c->arena, x, "Value") : NULL;
        if (to && !value) return call_nomem(c);
        if (!to || **to) out->known = false;
        else *to = value;
    }
    if (name && !(out->name = doc_text(c->arena, d, "MetricName"))) return call_nomem(c);
    return 0;
}

/* ---- points ---- */

struct series_reader {
    struct call *c;
    const struct metric_name *name;
    const struct metric_span *span;
    const struct doc *unit;
    struct metric_series *out;
    uint32_t cap;
};

static int take(void *arg, const struct metric *m) {
    struct series_reader *r = arg;
    struct metric_series *s = r->out;
    int64_t at = (int64_t)m->minute * 60, period = r->span->period;
    if (strcmp(m->operation, r->name->operation) || at < r->span->start || at >= r->span->end ||
        (r->unit && !slice_is(r->unit->text, m->unit)))
        return 0;
    if (s->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 64;
        struct metric_point *points = ARENA_ARRAY(r->c->arena, r->cap, struct metric_point);
        if (!points) return call_nomem(r->c);
        if (s->n) memcpy(points, s->points, s->n * sizeof(*points));
        s->points = points;
    }
    s->unit = m->unit;
    s->points[s->n++] = (struct metric_point){.at = r->span->start + (at - r->span->start) / period * period,
                                              .sum = m->sum,
                                              .least = m->least,
                                              .most = m->most,
                                              .samples = m->samples};
    return 0;
}

static int by_time(const void *a, const void *b) {
    const struct metric_point *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

int metric_series_read(struct call *c, const struct metric_name *name, const struct metric_span *span,
                       const struct doc *unit, struct metric_series *out) {
    const struct metric_want want = {.name = name->name, .keyspace = name->keyspace, .table = name->table};
    struct series_reader r = {.c = c, .name = name, .span = span, .unit = unit, .out = out};
    const struct metric_source *source = &c->o->metrics;
    *out = (struct metric_series){0};
    c->error = API_InternalServerException;
    if (!name->known) return 0;
    if (source->each(source->arg, c->schema, &want, take, &r, c->err)) return -1;
    if (out->n) qsort(out->points, out->n, sizeof(*out->points), by_time);
    uint32_t n = 0;
    for (uint32_t i = 0; i < out->n; i++) { /* combine the minutes of one period */
        const struct metric_point *from = &out->points[i];
        struct metric_point *to = n ? &out->points[n - 1] : NULL;
        if (!to || to->at != from->at) {
            out->points[n++] = *from;
            continue;
        }
        if (from->least < to->least) to->least = from->least;
        if (from->most > to->most) to->most = from->most;
        to->sum += from->sum;
        to->samples += from->samples;
    }
    out->n = n;
    return 0;
}

/* ---- statistics ---- */

static const char *const statistics[STATISTICS] = {[STATISTIC_SAMPLE_COUNT] = "SampleCount",
                                                   [STATISTIC_AVERAGE] = "Average",
                                                   [STATISTIC_SUM] = "Sum",
                                                   [STATISTIC_MINIMUM] = "Minimum",
                                                   [STATISTIC_MAXIMUM] = "Maximum"};

enum metric_statistic metric_statistic_find(struct slice name) {
    int s = 0;
    while (s < STATISTICS && !slice_is(name, statistics[s])) s++;
    return (enum metric_statistic)s;
}

const char *metric_statistic_name(enum metric_statistic s) { return statistics[s]; }

double metric_statistic_of(const struct metric_point *p, enum metric_statistic s) {
    switch (s) {
    case STATISTIC_SAMPLE_COUNT: return (double)p->samples;
    case STATISTIC_AVERAGE: return p->samples ? p->sum / (double)p->samples : 0;
    case STATISTIC_SUM: return p->sum;
    case STATISTIC_MINIMUM: return p->least;
    case STATISTIC_MAXIMUM: return p->most;
    case STATISTICS: break;
    }
    return 0;
}
