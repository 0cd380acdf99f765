#include "metering/ledger/ledger.h"

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/log.h"
#include "base/random.h"
#include "metering/ledger/journal.h"

struct ledger {
    struct clock *clock;
    unsigned n_shards;
    uint32_t floor; /* the earliest second: the latest minute in the file */
    _Atomic uint64_t next_connection;
    pthread_mutex_t file_lock; /* of the journal; posting does not take it */
    struct journal journal;
    pthread_mutex_t lock; /* of the fields below; taken after a shard's lock and file_lock */
    struct stats stats;
    struct store_totals others; /* of the other servers on the store */
    struct roles roles; /* of closed connections */
    pthread_t thread;
    pthread_cond_t wake;
    bool has_file, has_thread, stop;
    pthread_mutex_t hook_lock; /* of hook, which takes the other locks */
    void (*hook)(void *arg);
    void *hook_arg;
    struct shard shards[];
};

static uint32_t second_of(const struct ledger *l, const struct shard *s, int64_t now_us) {
    uint32_t second = now_us > 0 ? (uint32_t)(now_us / 1000000) : 0;
    if (second < l->floor) second = l->floor;
    return second < s->second ? s->second : second;
}

/* Under the shard's lock. */
static void turn_second(struct ledger *l, struct shard *s, uint32_t second) {
    if (s->second == second) return;
    if (s->n_actives) {
        pthread_mutex_lock(&l->lock);
        shard_drain(s, &l->stats);
        pthread_mutex_unlock(&l->lock);
    }
    s->second = second;
}

/* ---- posting ---- */

/* Posts the queued reads. The owner calls this under the shard's lock. */
static void settle(struct ledger *l, struct shard *s) {
    const struct shard_segment *segments = s->segments;
    const struct shard_key *keys = s->keys;
    if (!s->n_batches) return;
    if (UNLIKELY(!shard_reads_are_timed(s))) shard_reads_time(s, clock_wall_us(l->clock));
    for (const struct shard_batch *batch = s->batches; batch < s->batches + s->n_batches; batch++) {
        uint32_t second = second_of(l, s, batch->second_us);
        turn_second(l, s, second);
        struct cell *cell = shard_cell(s, batch->object, NULL, NULL);
        if (UNLIKELY(!cell)) { /* the shard may miss a table with queued reads; a table without statistics is dropped */
            pthread_mutex_lock(&l->lock);
            const struct table_stats *t = stats_find(&l->stats, batch->object);
            cell = t ? shard_cell(s, batch->object, t->keyspace, t->name) : NULL;
            pthread_mutex_unlock(&l->lock);
        }
        if (LIKELY(cell)) {
            shard_batch_post(s, second, batch, segments, keys, cell);
        } else {
            struct cell dropped = {0};
            shard_batch_post(s, second, batch, segments, keys, &dropped);
            pthread_mutex_lock(&l->lock);
            figures_add(&l->stats.dropped, &dropped.f);
            pthread_mutex_unlock(&l->lock);
        }
        segments += batch->n_segments;
        keys += batch->n_keys;
    }
    shard_reads_clear(s);
}

void ledger_settle(struct ledger *l, unsigned shard) {
    struct shard *s = &l->shards[shard];
    if (!s->n_batches) return;
    pthread_mutex_lock(&s->lock);
    settle(l, s);
    pthread_mutex_unlock(&s->lock);
}

/* A thread that reads the ledger first settles its own queued reads. */
static void settle_own(struct ledger *l) {
    for (unsigned i = 0; i < l->n_shards; i++)
        if (atomic_load_explicit(&l->shards[i].owner, memory_order_relaxed) == pthread_self()) ledger_settle(l, i);
}

void ledger_post(struct ledger *l, unsigned shard, const struct ledger_request *q) {
    struct shard *s = &l->shards[shard];
    pthread_mutex_lock(&s->lock);
    settle(l, s);
    uint32_t second = second_of(l, s, q->now_us);
    turn_second(l, s, second);
    shard_post(s, second, q);
    pthread_mutex_unlock(&s->lock);
}

bool ledger_queue_read(struct ledger *l, unsigned shard, struct ledger_connection *c, uint64_t statement_id,
                       const struct op_cost *cost, int64_t began_us) {
    return shard_read_put(&l->shards[shard], c, statement_id, cost, began_us);
}

void ledger_time_reads(struct ledger *l, unsigned shard, int64_t now_us) {
    shard_reads_time(&l->shards[shard], now_us);
}

void ledger_reverse(struct ledger *l, unsigned shard, int64_t now_us, const struct ledger_posting *posting,
                      struct ledger_connection *c) {
    struct shard *s = &l->shards[shard];
    if (!posting->n) return;
    pthread_mutex_lock(&s->lock);
    settle(l, s);
    uint32_t second = second_of(l, s, now_us);
    turn_second(l, s, second);
    pthread_mutex_lock(&l->lock);
    shard_drain(s, &l->stats);
    shard_reverse(s, &l->stats, second, posting, &c->usage);
    pthread_mutex_unlock(&l->lock);
    pthread_mutex_unlock(&s->lock);
}

void ledger_ttl_delete(struct ledger *l, int64_t now_us, uint32_t object, const char *keyspace, const char *table,
                       uint64_t units) {
    struct shard *s = &l->shards[0];
    pthread_mutex_lock(&s->lock);
    turn_second(l, s, second_of(l, s, now_us));
    shard_ttl_delete(s, object, keyspace, table, units);
    pthread_mutex_unlock(&s->lock);
}

/* ---- connections ---- */

void ledger_connect(struct ledger *l, unsigned shard, struct ledger_connection *c) {
    struct shard *s = &l->shards[shard];
    c->id = atomic_fetch_add(&l->next_connection, 1) + 1;
    pthread_mutex_lock(&s->lock);
    c->prev = NULL;
    c->next = s->connections;
    if (c->next) c->next->prev = c;
    s->connections = c;
    pthread_mutex_unlock(&s->lock);
}

void ledger_disconnect(struct ledger *l, unsigned shard, struct ledger_connection *c) {
    struct shard *s = &l->shards[shard];
    pthread_mutex_lock(&s->lock);
    settle(l, s);
    if (c->prev) c->prev->next = c->next;
    else s->connections = c->next;
    if (c->next) c->next->prev = c->prev;
    pthread_mutex_lock(&l->lock);
    if (usage_all(&c->usage, USAGE_REQUESTS)) usage_merge(&roles_open(&l->roles, c->role)->usage, &c->usage, s->second);
    pthread_mutex_unlock(&l->lock);
    pthread_mutex_unlock(&s->lock);
}

/* ---- merged ---- */

/* Adds the counts of all shards to the statistics. */
static void collect(struct ledger *l) {
    settle_own(l);
    for (unsigned i = 0; i < l->n_shards; i++) {
        struct shard *s = &l->shards[i];
        pthread_mutex_lock(&s->lock);
        turn_second(l, s, second_of(l, s, clock_wall_us(l->clock)));
        if (s->n_actives) {
            pthread_mutex_lock(&l->lock);
            shard_drain(s, &l->stats);
            pthread_mutex_unlock(&l->lock);
        }
        pthread_mutex_unlock(&s->lock);
    }
}

static uint32_t running_second(const struct ledger *l) {
    uint32_t second = (uint32_t)(clock_wall_us(l->clock) / 1000000);
    return second < l->floor ? l->floor : second;
}

static int each(struct ledger *l, const struct object_list *of, ledger_table_fn fn, void *arg) {
    int rc = 0;
    collect(l);
    uint32_t second = running_second(l);
    pthread_mutex_lock(&l->lock);
    for (uint32_t i = 0; i < of->n && !rc; i++) rc = fn(arg, of->items[i], second);
    pthread_mutex_unlock(&l->lock);
    return rc;
}

int ledger_own_tables(struct ledger *l, ledger_table_fn fn, void *arg) { return each(l, &l->stats.tables, fn, arg); }

/* A table that only this server has is passed as it is; of others a sum is made. */
int ledger_tables(struct ledger *l, ledger_table_fn fn, void *arg) {
    uint32_t i = 0, shared;
    uint64_t from = 0;
    int rc = 0;
    collect(l);
    uint32_t second = running_second(l);
    pthread_mutex_lock(&l->lock);
    while (!rc) {
        bool more = totals_next(&l->others, from, &shared);
        const struct table_stats *own = i < l->stats.tables.n ? stats_at(&l->stats, i) : NULL;
        if (!own && !more) break;
        if (own && more && shared < own->object) own = NULL;
        uint32_t object = own ? own->object : shared;
        if (own) i++;
        if (own && !(more && shared == object)) {
            rc = fn(arg, own, second);
        } else {
            struct table_stats *sum = totals_sum(&l->others, own, object);
            rc = sum ? fn(arg, sum, second) : -1;
            if (sum) stats_table_free(sum);
        }
        from = (uint64_t)object + 1;
    }
    pthread_mutex_unlock(&l->lock);
    return rc;
}

int ledger_gone(struct ledger *l, ledger_table_fn fn, void *arg) { return each(l, &l->stats.gone, fn, arg); }

int ledger_touched(struct ledger *l, ledger_table_fn fn, void *arg) {
    int rc = 0;
    collect(l);
    uint32_t second = running_second(l);
    pthread_mutex_lock(&l->lock);
    for (uint32_t i = 0; i < l->stats.n_touched && !rc; i++) rc = fn(arg, l->stats.touched[i], second);
    stats_untouch(&l->stats);
    pthread_mutex_unlock(&l->lock);
    return rc;
}

void ledger_watch(struct ledger *l, uint32_t i, uint32_t object) {
    for (unsigned k = 0; k < l->n_shards; k++) {
        pthread_mutex_lock(&l->shards[k].lock);
        struct shard *s = &l->shards[k];
        uint32_t end = SHARD_WATCHED;
        atomic_store_explicit(&s->watched[i], object, memory_order_relaxed);
        while (end && !atomic_load_explicit(&s->watched[end - 1], memory_order_relaxed)) end--;
        atomic_store_explicit(&s->watched_end, end, memory_order_relaxed);
        pthread_mutex_unlock(&l->shards[k].lock);
    }
}

void ledger_ranges(struct ledger *l, uint32_t i, uint32_t out[SHARD_RANGES][RANGE_FIGURES]) {
    memset(out, 0, sizeof(uint32_t[SHARD_RANGES][RANGE_FIGURES]));
    for (unsigned k = 0; k < l->n_shards; k++)
        for (uint32_t r = 0; r < SHARD_RANGES; r++)
            for (uint32_t f = 0; f < RANGE_FIGURES; f++)
                out[r][f] += atomic_load_explicit(&l->shards[k].ranges[i].n[r][f], memory_order_relaxed);
}

struct figures ledger_dropped(struct ledger *l) {
    pthread_mutex_lock(&l->lock);
    struct figures f = l->stats.dropped, others = totals_dropped(&l->others);
    figures_add(&f, &others);
    pthread_mutex_unlock(&l->lock);
    return f;
}

void ledger_drop(struct ledger *l, uint32_t object) {
    collect(l);
    for (unsigned i = 0; i < l->n_shards; i++) {
        pthread_mutex_lock(&l->shards[i].lock);
        pthread_mutex_lock(&l->lock);
        shard_drain(&l->shards[i], &l->stats);
        pthread_mutex_unlock(&l->lock);
        shard_drop(&l->shards[i], object);
        pthread_mutex_unlock(&l->shards[i].lock);
    }
    struct buf record;
    buf_init(&record, 0);
    pthread_mutex_lock(&l->file_lock);
    pthread_mutex_lock(&l->lock);
    journal_put_drop(&record, &l->stats, object);
    stats_drop(&l->stats, object);
    pthread_mutex_unlock(&l->lock);
    journal_append(&l->journal, &record);
    pthread_mutex_unlock(&l->file_lock);
    buf_fini(&record);
}

static void names_of(struct ledger *l, uint32_t object, char keyspace[STATS_NAME], char table[STATS_NAME]) {
    const struct table_stats *t = stats_find(&l->stats, object);
    memcpy(keyspace, t ? t->keyspace : "", t ? STATS_NAME : 1);
    memcpy(table, t ? t->name : "", t ? STATS_NAME : 1);
}

/* ---- the heaviest ---- */

/* A kind of subject of which each shard keeps the heaviest. Its items begin with a struct
 * heavy_item. */
struct subject {
    size_t size;  /* of an item */
    size_t heavy; /* where struct shard has the struct heavy */
    /* Fills in the rest of an item as of the second. Under the shard's lock. */
    void (*copy)(void *item, const struct shard *s, uint32_t slot, uint32_t second);
    /* Adds to an item what another shard keeps of the same subject. */
    void (*join)(void *to, const void *from, uint32_t second);
};

/* Items of all shards, found by an index with open addressing, so that merging an item costs the same
 * with few loops and with many. */
struct merged {
    const struct subject *of;
    char *all;
    size_t n;
    uint32_t *slots; /* index in all, and 1; 0 if free. At most half of them are taken */
    size_t mask;
};

static struct heavy_item *item_at(const struct merged *m, size_t i) {
    return (struct heavy_item *)(m->all + i * m->of->size);
}

/* Merges a shard's items, m->n to n - 1, into those of the preceding shards. */
static void merge_shard(struct merged *m, size_t n, uint32_t second) {
    for (size_t i = m->n; i < n; i++) {
        const struct heavy_item *item = item_at(m, i);
        size_t at = (size_t)((item->key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & m->mask;
        while (m->slots[at] && item_at(m, m->slots[at] - 1)->key != item->key) at = (at + 1) & m->mask;
        if (m->slots[at]) {
            struct heavy_item *to = item_at(m, m->slots[at] - 1);
            to->load += item->load;
            to->error += item->error;
            m->of->join(to, item, second);
        } else {
            if (m->n != i) memcpy(item_at(m, m->n), item, m->of->size);
            m->slots[at] = (uint32_t)++m->n;
        }
    }
}

static int heavier(const void *a, const void *b) {
    const struct heavy_item *x = a, *y = b;
    return (x->load < y->load) - (x->load > y->load);
}

/* The kept items of all shards, merged, heaviest first. An item that one shard keeps and another
 * does not may have more load than is shown here, by up to K2's bound in the other shard (heavy.h).
 * *total: the load of all items, kept or not. Returns NULL if memory is exhausted. */
static void *merge(struct ledger *l, const struct subject *of, size_t *n, uint64_t *total) {
    size_t most = 0, slots = 1;
    for (unsigned i = 0; i < l->n_shards; i++)
        most += ((struct heavy *)((char *)&l->shards[i] + of->heavy))->n_sets * HEAVY_WAYS;
    while (slots < 2 * most) slots *= 2;
    struct merged m = {.of = of, .all = calloc(most, of->size), .slots = calloc(slots, sizeof(*m.slots)),
                       .mask = slots - 1};
    *n = *total = 0;
    if (!m.all || !m.slots) {
        free(m.all);
        free(m.slots);
        return NULL;
    }
    collect(l);
    uint32_t second = running_second(l);
    for (struct shard *s = l->shards; s < l->shards + l->n_shards; s++) {
        const struct heavy *heavy = (struct heavy *)((char *)s + of->heavy);
        size_t taken = m.n;
        pthread_mutex_lock(&s->lock); /* for the copying alone */
        for (uint32_t i = 0; i < heavy->n_sets * HEAVY_WAYS; i++) {
            struct heavy_item x = heavy_at(heavy, i);
            if (!x.load) continue;
            *item_at(&m, taken) = x;
            of->copy(item_at(&m, taken++), s, i, second);
        }
        *total += heavy->total;
        pthread_mutex_unlock(&s->lock);
        merge_shard(&m, taken, second);
    }
    free(m.slots);
    qsort(m.all, m.n, of->size, heavier);
    *n = m.n;
    return m.all;
}

static void copy_partition(void *item, const struct shard *s, uint32_t slot, uint32_t second) {
    struct ledger_partition *to = item;
    to->p = s->partition_infos[slot];
    to->origins = shard_origins_of(s, slot);
    if (second > to->p.usage.second) usage_roll(&to->p.usage, second);
}

static void join_partition(void *item, const void *from_item, uint32_t second) {
    struct ledger_partition *to = item;
    const struct ledger_partition *from = from_item;
    usage_merge(&to->p.usage, &from->p.usage, second);
    shard_origins_add(&to->origins, &from->origins);
}

struct ledger_partition *ledger_partition_usage(struct ledger *l, size_t *n) {
    static const struct subject partitions = {sizeof(struct ledger_partition), offsetof(struct shard, partitions),
                                              copy_partition, join_partition};
    uint64_t total;
    struct ledger_partition *all = merge(l, &partitions, n, &total);
    for (size_t k = 0; k < *n; k++) all[k].share = total ? (double)all[k].kept.load / (double)total : 0;
    return all;
}

struct ledger_partition *ledger_partitions(struct ledger *l, size_t *n) {
    struct ledger_partition *all = ledger_partition_usage(l, n);
    for (size_t k = 0; k < *n; k++) all[k].pattern = ledger_pattern(l, all[k].p.object);
    pthread_mutex_lock(&l->lock);
    for (size_t k = 0; k < *n; k++) names_of(l, all[k].p.object, all[k].keyspace, all[k].table);
    pthread_mutex_unlock(&l->lock);
    return all;
}

static void copy_statement(void *item, const struct shard *s, uint32_t slot, uint32_t second) {
    struct ledger_statement *to = item;
    to->s = s->statement_infos[slot];
    snprintf(to->text, sizeof(to->text), "%s", to->s.text ? to->s.text : "");
    to->s.text = NULL; /* the shard's */
    if (second > to->s.usage.second) usage_roll(&to->s.usage, second);
}

static void join_statement(void *item, const void *from_item, uint32_t second) {
    struct ledger_statement *to = item;
    const struct ledger_statement *from = from_item;
    to->s.rows_read += from->s.rows_read;
    to->s.rules |= from->s.rules;
    to->s.rows_returned += from->s.rows_returned;
    usage_merge(&to->s.usage, &from->s.usage, second);
}

struct ledger_statement *ledger_statements(struct ledger *l, size_t *n) {
    static const struct subject statements = {sizeof(struct ledger_statement), offsetof(struct shard, statements),
                                              copy_statement, join_statement};
    uint64_t total;
    struct ledger_statement *all = merge(l, &statements, n, &total);
    pthread_mutex_lock(&l->lock);
    for (size_t k = 0; k < *n; k++) names_of(l, all[k].s.object, all[k].keyspace, all[k].table);
    pthread_mutex_unlock(&l->lock);
    return all;
}

enum order_pattern ledger_pattern(struct ledger *l, uint32_t object) {
    enum order_pattern found = ORDER_NONE;
    for (unsigned i = 0; i < l->n_shards && found == ORDER_NONE; i++) {
        pthread_mutex_lock(&l->shards[i].lock);
        found = shard_pattern(&l->shards[i], object);
        pthread_mutex_unlock(&l->shards[i].lock);
    }
    return found;
}

/* ---- connections and roles, read ---- */

/* The length of the text after truncation to LEDGER_DRIVER_TEXT at a character boundary. */
static size_t kept_bytes(struct slice text) {
    size_t n = text.n < LEDGER_DRIVER_TEXT ? text.n : LEDGER_DRIVER_TEXT;
    while (n && n < text.n && (text.p[n] & 0xC0) == 0x80) n--;
    return n;
}

struct ledger_driver *ledger_driver_new(struct slice name, struct slice version) {
    size_t n_name = kept_bytes(name), n_version = kept_bytes(version);
    struct ledger_driver *d = n_name || n_version ? calloc(1, sizeof(*d) + n_name + n_version + 2) : NULL;
    if (!d) return NULL;
    atomic_init(&d->refs, 1);
    if (n_name) memcpy(d->bytes, name.p, n_name);
    if (n_version) memcpy(d->bytes + n_name + 1, version.p, n_version);
    d->name = d->bytes;
    d->version = d->bytes + n_name + 1;
    return d;
}

void ledger_driver_unref(struct ledger_driver *d) {
    if (d && atomic_fetch_sub(&d->refs, 1) == 1) free(d);
}

void ledger_connections_free(struct ledger_connection *all, size_t n) {
    for (size_t i = 0; i < n; i++) ledger_driver_unref(all[i].client.driver);
    free(all);
}

struct ledger_connection *ledger_connections(struct ledger *l, size_t *n) {
    struct ledger_connection *all = NULL;
    *n = 0;
    settle_own(l);
    uint32_t second = running_second(l);
    for (unsigned i = 0; i < l->n_shards; i++) {
        struct shard *s = &l->shards[i];
        pthread_mutex_lock(&s->lock);
        size_t more = 1;
        for (const struct ledger_connection *c = s->connections; c; c = c->next) more++;
        struct ledger_connection *grown = realloc(all, (*n + more) * sizeof(*all));
        if (grown) all = grown;
        for (struct ledger_connection *c = grown ? s->connections : NULL; c; c = c->next) {
            all[*n] = *c;
            if (c->client.driver) atomic_fetch_add(&c->client.driver->refs, 1);
            if (second > c->usage.second) usage_roll(&all[*n].usage, second);
            (*n)++;
        }
        pthread_mutex_unlock(&s->lock);
    }
    return all;
}

struct roles *ledger_roles(struct ledger *l) {
    size_t n;
    uint32_t second = running_second(l);
    struct roles *roles = malloc(sizeof(*roles));
    struct ledger_connection *connections = ledger_connections(l, &n);
    if (roles) {
        pthread_mutex_lock(&l->lock);
        *roles = l->roles;
        pthread_mutex_unlock(&l->lock);
    }
    for (size_t i = 0; roles && i < n; i++) {
        struct ledger_role *r = roles_open(roles, connections[i].role);
        usage_merge(&r->usage, &connections[i].usage, second);
        r->connections++;
    }
    for (uint32_t i = 0; roles && i < roles->n; i++)
        if (second > roles->list[i].usage.second) usage_roll(&roles->list[i].usage, second);
    ledger_connections_free(connections, n);
    return roles;
}

/* ---- totals of several servers ---- */

static void write_changes(struct ledger *l);

int ledger_renew_id(struct ledger *l, uint64_t *id, struct err *e) {
    if (random_bytes(id, sizeof(*id), e)) return -1;
    pthread_mutex_lock(&l->lock);
    int rc = stats_blob_set(&l->stats.id, slice_of(id, sizeof(*id)));
    pthread_mutex_unlock(&l->lock);
    if (rc) return err_nomem(e);
    write_changes(l);
    pthread_mutex_lock(&l->file_lock);
    if (l->has_file) journal_sync(&l->journal);
    bool failing = l->journal.failing;
    pthread_mutex_unlock(&l->file_lock);
    return failing ? err_set(e, ERR_SERVER, "the ledger's file cannot be written") : 0;
}

int ledger_id(struct ledger *l, uint64_t *id, struct err *e) {
    pthread_mutex_lock(&l->lock);
    bool has = l->stats.id.n == sizeof(*id);
    if (has) memcpy(id, l->stats.id.p, sizeof(*id));
    pthread_mutex_unlock(&l->lock);
    return has ? 0 : ledger_renew_id(l, id, e);
}

int ledger_recover(struct ledger *l, struct slice records) {
    pthread_mutex_lock(&l->lock);
    int rc = totals_recover(&l->stats, records);
    pthread_mutex_unlock(&l->lock);
    return rc;
}

int ledger_own_totals(struct ledger *l, bool all, ledger_totals_fn fn, void *arg) {
    struct buf out;
    int rc = 0;
    buf_init(&out, 0);
    collect(l);
    pthread_mutex_lock(&l->lock);
    for (uint32_t i = 0; !rc && i < l->stats.tables.n; i++) {
        struct table_stats *t = stats_at(&l->stats, i);
        if (!all && !t->unreported) continue;
        out.n = 0;
        journal_put_totals(&out, t);
        rc = buf_failed(&out) ? -1 : fn(arg, t->object, buf_slice(&out));
        if (!rc) t->unreported = false;
    }
    out.n = 0;
    journal_put_dropped_totals(&out, &l->stats);
    if (!rc) rc = buf_failed(&out) ? -1 : fn(arg, TOTALS_DROPPED, buf_slice(&out));
    pthread_mutex_unlock(&l->lock);
    buf_fini(&out);
    return rc;
}

bool ledger_counted(struct ledger *l, uint32_t object) {
    static const struct figures nothing;
    uint32_t shared;
    pthread_mutex_lock(&l->lock);
    const struct table_stats *own = stats_find(&l->stats, object);
    bool counted = (own && memcmp(&own->total, &nothing, sizeof(nothing)) != 0) ||
                   (totals_next(&l->others, object, &shared) && shared == object);
    pthread_mutex_unlock(&l->lock);
    return counted;
}

bool ledger_has(struct ledger *l, uint32_t object) {
    pthread_mutex_lock(&l->lock);
    bool has = stats_find(&l->stats, object) != NULL;
    pthread_mutex_unlock(&l->lock);
    return has;
}

int ledger_put_totals(struct ledger *l, uint64_t id, uint32_t object, struct slice records) {
    pthread_mutex_lock(&l->lock);
    int rc = totals_put(&l->others, id, object, records);
    pthread_mutex_unlock(&l->lock);
    return rc;
}

void ledger_hide_dropped(struct ledger *l, bool (*exists)(void *arg, uint32_t object), void *arg) {
    uint32_t *all = NULL, n = 0, n_hidden = 0, object;
    size_t cap = 0;
    pthread_mutex_lock(&l->lock);
    uint32_t hidden_before = l->others.n_hidden;
    l->others.n_hidden = 0; /* so that totals_next returns hidden objects, too */
    for (uint64_t from = 0; totals_next(&l->others, from, &object); from = (uint64_t)object + 1) {
        if (array_room(&all, n, &cap, sizeof(*all))) break;
        all[n++] = object;
    }
    l->others.n_hidden = hidden_before;
    pthread_mutex_unlock(&l->lock);
    for (uint32_t i = 0; i < n; i++)
        if (all[i] && !exists(arg, all[i])) all[n_hidden++] = all[i];
    pthread_mutex_lock(&l->lock);
    free(l->others.hidden);
    l->others.hidden = all;
    l->others.n_hidden = n_hidden;
    pthread_mutex_unlock(&l->lock);
}

/* ---- the limiter's state ---- */

void ledger_each_second(struct ledger *l, void (*fn)(void *arg), void *arg) {
    pthread_mutex_lock(&l->hook_lock);
    l->hook = fn;
    l->hook_arg = arg;
    pthread_mutex_unlock(&l->hook_lock);
}

/* The earlier blob stays. */
static void warn_no_memory(void) { log_warn("no memory to keep all of the ledger; it is tried again later"); }

void ledger_note_limits(struct ledger *l, uint32_t object, const char *keyspace, const char *table,
                        struct slice state) {
    pthread_mutex_lock(&l->lock);
    struct table_stats *t = stats_open(&l->stats, object, keyspace, table);
    if (!t || stats_blob_set(&t->limits, state)) warn_no_memory();
    pthread_mutex_unlock(&l->lock);
}

int ledger_limits(struct ledger *l, ledger_limits_fn fn, void *arg) {
    int rc = 0;
    pthread_mutex_lock(&l->lock);
    for (uint32_t i = 0; !rc && i < l->stats.tables.n; i++) {
        const struct table_stats *t = stats_at(&l->stats, i);
        if (t->limits.n) rc = fn(arg, t, stats_blob_bytes(&t->limits));
    }
    pthread_mutex_unlock(&l->lock);
    return rc;
}

/* ---- life ---- */

static bool overran(const struct stats *b) {
    for (uint32_t i = 0; i < b->tables.n; i++)
        if (stats_at(b, i)->overran) return true;
    return false;
}

/* Rewrites the file from the statistics. The caller holds file_lock. */
static void write_whole(struct ledger *l) {
    struct buf out;
    buf_init(&out, 0);
    pthread_mutex_lock(&l->lock);
    journal_put_whole(&out, &l->stats);
    pthread_mutex_unlock(&l->lock);
    journal_replace(&l->journal, &out);
    pthread_mutex_lock(&l->lock);
    for (uint32_t i = 0; i < l->stats.tables.n && !l->journal.failing; i++) stats_at(&l->stats, i)->overran = false;
    pthread_mutex_unlock(&l->lock);
    buf_fini(&out);
}

static void write_changes(struct ledger *l) {
    struct buf out;
    buf_init(&out, 0);
    if (!l->has_file) return;
    pthread_mutex_lock(&l->file_lock);
    pthread_mutex_lock(&l->lock);
    bool whole = journal_is_large(&l->journal) || overran(&l->stats);
    if (!whole) journal_put_changes(&out, &l->stats, l->journal.failing);
    pthread_mutex_unlock(&l->lock);
    if (whole) write_whole(l);
    else journal_append(&l->journal, &out);
    pthread_mutex_unlock(&l->file_lock);
    buf_fini(&out);
}

/* Puts the state without minutes into the statistics' blobs: roles always, partitions and
 * statements when heavy. */
static void store_blobs(struct ledger *l, bool heavy) {
    struct buf bytes;
    struct roles *roles = l->has_file ? ledger_roles(l) : NULL;
    if (!l->has_file) return;
    buf_init(&bytes, 0);
    if (roles) roles_put(roles, &bytes);
    pthread_mutex_lock(&l->lock);
    if (!roles || buf_failed(&bytes) || stats_blob_set(&l->stats.roles, buf_slice(&bytes))) warn_no_memory();
    pthread_mutex_unlock(&l->lock);
    for (unsigned i = 0; heavy && i < l->n_shards && i < STATS_SHARDS; i++) {
        bytes.n = 0;
        pthread_mutex_lock(&l->shards[i].lock);
        shard_put(&l->shards[i], &bytes);
        pthread_mutex_unlock(&l->shards[i].lock);
        pthread_mutex_lock(&l->lock);
        if (buf_failed(&bytes) || stats_blob_set(&l->stats.shards[i], buf_slice(&bytes))) warn_no_memory();
        pthread_mutex_unlock(&l->lock);
    }
    buf_fini(&bytes);
    free(roles);
}

/* Restores roles and shards from the blobs. When the last run had more threads, its further shards
 * are added to those of this one, and the file is rewritten at once with the merged blobs, so that
 * the next start does not add them again. */
static int restore_blobs(struct ledger *l) {
    bool joined = false;
    roles_take(&l->roles, stats_blob_bytes(&l->stats.roles));
    for (unsigned i = 0; i < STATS_SHARDS; i++) {
        struct stats_blob *m = &l->stats.shards[i];
        if (!m->n) continue;
        shard_take(&l->shards[i % l->n_shards], stats_blob_bytes(m));
        if (i < l->n_shards) continue;
        joined = true;
        if (stats_blob_set(m, slice_of(NULL, 0))) return -1;
    }
    if (!joined) return 0;
    store_blobs(l, true);
    write_whole(l);
    return 0;
}

/* Runs once a second of the machine's time, until the ledger is closed. */
static void *keep(void *arg) {
    enum { SYNC_EVERY = 60 };
    struct ledger *l = arg;
    for (unsigned turns = 1;; turns++) {
        int64_t until_us = clock_machine_us(&clock_real) + 1000000;
        pthread_mutex_lock(&l->lock);
        while (!l->stop && clock_cond_wait_until(&l->wake, &l->lock, until_us)) continue;
        bool stopped = l->stop;
        pthread_mutex_unlock(&l->lock);
        if (stopped) return NULL;
        collect(l);
        store_blobs(l, turns % SYNC_EVERY == 0);
        pthread_mutex_lock(&l->hook_lock);
        if (l->hook) l->hook(l->hook_arg);
        pthread_mutex_unlock(&l->hook_lock);
        write_changes(l);
        if (turns % SYNC_EVERY == 0) {
            pthread_mutex_lock(&l->file_lock);
            journal_sync(&l->journal);
            pthread_mutex_unlock(&l->file_lock);
        }
    }
}

static int start(struct ledger *l, const char *path, struct err *e) {
    uint32_t latest;
    if (!path) return 0;
    if (journal_open(&l->journal, path, &l->stats, &latest, e)) return -1;
    l->floor = latest * 60;
    l->has_file = true;
    if (restore_blobs(l)) return err_nomem(e);
    l->has_thread = !pthread_create(&l->thread, NULL, keep, l);
    return l->has_thread ? 0 : err_set(e, ERR_SERVER, "cannot start the ledger's thread");
}

struct ledger *ledger_open(const struct ledger_options *o, struct err *e) {
    struct ledger *l = calloc(1, sizeof(*l) + o->n_shards * sizeof(l->shards[0]));
    if (!l) return err_null(err_nomem(e));
    l->clock = o->clock;
    l->journal.fd = -1;
    pthread_mutex_init(&l->lock, NULL);
    pthread_mutex_init(&l->file_lock, NULL);
    pthread_mutex_init(&l->hook_lock, NULL);
    pthread_cond_init(&l->wake, NULL);
    bool whole = true;
    while (whole && l->n_shards < o->n_shards) whole = !shard_init(&l->shards[l->n_shards++]);
    if (!whole) err_nomem(e);
    if (whole && !start(l, o->path, e)) return l;
    ledger_close(l);
    return NULL;
}

void ledger_close(struct ledger *l) {
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->lock);
    if (l->has_thread) pthread_join(l->thread, NULL);
    for (unsigned i = 0; i < l->n_shards; i++) ledger_settle(l, i);
    collect(l);
    store_blobs(l, true);
    write_changes(l);
    journal_close(&l->journal);
    stats_fini(&l->stats);
    totals_fini(&l->others);
    for (unsigned i = 0; i < l->n_shards; i++) shard_fini(&l->shards[i]);
    pthread_cond_destroy(&l->wake);
    pthread_mutex_destroy(&l->lock);
    pthread_mutex_destroy(&l->file_lock);
    pthread_mutex_destroy(&l->hook_lock);
    free(l);
}
