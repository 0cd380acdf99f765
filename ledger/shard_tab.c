#include "ledger/shard.h"

/* One read of a prepared statement that went well, about which there is nothing else to say. */
static bool is_plain(const struct ledger_request *q) {
    const struct op_read *r = q->cost->reads;
    bool more = q->stands | q->throttled | q->guidance | q->cost->is_system;
    return q->operation == OPERATION_SELECT && q->outcome == LEDGER_OK && !more && r && !r->next && r->halves && !q->cost->writes;
}

static bool goes_on(const struct shard_tab *t, const struct ledger_request *q) {
    return t->statement_id == q->statement_id && t->connection == q->connection && t->object == q->cost->reads->object && t->class == q->cost->query_class &&
           q->now_us >= t->begin_us && q->now_us < t->end_us;
}

/* A statement that the shard does not keep has text and names that must be taken now: it gets no tab. */
static struct shard_tab *open_tab(struct shard *s, const struct ledger_request *q) {
    enum { SECOND_US = 1000000 };
    if (s->n_tabs == SHARD_TABS || q->now_us < 0 || !q->connection || !q->statement_id || !heavy_keeps(&s->statements, q->statement_id)) return NULL;
    struct shard_tab *t = &s->tabs[s->n_tabs++];
    *t = (struct shard_tab){.connection = q->connection, .statement_id = q->statement_id, .object = q->cost->reads->object, .class = q->cost->query_class};
    t->begin_us = q->now_us / SECOND_US * SECOND_US;
    t->end_us = t->begin_us + SECOND_US;
    atomic_store_explicit(&s->owner, pthread_self(), memory_order_relaxed);
    return t;
}

static struct shard_tab *tab_of(struct shard *s, const struct ledger_request *q) {
    struct shard_tab *last = s->n_tabs ? &s->tabs[s->n_tabs - 1] : NULL;
    return LIKELY(last && goes_on(last, q)) ? last : open_tab(s, q);
}

enum shard_tabbed shard_tab_add(struct shard *s, const struct ledger_request *q) {
    const struct op_cost *c = q->cost;
    const struct op_read *r = c->reads;
    struct shard_tab *t = LIKELY(is_plain(q)) ? tab_of(s, q) : NULL;
    if (UNLIKELY(!t)) return SHARD_NOT_TABBED;
    t->entities += op_read_entities(r);
    t->halves += r->halves;
    t->bytes_read += c->bytes_read;
    t->rows_read += c->rows_read;
    t->rows_returned += c->rows_returned;
    t->took_us += (uint64_t)q->took_us;
    span_add(&t->units, r->halves);
    span_add(&t->returned, c->rows_returned);
    span_add(&t->latency, (uint64_t)q->took_us);
    if (!r->one_partition) return SHARD_TABBED;
    if (!heavy_pass(&s->partitions, shard_partition_id(r->object, r->token), r->halves)) return SHARD_TABBED_BUT_PARTITION;
    t->passed += r->halves;
    return SHARD_TABBED;
}

void shard_tab_post_partition(struct shard *s, uint32_t second, const struct op_read *r) {
    struct usage_window u = {.n = {[USAGE_REQUESTS] = 1, [USAGE_READ_HALVES] = r->halves, [USAGE_ENTITIES] = (uint32_t)op_read_entities(r)}};
    shard_partition_add(s, second, r->object, r->token, r->key, &u);
}

static void post_figures(const struct shard_tab *t, struct cell *c) {
    uint64_t *of = c->f.of[OPERATION_SELECT];
    c->f.n[FIGURE_READ_UNITS] += t->halves;
    c->f.n[FIGURE_ENTITIES] += t->entities;
    c->f.n[FIGURE_BYTES_READ] += t->bytes_read;
    c->f.n[FIGURE_POINT_READS + t->class] += t->units.n;
    c->f.n[FIGURE_POINT_SCANNED + t->class] += t->rows_read;
    c->f.n[FIGURE_POINT_RETURNED + t->class] += t->rows_returned;
    of[OF_REQUESTS] += t->units.n;
    of[OF_LATENCY] += t->took_us;
    of[OF_RETURNED] += t->rows_returned;
    span_merge(&c->spans[SPAN_READ_UNITS], &t->units);
    span_merge(&c->spans[SPAN_RETURNED + OPERATION_SELECT], &t->returned);
    span_merge(&c->spans[SPAN_LATENCY + OPERATION_SELECT], &t->latency);
}

void shard_tab_post(struct shard *s, uint32_t second, const struct shard_tab *t, struct cell *cell) {
    struct usage_window u = {.n = {[USAGE_REQUESTS] = (uint32_t)t->units.n, [USAGE_READ_HALVES] = (uint32_t)t->halves, [USAGE_ENTITIES] = (uint32_t)t->entities}};
    post_figures(t, cell);
    usage_add(&t->connection->usage, second, &u);
    struct shard_statement *st = shard_statement_add(s, t->statement_id, t->halves);
    usage_add(&st->usage, second, &u);
    st->class = t->class;
    st->rows_read += t->rows_read;
    st->rows_returned += t->rows_returned;
    heavy_passed(&s->partitions, t->passed);
}
