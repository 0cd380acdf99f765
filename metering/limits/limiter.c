#include "metering/limits/limiter.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/object_list.h"
#include "metering/limits/backoff.h"
#include "metering/limits/limit_state.h"

/* Read units are counted in halves. */
enum { HALVES = 2 };

struct limiter {
    struct limiter_options o;
    struct limit_time time;
    struct partition_buckets partitions;
    uint64_t ask; /* a number of each */
    struct backoff_random random;
    struct object_list tables; /* struct limit_table */
    struct limit_table *last;  /* that was found */
    struct limit_table *account; /* of object 0 */
    /* units taken by the running limiter_ask, to be given back */
    uint32_t n_taken, cap_taken;
    struct taken {
        struct bucket *bucket;
        int64_t n;
    } *taken;
};

/* ---- time ---- */

void limiter_set_time(struct limiter *l, struct limit_time at) {
    if (at.now_us < 1) at.now_us = 1; /* 0 is the time of a new bucket */
    if (at.now_us >= l->time.now_us) l->time = at; /* T2 */
}

/* Moves a restored bucket to the limiter's time. The bucket fills by the wall clock while no server
 * runs, and not at all when that clock was set back meanwhile. 0 stays the time of a new bucket. */
static void move_restored(const struct limiter *l, struct bucket *b) {
    int64_t passed_us = l->time.wall_us - b->at_us;
    if (!b->at_us) return;
    b->at_us = l->time.now_us - (passed_us > 0 ? passed_us : 0);
    if (!b->at_us) b->at_us = 1;
}

static void move_all_restored(const struct limiter *l, struct limit_table *t) { /* T3 */
    struct bucket *all[] = {&t->read_bucket, &t->write_bucket, &t->read_most, &t->write_most, &t->entities};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) move_restored(l, all[i]);
    t->restored = false;
}

/* ---- tables ---- */

static struct limit_table *table_at(const struct limiter *l, uint32_t i) { return l->tables.items[i]; }

static struct limit_table *table_find(struct limiter *l, uint32_t object) {
    if (l->last && l->last->object == object) return l->last;
    struct limit_table *t = object_list_find(&l->tables, object);
    return t ? (l->last = t) : NULL;
}

/* Finds a table for use: its buckets follow the limiter's time from now on. */
static struct limit_table *table_open(struct limiter *l, uint32_t object) {
    struct limit_table *t = table_find(l, object);
    if (t && UNLIKELY(t->restored)) move_all_restored(l, t);
    return t;
}

static struct limit_table *account_open(struct limiter *l) {
    if (UNLIKELY(l->account->restored)) move_all_restored(l, l->account);
    return l->account;
}

static struct limit_table *table_add(struct limiter *l, uint32_t object) {
    struct limit_table *t = calloc(1, sizeof(*t));
    if (!t) return NULL;
    t->object = object;
    if (!object_list_add(&l->tables, t)) return t;
    free(t);
    return NULL;
}

struct limiter *limiter_new(const struct limiter_options *o) {
    struct limiter *l = calloc(1, sizeof(*l));
    if (!l) return NULL;
    l->o = *o;
    l->random.state = o->seed;
    /* the first table holds the state of the account */
    if (!partition_buckets_init(&l->partitions) && (l->account = table_add(l, 0))) return l;
    limiter_free(l);
    return NULL;
}

void limiter_free(struct limiter *l) {
    for (uint32_t i = 0; i < l->tables.n; i++) free(table_at(l, i));
    object_list_fini(&l->tables);
    free(l->taken);
    partition_buckets_fini(&l->partitions);
    free(l);
}

const struct limiter_options *limiter_options(const struct limiter *l) { return &l->o; }

int limiter_define(struct limiter *l, uint32_t object, const char *keyspace, const char *table,
                   const struct capacity *read, const struct capacity *write) {
    struct limit_table *t = table_find(l, object);
    if (t) t->touched = true; /* a new one has nothing to be kept */
    if (!t && !(t = table_add(l, object))) return -1;
    snprintf(t->keyspace, sizeof(t->keyspace), "%s", keyspace);
    snprintf(t->table, sizeof(t->table), "%s", table);
    t->mode = limit_rules_find(&l->o.rules, keyspace, table, l->o.mode);
    if (t->read.provisioned != read->provisioned) t->read_bucket = t->write_bucket = (struct bucket){0};
    struct capacity r = *read, w = *write;
    r.per_unit = HALVES;
    w.per_unit = 1;
    capacity_define(&t->read, &r, l->o.values.of[LIMIT_ON_DEMAND_READ]);
    capacity_define(&t->write, &w, l->o.values.of[LIMIT_ON_DEMAND_WRITE]);
    return 0;
}

void limiter_drop(struct limiter *l, uint32_t object) {
    if (!object) return;
    l->last = NULL;
    free(object_list_remove(&l->tables, object));
}

static const struct limit_table *as_of_now(struct limiter *l, struct limit_table *t) {
    int64_t wall_us = l->time.wall_us;
    capacity_add(&t->read, wall_us, 0, l->o.values.of[LIMIT_ON_DEMAND_WINDOW], l->o.scales);
    capacity_add(&t->write, wall_us, 0, l->o.values.of[LIMIT_ON_DEMAND_WINDOW], l->o.scales);
    return t;
}

const struct limit_table *limiter_table(struct limiter *l, uint32_t i) {
    if (i >= l->tables.n) return NULL;
    return i ? as_of_now(l, table_at(l, i)) : table_at(l, i);
}

const struct limit_table *limiter_table_of(struct limiter *l, uint32_t object) {
    struct limit_table *t = object ? table_find(l, object) : NULL;
    return t ? as_of_now(l, t) : NULL;
}

/* ---- restarts ---- */

int limiter_save(struct limiter *l, limiter_save_fn fn, void *arg) {
    struct buf state;
    buf_init(&state, 0);
    for (uint32_t i = 0; i < l->tables.n && !buf_failed(&state); i++) {
        struct limit_table *t = table_at(l, i);
        if (!t->touched) continue;
        struct limit_table copy = *t; /* with the times of its buckets as wall times */
        struct bucket *all[] = {&copy.read_bucket, &copy.write_bucket, &copy.read_most, &copy.write_most,
                                &copy.entities};
        for (size_t k = 0; k < ARRAY_LEN(all) && !t->restored; k++)
            if (all[k]->at_us) all[k]->at_us += l->time.wall_us - l->time.now_us;
        state.n = 0;
        limit_state_put(&copy, &state);
        t->touched = buf_failed(&state);
        if (!t->touched) fn(arg, t, buf_slice(&state));
    }
    int rc = buf_failed(&state) ? -1 : 0;
    buf_fini(&state);
    return rc;
}

int limiter_restore(struct limiter *l, uint32_t object, struct slice state) {
    struct limit_table *t = table_find(l, object);
    if (!t && !(t = table_add(l, object))) return -1;
    limit_state_take(t, state);
    t->restored = true;
    return 0;
}

/* ---- one bucket ---- */

/* A request to a bucket: n counts, at a rate of counts a second, from a bucket that holds cap and
 * is new with start. behind: postpaid, as reads are. */
struct draw {
    enum limit_id limit;
    struct bucket *bucket;
    int64_t rate, cap, start, n;
    bool behind, stays; /* stays: taken for good, also when another limit refuses the request */
    int per_unit;
};

struct asking {
    struct limiter *l;
    const struct limit_ask *ask;
    struct limit_over *over;
};

static void say_over(const struct asking *a, const struct draw *d, const struct limit_part *p, int64_t retry_us) {
    *a->over = (struct limit_over){.limit = d->limit,
                                   .rate = d->rate / d->per_unit,
                                   .asked = (double)d->n / d->per_unit,
                                   .retry_us = retry_us};
    if (!p) return;
    a->over->object = p->object;
    snprintf(a->over->keyspace, sizeof(a->over->keyspace), "%s", p->keyspace);
    snprintf(a->over->table, sizeof(a->over->table), "%s", p->table);
}

/* 0: taken; -1: over. */
static int draw(const struct asking *a, const struct draw *d, const struct limit_part *p) {
    if (!d->n) return 0;
    bucket_fill(d->bucket, a->l->time.now_us, d->rate, d->cap, d->start);
    int64_t needs = bucket_needs(d->n, d->cap, d->behind);
    if (!bucket_has(d->bucket, needs)) {
        say_over(a, d, p, bucket_wait_us(d->bucket, needs, d->rate));
        return -1;
    }
    bucket_take(d->bucket, d->n);
    if (d->stays) return 0;
    assert(a->l->n_taken < a->l->cap_taken);
    a->l->taken[a->l->n_taken++] = (struct taken){d->bucket, d->n};
    return 0;
}

/* Gives back all draws of the running limiter_ask, except the first n_kept. */
static void give_back(struct limiter *l, uint32_t n_kept) {
    while (l->n_taken > n_kept) {
        struct taken *t = &l->taken[--l->n_taken];
        bucket_take(t->bucket, -t->n);
    }
}

/* A bucket that holds one second's worth. */
static struct draw second(const struct limiter *l, enum limit_id limit, struct bucket *b, int64_t n, bool behind) {
    int per_unit = limit_is_of_reads(limit) ? HALVES : 1;
    int64_t rate = l->o.values.of[limit] * per_unit;
    return (struct draw){.limit = limit,
                         .bucket = b,
                         .rate = rate,
                         .cap = rate,
                         .start = rate,
                         .n = n,
                         .behind = behind,
                         .per_unit = per_unit};
}

/* ---- the limits ---- */

/* The draw on a table's capacity. An on-demand table holds one second's worth, a provisioned one
 * also its unused capacity, for a burst. */
static struct draw of_capacity(const struct limiter *l, const struct capacity *c, struct bucket *b, enum limit_id most,
                               int64_t n) {
    bool reads = c->per_unit == HALVES;
    enum limit_id limit = c->provisioned ? (reads ? LIMIT_PROVISIONED_READ : LIMIT_PROVISIONED_WRITE)
                                         : (reads ? LIMIT_ON_DEMAND_READ : LIMIT_ON_DEMAND_WRITE);
    int64_t rate = capacity_rate(c, l->o.values.of[most]) * c->per_unit;
    return (struct draw){.limit = limit,
                         .bucket = b,
                         .rate = rate,
                         .cap = c->provisioned ? bucket_times(rate, l->o.values.of[LIMIT_BURST]) : rate,
                         .start = rate,
                         .n = n,
                         .behind = reads,
                         .per_unit = c->per_unit};
}

enum { OF_TABLE = 4, OF_PARTITION = 2 };

static void of_table(struct limiter *l, struct limit_table *t, const struct limit_part *p,
                     struct draw draws[OF_TABLE]) {
    int64_t window = l->o.values.of[LIMIT_ON_DEMAND_WINDOW], wall_us = l->time.wall_us;
    t->touched = true;
    capacity_add(&t->read, wall_us, 0, window, l->o.scales);
    capacity_add(&t->write, wall_us, 0, window, l->o.scales);
    draws[0] = second(l, LIMIT_TABLE_READ, &t->read_most, p->read_halves, true);
    draws[1] = of_capacity(l, &t->read, &t->read_bucket, LIMIT_TABLE_READ, p->read_halves);
    draws[2] = second(l, LIMIT_TABLE_WRITE, &t->write_most, p->write_units, false);
    draws[3] = of_capacity(l, &t->write, &t->write_bucket, LIMIT_TABLE_WRITE, p->write_units);
}

static void of_partition(const struct limiter *l, struct partition_bucket *b, const struct limit_part *p,
                         struct draw draws[OF_PARTITION]) {
    draws[0] = second(l, LIMIT_PARTITION_READ, &b->read, p->read_halves, true);
    draws[1] = second(l, LIMIT_PARTITION_WRITE, &b->write, p->write_units, false);
}

static int draw_partition(const struct asking *a, const struct limit_part *p) {
    struct partition_bucket *b = partition_bucket_open(&a->l->partitions, p->object, p->token, a->l->ask);
    struct draw draws[OF_PARTITION];
    if (!b) return 0;
    of_partition(a->l, b, p, draws);
    for (size_t i = 0; i < OF_PARTITION; i++)
        if (draw(a, &draws[i], p)) return -1;
    return 0;
}

/* A statement counts for its connection's rate whatever becomes of it: a client that repeats throttled
 * requests at once meets that limit, too. */
static struct draw of_connection(const struct limiter *l, struct limit_connection *c, int64_t statements) {
    struct draw d = second(l, LIMIT_CONNECTION, &c->statements, statements, false);
    d.stays = true;
    return d;
}

/* The account's quotas apply to provisioned tables only. */
static int draw_account(const struct asking *a) {
    struct limiter *l = a->l;
    const struct limit_part *first = a->ask->n_parts ? a->ask->parts : NULL;
    int64_t read = 0, write = 0;
    for (uint32_t i = 0; i < a->ask->n_parts; i++) {
        const struct limit_table *t = table_open(l, a->ask->parts[i].object);
        if (!t || !t->read.provisioned) continue;
        read += a->ask->parts[i].read_halves;
        write += a->ask->parts[i].write_units;
    }
    const struct draw draws[] = {
        of_connection(l, a->ask->connection, a->ask->statements),
        second(l, LIMIT_ACCOUNT_READ, &account_open(l)->read_bucket, read, true),
        second(l, LIMIT_ACCOUNT_WRITE, &account_open(l)->write_bucket, write, false),
    };
    for (size_t i = 0; i < ARRAY_LEN(draws); i++)
        if (draw(a, &draws[i], first)) return -1;
    return 0;
}

/* Draws from all buckets until one is short. Returns the mode of the limit that is exceeded. */
static enum limit_mode ask_limits(const struct asking *a) {
    struct limiter *l = a->l;
    if (l->o.mode != LIMITS_OFF && draw_account(a)) return l->o.mode;
    const struct limit_part *parts = a->ask->parts;
    for (uint32_t i = 0, next; i < a->ask->n_parts; i = next) {
        struct limit_part sum = parts[i]; /* of all parts of the table */
        for (next = i + 1; next < a->ask->n_parts && parts[next].object == sum.object; next++) {
            sum.read_halves += parts[next].read_halves;
            sum.write_units += parts[next].write_units;
        }
        struct limit_table *t = table_open(l, sum.object);
        if (!t || t->mode == LIMITS_OFF) continue;
        struct draw draws[OF_TABLE];
        of_table(l, t, &sum, draws);
        for (size_t k = 0; k < OF_TABLE; k++)
            if (draw(a, &draws[k], &sum)) return t->mode;
        for (const struct limit_part *p = &parts[i]; p < &parts[next]; p++)
            if (p->one_partition && draw_partition(a, p)) return t->mode;
    }
    return LIMITS_OFF;
}

/* ---- the partition guidance ---- */

static int group_over(const struct asking *a, enum limit_id limit, int64_t n) {
    int64_t most = a->l->o.values.of[limit];
    if (n <= most) return 0;
    say_over(a, &(struct draw){.limit = limit, .rate = most, .n = n, .per_unit = 1}, a->ask->parts, 0);
    return -1;
}

static int ask_entities(const struct asking *a) {
    struct limiter *l = a->l;
    int64_t all = 0;
    bool behind = true;
    for (uint32_t i = 0; i < a->ask->n_parts; i++) {
        const struct limit_part *p = &a->ask->parts[i];
        bool reads = !p->write_units;
        struct partition_bucket *b = p->one_partition
                                         ? partition_bucket_open(&l->partitions, p->object, p->token, l->ask)
                                         : NULL;
        struct draw d = b ? second(l, LIMIT_ENTITIES_PARTITION, &b->entities, p->entities, reads) : (struct draw){0};
        if (b && draw(a, &d, p)) return -1;
        all += p->entities;
        behind = behind && reads;
    }
    struct draw d = second(l, LIMIT_ENTITIES_ACCOUNT, &account_open(l)->entities, all, behind);
    return draw(a, &d, a->ask->n_parts ? a->ask->parts : NULL);
}

static void ask_guidance(struct asking *a) {
    struct limiter *l = a->l;
    struct limit_connection *c = a->ask->connection;
    bool group_is_over = a->ask->group_operations && (group_over(a, LIMIT_GROUP_OPERATIONS, a->ask->group_operations) ||
                                                      group_over(a, LIMIT_GROUP_BYTES, a->ask->group_bytes) ||
                                                      group_over(a, LIMIT_GROUP_SAME_ROW, a->ask->group_same_row));
    if (!group_is_over && !ask_entities(a)) {
        c->refused_in_row = 0;
        return;
    }
    a->over->enforced = l->o.guidance == GUIDANCE_ENFORCE;
    c->refused_in_row++;
    const int64_t *of = l->o.values.of;
    if (a->over->retry_us)
        a->over->retry_us = 1000 * backoff_ms(&l->random, c->refused_in_row, of[LIMIT_BACKOFF_MINIMUM],
                                              of[LIMIT_BACKOFF_DELTA], of[LIMIT_BACKOFF_MAXIMUM]);
}

/* ---- asking ---- */

static void count(struct limiter *l, const struct limit_over *o) {
    struct limit_table *t = table_open(l, o->object);
    if (!t) return;
    struct limit_counts *c = &t->counts[o->limit];
    t->touched = true;
    c->refused += o->enforced;
    c->shadowed += !o->enforced;
    c->last_us = l->time.wall_us;
    c->last_rate = o->rate;
    c->last_retry_us = o->retry_us;
}

void limiter_ask(struct limiter *l, const struct limit_ask *ask, struct limit_verdict *out) {
    *out = (struct limit_verdict){.over.limit = LIMITS, .guidance.limit = LIMITS};
    enum { OF_PART = 7, OF_ASK = 4 };
    uint32_t need = OF_PART * ask->n_parts + OF_ASK;
    if (need > l->cap_taken) {
        struct taken *taken = realloc(l->taken, need * sizeof(*taken));
        if (!taken) return; /* without memory nothing is limited */
        l->taken = taken;
        l->cap_taken = need;
    }
    struct asking a = {.l = l, .ask = ask, .over = &out->over};
    l->ask++;
    l->n_taken = 0;
    l->account->touched = true;
    out->over.enforced = ask_limits(&a) == LIMITS_ENFORCE;
    bool over = out->over.limit != LIMITS;
    if (over) {
        count(l, &out->over);
        give_back(l, 0);
        if (out->over.enforced) return;
    }
    if (l->o.guidance != GUIDANCE_OFF) {
        uint32_t of_limits = l->n_taken;
        a.over = &out->guidance;
        ask_guidance(&a);
        if (out->guidance.limit != LIMITS) {
            count(l, &out->guidance);
            give_back(l, out->guidance.enforced ? 0 : of_limits);
            if (out->guidance.enforced) return;
        }
    }
    if (over) return;
    /* An admitted request counts for peaks and auto scaling. */
    int64_t window = l->o.values.of[LIMIT_ON_DEMAND_WINDOW], wall_us = l->time.wall_us;
    for (uint32_t i = 0; i < ask->n_parts; i++) {
        struct limit_table *t = table_open(l, ask->parts[i].object);
        if (!t || t->mode == LIMITS_OFF) continue;
        capacity_add(&t->read, wall_us, ask->parts[i].read_halves, window, l->o.scales);
        capacity_add(&t->write, wall_us, ask->parts[i].write_units, window, l->o.scales);
    }
}

/* ---- giving back ---- */

/* Gives n back to a bucket that has been filled since. The second fill cuts the level off at the
 * cap. */
static void refill(const struct limiter *l, const struct draw *d) {
    if (!d->n || !d->bucket->at_us) return;
    bucket_fill(d->bucket, l->time.now_us, d->rate, d->cap, d->start);
    bucket_take(d->bucket, -d->n);
    bucket_fill(d->bucket, l->time.now_us, d->rate, d->cap, d->start);
}

static void refill_limits(struct limiter *l, struct limit_table *t, struct partition_bucket *b,
                          const struct limit_part *p) {
    struct draw draws[OF_TABLE + OF_PARTITION + 2];
    size_t n = OF_TABLE;
    of_table(l, t, p, draws);
    if (b) {
        of_partition(l, b, p, &draws[n]);
        n += OF_PARTITION;
    }
    if (l->o.mode != LIMITS_OFF && t->read.provisioned) {
        draws[n++] = second(l, LIMIT_ACCOUNT_READ, &account_open(l)->read_bucket, p->read_halves, true);
        draws[n++] = second(l, LIMIT_ACCOUNT_WRITE, &account_open(l)->write_bucket, p->write_units, false);
    }
    for (size_t i = 0; i < n; i++) refill(l, &draws[i]);
}

void limiter_give_back(struct limiter *l, const struct limit_part *p, struct limit_took took) {
    struct limit_table *t = table_open(l, p->object);
    struct partition_bucket *b = p->one_partition ? partition_bucket_find(&l->partitions, p->object, p->token) : NULL;
    l->account->touched = true;
    if (t && t->mode != LIMITS_OFF && took.of_limits) {
        /* Runs before any other call that looks at the capacity, because that would end a minute that is
         * over. */
        capacity_take_back(&t->read, took.at_us, p->read_halves);
        capacity_take_back(&t->write, took.at_us, p->write_units);
        refill_limits(l, t, b, p);
    }
    if (l->o.guidance == GUIDANCE_OFF || !took.of_guidance) return;
    struct draw of_account = second(l, LIMIT_ENTITIES_ACCOUNT, &account_open(l)->entities, p->entities, false);
    refill(l, &of_account);
    if (!b) return;
    struct draw of_entities = second(l, LIMIT_ENTITIES_PARTITION, &b->entities, p->entities, false);
    refill(l, &of_entities);
}

bool limiter_may_read(struct limiter *l, uint32_t object, struct limit_connection *connection,
                      struct limit_verdict *out) {
    struct limit_table *t = table_open(l, object);
    *out = (struct limit_verdict){.over.limit = LIMITS, .guidance.limit = LIMITS};
    if (!t || t->mode != LIMITS_ENFORCE) return true;
    const struct limit_part part = {.object = object, .keyspace = t->keyspace, .table = t->table};
    const struct limit_ask ask = {0};
    const struct asking a = {.l = l, .ask = &ask, .over = &out->over};
    const struct draw draws[] = {
        second(l, LIMIT_ACCOUNT_READ, &account_open(l)->read_bucket, 0, true),
        second(l, LIMIT_TABLE_READ, &t->read_most, 0, true),
        of_capacity(l, &t->read, &t->read_bucket, LIMIT_TABLE_READ, 0),
    };
    for (size_t i = l->o.mode != LIMITS_ENFORCE || !t->read.provisioned; i < ARRAY_LEN(draws); i++) {
        const struct draw *d = &draws[i]; /* looked at like in draw, without taking anything */
        int64_t needs = bucket_needs(0, d->cap, true);
        bucket_fill(d->bucket, l->time.now_us, d->rate, d->cap, d->start);
        if (bucket_has(d->bucket, needs)) continue;
        say_over(&a, d, &part, bucket_wait_us(d->bucket, needs, d->rate));
        const struct draw statement = of_connection(l, connection, 1);
        if (l->o.mode == LIMITS_ENFORCE && draw(&a, &statement, &part)) assert(out->over.limit == LIMIT_CONNECTION);
        out->over.enforced = true;
        count(l, &out->over);
        return false;
    }
    return true;
}
