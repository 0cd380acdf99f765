#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "engine/rados/iter.h"

/* ---- lists ---- */

struct list_iter {
    struct kv_iter it;
    const struct record *records;
    size_t n, at;        /* at == n: on no record */
    struct arena arena;  /* of records that the iterator owns */
    struct record *owned;
    size_t cap;
};

/* The first record that is not in front of the key. */
static size_t position(const struct list_iter *l, struct slice key) {
    size_t from = 0, to = l->n;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (slice_cmp(l->records[middle].key, key) < 0) from = middle + 1;
        else to = middle;
    }
    return from;
}

static size_t moved(const struct list_iter *l, enum kv_move move, struct slice key) {
    size_t at;
    switch (move) {
    case KV_SEEK: return position(l, key);
    case KV_NEXT: return l->at < l->n ? l->at + 1 : l->n;
    case KV_PREV: return l->at ? l->at - 1 : l->n;
    default: /* KV_SEEK_BACK */
        at = position(l, key);
        if (at < l->n && slice_eq(l->records[at].key, key)) return at;
        return at ? at - 1 : l->n;
    }
}

static int list_move(struct kv_iter *it, enum kv_move move, struct slice key, struct err *e) {
    struct list_iter *l = (struct list_iter *)it;
    l->at = moved(l, move, key);
    if (l->at < l->n) {
        it->key = l->records[l->at].key;
        it->value = l->records[l->at].value;
    }
    return kv_iter_lend(it, l->at < l->n, e);
}

static void list_free(struct kv_iter *it) {
    struct list_iter *l = (struct list_iter *)it;
    if (kv_iter_lend(it, 0, NULL) < 0) assert(false);
    arena_fini(&l->arena);
    free(l->owned);
    free(l);
}

static const struct kv_iter_ops list_ops = {.iter_move = list_move, .iter_free = list_free};

struct kv_iter *iter_of_records(const struct record *records, size_t n, struct err *e) {
    struct list_iter *l = calloc(1, sizeof(*l));
    if (!l) return err_null(err_nomem(e));
    *l = (struct list_iter){.it.ops = &list_ops, .records = records, .n = n, .at = n};
    arena_init(&l->arena, 1 << 12, 0);
    return &l->it;
}

/* Reads the whole range, because a pool has no order downwards. */
static int take_all(struct list_iter *l, struct cursor *c, struct err *e) {
    const struct record *r;
    size_t bytes = 0;
    int got;
    while ((got = cursor_next(c, &r, e)) == 1) {
        bytes += r->key.n + r->value.n;
        if (bytes > ITER_BACKWARDS_MAX)
            return err_set(e, ERR_READ_FAILURE,
                           "This store reads a partition downwards in memory, and the rows take more than %d MiB: ask "
                           "for fewer with conditions on the clustering columns, or read in the table's own order",
                           ITER_BACKWARDS_MAX >> 20);
        struct record copy = {.key = arena_dup(&l->arena, r->key), .value = arena_dup(&l->arena, r->value)};
        if (!copy.key.p || !copy.value.p || array_room(&l->owned, l->n, &l->cap, sizeof(copy)) < 0) return err_nomem(e);
        l->owned[l->n++] = copy;
    }
    l->records = l->owned;
    l->at = l->n;
    return got;
}

/* ---- cursors ---- */

struct cursor_iter {
    struct kv_iter it;
    struct cursor c;
    struct buf floor; /* no record lies between this key and the one that the iterator is on */
};

static int on_record(struct cursor_iter *x, int got, const struct record *r, struct err *e) {
    if (got == 1) {
        x->it.key = r->key;
        x->it.value = r->value;
    }
    return kv_iter_lend(&x->it, got, e);
}

static int cursor_move(struct kv_iter *it, enum kv_move move, struct slice key, struct err *e) {
    struct cursor_iter *x = (struct cursor_iter *)it;
    const struct record *r;
    assert(move == KV_SEEK || move == KV_NEXT);
    struct slice from = move == KV_SEEK ? key : it->key;
    if (move == KV_SEEK && x->floor.n && slice_cmp(key, buf_slice(&x->floor)) < 0)
        return err_set(e, ERR_SERVER, "a cursor of the store on Ceph moved backwards");
    if (move == KV_SEEK && it->key.p && slice_cmp(key, it->key) <= 0) return 1;
    buf_clear(&x->floor, SIZE_MAX);
    if (from.p) buf_put_slice(&x->floor, from);
    if (buf_failed(&x->floor)) return err_nomem(e);
    int got = move == KV_SEEK ? cursor_seek(&x->c, key, &r, e) : cursor_next(&x->c, &r, e);
    if (got != 1) it->key.p = NULL;
    return on_record(x, got, r, e);
}

static void cursor_free(struct kv_iter *it) {
    struct cursor_iter *x = (struct cursor_iter *)it;
    if (kv_iter_lend(it, 0, NULL) < 0) assert(false);
    cursor_fini(&x->c);
    buf_fini(&x->floor);
    free(x);
}

static const struct kv_iter_ops cursor_ops = {.iter_move = cursor_move, .iter_free = cursor_free};

static struct kv_iter *list_of_range(struct cursor *c, struct err *e) {
    struct kv_iter *it = iter_of_records(NULL, 0, e);
    if (it && take_all((struct list_iter *)it, c, e) < 0) {
        list_free(it);
        it = NULL;
    }
    cursor_fini(c);
    return it;
}

struct kv_iter *iter_of_range(struct rados *s, uint32_t table, struct slice prefix, struct slice lower,
                              struct slice upper, bool backwards, struct err *e) {
    struct cursor c;
    if (backwards) {
        cursor_init(&c, s, table, prefix, lower, upper);
        return list_of_range(&c, e);
    }
    struct cursor_iter *x = calloc(1, sizeof(*x));
    if (!x) return err_null(err_nomem(e));
    x->it.ops = &cursor_ops;
    buf_init(&x->floor, 0);
    cursor_init(&x->c, s, table, prefix, lower, upper);
    return &x->it;
}
