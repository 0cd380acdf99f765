#include "tools/tally/stress/score.h"

#include <stdlib.h>

#include "base/array.h"

int score_init(struct score *s, uint32_t n_statements) {
    *s = (struct score){.n_statements = n_statements,
                        .statements = calloc(n_statements, sizeof(*s->statements)),
                        .partitions = calloc(SCORE_PARTITIONS, sizeof(*s->partitions))};
    if (s->statements && s->partitions) return 0;
    score_fini(s);
    return -1;
}

void score_fini(struct score *s) {
    free(s->statements);
    free(s->partitions);
    free(s->seconds);
    *s = (struct score){0};
}

/* ---- seconds ---- */

static void close_second(struct score *s) {
    if (array_room(&s->seconds, s->n_seconds, &s->cap_seconds, sizeof(*s->seconds)))
        return; /* current keeps summing up */
    s->current.p50_ns = hist_quantile(&s->now, 0.5);
    s->current.p99_ns = hist_quantile(&s->now, 0.99);
    s->current.max_ns = s->now.max;
    s->seconds[s->n_seconds++] = s->current;
    s->current = (struct score_second){0};
    s->now = (struct hist){0};
}

void score_end(struct score *s) {
    if (s->current.sums.requests) close_second(s);
}

static void raise_to(double *peak, double now) {
    if (now > *peak) *peak = now;
}

/* ---- one answer ---- */

static void add_sums(struct score_sums *to, const struct score_event *v) {
    to->retries += v->retried;
    to->throttled += v->result == SCORE_THROTTLED;
    if (v->retried) return;
    to->requests++;
    to->failed += v->result == SCORE_FAILED;
    to->rows += v->rows;
    if (v->charge > 0) *(v->reads ? &to->read_units : &to->write_units) += v->charge;
}

struct score_partition *score_add(struct score *s, const struct score_event *v) {
    struct score_statement *statement = &s->statements[v->statement];
    for (; s->second < v->second; s->second++) close_second(s);
    add_sums(&s->sums, v);
    add_sums(&s->current.sums, v);
    add_sums(&statement->sums, v);
    if (v->charge >= 0) s->told = true;
    if (!v->retried) {
        hist_add(&s->latency, v->latency_ns);
        hist_add(&s->now, v->latency_ns);
        hist_add(&statement->latency, v->latency_ns);
    }
    if (!v->partition) return NULL;
    size_t at = (size_t)v->partition & (SCORE_PARTITIONS - 1);
    while (s->partitions[at].hash && s->partitions[at].hash != v->partition) at = (at + 1) & (SCORE_PARTITIONS - 1);
    struct score_partition *p = &s->partitions[at];
    bool is_new = !p->hash;
    if (is_new && s->n_partitions >= SCORE_PARTITIONS / 2) {
        s->not_followed++;
        return NULL;
    }
    s->n_partitions += is_new;
    p->hash = v->partition;
    add_sums(&p->sums, v);
    if (v->result == SCORE_OK) {
        if (p->second != v->second) p->entities_now = p->read_now = p->write_now = 0;
        p->second = v->second;
        /* A server that does not report entities: the rows that it returned, at least one. */
        p->entities_now += v->entities > 0 ? v->entities : v->reads && v->rows > 1 ? (double)v->rows : 1;
        if (v->charge > 0) *(v->reads ? &p->read_now : &p->write_now) += v->charge;
        raise_to(&p->entities_peak, p->entities_now);
        raise_to(&p->read_peak, p->read_now);
        raise_to(&p->write_peak, p->write_now);
    }
    return is_new ? p : NULL;
}

size_t score_hottest(const struct score *s, const struct score_partition *out[SCORE_HOTTEST]) {
    size_t n = 0;
    for (size_t i = 0; i < SCORE_PARTITIONS; i++) {
        const struct score_partition *p = &s->partitions[i];
        if (!p->hash || !(p->entities_peak > 0)) continue;
        if (n == SCORE_HOTTEST && out[n - 1]->entities_peak >= p->entities_peak) continue;
        size_t at = n < SCORE_HOTTEST ? n++ : n - 1;
        for (; at && out[at - 1]->entities_peak < p->entities_peak; at--) out[at] = out[at - 1];
        out[at] = p;
    }
    return n;
}
