/* GetMetricData of CloudWatch, for the namespace AWS/Cassandra: metrics and expressions
 * (metric_math.h)
 * (https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html). */
#include <inttypes.h>
#include <stdlib.h>

#include "control_plane/metric_math.h"
#include "control_plane/metric_series.h"

enum { QUERIES = 500 };

struct query {
    const struct doc *d;
    const char *id, *label;
    bool returned;
    /* An expression that names itself, directly or through others, finds itself UNDER_WAY. */
    enum { WAITING, UNDER_WAY, READ } state;
    struct math_series series;
};

struct request {
    struct call *c;
    struct metric_span span; /* its period is not set */
    uint32_t n, depth; /* depth: of expressions that name each other */
    struct query *queries;
};

static int invalid(struct call *c, uint32_t i, const char *what) {
    return call_fail(c, API_ValidationError, "The value for parameter MetricDataQueries.member.%u%s", i + 1, what);
}

/* ---- queries of the request ---- */

static int check_metric(struct call *c, const struct doc *stat) {
    const struct doc *name = doc_get(stat, "Stat");
    if (metric_period_check(c, API_ValidationError, doc_get(stat, "Period")->whole)) return -1;
    if (metric_statistic_find(name->text) != STATISTICS) return 0;
    return call_fail(c, API_ValidationError,
                     "The value %.*s for parameter Stat is not supported: Tally keeps no samples, only their "
                     "SampleCount, Average, Sum, Minimum and Maximum.",
                     (int)(name->text.n < 64 ? name->text.n : 64), (const char *)name->text.p);
}

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
    return stat ? check_metric(r->c, stat) : 0;
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

static int read_metric(struct request *r, struct query *q, const struct doc *stat) {
    const struct doc *account = doc_get(q->d, "AccountId");
    struct metric_span span = {.start = r->span.start, .end = r->span.end, .period = doc_get(stat, "Period")->whole};
    enum metric_statistic of = metric_statistic_find(doc_get(stat, "Stat")->text);
    struct metric_name name;
    struct metric_series series;
    if (metric_name_take(r->c, doc_get(stat, "Metric"), &name)) return -1;
    name.known = name.known && (!account || slice_is(account->text, catalog_node(r->c->o->catalog)->account));
    if (metric_series_read(r->c, &name, &span, doc_get(stat, "Unit"), &series)) return -1;
    q->series = (struct math_series){.period = span.period,
                                     .points = ARENA_ARRAY(r->c->arena, series.n + 1, struct math_point)};
    if (!q->series.points) return call_nomem(r->c);
    for (uint32_t i = 0; i < series.n; i++)
        q->series.points[q->series.n++] = (struct math_point){.at = series.points[i].at,
                                                              .value = metric_statistic_of(&series.points[i], of)};
    if (!q->label) q->label = name.name ? name.name : q->id;
    return 0;
}

static int read_query(struct request *r, struct query *q);

static const struct math_series *find(void *arg, struct slice id, struct err *e) {
    struct request *r = arg;
    for (uint32_t i = 0; i < r->n; i++) {
        struct query *q = &r->queries[i];
        if (!slice_is(id, q->id)) continue;
        if (q->state != UNDER_WAY) return read_query(r, q) ? NULL : &q->series;
        return err_invalid(e, "%s needs itself", q->id), NULL;
    }
    return err_invalid(e, "no query has the Id %.*s", (int)(id.n < 64 ? id.n : 64), (const char *)id.p), NULL;
}

static const struct math_series *metric(void *arg, uint32_t i) {
    const struct request *r = arg;
    for (uint32_t k = 0; k < r->n; k++)
        if (doc_get(r->queries[k].d, "MetricStat") && i-- == 0) return &r->queries[k].series;
    return NULL;
}

static int read_expression(struct request *r, struct query *q) {
    const struct math_scope scope = {
        .arg = r, .find = find, .metric = metric, .start = r->span.start, .end = r->span.end};
    struct err why = {0};
    r->c->error = API_ValidationError;
    if (!q->label) q->label = q->id;
    if (!math_eval(r->c->arena, doc_get(q->d, "Expression")->text, &scope, &q->series, &why)) return 0;
    if (r->c->err->set) return -1; /* the error of another query that this one names */
    if (why.no_memory) return call_nomem(r->c);
    return call_fail(r->c, API_ValidationError, "Error in expression '%s': %s", q->id, why.text);
}

static int read_query(struct request *r, struct query *q) {
    const struct doc *stat = doc_get(q->d, "MetricStat");
    if (q->state == READ) return 0;
    if (r->depth == MATH_DEPTH)
        return call_fail(r->c, API_ValidationError, "Expressions need each other over more than %d steps.", MATH_DEPTH);
    q->state = UNDER_WAY;
    r->depth++;
    if (stat ? read_metric(r, q, stat) : read_expression(r, q)) return -1;
    q->state = READ;
    r->depth--;
    return 0;
}

/* ---- the answer: a page of datapoints; a token says how many were before it ---- */

static void put_points(struct call *c, struct doc *d, const struct math_series *s, uint64_t from, uint64_t n) {
    const struct doc *scan = doc_get(c->in, "ScanBy");
    bool ascending = scan && slice_is(scan->text, "TimestampAscending");
    struct doc *times = doc_put(&c->make, d, "Timestamps", DOC_LIST),
               *values = doc_put(&c->make, d, "Values", DOC_LIST);
    for (uint64_t i = from; i < from + n; i++) {
        const struct math_point *p = &s->points[ascending ? i : s->n - 1 - i];
        doc_put_moment(&c->make, times, NULL, p->at * 1000);
        doc_put_real(&c->make, values, NULL, p->value);
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
        put_points(c, d, &q->series, from, to > from ? to - from : 0);
        doc_put_text(&c->make, d, "StatusCode", end > last ? "PartialData" : "Complete");
        before = end;
    }
    return before > last ? page_end(c, "NextToken", arena_printf(c->arena, "%" PRIu64, last)) : 0;
}

int op_get_metric_data(struct call *c) {
    struct request r = {.c = c};
    const struct doc *most = doc_get(c->in, "MaxDatapoints");
    struct page page;
    char *end;
    if (metric_check_permission(c) || metric_span_take(c, API_ValidationError, &r.span) || take_queries(&r) ||
        page_begin_at(c, &page, "NextToken", 0, API_InvalidNextToken))
        return -1;
    uint64_t skip = strtoull(page.after, &end, 10);
    if (*end) return call_fail(c, API_InvalidNextToken, "The NextToken is not one that this service gave.");
    if (most && (most->whole < 1 || most->whole > MATH_POINTS))
        return call_fail(c, API_ValidationError,
                         "The value %" PRId64 " for parameter MaxDatapoints must be from 1 to %d.", most->whole,
                         MATH_POINTS);
    /* Metrics come before expressions, because METRICS() needs all metrics. */
    for (int expressions = false; expressions <= true; expressions++)
        for (uint32_t i = 0; i < r.n; i++)
            if ((doc_get(r.queries[i].d, "MetricStat") == NULL) == expressions && read_query(&r, &r.queries[i]))
                return -1;
    return answer(&r, skip, most ? (uint64_t)most->whole : MATH_POINTS);
}
