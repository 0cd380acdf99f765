/* GetMetricStatistics and ListMetrics of CloudWatch, for the namespace AWS/Cassandra
 * (https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricStatistics.html). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "control_plane/metric_series.h"

/* ---- GetMetricStatistics ---- */

static int take_span(struct call *c, struct metric_span *span) {
    enum { POINTS = 1440 };
    span->period = doc_get(c->in, "Period")->whole;
    if (metric_span_take(c, API_InvalidParameterValueException, span) ||
        metric_period_check(c, API_InvalidParameterValueException, span->period))
        return -1;
    int64_t points = (span->end - span->start) / span->period;
    if (points <= POINTS) return 0;
    return call_fail(c, API_InvalidParameterCombinationException,
                     "You have requested up to %" PRId64
                     " datapoints, which exceeds the limit of %d. You may reduce the "
                     "datapoints requested by increasing Period, or decreasing the time range.",
                     points, POINTS);
}

int op_get_metric_statistics(struct call *c) {
    struct metric_span span;
    struct metric_name name;
    struct metric_series series;
    if (metric_check_permission(c) || take_span(c, &span)) return -1;
    if (doc_get(c->in, "ExtendedStatistics"))
        return call_fail(
            c, API_InvalidParameterValueException,
            "ExtendedStatistics: Tally keeps no samples, only their number, sum, least and most; ask for Statistics.");
    if (!doc_get(c->in, "Statistics"))
        return call_fail(c, API_InvalidParameterCombinationException,
                         "At least one of the parameters Statistics and ExtendedStatistics must be specified.");
    if (metric_name_take(c, c->in, &name) || metric_series_read(c, &name, &span, doc_get(c->in, "Unit"), &series))
        return -1;
    doc_put_text(&c->make, c->out, "Label", name.name);
    struct doc *points = doc_put(&c->make, c->out, "Datapoints", DOC_LIST);
    for (uint32_t i = 0; i < series.n; i++) {
        struct doc *d = doc_put(&c->make, points, NULL, DOC_MAP);
        doc_put_moment(&c->make, d, "Timestamp", series.points[i].at * 1000);
        for (const struct doc *x = doc_get(c->in, "Statistics")->first; x; x = x->next) {
            enum metric_statistic of = metric_statistic_find(x->text);
            if (!doc_get(d, metric_statistic_name(of)))
                doc_put_real(&c->make, d, metric_statistic_name(of), metric_statistic_of(&series.points[i], of));
        }
        doc_put_text(&c->make, d, "Unit", series.unit);
    }
    return 0;
}

/* ---- ListMetrics ---- */

/* key: the metric's parts, one after the other. Metrics are sorted by it, and page tokens
 * contain it. */
enum { KEY = 320 };
struct listed_metric {
    const char *name;
    char keyspace[METRIC_NAME], table[METRIC_NAME];
    const char *operation;
    char key[KEY];
};
struct metric_listing {
    struct call *c;
    uint32_t n, cap;
    struct listed_metric *list;
};

static bool fits(const struct doc *filter, const char *dimension, const char *value) {
    const struct doc *wanted = doc_get(filter, "Value");
    return *value && slice_is(doc_get(filter, "Name")->text, dimension) && (!wanted || slice_is(wanted->text, value));
}

static int take(void *arg, const struct metric *m) {
    struct metric_listing *l = arg;
    const struct doc *filters = doc_get(l->c->in, "Dimensions"), *name = doc_get(l->c->in, "MetricName");
    if (name && !slice_is(name->text, m->name)) return 0;
    for (const struct doc *f = filters ? filters->first : NULL; f; f = f->next)
        if (!fits(f, "Keyspace", m->keyspace) && !fits(f, "TableName", m->table) && !fits(f, "Operation", m->operation))
            return 0;
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 256;
        struct listed_metric *list = ARENA_ARRAY(l->c->arena, l->cap, struct listed_metric);
        if (!list) return call_nomem(l->c);
        if (l->n) memcpy(list, l->list, l->n * sizeof(*list));
        l->list = list;
    }
    struct listed_metric *x = &l->list[l->n];
    *x = (struct listed_metric){.name = m->name, .operation = m->operation};
    memcpy(x->keyspace, m->keyspace, sizeof(x->keyspace));
    memcpy(x->table, m->table, sizeof(x->table));
    snprintf(x->key, sizeof(x->key), "%s/%s/%s/%s", m->name, m->keyspace, m->table, m->operation);
    l->n += !l->n || strcmp(x->key, x[-1].key); /* skips further minutes of the same metric */
    return 0;
}

static int by_key(const void *a, const void *b) {
    return strcmp(((const struct listed_metric *)a)->key, ((const struct listed_metric *)b)->key);
}

static void put_dimension(struct call *c, struct doc *to, const char *name, const char *value) {
    struct doc *d = *value ? doc_put(&c->make, to, NULL, DOC_MAP) : NULL;
    if (!d) return;
    doc_put_text(&c->make, d, "Name", name);
    doc_put_text(&c->make, d, "Value", value);
}

int op_list_metrics(struct call *c) {
    enum { ROOM = 500 };
    const struct doc *namespace = doc_get(c->in, "Namespace");
    const struct metric_source *source = &c->o->metrics;
    const struct metric_want want = {.names_only = true};
    struct metric_listing l = {.c = c};
    struct result_page page;
    if (metric_check_permission(c) || page_begin_at(c, &page, "NextToken", ROOM, API_InvalidParameterValueException))
        return -1;
    c->error = API_InternalServerException;
    if ((!namespace || slice_is(namespace->text, "AWS/Cassandra")) &&
        source->each(source->arg, c->schema, &want, take, &l, c->err))
        return -1;
    if (l.n) qsort(l.list, l.n, sizeof(*l.list), by_key);
    struct doc *metrics = doc_put(&c->make, c->out, "Metrics", DOC_LIST);
    for (uint32_t i = 0; i < l.n; i++) {
        const struct listed_metric *x = &l.list[i];
        if ((i > 0 && !strcmp(x->key, x[-1].key)) || !page_takes(c, &page, x->key)) continue;
        struct doc *d = doc_put(&c->make, metrics, NULL, DOC_MAP);
        doc_put_text(&c->make, d, "Namespace", "AWS/Cassandra");
        doc_put_text(&c->make, d, "MetricName", x->name);
        struct doc *dimensions = doc_put(&c->make, d, "Dimensions", DOC_LIST);
        put_dimension(c, dimensions, "Keyspace", x->keyspace);
        put_dimension(c, dimensions, "TableName", x->table);
        put_dimension(c, dimensions, "Operation", x->operation);
    }
    return 0;
}
