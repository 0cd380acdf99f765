#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct limiter_options options(const char *values) {
    struct err e = {0};
    struct limiter_options o = {.mode = LIMITS_ENFORCE, .seed = 1};
    assert_int_equal(limit_values_parse(values, &o.values, &e), 0);
    return o;
}

void open_world(struct world *w, const struct limiter_options *o) {
    *w = (struct world){.l = limiter_new(o), .now_us = (int64_t)NOON * S};
    assert_non_null(w->l);
    assert_int_equal(limiter_define(w->l, 1, "k", "t", &(struct capacity){0}, &(struct capacity){0}), 0);
}

void set_time(struct limiter *l, int64_t now_us) {
    limiter_set_time(l, (struct limit_time){.now_us = now_us, .wall_us = now_us});
}

void ask_now(struct world *w, const struct limit_request *a) {
    struct limit_time newest = {.now_us = w->now_us - w->began_us, .wall_us = w->now_us}, late = newest;
    limiter_set_time(w->l, newest);
    w->late = w->late * 1664525 + 1013904223;
    late.now_us -= w->late >> 7;
    late.wall_us -= w->late >> 7;
    if (w->late >> 31) limiter_set_time(w->l, late);
    limiter_admit(w->l, a, &w->v);
}

bool ask(struct world *w, struct charge_item p) {
    p.object = p.object ? p.object : 1;
    p.keyspace = "k";
    p.table = "t";
    struct limit_request a = {.connection = &w->c, .statements = 1, .n_items = 1, .items = &p};
    ask_now(w, &a);
    return !limit_refuses(&w->v);
}

bool writes(struct world *w, int64_t token, int64_t units) {
    return ask(w, (struct charge_item){.one_partition = true, .token = token, .write_units = units, .entities = 1});
}

bool reads(struct world *w, int64_t token, int64_t halves) {
    return ask(w, (struct charge_item){.one_partition = true, .token = token, .read_halves = halves, .entities = 1});
}

const struct limit_table *table_now(struct world *w, uint32_t i) {
    set_time(w->l, w->now_us);
    return limiter_table(w->l, i);
}
