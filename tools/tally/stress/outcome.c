#include "tools/tally/stress/outcome.h"

#include <inttypes.h>
#include <stdio.h>

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

static void print_statements(const struct stress *s) {
    static const struct table_column columns[] = {{"requests", true}, {"throttled", true}, {"failed", true},
                                                  {"units", true},    {"p50 ms", true},    {"p99 ms", true},
                                                  {"p99.9 ms", true}, {"statement", false}};
    struct table out;
    table_init(&out, columns, ARRAY_LEN(columns));
    for (uint32_t i = 0; i < s->score.n_statements; i++) {
        const struct score_statement *x = &s->score.statements[i];
        char units[32] = "?";
        if (s->score.told) snprintf(units, sizeof(units), "%.1f", x->sums.read_units + x->sums.write_units);
        table_row(&out, "%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%s\t%.3f\t%.3f\t%.3f\t%s", x->sums.requests,
                  x->sums.throttled, x->sums.failed, units, ms(&x->latency, 0.5), ms(&x->latency, 0.99),
                  ms(&x->latency, 0.999), s->plan.statements[i].cql);
    }
    table_print(&out);
    table_fini(&out);
}

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

static void put_verdict(const struct stress *s, struct buf *out) {
    const struct score_partition *hot[SCORE_HOTTEST];
    const struct outcome_bounds b = outcome_bounds();
    if (!score_hottest(&s->score, hot)) return;
    const struct score_partition *p = hot[0];
    buf_printf(out, "partition %s: %.0f entities a second, %s %.0f", p->label, p->entities_peak,
               side(p->entities_peak, b.entities), b.entities);
    if (s->score.told)
        buf_printf(out, "; %.1f read units, %s %.0f; %.1f write units, %s %.0f", p->read_peak,
                   side(p->read_peak, b.read_units), b.read_units, p->write_peak, side(p->write_peak, b.write_units),
                   b.write_units);
    else buf_put_str(out, "; units are not known: this server does not tell charges");
}

void outcome_text(const struct stress *s, const char *profile) {
    const struct score *c = &s->score;
    struct buf verdict;
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
    print_statements(s);
    print_hottest(s);
    buf_init(&verdict, 0);
    put_verdict(s, &verdict);
    if (verdict.n) printf("\n%.*s\n", SLICE_FMT(buf_slice(&verdict)));
    buf_fini(&verdict);
    if (c->not_followed)
        printf("%" PRIu64 " requests went to partitions beyond the first %d, which are not followed\n", c->not_followed,
               SCORE_PARTITIONS / 2);
    if (c->first_error[0]) printf("first failure: %s\n", c->first_error);
}

/* ---- JSON ---- */

static void json_sums(const struct score_sums *s, struct buf *out) {
    buf_printf(out,
               "\"requests\":%" PRIu64 ",\"throttled\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"retries\":%" PRIu64
               ",\"rows\":%" PRIu64 ",\"read_units\":%.1f,\"write_units\":%.1f",
               s->requests, s->throttled, s->failed, s->retries, s->rows, s->read_units, s->write_units);
}

static void json_latency(const struct hist *h, struct buf *out) {
    static const struct {
        const char *name;
        double share;
    } points[] = {{"p50", 0.5}, {"p75", 0.75}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}, {"max", 1}};
    for (size_t i = 0; i < ARRAY_LEN(points); i++)
        buf_printf(out, "%s\"%s_ns\":%" PRIu64, i ? "," : "", points[i].name, hist_quantile(h, points[i].share));
    buf_printf(out, ",\"mean_ns\":%.0f", hist_mean(h));
}

void outcome_json(const struct stress *s, const char *profile, struct buf *out) {
    const struct score *c = &s->score;
    const struct score_partition *hot[SCORE_HOTTEST];
    const struct outcome_bounds b = outcome_bounds();
    size_t n = score_hottest(c, hot);
    buf_printf(out, "{\"ok\":%s,\"profile\":", stress_has_failed(s) ? "false" : "true");
    buf_json_str(out, slice_str(profile));
    buf_printf(
        out,
        ",\"loop\":\"%s\",\"rate\":%.15g,\"connections\":%u,\"in_flight\":%u,\"seconds\":%.3f,\"per_second\":%.1f,",
        s->plan.rate > 0 ? "open" : "closed", s->plan.rate, s->connections, s->in_flight, s->took, per_second(s));
    buf_printf(out, "\"unanswered\":%" PRIu64 ",\"backing_off\":%" PRIu64 ",\"charges_told\":%s,", s->unanswered,
               s->backing_off, c->told ? "true" : "false");
    json_sums(&c->sums, out);
    buf_u8(out, ',');
    json_latency(&c->latency, out);
    buf_put_str(out, ",\"first_error\":");
    buf_json_str(out, slice_str(c->first_error));
    buf_put_str(out, ",\"statements\":[");
    for (uint32_t i = 0; i < c->n_statements; i++) {
        buf_put_str(out, i ? ",{\"cql\":" : "{\"cql\":");
        buf_json_str(out, slice_str(s->plan.statements[i].cql));
        buf_u8(out, ',');
        json_sums(&c->statements[i].sums, out);
        buf_u8(out, ',');
        json_latency(&c->statements[i].latency, out);
        buf_u8(out, '}');
    }
    buf_put_str(out, "],\"series\":[");
    for (size_t i = 0; i < c->n_seconds; i++) {
        buf_put_str(out, i ? ",{" : "{");
        json_sums(&c->seconds[i].sums, out);
        buf_printf(out, ",\"p50_ns\":%" PRIu64 ",\"p99_ns\":%" PRIu64 ",\"max_ns\":%" PRIu64 "}", c->seconds[i].p50_ns,
                   c->seconds[i].p99_ns, c->seconds[i].max_ns);
    }
    buf_printf(out, "],\"bounds\":{\"entities\":%.0f,\"read_units\":%.0f,\"write_units\":%.0f},\"partitions\":[",
               b.entities, b.read_units, b.write_units);
    for (size_t i = 0; i < n; i++) {
        buf_put_str(out, i ? ",{\"partition\":" : "{\"partition\":");
        buf_json_str(out, slice_str(hot[i]->label));
        buf_printf(out, ",\"entities_peak\":%.0f,\"read_units_peak\":%.1f,\"write_units_peak\":%.1f,\"above\":%s,",
                   hot[i]->entities_peak, hot[i]->read_peak, hot[i]->write_peak,
                   hot[i]->entities_peak > b.entities || hot[i]->read_peak > b.read_units ||
                           hot[i]->write_peak > b.write_units
                       ? "true"
                       : "false");
        json_sums(&hot[i]->sums, out);
        buf_u8(out, '}');
    }
    buf_put_str(out, "]}");
}
