/* GetMetricData of CloudWatch, for the namespace AWS/Cassandra: metrics, no expressions
 * (https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html). */
#include <inttypes.h>
#include <stdlib.h>

#include "control_plane/metric_series.h"

enum { QUERIES = 500, DATAPOINTS = 100800 };

struct query {
    const struct doc *d;
    const char *id, *label;
    bool returned;
    enum metric_statistic of;
    struct metric_series series;
};

struct request {
    struct call *c;
    struct metric_span span; /* its period is not set */
    uint32_t n;
    struct query *queries;
};

static int invalid(struct call *c, uint32_t i, const char *what) {
    return call_fail(c, API_ValidationError, "The value for parameter MetricDataQueries.member.%u%s", i + 1, what);
}

/* ---- queries of the request ---- */

static int take_query(struct request *r, const struct doc *d, uint32_t i) {
    struct query *q = &r->queries[i];
    const struct doc *stat = doc_get(d, "MetricStat"), *returned = doc_get(d, "ReturnData");
    *q = (struct query){.d = d,
                        .id = doc_text(r->c->arena, d, "Id"),
                        .returned = !returned || returned->flag,
                        .label = doc_text(r->c->arena, d, "Label")};
    if (!q->id) return call_nomem(r->c);
    size_t n = strspn(q->id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    if (q->id[0] < 'a' || q->id[0] > 'z' || q->id[n])
        return invalid(r->c, i, ".Id is not matching the expected pattern ^[a-z][a-zA-Z0-9_]*$.");
    for (uint32_t k = 0; k < i; k++)
        if (!strcmp(r->queries[k].id, q->id))
            return call_fail(r->c, API_ValidationError,
                             "The values for parameter id in MetricDataQueries are not unique.");
    if (!stat == !doc_get(d, "Expression")) return invalid(r->c, i, " must have either MetricStat or Expression.");
    if (!stat)
        return call_fail(r->c, API_ValidationError,
                         "Error in expression '%s': Tally evaluates no metric math; query the metrics themselves.",
                         q->id);
    const struct doc *name = doc_get(stat, "Stat");
    if (metric_period_check(r->c, API_ValidationError, doc_get(stat, "Period")->whole)) return -1;
    if (metric_statistic_find(name->text) != STATISTICS) return 0;
    return call_fail(r->c, API_ValidationError,
                     "The value %.*s for parameter Stat is not supported: Tally keeps no samples, only their "
                     "SampleCount, Average, Sum, Minimum and Maximum.",
                     (int)(name->text.n < 64 ? name->text.n : 64), (const char *)name->text.p);
}

static int take_queries(struct request *r) {
    const struct doc *list = doc_get(r->c->in, "MetricDataQueries");
    bool any = false;
    if (!list->n || list->n > QUERIES)
        return call_fail(r->c, API_ValidationError, "The collection MetricDataQueries must have from 1 to %d members.",
                         QUERIES);
    r->queries = ARENA_ARRAY(r->c->arena, list->n, struct query);
    if (!r->queries) return call_nomem(r->c);
    for (const struct doc *d = list->first; d; d = d->next, r->n++)
        if (take_query(r, d, r->n)) return -1;
    for (uint32_t i = 0; i < r->n; i++) any = any || r->queries[i].returned;
    return any ? 0
               : call_fail(r->c, API_ValidationError,
                           "At least one of the MetricDataQueries must have ReturnData true.");
}

/* ---- series ---- */

static int read_metric(struct request *r, struct query *q) {
    const struct doc *stat = doc_get(q->d, "MetricStat");
    const struct doc *account = doc_get(q->d, "AccountId");
    struct metric_span span = {.start = r->span.start, .end = r->span.end, .period = doc_get(stat, "Period")->whole};
    struct metric_name name;
    if (metric_name_take(r->c, doc_get(stat, "Metric"), &name)) return -1;
    name.known = name.known && (!account || slice_is(account->text, catalog_node(r->c->o->catalog)->account));
    q->of = metric_statistic_find(doc_get(stat, "Stat")->text);
    if (metric_series_read(r->c, &name, &span, doc_get(stat, "Unit"), &q->series)) return -1;
    if (!q->label) q->label = name.name ? name.name : q->id;
    return 0;
}

/* ---- the answer: a page of datapoints; a token says how many were before it ---- */

static void put_points(struct call *c, struct doc *d, const struct query *q, uint64_t from, uint64_t n) {
    const struct metric_series *s = &q->series;
    const struct doc *scan = doc_get(c->in, "ScanBy");
    bool ascending = scan && slice_is(scan->text, "TimestampAscending");
    struct doc *times = doc_put(&c->make, d, "Timestamps", DOC_LIST),
               *values = doc_put(&c->make, d, "Values", DOC_LIST);
    for (uint64_t i = from; i < from + n; i++) {
        const uint64_t at = ascending ? i : s->n - 1 - i;
        doc_put_moment(&c->make, times, NULL, s->points[at].at * 1000);
        doc_put_real(&c->make, values, NULL, metric_statistic_of(&s->points[at], q->of));
    }
}

static int answer(struct request *r, uint64_t skip, uint64_t room) {
    struct call *c = r->c;
    uint64_t before = 0, last = skip + room;
    struct doc *results = doc_put(&c->make, c->out, "MetricDataResults", DOC_LIST);
    for (uint32_t i = 0; i < r->n; i++) {
        struct query *q = &r->queries[i];
        uint64_t end = before + q->series.n;
        if (!q->returned) continue;
        uint64_t from = skip > before ? skip - before : 0,
                 to = last < end ? (last > before ? last - before : 0) : q->series.n;
        struct doc *d = doc_put(&c->make, results, NULL, DOC_MAP);
        doc_put_text(&c->make, d, "Id", q->id);
        doc_put_text(&c->make, d, "Label", q->label);
        put_points(c, d, q, from, to > from ? to - from : 0);
        doc_put_text(&c->make, d, "StatusCode", end > last ? "PartialData" : "Complete");
        before = end;
    }
    return before > last ? page_end(c, "NextToken", arena_printf(c->arena, "%" PRIu64, last)) : 0;
}

int op_get_metric_data(struct call *c) {
    struct request r = {.c = c};
    const struct doc *most = doc_get(c->in, "MaxDatapoints");
    struct result_page page;
    char *end;
    if (metric_check_permission(c) || metric_span_take(c, API_ValidationError, &r.span) || take_queries(&r) ||
        page_begin_at(c, &page, "NextToken", 0, API_InvalidNextToken))
        return -1;
    uint64_t skip = strtoull(page.after, &end, 10);
    if (*end) return call_fail(c, API_InvalidNextToken, "The NextToken is not one that this service gave.");
    if (most && (most->whole < 1 || most->whole > DATAPOINTS))
        return call_fail(c, API_ValidationError,
                         "The value %" PRId64 " for parameter MaxDatapoints must be from 1 to %d.", most->whole,
                         DATAPOINTS);
    for (uint32_t i = 0; i < r.n; i++)
        if (read_metric(&r, &r.queries[i])) return -1;
    return answer(&r, skip, most ? (uint64_t)most->whole : DATAPOINTS);
}
