/* The shard's queue of reads, and the posting of its batches: alike reads are posted as one sum. */
#include "metering/ledger/shard.h"

#include <assert.h>
#include <string.h>

#include "base/hot.h"

enum { SECOND_US = 1000000 };

/* Nearly always true, so the fields are compared without branches. */
static inline bool is_alike(const struct shard_batch *r, const struct op_cost *cost) {
    const struct charge_item *of = &cost->reads->item;
    return !((r->object ^ of->object) | (r->halves ^ (uint64_t)of->read_halves) |
             (r->class ^ (unsigned)cost->query_class) | (r->one_partition ^ of->one_partition) |
             (r->rows_read ^ cost->rows_read) | (r->rows_returned ^ cost->rows_returned) |
             (r->entities ^ (uint64_t)of->entities));
}

static inline bool count(struct shard_batch *r, const struct op_cost *cost) {
    if (r->ranges && cost->reads->item.one_partition) shard_range_read(r->ranges, &cost->reads->item);
    r->n++;
    r->bytes_read += cost->bytes_read;
    return true;
}

/* Queues the key of a read whose partition may be heavy. */
SELDOM static bool add_key(struct shard *s, const struct op_cost *cost) {
    const struct slice key = cost->reads->key;
    uint32_t n = key.n < SHARD_KEY ? (uint32_t)key.n : SHARD_KEY;
    if (s->n_keys == SHARD_KEYS) return false;
    s->keys[s->n_keys++] =
        (struct shard_key){.token = cost->reads->item.token, .n = (uint32_t)key.n, .at = s->n_key_bytes};
    if (n) memcpy(s->key_bytes + s->n_key_bytes, key.p, n);
    s->n_key_bytes += n;
    s->batch->n_keys++;
    return count(s->batch, cost);
}

/* Opens a batch only for a statement that the shard keeps: the text and names of another one are
 * valid only during its request, which therefore is posted at once. */
SELDOM static bool open_batch(struct shard *s, uint64_t statement_id, const struct op_cost *cost, int64_t began_us) {
    const struct charge_item *of = &cost->reads->item;
    bool full = s->n_batches == SHARD_BATCHES || s->n_segments == SHARD_SEGMENTS || s->n_keys == SHARD_KEYS;
    if (full || !heavy_keeps(&s->statements, statement_id)) return false;
    if (!s->n_batches) atomic_store_explicit(&s->owner, pthread_self(), memory_order_relaxed);
    s->batch = &s->batches[s->n_batches++];
    *s->batch = (struct shard_batch){.statement_id = statement_id,
                                 .second_us = began_us / SECOND_US * SECOND_US,
                                 .object = of->object,
                                 .halves = (uint32_t)of->read_halves,
                                 .rows_read = cost->rows_read,
                                 .entities = (uint64_t)of->entities,
                                 .rows_returned = cost->rows_returned,
                                 .class = (uint8_t)cost->query_class,
                                 .guidance = (uint8_t)cost->guidance_class,
                                 .one_partition = of->one_partition,
                                 .ranges = shard_ranges_of(s, of->object),
                                 .latency.min = UINT64_MAX};
    return true;
}

SELDOM static bool open_segment(struct shard *s, struct ledger_connection *c) {
    if (s->n_segments == SHARD_SEGMENTS) return false;
    s->segments[s->n_segments++] = (struct shard_segment){.connection = c, .from = s->batch->n};
    s->batch->n_segments++;
    return true;
}

bool shard_read_put(struct shard *s, struct ledger_connection *c, uint64_t statement_id, const struct op_cost *cost,
                    int64_t began_us) {
    const struct shard_batch *r = s->batch;
    const struct charge_item *of = &cost->reads->item;
    assert(began_us == s->began_us || shard_reads_are_timed(s)); /* Q1 */
    s->began_us = began_us;
    bool alike =
        r && r->statement_id == statement_id && (uint64_t)(began_us - r->second_us) < SECOND_US && is_alike(r, cost);
    if (UNLIKELY(!alike) && !open_batch(s, statement_id, cost, began_us)) return false;
    bool same = s->batch->n_segments && s->segments[s->n_segments - 1].connection == c;
    if (UNLIKELY(!same) && !open_segment(s, c)) return false;
    if (UNLIKELY(!of->one_partition)) return count(s->batch, cost);
    bool light = heavy_pass(&s->partitions, shard_partition_id(of->object, of->token), (uint64_t)of->read_halves);
    return LIKELY(light) ? count(s->batch, cost) : add_key(s, cost);
}

void shard_reads_time(struct shard *s, int64_t now_us) {
    uint64_t took = now_us > s->began_us ? (uint64_t)(now_us - s->began_us) : 0;
    for (uint32_t i = s->n_batches; i && s->batches[i - 1].n_timed < s->batches[i - 1].n; i--) {
        struct shard_batch *r = &s->batches[i - 1];
        uint32_t n = r->n - r->n_timed;
        r->took_us += n * took;
        if (took < r->latency.min) r->latency.min = took;
        if (took > r->latency.max) r->latency.max = took;
        r->n_timed = r->n;
    }
}

/* ---- posting ---- */

/* The usage of n reads of a batch: one for a partition, several for a connection, all for the
 * statement. */
static struct usage_window used(const struct shard_batch *r, uint32_t n) {
    return (struct usage_window){
        .n = {
            [USAGE_REQUESTS] = n, [USAGE_READ_HALVES] = n * r->halves, [USAGE_ENTITIES] = n * (uint32_t)r->entities}};
}

/* All reads of a batch get their end at once. Their latencies are counted as the least, the greatest,
 * and the mean of the others. */
static void post_figures(const struct shard_batch *r, struct cell *c) {
    uint64_t *of = c->f.of[OPERATION_SELECT], n = r->n, least = r->latency.min, most = r->latency.max;
    c->f.n[FIGURE_READ_UNITS] += n * r->halves;
    c->f.n[FIGURE_ENTITIES] += n * r->entities;
    c->f.n[FIGURE_BYTES_READ] += r->bytes_read;
    c->f.n[FIGURE_POINT_READS + r->class] += n;
    c->f.n[FIGURE_POINT_SCANNED + r->class] += n * r->rows_read;
    c->f.n[FIGURE_POINT_RETURNED + r->class] += n * r->rows_returned;
    of[OF_REQUESTS] += n;
    of[OF_LATENCY] += r->took_us;
    of[OF_RETURNED] += n * r->rows_returned;
    span_merge(&c->spans[SPAN_READ_UNITS], &(struct span){.min = r->halves, .max = r->halves, .n = n});
    span_merge(&c->spans[SPAN_RETURNED + OPERATION_SELECT],
               &(struct span){.min = r->rows_returned, .max = r->rows_returned, .n = n});
    span_merge(&c->spans[SPAN_LATENCY + OPERATION_SELECT], &(struct span){.min = least, .max = most, .n = n});
    if (n) c->latencies.n[latency_slot(most)]++;
    if (n > 1) c->latencies.n[latency_slot(least)]++;
    if (n > 2) c->latencies.n[latency_slot((r->took_us - least - most) / (n - 2))] += r->n - 2;
}

void shard_batch_post(struct shard *s, uint32_t second, const struct shard_batch *batch,
                      const struct shard_segment *segments, const struct shard_key *keys, struct cell *cell) {
    const struct usage_window all = used(batch, batch->n), one = used(batch, 1);
    post_figures(batch, cell);
    for (uint32_t i = 0; i < batch->n_segments; i++) {
        uint32_t to = i + 1 < batch->n_segments ? segments[i + 1].from : batch->n;
        const struct usage_window u = used(batch, to - segments[i].from);
        usage_add(&segments[i].connection->usage, second, &u);
    }
    const struct shard_origin origin = {.statement_id = batch->statement_id,
                                        .role = batch->n_segments ? segments->connection->role : ""};
    for (const struct shard_key *k = keys; k < keys + batch->n_keys; k++)
        shard_partition_add(s, second, batch->object, k->token, slice_of(s->key_bytes + k->at, k->n), &one,
                            &origin);
    if (batch->one_partition) heavy_passed(&s->partitions, (uint64_t)(batch->n - batch->n_keys) * batch->halves);
    struct shard_statement *st = shard_statement_add(s, batch->statement_id, (uint64_t)batch->n * batch->halves);
    usage_add(&st->usage, second, &all);
    st->class = batch->class;
    st->guidance = batch->guidance;
    st->rows_read += batch->n * batch->rows_read;
    st->rows_returned += batch->n * batch->rows_returned;
}
