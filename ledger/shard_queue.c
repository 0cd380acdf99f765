/* Reads that stand in the shard's queue, and how they are posted: runs of them that are alike as one. */
#include "ledger/shard.h"

#include <string.h>

#include "base/hot.h"

enum { SECOND_US = 1000000 };
_Static_assert(SHARD_PARTITION_SETS <= 64, "waiting has a bit of each");

/* All at once: they are alike nearly always. */
static bool is_alike(const struct shard_run *r, const struct ledger_connection *c, uint64_t statement_id, const struct op_cost *cost, int64_t now_us) {
    const struct op_read *of = cost->reads;
    uint64_t differs = (r->statement_id ^ statement_id) | ((uintptr_t)r->connection ^ (uintptr_t)c) | (r->object ^ of->object) | (r->halves ^ of->halves) |
                       (r->class ^ (unsigned)cost->query_class) | (r->one_partition ^ of->one_partition) | (r->rows_read ^ cost->rows_read) |
                       (r->rows_returned ^ cost->rows_returned);
    return !differs && (uint64_t)(now_us - r->second_us) < SECOND_US;
}

SELDOM static void add_key(struct shard *s, struct shard_run *r, const struct op_read *of) {
    uint32_t n = of->key.n < SHARD_KEY ? (uint32_t)of->key.n : SHARD_KEY;
    r->n_keys++;
    s->keys[s->n_keys++] = (struct shard_key){.token = of->token, .n = (uint32_t)of->key.n, .at = s->n_key_bytes};
    if (n) memcpy(s->key_bytes + s->n_key_bytes, of->key.p, n);
    s->n_key_bytes += n;
}

static inline void add(struct shard *s, struct shard_run *r, const struct op_cost *cost) {
    const struct op_read *of = cost->reads;
    r->n++;
    r->bytes_read += cost->bytes_read;
    s->n_reads++;
    s->n_untimed++;
    if (of->one_partition && UNLIKELY(!heavy_pass(&s->partitions, shard_partition_id(of->object, of->token), of->halves, &s->waiting))) add_key(s, r, of);
}

/* In a new run. What a statement that the shard does not keep says of itself, text and names, must be taken at once. */
SELDOM static bool add_unlike(struct shard *s, struct ledger_connection *c, uint64_t statement_id, const struct op_cost *cost, int64_t now_us) {
    const struct op_read *of = cost->reads;
    if (!heavy_keeps(&s->statements, statement_id)) return false;
    if (!s->n_reads) atomic_store_explicit(&s->owner, pthread_self(), memory_order_relaxed);
    struct shard_run *r = s->run = &s->runs[s->n_runs++];
    *r = (struct shard_run){.connection = c, .statement_id = statement_id, .second_us = now_us / SECOND_US * SECOND_US, .object = of->object, .halves = of->halves,
                            .rows_read = cost->rows_read, .rows_returned = cost->rows_returned, .class = (uint8_t)cost->query_class,
                            .one_partition = of->one_partition, .latency.min = UINT64_MAX};
    add(s, r, cost);
    return true;
}

bool shard_read_put(struct shard *s, struct ledger_connection *connection, uint64_t statement_id, const struct op_cost *cost, int64_t now_us) {
    struct shard_run *r = s->run;
    if (UNLIKELY(s->n_reads == SHARD_READS)) return false;
    if (UNLIKELY(!r || !is_alike(r, connection, statement_id, cost, now_us))) return add_unlike(s, connection, statement_id, cost, now_us);
    add(s, r, cost);
    return true;
}

void shard_reads_time(struct shard *s, int64_t took_us) {
    uint64_t took = (uint64_t)took_us;
    for (struct shard_run *r = s->run; s->n_untimed; r--) {
        uint32_t n = r->n - r->n_timed;
        r->took_us += n * took;
        if (took < r->latency.min) r->latency.min = took;
        if (took > r->latency.max) r->latency.max = took;
        r->n_timed = r->n;
        s->n_untimed -= n;
    }
}

/* ---- posting ---- */

/* What the sums of so many reads of a run are, of one for a partition, of all for whoever asked. */
static struct usage_window used(const struct shard_run *r, uint32_t n) {
    return (struct usage_window){.n = {[USAGE_REQUESTS] = n, [USAGE_READ_HALVES] = n * r->halves, [USAGE_ENTITIES] = n * (uint32_t)r->rows_read}};
}

static void post_figures(const struct shard_run *r, struct cell *c) {
    uint64_t *of = c->f.of[OPERATION_SELECT], n = r->n;
    c->f.n[FIGURE_READ_UNITS] += n * r->halves;
    c->f.n[FIGURE_ENTITIES] += n * r->rows_read;
    c->f.n[FIGURE_BYTES_READ] += r->bytes_read;
    c->f.n[FIGURE_POINT_READS + r->class] += n;
    c->f.n[FIGURE_POINT_SCANNED + r->class] += n * r->rows_read;
    c->f.n[FIGURE_POINT_RETURNED + r->class] += n * r->rows_returned;
    of[OF_REQUESTS] += n;
    of[OF_LATENCY] += r->took_us;
    of[OF_RETURNED] += n * r->rows_returned;
    span_merge(&c->spans[SPAN_READ_UNITS], &(struct span){.min = r->halves, .max = r->halves, .n = n});
    span_merge(&c->spans[SPAN_RETURNED + OPERATION_SELECT], &(struct span){.min = r->rows_returned, .max = r->rows_returned, .n = n});
    span_merge(&c->spans[SPAN_LATENCY + OPERATION_SELECT], &(struct span){.min = r->latency.min, .max = r->latency.max, .n = n});
}

static void post_partitions(struct shard *s, uint32_t second, const struct shard_run *r, const struct shard_key *keys) {
    const struct usage_window u = used(r, 1);
    for (const struct shard_key *k = keys; k < keys + r->n_keys; k++) shard_partition_add(s, second, r->object, k->token, slice_of(s->key_bytes + k->at, k->n), &u);
}

void shard_run_post(struct shard *s, uint32_t second, const struct shard_run *run, const struct shard_key *keys, struct cell *cell) {
    const struct usage_window u = used(run, run->n);
    post_figures(run, cell);
    if (UNLIKELY(run->n_keys)) post_partitions(s, second, run, keys);
    usage_add(&run->connection->usage, second, &u);
    struct shard_statement *st = shard_statement_add(s, run->statement_id, (uint64_t)run->n * run->halves);
    usage_add(&st->usage, second, &u);
    st->class = run->class;
    st->rows_read += run->n * run->rows_read;
    st->rows_returned += run->n * run->rows_returned;
}
