/* Reads that stand in the shard's queue, and how they are posted: runs of them that are alike as one. */
#include "ledger/shard.h"

#include "base/hot.h"

enum { SECOND_US = 1000000 };

static bool is_of(const struct shard_read *r, const struct ledger_connection *c, uint64_t statement_id) {
    return r->statement_id == statement_id && r->connection == c;
}

/* What a statement that the shard does not keep says of itself, text and names, must be taken at once; so must what does not fit. */
static bool has_room(const struct shard *s, uint64_t statement_id, const struct op_cost *cost, int64_t took_us) {
    bool fits = (cost->bytes_read | cost->rows_read | cost->rows_returned | (uint64_t)took_us) <= UINT32_MAX && cost->reads->key.n <= UINT16_MAX;
    if (UNLIKELY(s->n_reads == SHARD_READS || !fits)) return false;
    if (LIKELY(s->n_reads && s->reads[s->n_reads - 1].statement_id == statement_id)) return true;
    return heavy_keeps(&s->statements, statement_id);
}

bool shard_read_put(struct shard *s, struct ledger_connection *connection, uint64_t statement_id, const struct op_cost *cost, int64_t now_us, int64_t took_us) {
    const struct op_read *of = cost->reads;
    if (UNLIKELY(!has_room(s, statement_id, cost, took_us))) return false;
    if (!s->n_reads) atomic_store_explicit(&s->owner, pthread_self(), memory_order_relaxed);
    struct shard_read *r = &s->reads[s->n_reads++];
    r->connection = connection;
    r->statement_id = statement_id;
    r->now_us = now_us;
    r->token = of->token;
    r->object = of->object;
    r->halves = of->halves;
    r->entities = (uint32_t)op_read_entities(of);
    r->took_us = (uint32_t)took_us;
    r->bytes_read = (uint32_t)cost->bytes_read;
    r->rows_read = (uint32_t)cost->rows_read;
    r->rows_returned = (uint32_t)cost->rows_returned;
    r->class = (uint8_t)cost->query_class;
    r->one_partition = of->one_partition;
    r->key_n = (uint16_t)of->key.n;
    copy_short(r->key, of->key.p, of->key.n < sizeof(r->key) ? of->key.n : sizeof(r->key));
    return true;
}

/* The lines of the partitions' sets are far apart, and are asked for all at once. */
uint32_t shard_reads_alike(const struct shard *s, uint32_t from) {
    const struct shard_read *first = &s->reads[from];
    int64_t begin_us = first->now_us / SECOND_US * SECOND_US;
    uint32_t n = 0;
    for (const struct shard_read *r = first; from + n < s->n_reads; n++, r++) {
        bool same = is_of(r, first->connection, first->statement_id) && r->object == first->object && r->class == first->class;
        if (!same || r->now_us < begin_us || r->now_us >= begin_us + SECOND_US) break;
        heavy_prefetch(&s->partitions, shard_partition_id(r->object, r->token));
    }
    return n;
}

/* ---- posting ---- */

struct sum {
    uint64_t halves, entities, bytes_read, rows_read, rows_returned, took_us;
    struct span units, returned, latency;
};

static struct sum sum_of(const struct shard_read *first, uint32_t n) {
    struct sum all = {0};
    for (const struct shard_read *r = first; r < first + n; r++) {
        all.halves += r->halves;
        all.entities += r->entities;
        all.bytes_read += r->bytes_read;
        all.rows_read += r->rows_read;
        all.rows_returned += r->rows_returned;
        all.took_us += r->took_us;
        span_add(&all.units, r->halves);
        span_add(&all.returned, r->rows_returned);
        span_add(&all.latency, r->took_us);
    }
    return all;
}

static void post_figures(const struct sum *all, enum query_class class, struct cell *c) {
    uint64_t *of = c->f.of[OPERATION_SELECT];
    c->f.n[FIGURE_READ_UNITS] += all->halves;
    c->f.n[FIGURE_ENTITIES] += all->entities;
    c->f.n[FIGURE_BYTES_READ] += all->bytes_read;
    c->f.n[FIGURE_POINT_READS + class] += all->units.n;
    c->f.n[FIGURE_POINT_SCANNED + class] += all->rows_read;
    c->f.n[FIGURE_POINT_RETURNED + class] += all->rows_returned;
    of[OF_REQUESTS] += all->units.n;
    of[OF_LATENCY] += all->took_us;
    of[OF_RETURNED] += all->rows_returned;
    span_merge(&c->spans[SPAN_READ_UNITS], &all->units);
    span_merge(&c->spans[SPAN_RETURNED + OPERATION_SELECT], &all->returned);
    span_merge(&c->spans[SPAN_LATENCY + OPERATION_SELECT], &all->latency);
}

/* Most partitions are light, and touch their cell alone. */
static void post_partition(struct shard *s, uint32_t second, const struct shard_read *r) {
    if (!r->one_partition || LIKELY(heavy_pass(&s->partitions, shard_partition_id(r->object, r->token), r->halves))) return;
    const struct usage_window u = {.n = {[USAGE_REQUESTS] = 1, [USAGE_READ_HALVES] = r->halves, [USAGE_ENTITIES] = r->entities}};
    shard_partition_add(s, second, r->object, r->token, slice_of(r->key, r->key_n), &u);
}

void shard_reads_post(struct shard *s, uint32_t second, const struct shard_read *first, uint32_t n, struct cell *cell) {
    const struct sum all = sum_of(first, n);
    const struct usage_window u = {.n = {[USAGE_REQUESTS] = n, [USAGE_READ_HALVES] = (uint32_t)all.halves, [USAGE_ENTITIES] = (uint32_t)all.entities}};
    post_figures(&all, first->class, cell);
    for (uint32_t i = 0; i < n; i++) post_partition(s, second, &first[i]);
    usage_add(&first->connection->usage, second, &u);
    struct shard_statement *st = shard_statement_add(s, first->statement_id, all.halves);
    usage_add(&st->usage, second, &u);
    st->class = first->class;
    st->rows_read += all.rows_read;
    st->rows_returned += all.rows_returned;
}
