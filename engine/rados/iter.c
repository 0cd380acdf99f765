#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "engine/rados/iter.h"
#include "engine/rados/pieces.h"

/* ---- records in memory ---- */

/* The first record that is not in front of the key. */
static size_t position(const struct record *records, size_t n, struct slice key) {
    size_t from = 0, to = n;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (slice_cmp(records[middle].key, key) < 0) from = middle + 1;
        else to = middle;
    }
    return from;
}

/* The place of the record that a move leads to from the place at. Not below n: there is none. */
static size_t moved(const struct record *records, size_t n, size_t at, enum kv_move move, struct slice key) {
    size_t first = move == KV_SEEK || move == KV_SEEK_BACK ? position(records, n, key) : 0;
    switch (move) {
    case KV_SEEK: return first;
    case KV_NEXT: return at + 1;
    case KV_PREV: return at - 1;
    default: /* KV_SEEK_BACK */ return first < n && slice_eq(records[first].key, key) ? first : first - 1;
    }
}

struct list_iter {
    struct kv_iter it;
    const struct record *records;
    size_t n, at; /* at >= n: on no record */
};

static int list_move(struct kv_iter *it, enum kv_move move, struct slice key, struct err *e) {
    struct list_iter *l = (struct list_iter *)it;
    l->at = moved(l->records, l->n, l->at, move, key);
    if (l->at < l->n) {
        it->key = l->records[l->at].key;
        it->value = l->records[l->at].value;
    }
    return kv_iter_lend(it, l->at < l->n, e);
}

static void list_free(struct kv_iter *it) {
    if (kv_iter_lend(it, 0, NULL) < 0) assert(false);
    free(it);
}

static const struct kv_iter_ops list_ops = {.iter_move = list_move, .iter_free = list_free};

struct kv_iter *iter_of_records(const struct record *records, size_t n, struct err *e) {
    struct list_iter *l = calloc(1, sizeof(*l));
    if (!l) return err_null(err_nomem(e));
    *l = (struct list_iter){.it.ops = &list_ops, .records = records, .n = n, .at = n};
    return &l->it;
}

/* ---- both ways ----
 *
 * A pool has no order downwards. So the iterator divides the range into chunks, reads one at a time,
 * upwards, and holds it in memory. A range of a wide partition has a chunk for all in front of the
 * rows, and one for the keys of each piece. Any other range is one chunk. */

struct chunk_iter {
    struct kv_iter it;
    struct cursor c;
    struct arena bounds_arena;
    struct slice *bounds; /* where each chunk begins, and the end of the last */
    size_t n_chunks, chunk; /* chunk: the one in memory: */
    struct arena arena;
    struct record *records;
    size_t n, cap, bytes, at; /* at >= n: on no record */
};

static int keep_record(struct chunk_iter *x, const struct record *r, struct err *e) {
    x->bytes += r->key.n + r->value.n;
    if (x->bytes > ITER_BACKWARDS_MAX)
        return err_set(e, ERR_READ_FAILURE,
                       "This store reads a partition downwards in memory, and the rows take more than %d MiB: ask "
                       "for fewer with conditions on the clustering columns, or read in the table's own order",
                       ITER_BACKWARDS_MAX >> 20);
    struct record copy = {.key = arena_dup(&x->arena, r->key), .value = arena_dup(&x->arena, r->value)};
    if (!copy.key.p || !copy.value.p || array_room(&x->records, x->n, &x->cap, sizeof(copy)) < 0) return err_nomem(e);
    x->records[x->n++] = copy;
    return 0;
}

/* Keeps the records that the cursor has left. */
static int keep_rest(struct chunk_iter *x, struct err *e) {
    const struct record *r;
    int got;
    while ((got = cursor_next(&x->c, &r, e)) == 1)
        if (keep_record(x, r, e)) return -1;
    return got;
}

static int load_chunk(struct chunk_iter *x, size_t chunk, struct err *e) {
    x->n = x->bytes = 0;
    x->chunk = chunk;
    arena_reset(&x->arena);
    cursor_restart(&x->c, x->bounds[chunk], x->bounds[chunk + 1]);
    return keep_rest(x, e);
}

static size_t chunk_of(const struct chunk_iter *x, struct slice key) {
    size_t i = 0;
    while (i + 1 < x->n_chunks && slice_cmp(x->bounds[i + 1], key) <= 0) i++;
    return i;
}

static int chunk_move(struct kv_iter *it, enum kv_move move, struct slice key, struct err *e) {
    struct chunk_iter *x = (struct chunk_iter *)it;
    bool seeks = move == KV_SEEK || move == KV_SEEK_BACK, back = move == KV_PREV || move == KV_SEEK_BACK;
    size_t chunk = seeks ? chunk_of(x, key) : x->chunk;
    if (chunk != x->chunk && load_chunk(x, chunk, e)) return kv_iter_lend(it, -1, e);
    x->at = moved(x->records, x->n, x->at, move, key);
    while (x->at >= x->n) {
        if (back ? x->chunk == 0 : x->chunk + 1 == x->n_chunks) return kv_iter_lend(it, 0, e);
        if (load_chunk(x, back ? x->chunk - 1 : x->chunk + 1, e)) return kv_iter_lend(it, -1, e);
        x->at = back ? x->n - 1 : 0;
    }
    it->key = x->records[x->at].key;
    it->value = x->records[x->at].value;
    return kv_iter_lend(it, 1, e);
}

static void chunk_free(struct kv_iter *it) {
    struct chunk_iter *x = (struct chunk_iter *)it;
    if (kv_iter_lend(it, 0, NULL) < 0) assert(false);
    cursor_fini(&x->c);
    arena_fini(&x->arena);
    arena_fini(&x->bounds_arena);
    free(x->records);
    free(x);
}

static const struct kv_iter_ops chunk_ops = {.iter_move = chunk_move, .iter_free = chunk_free};

static void add_bound(struct chunk_iter *x, struct slice key, struct slice upper) {
    if (slice_cmp(key, x->bounds[x->n_chunks - 1]) > 0 && slice_cmp(key, upper) < 0) x->bounds[x->n_chunks++] = key;
}

/* Divides the range, after the cursor has read its first page. When a chunk is read the pieces may be
 * others; then it has fewer or more rows. */
static int set_bounds(struct chunk_iter *x, struct slice lower, struct slice upper, struct err *e) {
    struct pieces p;
    if (pieces_read(cursor_pieces(&x->c), &x->bounds_arena, &p) < 0)
        return err_set(e, ERR_SERVER, "the list of a partition's pieces in the Ceph pool is damaged");
    x->bounds = ARENA_ARRAY(&x->bounds_arena, p.n + 3, struct slice);
    uint8_t *rows = arena_alloc(&x->bounds_arena, x->c.prefix.n + 1);
    if (!x->bounds || !rows) return err_nomem(e);
    memcpy(rows, x->c.prefix.p, x->c.prefix.n);
    rows[x->c.prefix.n] = ENGI_ROW;
    x->bounds[x->n_chunks++] = lower;
    if (p.n) add_bound(x, slice_of(rows, x->c.prefix.n + 1), upper);
    for (size_t i = 1; i < p.n; i++) {
        struct buf b;
        buf_init(&b, 0);
        bool damaged = pieces_first_key(&p, i, x->c.prefix, &b) == -EBADMSG;
        struct slice first = arena_take(&x->bounds_arena, &b);
        if (!damaged && !first.p) return err_nomem(e);
        if (damaged) return err_set(e, ERR_SERVER, "the list of a partition's pieces in the Ceph pool is damaged");
        add_bound(x, first, upper);
    }
    x->bounds[x->n_chunks] = upper;
    return 0;
}

/* Opens at the first chunk, whose first page tells whether the partition is wide. */
static int open_chunks(struct chunk_iter *x, struct slice lower, struct slice upper, struct err *e) {
    const struct record *r;
    int got = cursor_next(&x->c, &r, e);
    if (got < 0 || set_bounds(x, lower, upper, e)) return -1;
    x->c.upper = x->bounds[1];
    if (!got || slice_cmp(r->key, x->bounds[1]) >= 0) return 0;
    return keep_record(x, r, e) ? -1 : keep_rest(x, e);
}

static struct kv_iter *chunks_of_range(struct rados *s, uint32_t table, struct slice prefix, struct slice lower,
                                       struct slice upper, struct err *e) {
    struct chunk_iter *x = calloc(1, sizeof(*x));
    if (!x) return err_null(err_nomem(e));
    assert(prefix.p && upper.p);
    x->it.ops = &chunk_ops;
    x->at = SIZE_MAX;
    arena_init(&x->arena, 1 << 12, 0);
    arena_init(&x->bounds_arena, 1 << 10, 0);
    cursor_init(&x->c, s, table, prefix, lower, upper);
    if (open_chunks(x, lower, upper, e) == 0) return &x->it;
    chunk_free(&x->it);
    return NULL;
}

/* ---- forward ---- */

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

struct kv_iter *iter_of_range(struct rados *s, uint32_t table, struct slice prefix, struct slice lower,
                              struct slice upper, bool backwards, uint64_t wanted, struct err *e) {
    if (backwards) return chunks_of_range(s, table, prefix, lower, upper, e);
    struct cursor_iter *x = calloc(1, sizeof(*x));
    if (!x) return err_null(err_nomem(e));
    x->it.ops = &cursor_ops;
    buf_init(&x->floor, 0);
    cursor_init(&x->c, s, table, prefix, lower, upper);
    cursor_expect(&x->c, wanted);
    return &x->it;
}
