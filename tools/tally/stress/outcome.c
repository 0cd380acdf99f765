#include "tools/tally/stress/outcome.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "metering/limits/limit.h"
#include "tools/tally/table.h"

struct outcome_bounds outcome_bounds(void) {
    return (struct outcome_bounds){(double)limit_info(LIMIT_ENTITIES_PARTITION)->value,
                                   (double)limit_info(LIMIT_PARTITION_READ)->value,
                                   (double)limit_info(LIMIT_PARTITION_WRITE)->value};
}

static double ms(const struct hist *h, double share) { return (double)hist_quantile(h, share) / 1e6; }

static double per_second(const struct stress *s) { return s->took > 0 ? (double)s->score.sums.requests / s->took : 0; }

/* ---- text ---- */

static void units_text(const struct stress *s, double units, char out[32]) {
    if (s->score.told) snprintf(out, 32, "%.1f", units);
    else snprintf(out, 32, "?");
}

static void print_hottest(const struct stress *s) {
    static const struct table_column columns[] = {{"entities/s", true}, {"read units/s", true}, {"write units/s", true},
                                                  {"requests", true},   {"throttled", true},    {"partition", false}};
    const struct score_partition *hot[SCORE_HOTTEST];
    size_t n = score_hottest(&s->score, hot);
    struct table out;
    if (!n) return;
    table_init(&out, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < n; i++) {
        char read[32], write[32];
        units_text(s, hot[i]->read_peak, read);
        units_text(s, hot[i]->write_peak, write);
        table_row(&out, "%.0f\t%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%s", hot[i]->entities_peak, read, write,
                  hot[i]->sums.requests, hot[i]->sums.throttled, hot[i]->label);
    }
    printf("\nhottest partitions, in their busiest second\n");
    table_print(&out);
    table_fini(&out);
}

static const char *side(double value, double bound) { return value > bound ? "above" : "within"; }

void outcome_text(const struct stress *s, const char *profile) {
    const struct score *c = &s->score;
    const struct score_partition *hot[SCORE_HOTTEST];
    printf("%s, %u connections x %u, %.1f s, ", profile, s->connections, s->in_flight, s->took);
    if (s->plan.rate > 0)
        printf("open loop at %.15g a second%s\n", s->plan.rate, s->plan.burst_every > 0 ? " with bursts" : "");
    else printf("closed loop\n");
    printf("%" PRIu64 " requests, %.0f a second; %" PRIu64 " throttled, %" PRIu64 " retries, ", c->sums.requests,
           per_second(s), c->sums.throttled, c->sums.retries);
    printf("%" PRIu64 " failed, %" PRIu64 " unanswered", c->sums.failed, s->unanswered);
    if (s->backing_off) printf(" (%" PRIu64 " waited for their next try when the time was over)", s->backing_off);
    printf("\n");
    if (c->told) printf("units %.1f read, %.1f write\n", c->sums.read_units, c->sums.write_units);
    printf("latency%s ms: p50 %.3f, p90 %.3f, p99 %.3f, p99.9 %.3f, most %.3f\n\n",
           s->plan.rate > 0 ? " since due," : ",", ms(&c->latency, 0.5), ms(&c->latency, 0.9), ms(&c->latency, 0.99),
           ms(&c->latency, 0.999), (double)c->latency.max / 1e6);
    static const struct table_column columns[] = {{"requests", true}, {"throttled", true}, {"failed", true},
                                                  {"units", true},    {"p50 ms", true},    {"p99 ms", true},
                                                  {"p99.9 ms", true}, {"statement", false}};
    struct table out;
    table_init(&out, columns, ARRAY_LEN(columns));
    for (uint32_t i = 0; i < s->score.n_statements; i++) {
        const struct score_statement *x = &s->score.statements[i];
        char units[32];
        units_text(s, x->sums.read_units + x->sums.write_units, units);
        table_row(&out, "%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%s\t%.3f\t%.3f\t%.3f\t%s", x->sums.requests,
                  x->sums.throttled, x->sums.failed, units, ms(&x->latency, 0.5), ms(&x->latency, 0.99),
                  ms(&x->latency, 0.999), s->plan.statements[i].cql);
    }
    table_print(&out);
    table_fini(&out);
    print_hottest(s);
    if (score_hottest(c, hot)) {
        const struct outcome_bounds b = outcome_bounds();
        const struct score_partition *p = hot[0];
        printf("\npartition %s: %.0f entities a second, %s %.0f", p->label, p->entities_peak,
               side(p->entities_peak, b.entities), b.entities);
        if (c->told)
            printf("; %.1f read units, %s %.0f; %.1f write units, %s %.0f\n", p->read_peak,
                   side(p->read_peak, b.read_units), b.read_units, p->write_peak, side(p->write_peak, b.write_units),
                   b.write_units);
        else printf("; units are not known: this server does not report charges\n");
    }
    if (c->not_followed)
        printf("%" PRIu64 " requests went to partitions beyond the first %d, which are not followed\n", c->not_followed,
               SCORE_PARTITIONS / 2);
    if (c->first_error[0]) printf("first failure: %s\n", c->first_error);
}

/* ---- JSON ---- */

static void json_sums(const struct score_sums *s, struct buf *out) {
    json_count(out, "requests", s->requests);
    json_count(out, "throttled", s->throttled);
    json_count(out, "failed", s->failed);
    json_count(out, "retries", s->retries);
    json_count(out, "rows", s->rows);
    buf_printf(out, ",\"read_units\":%.1f,\"write_units\":%.1f", s->read_units, s->write_units);
}

static void json_latency(const struct hist *h, struct buf *out) {
    static const struct {
        const char *name;
        double share;
    } points[] = {{"p50_ns", 0.5}, {"p75_ns", 0.75},   {"p90_ns", 0.9},
                  {"p99_ns", 0.99}, {"p999_ns", 0.999}, {"max_ns", 1}};
    for (size_t i = 0; i < ARRAY_LEN(points); i++) json_count(out, points[i].name, hist_quantile(h, points[i].share));
    buf_printf(out, ",\"mean_ns\":%.0f", hist_mean(h));
}

void outcome_json(const struct stress *s, const char *profile, struct buf *out) {
    const struct score *c = &s->score;
    const struct score_partition *hot[SCORE_HOTTEST];
    const struct outcome_bounds b = outcome_bounds();
    size_t n = score_hottest(c, hot);
    json_open(out, NULL, '{');
    json_flag(out, "ok", !stress_has_failed(s));
    json_text(out, "profile", profile);
    json_text(out, "loop", s->plan.rate > 0 ? "open" : "closed");
    buf_printf(out, ",\"rate\":%.15g,\"connections\":%u,\"in_flight\":%u,\"seconds\":%.3f,\"per_second\":%.1f",
               s->plan.rate, s->connections, s->in_flight, s->took, per_second(s));
    json_count(out, "unanswered", s->unanswered);
    json_count(out, "backing_off", s->backing_off);
    json_flag(out, "charges_told", c->told);
    json_sums(&c->sums, out);
    json_latency(&c->latency, out);
    json_text(out, "first_error", c->first_error);
    json_open(out, "statements", '[');
    for (uint32_t i = 0; i < c->n_statements; i++) {
        json_open(out, NULL, '{');
        json_text(out, "cql", s->plan.statements[i].cql);
        json_sums(&c->statements[i].sums, out);
        json_latency(&c->statements[i].latency, out);
        buf_u8(out, '}');
    }
    buf_u8(out, ']');
    json_open(out, "series", '[');
    for (size_t i = 0; i < c->n_seconds; i++) {
        json_open(out, NULL, '{');
        json_sums(&c->seconds[i].sums, out);
        json_count(out, "p50_ns", c->seconds[i].p50_ns);
        json_count(out, "p99_ns", c->seconds[i].p99_ns);
        json_count(out, "max_ns", c->seconds[i].max_ns);
        buf_u8(out, '}');
    }
    buf_printf(out, "],\"bounds\":{\"entities\":%.0f,\"read_units\":%.0f,\"write_units\":%.0f}", b.entities,
               b.read_units, b.write_units);
    json_open(out, "partitions", '[');
    for (size_t i = 0; i < n; i++) {
        const struct score_partition *p = hot[i];
        json_open(out, NULL, '{');
        json_text(out, "partition", p->label);
        buf_printf(out, ",\"entities_peak\":%.0f,\"read_units_peak\":%.1f,\"write_units_peak\":%.1f", p->entities_peak,
                   p->read_peak, p->write_peak);
        json_flag(out, "above", p->entities_peak > b.entities || p->read_peak > b.read_units ||
                                    p->write_peak > b.write_units);
        json_sums(&p->sums, out);
        buf_u8(out, '}');
    }
    buf_put_str(out, "]}");
}
