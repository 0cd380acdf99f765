#include "metering/limits/limiter.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/object_list.h"
#include "metering/limits/backoff.h"
#include "metering/limits/limit_table.h"

/* Read units are counted in halves. */
enum { HALVES = 2 };

struct limiter {
    struct limiter_options o;
    struct limit_time time;
    struct partition_buckets partitions;
    uint64_t ask; /* number of the running or last limiter_admit */
    struct backoff_random random;
    struct object_list tables; /* struct limit_table */
    struct limit_table *last;  /* the one found last */
    struct limit_table *account; /* of object 0 */
    /* the draws of the running limiter_admit, which a refusal reverses */
    uint32_t n_taken, cap_taken;
    struct taken {
        struct bucket *bucket;
        int64_t n;
    } *taken;
    /* several servers only: */
    uint64_t round; /* 0 if demand is not counted */
    uint32_t n_hot;
    struct hot {
        struct limit_demand demand;
        uint64_t read_before, write_before;
    } hot[LIMIT_HOT_MAX]; /* partitions with demand */
    size_t n_divided;
    struct divided {
        uint32_t object;
        int64_t token;
        uint32_t read, write; /* fractions of the partition's limits */
    } *divided; /* partitions on which other servers have demand; in order */
};

/* ---- time ---- */

void limiter_set_time(struct limiter *l, struct limit_time at) {
    if (at.now_us < 1) at.now_us = 1; /* 0 is the time of a new bucket */
    if (at.now_us >= l->time.now_us) l->time = at; /* T2 */
}

int64_t limiter_wall_us(const struct limiter *l) { return l->time.wall_us; }

/* Moves the restored buckets of a table to the limiter's time (T3). They fill by the wall clock while
 * no server runs, and not at all when that clock was set back meanwhile. 0 remains the time of a new
 * bucket. */
static void move_restored(const struct limiter *l, struct limit_table *t) {
    struct bucket *all[] = {&t->read_bucket, &t->write_bucket, &t->read_most, &t->write_most, &t->entities};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        int64_t passed_us = l->time.wall_us - all[i]->at_us;
        if (!all[i]->at_us) continue;
        all[i]->at_us = l->time.now_us - (passed_us > 0 ? passed_us : 0);
        if (!all[i]->at_us) all[i]->at_us = 1;
    }
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
    if (t && UNLIKELY(t->restored)) move_restored(l, t);
    return t;
}

static struct limit_table *account_open(struct limiter *l) {
    if (UNLIKELY(l->account->restored)) move_restored(l, l->account);
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

/* ---- draws ---- */

/* A request to a bucket: n counts, at a rate of counts a second, from a bucket that holds cap and
 * is new with start. postpaid: as reads are. */
struct draw {
    enum limit_id limit;
    struct bucket *bucket;
    int64_t whole; /* the limit, of which rate is this server's fraction */
    int64_t rate, cap, start, n;
    bool postpaid, stays; /* stays: taken for good, also when another limit refuses the request */
    int per_unit;
};

/* A bucket that holds one second's worth of this server's fraction of the limit. */
static struct draw second(const struct limiter *l, enum limit_id limit, uint32_t fraction, struct bucket *b, int64_t n,
                          bool postpaid) {
    int per_unit = limit_is_of_reads(limit) ? HALVES : 1;
    int64_t whole = l->o.values.of[limit] * per_unit, rate = fraction ? division_rate(whole, fraction) : whole;
    return (struct draw){.limit = limit,
                         .bucket = b,
                         .whole = whole,
                         .rate = rate,
                         .cap = rate,
                         .start = rate,
                         .n = n,
                         .postpaid = postpaid,
                         .per_unit = per_unit};
}

/* The draw on a table's capacity. An on-demand table holds one second's worth, a provisioned one
 * also its unused capacity, for a burst. */
static struct draw of_capacity(const struct limiter *l, const struct capacity *c, uint32_t fraction, struct bucket *b,
                               enum limit_id most, int64_t n) {
    bool reads = c->per_unit == HALVES;
    enum limit_id limit = c->provisioned ? (reads ? LIMIT_PROVISIONED_READ : LIMIT_PROVISIONED_WRITE)
                                         : (reads ? LIMIT_ON_DEMAND_READ : LIMIT_ON_DEMAND_WRITE);
    int64_t whole = capacity_rate(c, l->o.values.of[most]) * c->per_unit;
    int64_t rate = fraction ? division_rate(whole, fraction) : whole;
    return (struct draw){.limit = limit,
                         .bucket = b,
                         .whole = whole,
                         .rate = rate,
                         .cap = c->provisioned ? bucket_times(rate, l->o.values.of[LIMIT_BURST]) : rate,
                         .start = rate,
                         .n = n,
                         .postpaid = reads,
                         .per_unit = c->per_unit};
}

/* Lets a capacity follow the time. Its rate may change at the end of each minute, up to which its
 * bucket is filled first (T4). */
static void follow(struct limiter *l, struct capacity *c, struct bucket *b, uint32_t fraction, enum limit_id most) {
    enum { STEPS = 60 }; /* as many idle minutes as auto scaling uses */
    int64_t window = l->o.values.of[LIMIT_ON_DEMAND_WINDOW], end_us;
    for (int i = 0; i < STEPS && c->minute && (end_us = capacity_changes_us(c)) <= l->time.wall_us; i++) {
        int64_t at_us = l->time.now_us - (l->time.wall_us - end_us);
        capacity_add(c, end_us, 0, window, l->o.scales);
        const struct draw d = of_capacity(l, c, fraction, b, most, 0);
        if (b->at_us && at_us > b->at_us) bucket_fill(b, at_us, d.rate, d.cap, d.start);
    }
    capacity_add(c, l->time.wall_us, 0, window, l->o.scales);
}

/* Brings the capacity of a table up to date. */
static void table_follow(struct limiter *l, struct limit_table *t) {
    if (UNLIKELY(t->restored)) move_restored(l, t);
    follow(l, &t->read, &t->read_bucket, t->read_demand.fraction, LIMIT_TABLE_READ);
    follow(l, &t->write, &t->write_bucket, t->write_demand.fraction, LIMIT_TABLE_WRITE);
}

enum { OF_TABLE = 4, OF_PARTITION = 2 };

static void of_table(struct limiter *l, struct limit_table *t, const struct charge_item *p,
                     struct draw draws[OF_TABLE]) {
    t->touched = true;
    table_follow(l, t);
    uint32_t of_reads = t->read_demand.fraction, of_writes = t->write_demand.fraction;
    draws[0] = second(l, LIMIT_TABLE_READ, of_reads, &t->read_most, p->read_halves, true);
    draws[1] = of_capacity(l, &t->read, of_reads, &t->read_bucket, LIMIT_TABLE_READ, p->read_halves);
    draws[2] = second(l, LIMIT_TABLE_WRITE, of_writes, &t->write_most, p->write_units, false);
    draws[3] = of_capacity(l, &t->write, of_writes, &t->write_bucket, LIMIT_TABLE_WRITE, p->write_units);
}

static struct draw account_reads(struct limiter *l, int64_t n) {
    struct limit_table *t = account_open(l);
    return second(l, LIMIT_ACCOUNT_READ, t->read_demand.fraction, &t->read_bucket, n, true);
}
static struct draw account_writes(struct limiter *l, int64_t n) {
    struct limit_table *t = account_open(l);
    return second(l, LIMIT_ACCOUNT_WRITE, t->write_demand.fraction, &t->write_bucket, n, false);
}

static void fill(const struct limiter *l, const struct draw *draws, size_t n) {
    for (const struct draw *d = draws; d < draws + n; d++)
        if (d->bucket->at_us) bucket_fill(d->bucket, l->time.now_us, d->rate, d->cap, d->start);
}

/* Fills the buckets of a table, or of the account, after the change of a parameter, so that it counts
 * from now on (T4). */
static void fill_table(struct limiter *l, struct limit_table *t) {
    const struct charge_item nothing = {.object = t->object};
    struct draw draws[OF_TABLE] = {{0}};
    if (t->object) of_table(l, t, &nothing, draws);
    else draws[0] = account_reads(l, 0), draws[1] = account_writes(l, 0);
    fill(l, draws, t->object ? OF_TABLE : 2);
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
    free(l->divided);
    partition_buckets_fini(&l->partitions);
    free(l);
}

const struct limiter_options *limiter_options(const struct limiter *l) { return &l->o; }

int limiter_define(struct limiter *l, uint32_t object, const char *keyspace, const char *table,
                   const struct capacity *read, const struct capacity *write) {
    struct limit_table *t = table_find(l, object);
    bool had = t && t->read.per_unit; /* a new one has nothing to be kept */
    if (t) t->touched = true;
    if (!t && !(t = table_add(l, object))) return -1;
    if (had) table_follow(l, t);
    snprintf(t->keyspace, sizeof(t->keyspace), "%s", keyspace);
    snprintf(t->table, sizeof(t->table), "%s", table);
    t->mode = limit_rules_find(&l->o.rules, keyspace, table, l->o.mode);
    if (t->read.provisioned != read->provisioned) t->read_bucket = t->write_bucket = (struct bucket){0};
    struct capacity r = *read, w = *write;
    r.per_unit = HALVES;
    w.per_unit = 1;
    capacity_define(&t->read, &r, l->o.values.of[LIMIT_ON_DEMAND_READ]);
    capacity_define(&t->write, &w, l->o.values.of[LIMIT_ON_DEMAND_WRITE]);
    if (had) fill_table(l, t);
    return 0;
}

void limiter_drop(struct limiter *l, uint32_t object) {
    if (!object) return;
    l->last = NULL;
    free(object_list_remove(&l->tables, object));
}

const struct limit_table *limiter_table(struct limiter *l, uint32_t i) {
    if (i >= l->tables.n) return NULL;
    if (i) table_follow(l, table_at(l, i));
    return table_at(l, i);
}

const struct limit_table *limiter_table_of(struct limiter *l, uint32_t object) {
    struct limit_table *t = object ? table_find(l, object) : NULL;
    if (t) table_follow(l, t);
    return t;
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

struct asking {
    struct limiter *l;
    const struct limit_request *ask;
    struct limit_over *over;
};

static void set_over(const struct asking *a, const struct draw *d, const struct charge_item *p, int64_t retry_us) {
    *a->over = (struct limit_over){.limit = d->limit,
                                   .rate = d->whole / d->per_unit,
                                   .asked = (double)d->n / d->per_unit,
                                   .retry_us = retry_us};
    if (!p) return;
    a->over->object = p->object;
    snprintf(a->over->keyspace, sizeof(a->over->keyspace), "%s", p->keyspace);
    snprintf(a->over->table, sizeof(a->over->table), "%s", p->table);
}

/* Returns 0, or -1 with *a->over set if the bucket is short. */
static int draw(const struct asking *a, const struct draw *d, const struct charge_item *p) {
    if (!d->n) return 0;
    bucket_fill(d->bucket, a->l->time.now_us, d->rate, d->cap, d->start);
    int64_t needs = bucket_needs(d->n, d->cap, d->postpaid);
    if (!bucket_has(d->bucket, needs)) {
        set_over(a, d, p, bucket_wait_us(d->bucket, needs, d->rate));
        return -1;
    }
    bucket_take(d->bucket, d->n);
    if (d->stays) return 0;
    assert(a->l->n_taken < a->l->cap_taken);
    a->l->taken[a->l->n_taken++] = (struct taken){d->bucket, d->n};
    return 0;
}

static int draw_all(const struct asking *a, const struct draw *draws, size_t n, const struct charge_item *item) {
    for (size_t i = 0; i < n; i++)
        if (draw(a, &draws[i], item)) return -1;
    return 0;
}

/* Reverses the draws of the running limiter_admit, except the first n_kept. */
static void undo_draws(struct limiter *l, uint32_t n_kept) {
    while (l->n_taken > n_kept) {
        struct taken *t = &l->taken[--l->n_taken];
        bucket_take(t->bucket, -t->n);
    }
}

/* ---- the limits ---- */

static int by_partition(const void *a, const void *b) {
    const struct divided *x = a, *y = b;
    if (x->object != y->object) return x->object < y->object ? -1 : 1;
    return (x->token > y->token) - (x->token < y->token);
}

static void of_partition(const struct limiter *l, struct partition_bucket *b, const struct charge_item *p,
                         struct draw draws[OF_PARTITION]) {
    const struct divided sought = {.object = p->object, .token = p->token};
    const struct divided *d =
        l->n_divided ? bsearch(&sought, l->divided, l->n_divided, sizeof(*l->divided), by_partition) : NULL;
    draws[0] = second(l, LIMIT_PARTITION_READ, d ? d->read : 0, &b->read, p->read_halves, true);
    draws[1] = second(l, LIMIT_PARTITION_WRITE, d ? d->write : 0, &b->write, p->write_units, false);
}

/* Adds a request to the demand on a partition, and lists the partition when its demand is an eighth of a limit. */
static void count_partition(struct limiter *l, struct partition_bucket *b, const struct charge_item *p) {
    enum { MUCH = 8 };
    if (b->round != l->round) {
        b->round = l->round;
        b->read_demand = b->write_demand = 0;
    }
    b->read_demand += (uint64_t)p->read_halves;
    b->write_demand += (uint64_t)p->write_units;
    if (b->read_demand * MUCH < (uint64_t)l->o.values.of[LIMIT_PARTITION_READ] * HALVES &&
        b->write_demand * MUCH < (uint64_t)l->o.values.of[LIMIT_PARTITION_WRITE])
        return;
    for (uint32_t i = 0; i < l->n_hot; i++)
        if (l->hot[i].demand.object == p->object && l->hot[i].demand.token == p->token) return;
    if (l->n_hot == LIMIT_HOT_MAX) return;
    l->hot[l->n_hot++] =
        (struct hot){.demand = {.object = p->object, .of_partition = true, .token = p->token}};
}

/* A statement counts for its connection's rate even if it is refused: a client that repeats throttled requests at once
 * exceeds that limit, too. */
static struct draw of_connection(const struct limiter *l, struct limit_connection *c, int64_t statements) {
    struct draw d = second(l, LIMIT_CONNECTION, 0, &c->statements, statements, false);
    d.stays = true;
    return d;
}

/* Draws from the buckets of the connection and of the account, whose quotas apply to provisioned tables only. */
static int draw_account(const struct asking *a) {
    struct limiter *l = a->l;
    const struct charge_item *items = a->ask->items;
    int64_t read = 0, write = 0;
    for (uint32_t i = 0; i < a->ask->n_items; i++) {
        const struct limit_table *t = table_open(l, items[i].object);
        if (!t || !t->read.provisioned) continue;
        read += items[i].read_halves;
        write += items[i].write_units;
    }
    const struct draw draws[] = {
        of_connection(l, a->ask->connection, a->ask->statements),
        account_reads(l, read),
        account_writes(l, write),
    };
    return draw_all(a, draws, ARRAY_LEN(draws), a->ask->n_items ? items : NULL);
}

/* Draws from all buckets until one is short. Returns the mode of the limit that is exceeded. */
static enum limit_mode ask_limits(const struct asking *a) {
    struct limiter *l = a->l;
    if (l->o.mode != LIMITS_OFF && draw_account(a)) return l->o.mode;
    const struct charge_item *items = a->ask->items;
    for (uint32_t i = 0, next; i < a->ask->n_items; i = next) {
        struct charge_item sum = items[i]; /* of all items of the table */
        for (next = i + 1; next < a->ask->n_items && items[next].object == sum.object; next++) {
            sum.read_halves += items[next].read_halves;
            sum.write_units += items[next].write_units;
        }
        struct limit_table *t = table_open(l, sum.object);
        if (!t || t->mode == LIMITS_OFF) continue;
        struct draw draws[OF_TABLE], of_one[OF_PARTITION];
        of_table(l, t, &sum, draws);
        if (draw_all(a, draws, OF_TABLE, &sum)) return t->mode;
        for (const struct charge_item *p = &items[i]; p < &items[next]; p++) {
            struct partition_bucket *b =
                p->one_partition ? partition_bucket_open(&l->partitions, p->object, p->token, l->ask) : NULL;
            if (!b) continue;
            if (l->round) count_partition(l, b, p);
            of_partition(l, b, p, of_one);
            if (draw_all(a, of_one, OF_PARTITION, p)) return t->mode;
        }
    }
    return LIMITS_OFF;
}

/* ---- the partition guidance ---- */

static int group_over(const struct asking *a, enum limit_id limit, int64_t n) {
    int64_t most = a->l->o.values.of[limit];
    if (n <= most) return 0;
    set_over(a, &(struct draw){.limit = limit, .whole = most, .n = n, .per_unit = 1}, a->ask->items, 0);
    return -1;
}

/* Draws entities from the partitions and from the account. */
static int draw_entities(const struct asking *a) {
    struct limiter *l = a->l;
    int64_t all = 0;
    bool postpaid = true;
    for (uint32_t i = 0; i < a->ask->n_items; i++) {
        const struct charge_item *p = &a->ask->items[i];
        bool reads = !p->write_units;
        struct partition_bucket *b =
            p->one_partition ? partition_bucket_open(&l->partitions, p->object, p->token, l->ask) : NULL;
        all += p->entities;
        postpaid = postpaid && reads;
        if (!b) continue;
        const struct draw d = second(l, LIMIT_ENTITIES_PARTITION, 0, &b->entities, p->entities, reads);
        if (draw(a, &d, p)) return -1;
    }
    const struct draw d = second(l, LIMIT_ENTITIES_ACCOUNT, 0, &account_open(l)->entities, all, postpaid);
    return draw(a, &d, a->ask->n_items ? a->ask->items : NULL);
}

static void ask_guidance(struct asking *a) {
    struct limiter *l = a->l;
    struct limit_connection *c = a->ask->connection;
    bool group_is_over = a->ask->group_operations && (group_over(a, LIMIT_GROUP_OPERATIONS, a->ask->group_operations) ||
                                                      group_over(a, LIMIT_GROUP_BYTES, a->ask->group_bytes) ||
                                                      group_over(a, LIMIT_GROUP_SAME_ROW, a->ask->group_same_row));
    if (!group_is_over && !draw_entities(a)) {
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

void limiter_admit(struct limiter *l, const struct limit_request *ask, struct limit_verdict *out) {
    *out = (struct limit_verdict){.over.limit = LIMITS, .guidance.limit = LIMITS};
    enum { OF_PART = 7, OF_ASK = 4 };
    uint32_t need = OF_PART * ask->n_items + OF_ASK;
    if (need > l->cap_taken) {
        struct taken *taken = realloc(l->taken, need * sizeof(*taken));
        if (!taken) return; /* without memory nothing is limited */
        l->taken = taken;
        l->cap_taken = need;
    }
    struct asking a = {.l = l, .ask = ask, .over = &out->over};
    l->ask++;
    l->n_taken = 0;
    /* A request counts as demand on its tables and on the account whether it is refused or not. */
    for (uint32_t i = 0; l->round && i < ask->n_items; i++) {
        const struct charge_item *p = &ask->items[i];
        struct limit_table *t = table_open(l, p->object);
        if (!t || t->mode == LIMITS_OFF) continue;
        struct limit_table *const limited[] = {t, t->read.provisioned ? l->account : NULL};
        for (size_t k = 0; k < ARRAY_LEN(limited) && limited[k]; k++) {
            limited[k]->read_demand.asked += (uint64_t)p->read_halves;
            limited[k]->write_demand.asked += (uint64_t)p->write_units;
        }
    }
    l->account->touched = true;
    out->over.enforced = ask_limits(&a) == LIMITS_ENFORCE;
    bool over = out->over.limit != LIMITS;
    if (over) {
        count(l, &out->over);
        undo_draws(l, 0);
        if (out->over.enforced) return;
    }
    if (l->o.guidance != GUIDANCE_OFF) {
        uint32_t of_limits = l->n_taken;
        a.over = &out->guidance;
        ask_guidance(&a);
        if (out->guidance.limit != LIMITS) {
            count(l, &out->guidance);
            undo_draws(l, out->guidance.enforced ? 0 : of_limits);
            if (out->guidance.enforced) return;
        }
    }
    if (over) return;
    /* An admitted request counts for peaks and auto scaling. */
    int64_t window = l->o.values.of[LIMIT_ON_DEMAND_WINDOW], wall_us = l->time.wall_us;
    for (const struct charge_item *p = ask->items; p < ask->items + ask->n_items; p++) {
        struct limit_table *t = table_open(l, p->object);
        if (!t || t->mode == LIMITS_OFF) continue;
        capacity_add(&t->read, wall_us, p->read_halves, window, l->o.scales);
        capacity_add(&t->write, wall_us, p->write_units, window, l->o.scales);
        t->read_demand.used += (uint64_t)p->read_halves;
        t->write_demand.used += (uint64_t)p->write_units;
    }
}

/* ---- reversal ---- */

/* Returns units to buckets that have been filled since they were drawn from. The second fill cuts the level off at the
 * cap. */
static void refill(const struct limiter *l, const struct draw *draws, size_t n) {
    for (const struct draw *d = draws; d < draws + n; d++) {
        if (!d->n || !d->bucket->at_us) continue;
        bucket_fill(d->bucket, l->time.now_us, d->rate, d->cap, d->start);
        bucket_take(d->bucket, -d->n);
        bucket_fill(d->bucket, l->time.now_us, d->rate, d->cap, d->start);
    }
}

void limiter_reverse(struct limiter *l, const struct charge_item *p, struct limit_took took) {
    struct limit_table *t = table_open(l, p->object);
    struct partition_bucket *b = p->one_partition ? partition_bucket_find(&l->partitions, p->object, p->token) : NULL;
    struct draw draws[OF_TABLE + OF_PARTITION + 4];
    size_t n = 0;
    l->account->touched = true;
    if (t && t->mode != LIMITS_OFF && took.of_limits) {
        /* Before every other call that uses the capacity: such a call would end a minute that is over. */
        capacity_reverse(&t->read, took.at_us, p->read_halves);
        capacity_reverse(&t->write, took.at_us, p->write_units);
        of_table(l, t, p, draws);
        n = OF_TABLE;
        if (b) {
            of_partition(l, b, p, &draws[n]);
            n += OF_PARTITION;
        }
        if (l->o.mode != LIMITS_OFF && t->read.provisioned) {
            draws[n++] = account_reads(l, p->read_halves);
            draws[n++] = account_writes(l, p->write_units);
        }
    }
    if (l->o.guidance != GUIDANCE_OFF && took.of_guidance) {
        draws[n++] = second(l, LIMIT_ENTITIES_ACCOUNT, 0, &account_open(l)->entities, p->entities, false);
        if (b) draws[n++] = second(l, LIMIT_ENTITIES_PARTITION, 0, &b->entities, p->entities, false);
    }
    refill(l, draws, n);
}

bool limiter_may_read(struct limiter *l, uint32_t object, struct limit_connection *connection,
                      struct limit_verdict *out) {
    struct limit_table *t = table_open(l, object);
    *out = (struct limit_verdict){.over.limit = LIMITS, .guidance.limit = LIMITS};
    if (!t || t->mode != LIMITS_ENFORCE) return true;
    table_follow(l, t);
    const struct charge_item part = {.object = object, .keyspace = t->keyspace, .table = t->table};
    const struct limit_request ask = {0};
    const struct asking a = {.l = l, .ask = &ask, .over = &out->over};
    const struct draw draws[] = {
        account_reads(l, 0),
        second(l, LIMIT_TABLE_READ, t->read_demand.fraction, &t->read_most, 0, true),
        of_capacity(l, &t->read, t->read_demand.fraction, &t->read_bucket, LIMIT_TABLE_READ, 0),
    };
    for (size_t i = l->o.mode != LIMITS_ENFORCE || !t->read.provisioned; i < ARRAY_LEN(draws); i++) {
        const struct draw *d = &draws[i]; /* checked as in draw, without taking anything */
        int64_t needs = bucket_needs(0, d->cap, true);
        bucket_fill(d->bucket, l->time.now_us, d->rate, d->cap, d->start);
        if (bucket_has(d->bucket, needs)) continue;
        set_over(&a, d, &part, bucket_wait_us(d->bucket, needs, d->rate));
        if (l->round) t->read_demand.asked += HALVES; /* its cost is not known: that of a small one */
        const struct draw statement = of_connection(l, connection, 1);
        if (l->o.mode == LIMITS_ENFORCE && draw(&a, &statement, &part)) assert(out->over.limit == LIMIT_CONNECTION);
        out->over.enforced = true;
        count(l, &out->over);
        return false;
    }
    return true;
}

/* ---- several servers ---- */

/* Ends a round of a table's reads or writes. */
static void end_round(struct table_demand *p) {
    p->before = p->demand;
    p->demand = p->demand / 2 + p->asked;
    p->asked = 0;
    if (!p->demand) p->used = 0; /* the other servers received it while the demand went down */
}

int limiter_demands(struct limiter *l, struct limit_demands *out) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->tables.n; i++) {
        struct limit_table *t = table_at(l, i);
        end_round(&t->read_demand);
        end_round(&t->write_demand);
        const struct limit_demand d = {.object = t->object,
                                       .read = t->read_demand.demand,
                                       .write = t->write_demand.demand,
                                       .read_used = t->read_demand.used,
                                       .write_used = t->write_demand.used};
        if ((d.read || d.write) && limit_demands_add(out, &d)) return -1;
    }
    for (uint32_t i = 0; i < l->n_hot; i++) {
        struct limit_demand d = l->hot[i].demand;
        const struct partition_bucket *b = partition_bucket_find(&l->partitions, d.object, d.token);
        bool asked = b && b->round == l->round;
        const struct hot before = {.read_before = d.read, .write_before = d.write};
        d.read = d.read / 2 + (asked ? b->read_demand : 0);
        d.write = d.write / 2 + (asked ? b->write_demand : 0);
        if (!d.read && !d.write) continue;
        l->hot[n] = before;
        l->hot[n++].demand = d;
        if (limit_demands_add(out, &d)) return -1;
    }
    l->n_hot = n;
    l->round++;
    return 0;
}

/* The demand of the other servers on one limit. */
struct others_demand {
    uint64_t read, write, read_new, write_new;
    uint32_t n_read, n_write; /* servers */
};

/* Sums up the first item and the following ones of the same table or partition. Returns their number. */
static size_t sum_up(const struct limit_demand *items, size_t n, struct others_demand *s) {
    size_t i = 0;
    *s = (struct others_demand){0};
    for (; i < n && !limit_demand_order(&items[0], &items[i]); i++) {
        s->read += items[i].read;
        s->write += items[i].write;
        s->n_read += items[i].read > 0;
        s->n_write += items[i].write > 0;
        s->read_new += items[i].read_new;
        s->write_new += items[i].write_new;
    }
    return i;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static void set_fraction(struct table_demand *p, uint64_t others, uint32_t n) {
    p->fraction = n ? division_fraction(least(p->demand, p->before), others, n) : 0; /* V2 */
}

static void divide_table(struct limiter *l, struct limit_table *t, const struct others_demand *s) {
    int64_t window = l->o.values.of[LIMIT_ON_DEMAND_WINDOW], wall_us = l->time.wall_us;
    if (t->object) table_follow(l, t);
    set_fraction(&t->read_demand, s->read, s->n_read);
    set_fraction(&t->write_demand, s->write, s->n_write);
    fill_table(l, t);
    if (!t->object || t->mode == LIMITS_OFF) return;
    capacity_add(&t->read, wall_us, (int64_t)s->read_new, window, l->o.scales);
    capacity_add(&t->write, wall_us, (int64_t)s->write_new, window, l->o.scales);
}

static void fill_partitions(const struct limiter *l, const struct divided *of, size_t n) {
    for (const struct divided *d = of; d < of + n; d++) {
        const struct charge_item nothing = {.object = d->object, .token = d->token};
        struct partition_bucket *b = partition_bucket_find(&l->partitions, d->object, d->token);
        struct draw draws[OF_PARTITION];
        if (!b) continue;
        of_partition(l, b, &nothing, draws);
        fill(l, draws, OF_PARTITION);
    }
}

void limiter_divide(struct limiter *l, struct limit_demand *others, size_t n) {
    struct divided *before = l->divided, *room = n ? malloc(n * sizeof(*room)) : NULL;
    size_t at = 0, n_before = l->n_divided;
    struct others_demand s;
    l->divided = room;
    l->n_divided = 0;
    if (n) qsort(others, n, sizeof(*others), limit_demand_order);
    for (uint32_t i = 0; i < l->tables.n; i++) {
        struct limit_table *t = table_at(l, i);
        while (at < n && (others[at].object < t->object || others[at].of_partition)) at++;
        bool there = at < n && others[at].object == t->object;
        if (there) at += sum_up(&others[at], n - at, &s);
        else s = (struct others_demand){0};
        if (there || t->read_demand.fraction || t->write_demand.fraction) divide_table(l, t, &s);
    }
    for (at = 0; room && at < n;) {
        const struct limit_demand *of = &others[at];
        uint64_t read = 0, write = 0; /* this server's demand */
        at += sum_up(of, n - at, &s);
        if (!of->of_partition) continue;
        for (uint32_t i = 0; i < l->n_hot; i++)
            if (!limit_demand_order(&l->hot[i].demand, of)) {
                read = least(l->hot[i].demand.read, l->hot[i].read_before);
                write = least(l->hot[i].demand.write, l->hot[i].write_before);
            }
        l->divided[l->n_divided++] =
            (struct divided){.object = of->object,
                             .token = of->token,
                             .read = s.n_read ? division_fraction(read, s.read, s.n_read) : 0,
                             .write = s.n_write ? division_fraction(write, s.write, s.n_write) : 0};
    }
    fill_partitions(l, before, n_before);
    fill_partitions(l, l->divided, l->n_divided);
    free(before);
}
