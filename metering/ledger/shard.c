#include "metering/ledger/shard.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

int shard_init(struct shard *s) {
    *s = (struct shard){0};
    pthread_mutex_init(&s->lock, NULL);
    if (heavy_init(&s->partitions, SHARD_PARTITION_SETS) || heavy_init(&s->statements, SHARD_STATEMENT_SETS)) return -1;
    s->partition_infos = calloc(SHARD_PARTITION_SETS * HEAVY_WAYS, sizeof(*s->partition_infos));
    s->partition_origins = calloc(SHARD_PARTITION_SETS * HEAVY_WAYS, sizeof(*s->partition_origins));
    s->ranges = calloc(SHARD_WATCHED, sizeof(*s->ranges));
    s->statement_infos = calloc(SHARD_STATEMENT_SETS * HEAVY_WAYS, sizeof(*s->statement_infos));
    return s->partition_infos && s->partition_origins && s->statement_infos && s->ranges ? 0 : -1;
}

static void table_free(struct shard_table *t) {
    if (t) order_fini(&t->order);
    free(t);
}

void shard_fini(struct shard *s) {
    for (uint32_t i = 0; i < s->cap_tables; i++) table_free(s->tables[i]);
    free(s->tables);
    for (int i = 0; s->statement_infos && i < SHARD_STATEMENT_SETS * HEAVY_WAYS; i++) free(s->statement_infos[i].text);
    free(s->partition_infos);
    free(s->partition_origins);
    free(s->ranges);
    free(s->statement_infos);
    heavy_fini(&s->partitions);
    heavy_fini(&s->statements);
    pthread_mutex_destroy(&s->lock);
}

/* ---- tables ---- */

static uint32_t slot_of(const struct shard *s, uint32_t object) {
    uint32_t at = object * UINT32_C(0x9E3779B1) & (s->cap_tables - 1);
    while (s->tables[at] && s->tables[at]->object != object) at = (at + 1) & (s->cap_tables - 1);
    return at;
}

/* Returns NULL if memory is exhausted. */
static struct shard_table *table_add(struct shard *s, uint32_t object, const char *keyspace, const char *name) {
    if (2 * (s->n_tables + 1) > s->cap_tables) {
        uint32_t cap = s->cap_tables ? 2 * s->cap_tables : 64;
        struct shard grown = {.cap_tables = cap, .tables = calloc(cap, sizeof(struct shard_table *))};
        if (!grown.tables) return NULL;
        for (uint32_t i = 0; i < s->cap_tables; i++)
            if (s->tables[i]) grown.tables[slot_of(&grown, s->tables[i]->object)] = s->tables[i];
        free(s->tables);
        s->tables = grown.tables;
        s->cap_tables = cap;
    }
    struct shard_table *t = calloc(1, sizeof(*t));
    if (!t) return NULL;
    t->object = object;
    snprintf(t->keyspace, sizeof(t->keyspace), "%s", keyspace ? keyspace : "");
    snprintf(t->name, sizeof(t->name), "%s", name ? name : "");
    s->tables[slot_of(s, object)] = t;
    s->n_tables++;
    return t;
}

static struct shard_table *table_find(struct shard *s, uint32_t object, const char *keyspace, const char *name) {
    struct shard_table *t = s->cap_tables ? s->tables[slot_of(s, object)] : NULL;
    if (!t) t = table_add(s, object, keyspace, name);
    if (!t) return NULL;
    s->last = t;
    if (t->active) return t;
    t->active = true;
    if (s->n_actives < ARRAY_LEN(s->actives)) s->actives[s->n_actives] = t;
    s->n_actives++;
    return t;
}

/* The table, marked active because the caller adds to its cell. Returns NULL if memory is
 * exhausted. */
static inline struct shard_table *table_open(struct shard *s, uint32_t object, const char *keyspace, const char *name) {
    struct shard_table *t = s->last;
    return LIKELY(t && t->object == object && t->active) ? t : table_find(s, object, keyspace, name);
}

struct cell *shard_cell(struct shard *s, uint32_t object, const char *keyspace, const char *table) {
    bool there = s->cap_tables && s->tables[slot_of(s, object)];
    struct shard_table *t = there || keyspace ? table_open(s, object, keyspace, table) : NULL;
    return t ? &t->cell : NULL;
}

static void drain(struct shard *s, struct shard_table *t, struct stats *b) {
    struct table_stats *to = stats_open(b, t->object, t->keyspace, t->name);
    /* without memory the counts of the minute are lost, and nothing else */
    if (to && !stats_add(to, s->second, &t->cell)) stats_touch(b, to);
    t->cell = (struct cell){0};
    t->active = false;
}

void shard_drain(struct shard *s, struct stats *b) {
    bool all = s->n_actives > ARRAY_LEN(s->actives);
    for (uint32_t i = 0; !all && i < s->n_actives; i++) drain(s, s->actives[i], b);
    for (uint32_t i = 0; all && i < s->cap_tables; i++)
        if (s->tables[i] && s->tables[i]->active) drain(s, s->tables[i], b);
    s->n_actives = 0;
}

void shard_drop(struct shard *s, uint32_t object) {
    if (!s->cap_tables) return;
    uint32_t at = slot_of(s, object);
    if (!s->tables[at]) return;
    if (s->last == s->tables[at]) s->last = NULL;
    table_free(s->tables[at]);
    s->tables[at] = NULL;
    s->n_tables--;
    /* backward-shift deletion: re-insert the entries that follow in the probe sequence */
    for (at = (at + 1) & (s->cap_tables - 1); s->tables[at]; at = (at + 1) & (s->cap_tables - 1)) {
        struct shard_table *t = s->tables[at];
        s->tables[at] = NULL;
        s->tables[slot_of(s, t->object)] = t;
    }
}

enum order_pattern shard_pattern(const struct shard *s, uint32_t object) {
    const struct shard_table *t = s->cap_tables ? s->tables[slot_of(s, object)] : NULL;
    return t ? order_pattern(&t->order) : ORDER_NONE;
}

/* ---- posting ---- */

static bool is_charged(const struct ledger_request *q) { return q->outcome == LEDGER_OK || q->applied; }

/* The usage of one item of the request, counted as a request of its own. A request that is not charged
 * counts only as a request, and as a throttle. */
static struct usage_window usage_of(const struct ledger_request *q, const struct charge_item *item) {
    struct usage_window u = {.n = {[USAGE_REQUESTS] = 1, [USAGE_THROTTLES] = q->throttled}};
    if (UNLIKELY(!is_charged(q))) return u;
    u.n[USAGE_READ_HALVES] = (uint32_t)item->read_halves;
    u.n[USAGE_WRITE_UNITS] = (uint32_t)item->write_units;
    u.n[USAGE_ENTITIES] = (uint32_t)item->entities;
    return u;
}

/* At least 1, so that subjects whose requests are all throttled are found, too. */
static uint64_t load_of(const struct usage_window *u) {
    uint64_t load = usage_load(u->n[USAGE_READ_HALVES], u->n[USAGE_WRITE_UNITS]);
    return load ? load : 1;
}

struct shard_ranges *shard_ranges_of(struct shard *s, uint32_t object) {
    uint32_t end = atomic_load_explicit(&s->watched_end, memory_order_relaxed);
    for (uint32_t i = 0; i < end; i++)
        if (atomic_load_explicit(&s->watched[i], memory_order_relaxed) == object) return &s->ranges[i];
    return NULL;
}

static struct shard_origin origin_of(const struct ledger_request *q) {
    struct shard_origin o = {.statement_id = q->statement_id, .role = q->connection ? q->connection->role : ""};
    if (LIKELY(!q->throttled && !q->guidance)) return o;
    bool by_table = q->throttled && !q->by_partition && !q->by_connection && !q->guidance;
    o.reasons = (uint32_t)q->by_partition << THROTTLE_PARTITION | (uint32_t)q->by_connection << THROTTLE_CONNECTION |
                (uint32_t)by_table << THROTTLE_TABLE | (uint32_t)q->guidance << THROTTLE_GUIDANCE;
    return o;
}

static void note_statement(struct shard_origins *p, uint64_t id, uint64_t n) {
    uint32_t least = 0;
    for (uint32_t i = 0; i < SHARD_ORIGIN_STATEMENTS; i++) {
        if (p->statements[i].id == id) {
            p->statements[i].n += n;
            return;
        }
        if (p->statements[i].n < p->statements[least].n) least = i;
    }
    p->statements[least].id = id;
    p->statements[least].n += n;
}

static void note_role(struct shard_origins *p, const char *role, uint64_t n) {
    uint32_t least = 0;
    for (uint32_t i = 0; i < SHARD_ORIGIN_ROLES; i++) {
        if (!strcmp(p->roles[i].name, role)) {
            p->roles[i].n += n;
            return;
        }
        if (p->roles[i].n < p->roles[least].n) least = i;
    }
    snprintf(p->roles[least].name, sizeof(p->roles[least].name), "%s", role);
    p->roles[least].n += n;
}

void shard_origins_add(struct shard_origins *to, const struct shard_origins *from) {
    for (int i = 0; i < SHARD_ORIGIN_STATEMENTS; i++)
        if (from->statements[i].n) note_statement(to, from->statements[i].id, from->statements[i].n);
    for (int i = 0; i < SHARD_ORIGIN_ROLES; i++)
        if (from->roles[i].n) note_role(to, from->roles[i].name, from->roles[i].n);
    for (int i = 0; i < THROTTLE_REASONS; i++) to->throttles[i] += from->throttles[i];
}

struct shard_origins shard_origins_of(const struct shard *s, uint32_t i) {
    const struct shard_partition *of = &s->partition_infos[i];
    const struct shard_origins *p = &s->partition_origins[i];
    bool same = p->object == of->object && p->token == of->token;
    return same ? *p : (struct shard_origins){.object = of->object, .token = of->token};
}

void shard_partition_add(struct shard *s, uint32_t second, uint32_t object, int64_t token, struct slice key,
                         const struct usage_window *u, const struct shard_origin *origin) {
    bool fresh;
    uint32_t at = heavy_add(&s->partitions, shard_partition_id(object, token), load_of(u), &fresh);
    if (at == HEAVY_NONE) return;
    struct shard_partition *p = &s->partition_infos[at];
    if (fresh) {
        *p = (struct shard_partition){.object = object, .token = token, .key_n = (uint32_t)key.n};
        if (key.n) memcpy(p->key, key.p, key.n < sizeof(p->key) ? key.n : sizeof(p->key));
    }
    usage_add(&p->usage, second, u);
    if (fresh && !origin->reasons) return;
    struct shard_origins *o = &s->partition_origins[at];
    if (o->object != object || o->token != token) *o = (struct shard_origins){.object = object, .token = token};
    if (origin->statement_id) note_statement(o, origin->statement_id, 1);
    if (*origin->role) note_role(o, origin->role, 1);
    for (uint32_t i = 0; UNLIKELY(origin->reasons) && i < THROTTLE_REASONS; i++)
        o->throttles[i] += origin->reasons >> i & 1;
}

/* Posts one read or write to its table, its range and its partition, and adds it to the sums of the
 * request. write is NULL for a read. */
static void add_item(struct shard *s, uint32_t second, const struct ledger_request *q, const struct charge_item *item,
                     struct slice key, const struct op_write *write, struct usage_window *all) {
    const struct usage_window u = usage_of(q, item);
    struct shard_table *t = table_open(s, item->object, item->keyspace, item->table);
    all->n[USAGE_READ_HALVES] += u.n[USAGE_READ_HALVES];
    all->n[USAGE_WRITE_UNITS] += u.n[USAGE_WRITE_UNITS];
    all->n[USAGE_ENTITIES] += u.n[USAGE_ENTITIES];
    if (t && is_charged(q)) {
        uint64_t *n = t->cell.f.n;
        n[FIGURE_READ_UNITS] += u.n[USAGE_READ_HALVES];
        n[FIGURE_WRITE_UNITS] += u.n[USAGE_WRITE_UNITS];
        n[FIGURE_STATIC_WRITE_UNITS] += (uint64_t)item->static_units;
        n[FIGURE_ENTITIES] += u.n[USAGE_ENTITIES];
        n[FIGURE_CONDITION_FAILED] += item->condition_failed;
        /* a batch belongs to no single table, so each of its writes is a sample of its own table */
        if (write && q->operation == OPERATION_BATCH)
            span_add(&t->cell.spans[SPAN_WRITE_UNITS], u.n[USAGE_WRITE_UNITS]);
        if (write) order_add(&t->order, write->key_types, write->n_key_types, key, item->token);
    }
    if (!item->one_partition) return;
    const struct shard_origin origin = origin_of(q);
    struct shard_ranges *r = shard_ranges_of(s, item->object);
    if (r) {
        shard_range_add(r, item->token, RANGE_READ_HALVES, u.n[USAGE_READ_HALVES]);
        shard_range_add(r, item->token, RANGE_WRITE_UNITS, u.n[USAGE_WRITE_UNITS]);
        shard_range_add(r, item->token, RANGE_THROTTLES, u.n[USAGE_THROTTLES]);
        shard_range_add(r, item->token, RANGE_ENTITIES, u.n[USAGE_ENTITIES]);
    }
    shard_partition_add(s, second, item->object, item->token, key, &u, &origin);
}

static void add_outcome(struct cell *c, const struct ledger_request *q, const struct usage_window *all) {
    uint64_t *of = c->f.of[q->operation];
    if (UNLIKELY(q->throttled)) {
        of[OF_READ_THROTTLES] += q->read_throttled;
        of[OF_WRITE_THROTTLES] += !q->read_throttled;
        of[OF_CONNECTION_THROTTLES] += q->by_connection;
        of[OF_PARTITION_THROTTLES] += q->by_partition;
    }
    c->f.n[FIGURE_GUIDANCE] += q->guidance;
    of[OF_USER_ERRORS] += q->outcome == LEDGER_USER_ERROR;
    of[OF_SYSTEM_ERRORS] += q->outcome == LEDGER_SYSTEM_ERROR;
    if (UNLIKELY(q->outcome != LEDGER_OK)) return;
    of[OF_REQUESTS]++;
    of[OF_LATENCY] += (uint64_t)q->took_us;
    span_add(&c->spans[SPAN_LATENCY + q->operation], (uint64_t)q->took_us);
    c->latencies.n[latency_slot((uint64_t)q->took_us)]++;
    if (q->cost->reads) {
        of[OF_RETURNED] += q->cost->rows_returned;
        span_add(&c->spans[SPAN_RETURNED + q->operation], q->cost->rows_returned);
        span_add(&c->spans[SPAN_READ_UNITS], all->n[USAGE_READ_HALVES]);
        int class = (int)q->cost->query_class;
        c->f.n[FIGURE_BYTES_READ] += q->cost->bytes_read;
        c->f.n[FIGURE_POINT_READS + class]++;
        c->f.n[FIGURE_POINT_SCANNED + class] += q->cost->rows_read;
        c->f.n[FIGURE_POINT_RETURNED + class] += q->cost->rows_returned;
    }
    if (q->cost->writes && q->operation != OPERATION_BATCH)
        span_add(&c->spans[SPAN_WRITE_UNITS], all->n[USAGE_WRITE_UNITS]);
}

/* The same statement is often posted several times in a row, so heavy_again is tried first. */
static uint32_t add_load(struct heavy *statements, uint64_t id, uint64_t load, bool *fresh) {
    uint32_t at = heavy_again(statements, id, load);
    *fresh = false;
    return at != HEAVY_NONE ? at : heavy_add(statements, id, load, fresh);
}

struct shard_statement *shard_statement_add(struct shard *s, uint64_t id, uint64_t load) {
    bool fresh;
    uint32_t at = add_load(&s->statements, id, load, &fresh);
    assert(at != HEAVY_NONE && !fresh);
    return &s->statement_infos[at];
}

static void add_statement(struct shard *s, uint32_t second, const struct ledger_request *q,
                          const struct usage_window *u) {
    bool fresh;
    uint32_t at = add_load(&s->statements, q->statement_id, load_of(u), &fresh);
    if (at == HEAVY_NONE) return;
    struct shard_statement *st = &s->statement_infos[at];
    if (fresh) {
        free(st->text);
        *st = (struct shard_statement){.object = q->cost->object,
                                       .text = strndup((const char *)q->text.p,
                                                       q->text.n < SHARD_TEXT ? q->text.n : SHARD_TEXT)};
    }
    usage_add(&st->usage, second, u);
    if (q->outcome != LEDGER_OK) return;
    st->class = q->cost->query_class;
    st->guidance = q->cost->guidance_class;
    st->rules |= q->rules;
    st->rows_read += q->cost->rows_read;
    st->rows_returned += q->cost->rows_returned;
}

void shard_ttl_delete(struct shard *s, uint32_t object, const char *keyspace, const char *table, uint64_t units) {
    struct shard_table *t = table_open(s, object, keyspace, table);
    if (t) t->cell.f.n[FIGURE_TTL_DELETES] += units;
}

/* A request to system tables is posted to its connection alone. */
void shard_post(struct shard *s, uint32_t second, const struct ledger_request *q) {
    struct usage_window all = usage_of(q, &(struct charge_item){0});
    bool nothing = q->operation == OPERATION_OTHER && q->outcome == LEDGER_OK;
    if (!q->cost->is_system && !nothing) {
        for (const struct op_read *r = q->cost->reads; r; r = r->next)
            add_item(s, second, q, &r->item, r->key, NULL, &all);
        for (const struct op_write *w = q->cost->writes; w; w = w->next)
            add_item(s, second, q, &w->item, w->key, w, &all);
        bool no_table = q->operation == OPERATION_OTHER || q->operation == OPERATION_BATCH;
        struct shard_table *t = table_open(s, no_table ? 0 : q->cost->object, no_table ? "" : q->cost->keyspace,
                                           no_table ? "" : q->cost->table);
        if (t) add_outcome(&t->cell, q, &all);
        if (q->statement_id && q->operation != OPERATION_OTHER) add_statement(s, second, q, &all);
    }
    if (!q->connection) return;
    all.n[USAGE_REQUESTS] = q->statements;
    usage_add(&q->connection->usage, second, &all);
}

/* ---- reversal ---- */

struct ledger_posting ledger_posting_of(const struct op_cost *cost, enum operation operation, uint64_t statement_id) {
    struct ledger_posting c = {.operation = operation, .statement_id = statement_id};
    const struct op_write *first = cost->writes;
    uint32_t n = 0;
    if (!first) return c;
    c.first = first->item;
    for (const struct op_write *w = first->next; w; w = w->next) n++;
    if (n) c.others = malloc(n * sizeof(*c.others));
    c.n = 1 + (c.others ? n : 0);
    n = 0;
    for (const struct op_write *w = first->next; c.others && w; w = w->next) c.others[n++] = w->item;
    return c;
}

void ledger_posting_fini(struct ledger_posting *c) {
    free(c->others);
    *c = (struct ledger_posting){0};
}

static void reverse_item(struct shard *s, struct stats *b, uint32_t second, const struct charge_item *p,
                           struct usage_sums *all) {
    struct table_stats *t = stats_find(b, p->object);
    struct figures units = {0};
    units.n[FIGURE_READ_UNITS] = (uint64_t)p->read_halves;
    units.n[FIGURE_WRITE_UNITS] = (uint64_t)p->write_units;
    units.n[FIGURE_STATIC_WRITE_UNITS] = (uint64_t)p->static_units;
    units.n[FIGURE_ENTITIES] = (uint64_t)p->entities;
    units.n[FIGURE_CONDITION_FAILED] = p->condition_failed;
    if (t) stats_reverse(t, second, &units);
    const struct usage_sums u = {.n = {[USAGE_READ_HALVES] = (uint64_t)p->read_halves,
                                       [USAGE_WRITE_UNITS] = (uint64_t)p->write_units,
                                       [USAGE_ENTITIES] = (uint64_t)p->entities}};
    uint32_t at = heavy_reverse(&s->partitions, shard_partition_id(p->object, p->token),
                              usage_load(u.n[USAGE_READ_HALVES], u.n[USAGE_WRITE_UNITS]));
    if (at != HEAVY_NONE) usage_reverse(&s->partition_infos[at].usage, second, &u);
    usage_sums_add(all, &u);
}

void shard_reverse(struct shard *s, struct stats *b, uint32_t second, const struct ledger_posting *posting,
                     struct usage *of) {
    struct usage_sums all = {0};
    reverse_item(s, b, second, &posting->first, &all);
    for (uint32_t i = 0; i + 1 < posting->n; i++) reverse_item(s, b, second, &posting->others[i], &all);
    if (posting->statement_id) {
        uint64_t load = usage_load(all.n[USAGE_READ_HALVES], all.n[USAGE_WRITE_UNITS]);
        uint32_t at = heavy_reverse(&s->statements, posting->statement_id, load);
        if (at != HEAVY_NONE) usage_reverse(&s->statement_infos[at].usage, second, &all);
    }
    /* the table's request (a batch belongs to no table) was a success and becomes a failure */
    struct table_stats *t = stats_find(b, posting->operation == OPERATION_BATCH ? 0 : posting->first.object);
    if (t) {
        struct figures request = {0};
        request.of[posting->operation][OF_REQUESTS] = 1;
        stats_reverse(t, second, &request);
        struct shard_table *fails = table_open(s, t->object, t->keyspace, t->name);
        if (fails) fails->cell.f.of[posting->operation][OF_SYSTEM_ERRORS]++;
    }
    usage_reverse(of, second, &all);
}
