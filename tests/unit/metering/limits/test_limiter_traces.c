/* The limiter on random traces: against a model in another arithmetic, with requests that fail at
 * once or late, and across a restart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "harness.h"

/* ---- random traces ---- */

static uint64_t random_next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static struct charge_item random_part(uint64_t *r) {
    bool write = random_next(r) % 2;
    int64_t n = 1 + (int64_t)(random_next(r) % 8 ? random_next(r) % 4 : random_next(r) % 60);
    struct charge_item item = {.keyspace = "k", .table = "t", .entities = n};
    item.object = 1 + random_next(r) % 3;
    item.one_partition = random_next(r) % 8 != 0;
    item.token = (int64_t)(random_next(r) % 6);
    *(write ? &item.write_units : &item.read_halves) = n;
    return item;
}

/* All that a trace is answered with, as text. */
static void replay(uint64_t seed, struct buf *out) {
    struct limiter_options o = options("on-demand-write=40,on-demand-read=30,partition-write=15,partition-read=12,"
                                       "connection=60,entities-partition=50");
    o.guidance = GUIDANCE_ENFORCE;
    struct world w;
    open_world(&w, &o);
    for (uint32_t t = 2; t < 4; t++)
        assert_int_equal(limiter_define(w.l, t, "k", "t", &(struct capacity){0}, &(struct capacity){0}), 0);
    uint64_t r = seed;
    for (int i = 0; i < 4000; i++) {
        struct charge_item parts[4];
        uint32_t n = 1 + (uint32_t)(random_next(&r) % 4);
        for (uint32_t k = 0; k < n; k++) parts[k] = random_part(&r);
        w.now_us += (int64_t)(random_next(&r) % 40000);
        struct limit_request a = {.connection = &w.c, .statements = n, .n_items = n, .items = parts};
        ask_now(&w, &a);
        buf_printf(out, "%d ", i);
        if (w.v.over.limit != LIMITS) limit_over_json(&w.v.over, out);
        if (w.v.guidance.limit != LIMITS) limit_over_json(&w.v.guidance, out);
    }
    limiter_free(w.l);
}

static void test_the_same_trace_gives_the_same_refusals_byte_for_byte(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct buf a, b;
        buf_init(&a, 0);
        buf_init(&b, 0);
        replay(seed * 77, &a);
        replay(seed * 77, &b);
        assert_true(a.n > 100000); /* many were refused */
        assert_true(slice_eq(buf_slice(&a), buf_slice(&b)));
        buf_fini(&a);
        buf_fini(&b);
    }
}

/* The model keeps every bucket as a number of units and fills it all the time, in floating point. */
struct model_bucket {
    double level, rate, at;
};

static void model_fill(struct model_bucket *b, double now) {
    b->level += (now - b->at) * b->rate;
    if (b->level > b->rate) b->level = b->rate;
    b->at = now;
}

static bool model_may(const struct model_bucket *b, double n, bool behind) {
    if (n == 0) return true;
    return behind ? b->level > 0 : b->level >= (n < b->rate ? n : b->rate);
}

enum { TOKENS = 6, MODEL_PARTS = 4 };

/* A bucket that a request asks, and for how much in all. */
struct model_draw {
    struct model_bucket *bucket;
    double n;
};

/* One table, some of its partitions. */
struct model {
    struct model_bucket write, read, partition_write[TOKENS], partition_read[TOKENS];
};

static struct model model_at(double start) {
    struct model m = {.write = {40, 40, start}, .read = {30, 30, start}};
    for (int i = 0; i < TOKENS; i++) {
        m.partition_write[i] = (struct model_bucket){16, 16, start};
        m.partition_read[i] = (struct model_bucket){12, 12, start};
    }
    return m;
}

/* Whether all of them let it through; *near: where floating point may say either. */
static bool model_asks(struct model_draw *draws, uint32_t n, bool behind, double now, bool *near) {
    bool may = true;
    *near = false;
    for (uint32_t i = 0; i < n; i++) {
        struct model_bucket *b = draws[i].bucket;
        model_fill(b, now);
        double needs = behind ? 0 : draws[i].n < b->rate ? draws[i].n : b->rate;
        *near = *near || (b->level - needs < 1e-4 && b->level - needs > -1e-4);
        may = may && model_may(b, draws[i].n, behind);
    }
    return may;
}

/* Writes of one to four partitions, as a batch, or reads of them, as an IN. */
static uint32_t random_parts(uint64_t *r, struct charge_item parts[MODEL_PARTS]) {
    uint32_t n = 1 + (uint32_t)(random_next(r) % (2 * MODEL_PARTS)), first = (uint32_t)(random_next(r) % TOKENS);
    if (n > MODEL_PARTS) n = 1;
    parts[0] = random_part(r);
    for (uint32_t k = 0; k < n; k++) {
        struct charge_item like = random_part(r);
        if (k) parts[k] = parts[0];
        if (k && parts[0].write_units) parts[k].write_units = like.read_halves + like.write_units;
        if (k && parts[0].read_halves) parts[k].read_halves = like.read_halves + like.write_units;
        parts[k].object = 1;
        parts[k].one_partition = true;
        parts[k].token = (first + k) % TOKENS;
    }
    return n;
}

static uint32_t draws_of(struct model *m, const struct charge_item *parts, uint32_t n, bool behind,
                         struct model_draw *draws) {
    draws[0] = (struct model_draw){behind ? &m->read : &m->write, 0};
    for (uint32_t k = 0; k < n; k++) {
        double units = behind ? (double)parts[k].read_halves / 2 : (double)parts[k].write_units;
        draws[1 + k] = (struct model_draw){behind ? &m->partition_read[parts[k].token]
                                                  : &m->partition_write[parts[k].token],
                                           units};
        draws[0].n += units;
    }
    return 1 + n;
}

static void test_random_traces_agree_with_a_model(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct limiter_options o = options(
            "on-demand-write=40,on-demand-read=30,partition-write=16,partition-read=12,connection=1000000");
        struct world w;
        open_world(&w, &o);
        struct model m = model_at((double)w.now_us / S);
        uint64_t r = seed * 1234567;
        int refused = 0, close = 0, several = 0;
        for (int i = 0; i < 5000; i++) {
            struct charge_item parts[MODEL_PARTS];
            struct model_draw draws[1 + MODEL_PARTS];
            uint32_t n = random_parts(&r, parts);
            bool behind = parts[0].read_halves > 0, near;
            w.now_us += (int64_t)(random_next(&r) % 60) * 1000;
            uint32_t n_draws = draws_of(&m, parts, n, behind, draws);
            bool may = model_asks(draws, n_draws, behind, (double)w.now_us / S, &near);
            ask_now(&w, &(struct limit_request){.connection = &w.c, .statements = 1, .n_items = n, .items = parts});
            bool did = !limit_refuses(&w.v);
            if (near) {
                may = did;
                close++;
            }
            assert_int_equal(did, may);
            for (uint32_t k = 0; k < n_draws && may; k++) draws[k].bucket->level -= draws[k].n;
            refused += !may;
            several += n > 1 && may;
        }
        assert_in_range(refused, 200, 4800);
        assert_true(close < 500 && several > 100);
        limiter_free(w.l);
    }
}

/* Capacities that change under load, and clocks that leap: the model fills its bucket microsecond by
 * microsecond, by the capacity of each. */
static void test_capacities_that_change_under_load_agree_with_a_model(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct limiter_options o = options("connection=1000000,partition-write=1000000,burst=20");
        uint64_t r = seed * 48271;
        int64_t rate = 20, level, at_us, refused = 0, changes = 0;
        struct world w;
        open_world(&w, &o);
        const struct capacity first = {.provisioned = true, .units = rate};
        set_time(w.l, at_us = w.now_us);
        assert_int_equal(limiter_define(w.l, 1, "k", "t", &first, &first), 0);
        assert_true(writes(&w, 1, 1)); /* from here on the bucket fills */
        level = (rate - 1) * S;
        for (int i = 0; i < 5000; i++) {
            int64_t steps[] = {0, 1, 3000, 60000, random_next(&r) % 50 ? 20000 : (int64_t)(random_next(&r) % 200) * S};
            w.now_us += steps[random_next(&r) % ARRAY_LEN(steps)];
            level += (w.now_us - at_us) * rate;
            at_us = w.now_us;
            if (level > rate * 20 * S) level = rate * 20 * S;
            if (random_next(&r) % 20 == 0) {
                struct capacity c = {.provisioned = true, .units = rate = 1 + (int64_t)(random_next(&r) % 300)};
                set_time(w.l, w.now_us);
                assert_int_equal(limiter_define(w.l, 1, "k", "t", &c, &c), 0);
                if (level > rate * 20 * S) level = rate * 20 * S;
                changes++;
                continue;
            }
            int64_t n = 1 + (int64_t)(random_next(&r) % 30);
            bool may = level >= (n < rate * 20 ? n : rate * 20) * S;
            assert_int_equal(writes(&w, i, n), may);
            if (may) level -= n * S;
            refused += !may;
        }
        assert_in_range(refused, 200, 4800);
        assert_true(changes > 100);
        limiter_free(w.l);
    }
}

/* ---- faults of the disk, at random ---- */

/* Tables 1 to 4: on demand, provisioned, in shadow, on demand. Capacities move with peaks and auto
 * scaling, or stand still. */
enum { FAULTY_TABLES = 4, FAULTY_STEPS = 6000, FAULTY_PARTS = 3 };

static void open_faulty(struct world *w, bool moves) {
    struct limiter_options o = options("on-demand-write=40,on-demand-read=30,partition-write=25,partition-read=22,"
                                       "connection=1000000,entities-partition=60,on-demand-window=60,burst=3,"
                                       "account-write=30,account-read=20,table-write=300");
    struct err e = {0};
    o.guidance = GUIDANCE_ENFORCE;
    o.scales = moves;
    if (!moves) o.values.of[LIMIT_ON_DEMAND_WINDOW] = NOON;
    assert_int_equal(limit_rules_parse("k.t3=shadow", &o.rules, &e), 0);
    open_world(w, &o);
    struct capacity p = {.provisioned = true,
                         .units = 20,
                         .scaling = {.enabled = true, .minimum = 5, .maximum = 40, .target_percent = 70}};
    for (uint32_t t = 1; t <= FAULTY_TABLES; t++) {
        struct capacity c = t == 2 ? p : (struct capacity){0};
        assert_int_equal(limiter_define(w->l, t, "k", t == 3 ? "t3" : "t", &c, &c), 0);
        /* from where on a bucket fills */
        struct charge_item once = {.object = t, .one_partition = true, .token = 99, .write_units = 1, .read_halves = 1};
        assert_true(ask(w, once));
    }
}

/* A statement or a batch, and whether the disk takes it. */
struct attempt {
    int64_t at_us;
    struct charge_item items[FAULTY_PARTS];
    uint32_t n;
    bool fails;
    int64_t told_us; /* when, told late */
    struct limit_took took;
};

/* A second of much, then a while of little, and now and then nothing for minutes. */
static struct attempt random_attempt(uint64_t *r, int64_t now_us) {
    struct attempt a = {.n = random_next(r) % 4 ? 1 : FAULTY_PARTS, .fails = random_next(r) % 3 == 0};
    for (uint32_t i = 0; i < a.n; i++) {
        a.items[i] = random_part(r);
        a.items[i].object = 1 + (uint32_t)(random_next(r) % FAULTY_TABLES);
        a.items[i].one_partition = true;
        /* a condition reads and writes */
        if (random_next(r) % 4 == 0) a.items[i].read_halves = a.items[i].write_units = 1;
    }
    int64_t steps[] = {0, 1, 3000, 60000, random_next(r) % 400 ? 20000 : (int64_t)200 * S};
    a.at_us = now_us + steps[random_next(r) % ARRAY_LEN(steps)];
    return a;
}

static bool attempt_asks(struct world *w, const struct attempt *a) {
    struct limit_request ask = {.connection = &w->c, .statements = 1, .n_items = a->n, .items = a->items};
    w->now_us = a->at_us;
    ask_now(w, &ask);
    return !limit_refuses(&w->v);
}

static void attempt_fails(struct world *w, const struct attempt *a) {
    set_time(w->l, w->now_us);
    for (uint32_t i = 0; i < a->n; i++) limiter_reverse(w->l, &a->items[i], a->took);
}

static int64_t level_at(struct bucket b, int64_t now_us, int64_t rate, int64_t cap) {
    bucket_fill(&b, now_us, rate, cap, cap);
    return b.level;
}

static void assert_same_capacity(const struct capacity *a, const struct capacity *b) {
    assert_int_equal(a->in_minute, b->in_minute);
    assert_int_equal(a->window_best, b->window_best);
    assert_int_equal(a->peak, b->peak);
    assert_int_equal(a->scaled, b->scaled);
    assert_int_equal(a->minutes_above, b->minutes_above);
    assert_int_equal(a->minutes_below, b->minutes_below);
}

/* The writes' bucket of a table that is in k.t, in full. */
static int64_t write_level(struct world *w, uint32_t i) {
    const struct limit_table *t = table_now(w, i);
    int64_t rate = capacity_rate(&t->write, 300);
    return level_at(t->write_bucket, w->now_us, rate, t->write.provisioned ? 3 * rate : rate);
}

/* What fails is told at once: every verdict from then on is that of a limiter that was never asked for what failed. */
static void test_what_fails_at_once_might_never_have_been_asked(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct world w, model;
        uint64_t r = seed * 7919;
        int refused = 0, failed = 0;
        open_faulty(&w, false);
        open_faulty(&model, false);
        for (int i = 0; i < FAULTY_STEPS; i++) {
            struct attempt a = random_attempt(&r, w.now_us);
            bool may = attempt_asks(&w, &a);
            model.now_us = w.now_us;
            if (may && a.fails) {
                a.took = limit_took(&w.v, a.at_us);
                attempt_fails(&w, &a);
                failed++;
                continue;
            }
            assert_int_equal(attempt_asks(&model, &a), may);
            assert_int_equal(model.v.over.limit, w.v.over.limit);
            assert_int_equal(model.v.over.rate, w.v.over.rate);
            assert_int_equal(model.v.over.retry_us, w.v.over.retry_us);
            assert_int_equal(model.v.guidance.limit, w.v.guidance.limit);
            refused += !may;
        }
        assert_in_range(refused, FAULTY_STEPS / 20, FAULTY_STEPS - FAULTY_STEPS / 20);
        assert_true(failed > FAULTY_STEPS / 20);
        for (uint32_t i = 1; i <= FAULTY_TABLES; i++) assert_int_equal(write_level(&w, i), write_level(&model, i));
        limiter_free(w.l);
        limiter_free(model.l);
    }
}

static void capacities_use(struct capacity c[FAULTY_TABLES + 1], const struct attempt *a, bool of_writes,
                           int64_t window_s) {
    for (uint32_t i = 0; i < a->n; i++)
        capacity_add(&c[a->items[i].object], a->at_us, of_writes ? a->items[i].write_units : a->items[i].read_halves,
                     window_s, true);
}

/* Peaks and auto scaling: capacities that were only told of what was applied come to the same. */
static void test_capacities_move_with_what_was_applied(void **state) {
    (void)state;
    int64_t scaled = 0, peaks = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct world w;
        struct capacity read[FAULTY_TABLES + 1], write[FAULTY_TABLES + 1];
        uint64_t r = seed * 15485863;
        open_faulty(&w, true);
        for (uint32_t t = 1; t <= FAULTY_TABLES; t++) {
            read[t] = table_now(&w, t)->read;
            write[t] = table_now(&w, t)->write;
        }
        int64_t window = limiter_options(w.l)->values.of[LIMIT_ON_DEMAND_WINDOW];
        for (int i = 0; i < FAULTY_STEPS; i++) {
            struct attempt a = random_attempt(&r, w.now_us);
            bool may = attempt_asks(&w, &a);
            a.took = limit_took(&w.v, a.at_us);
            if (may && a.fails) attempt_fails(&w, &a);
            if (!may || a.fails || !a.took.of_limits) continue;
            capacities_use(read, &a, false, window);
            capacities_use(write, &a, true, window);
        }
        for (uint32_t t = 1; t <= FAULTY_TABLES; t++) {
            capacity_add(&read[t], w.now_us, 0, window, true);
            capacity_add(&write[t], w.now_us, 0, window, true);
            assert_same_capacity(&table_now(&w, t)->read, &read[t]);
            assert_same_capacity(&table_now(&w, t)->write, &write[t]);
            scaled += write[t].scaled;
            peaks += write[t].peak;
        }
        limiter_free(w.l);
    }
    assert_true(scaled && peaks);
}

/* What a table's bucket would hold had nothing been asked but what was applied. */
static int64_t model_write_level(struct world *w, uint32_t table, const struct attempt *applied, int n) {
    const struct capacity *c = &table_now(w, table)->write;
    int64_t rate = capacity_rate(c, 300), cap = c->provisioned ? 3 * rate : rate;
    struct bucket b = {0};
    for (int i = 0; i < n; i++)
        for (uint32_t k = 0; k < applied[i].n; k++) {
            const struct charge_item *p = &applied[i].items[k];
            if (p->object != table || !p->write_units) continue;
            bucket_fill(&b, applied[i].at_us, rate, cap, rate);
            b.level -= p->write_units * BUCKET_UNIT;
        }
    return level_at(b, w->now_us, rate, cap);
}

/* What fails is told up to a second later, in any order: nothing that it took is lost, and no
 * bucket has more of it than came back. */
static void test_what_fails_late_comes_back_too(void **state) {
    (void)state;
    enum { UNDER_WAY = 8 };
    struct attempt *applied = calloc(FAULTY_STEPS, sizeof(*applied));
    assert_non_null(applied);
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct world w;
        struct attempt failing[UNDER_WAY];
        int n_applied = 0, n_failing = 0, n_failed = 0;
        int64_t came_back[FAULTY_TABLES + 1] = {0};
        uint64_t r = seed * 104729;
        open_faulty(&w, false);
        for (int i = 0; i < FAULTY_STEPS || n_failing; i++) {
            struct attempt a = random_attempt(&r, w.now_us);
            a.fails = n_failing < UNDER_WAY && random_next(&r) % 2;
            if (i >= FAULTY_STEPS) w.now_us = a.at_us;
            else if (attempt_asks(&w, &a)) {
                a.took = limit_took(&w.v, a.at_us);
                a.told_us = a.at_us + (int64_t)(random_next(&r) % S);
                if (a.fails) failing[n_failing++] = a;
                else if (a.took.of_limits) applied[n_applied++] = a;
            }
            for (int k = n_failing - 1; k >= 0; k--) {
                if (failing[k].told_us > w.now_us) continue;
                attempt_fails(&w, &failing[k]);
                for (uint32_t m = 0; m < failing[k].n; m++)
                    came_back[failing[k].items[m].object] += failing[k].items[m].write_units * BUCKET_UNIT;
                failing[k] = failing[--n_failing];
                n_failed++;
            }
        }
        assert_true(n_failed > FAULTY_STEPS / 20);
        for (uint32_t t = 1; t <= FAULTY_TABLES; t++) {
            int64_t model = model_write_level(&w, t, applied, n_applied);
            assert_true(write_level(&w, t) >= model);
            assert_true(write_level(&w, t) <= model + came_back[t]);
        }
        limiter_free(w.l);
    }
    free(applied);
}

/* ---- what outlives a restart ---- */

static void restore_one(void *arg, const struct limit_table *t, struct slice state) {
    assert_int_equal(limiter_restore(arg, t->object, state), 0);
}

/* In the middle of a random trace the limiter is saved and another one goes on from there: what
 * both answer from then on is the same, but for partitions and connections, whose buckets hold one
 * second. */
static void test_a_limiter_goes_on_where_the_one_before_ended(void **state) {
    (void)state;
    struct limiter_options o = options("on-demand-write=10,on-demand-read=7,account-write=15,table-write=40,partition-"
                                       "write=100000,partition-read=100000,connection=100000");
    struct capacity provisioned = {.provisioned = true, .units = 3};
    struct world a, b;
    uint32_t random = 7, refused = 0;
    o.scales = true;
    open_world(&a, &o);
    assert_int_equal(limiter_define(a.l, 2, "k", "u", &provisioned, &provisioned), 0);
    /* another machine's, or after a boot */
    b = (struct world){.l = limiter_new(&o), .began_us = (int64_t)(NOON - 7) * S};
    for (int step = 0; step < 4000; step++) {
        random = random * 1664525 + 1013904223;
        a.now_us += random >> 8 & 0x7ffff;
        if (step == 2000) {
            limiter_set_time(b.l, (struct limit_time){.now_us = a.now_us - b.began_us, .wall_us = a.now_us});
            assert_int_equal(limiter_save(a.l, restore_one, b.l), 0);
            assert_int_equal(limiter_define(b.l, 1, "k", "t", &(struct capacity){0}, &(struct capacity){0}), 0);
            assert_int_equal(limiter_define(b.l, 2, "k", "u", &provisioned, &provisioned), 0);
            for (uint32_t i = 0; i < 3; i++)
                assert_memory_equal(limiter_table(a.l, i)->counts, limiter_table(b.l, i)->counts,
                                    sizeof(struct limit_counts) * LIMITS);
        }
        struct charge_item p = {.object = 1 + (random >> 28 & 1),
                               .one_partition = true,
                               .token = step,
                               .write_units = random >> 20 & 7,
                               .read_halves = random >> 24 & 7};
        bool passes = ask(&a, p);
        refused += !passes;
        if (step < 2000) continue;
        b.now_us = a.now_us;
        assert_int_equal(ask(&b, p), passes);
        assert_int_equal(a.v.over.limit, b.v.over.limit);
        assert_int_equal(a.v.over.retry_us, b.v.over.retry_us);
    }
    assert_in_range(refused, 400, 3600);
    assert_int_equal(limiter_save(a.l, restore_one, b.l), 0);
    limiter_free(a.l);
    limiter_free(b.l);
}

static void test_damaged_state_is_no_trouble(void **state) {
    (void)state;
    uint32_t random = 3;
    struct limiter_options o = options("on-demand-write=10");
    for (int i = 0; i < 200; i++) {
        uint8_t bytes[40];
        struct world w;
        open_world(&w, &o);
        for (size_t k = 0; k < sizeof(bytes); k++) bytes[k] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
        for (size_t k = 0; k < sizeof(bytes); k += 10) bytes[k] &= 63;
        assert_int_equal(limiter_restore(w.l, 1, slice_of(bytes, sizeof(bytes) - i % 8)), 0);
        (void)writes(&w, 1, 1);
        (void)reads(&w, 1, 1);
        w.now_us += (int64_t)S * 4000;
        (void)writes(&w, 1, 1);
        limiter_free(w.l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_trace_gives_the_same_refusals_byte_for_byte),
        cmocka_unit_test(test_random_traces_agree_with_a_model),
        cmocka_unit_test(test_capacities_that_change_under_load_agree_with_a_model),
        cmocka_unit_test(test_what_fails_at_once_might_never_have_been_asked),
        cmocka_unit_test(test_what_fails_late_comes_back_too),
        cmocka_unit_test(test_capacities_move_with_what_was_applied),
        cmocka_unit_test(test_a_limiter_goes_on_where_the_one_before_ended),
        cmocka_unit_test(test_damaged_state_is_no_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
