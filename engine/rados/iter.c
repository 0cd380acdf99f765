#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "engine/rados/bisect.h"
#include "engine/rados/iter.h"
#include "engine/rados/pieces.h"

/* ---- records in memory ---- */

/* Returns the index of the record that a move from index `at` leads to, or an index of at least n if there is none. */
static size_t moved(const struct record *records, size_t n, size_t at, enum kv_move move, struct slice key) {
    size_t from = 0, to = n;
    if (move == KV_NEXT) return at + 1;
    if (move == KV_PREV) return at - 1;
    while (from < to) { /* finds the first record that is not less than the key */
        size_t middle = from + (to - from) / 2;
        if (slice_cmp(records[middle].key, key) < 0) from = middle + 1;
        else to = middle;
    }
    if (move == KV_SEEK) return from;
    return from < n && slice_eq(records[from].key, key) ? from : from - 1;
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

/* ---- both directions ----
 *
 * A pool can only be read upwards. So the iterator reads a chunk of the range at a time, upwards, and
 * holds it in memory. No chunk crosses the border of a part: a range of a wide partition has a part for the records
 * before the rows, and one for the keys of each piece; any other range is one part. Downwards, a
 * chunk begins a few rows before its end (engine/rados/bisect.h), and each chunk has more rows
 * than the previous one. */

enum {
    OPENED = 640,       /* records of the first chunk of a partition that is not wide */
    BISECTED_MAX = 256, /* rows of a chunk whose begin is searched; a larger chunk is the rest of its part */
    UPWARDS = 64        /* records of a chunk upwards; a scan downwards reads only the records before the rows so */
};

struct range_part {
    struct slice begin; /* it ends where the next part begins, the last one with the range */
    bool has_piece;
    uint64_t piece;     /* the number of the piece with its rows */
};

struct chunk_iter {
    struct kv_iter it;
    struct cursor c;
    struct slice upper;
    struct arena parts_arena;
    uint64_t pieces_id;
    struct range_part *parts;
    size_t n_parts;
    uint64_t wanted;     /* rows of the next chunk downwards */
    struct buf from, to; /* the limits of the chunk in memory; the following fields are its contents */
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

static int set_key(struct buf *b, struct slice key) {
    buf_clear(b, SIZE_MAX);
    buf_put_slice(b, key);
    return buf_failed(b) ? -1 : 0;
}

/* Keeps the remaining records of the cursor, until the chunk has max. If there are more, the chunk ends after its last
 * record. */
static int keep_rest(struct chunk_iter *x, size_t max, struct err *e) {
    const struct record *r;
    int got = 1;
    while (x->n < max && (got = cursor_next(&x->c, &r, e)) == 1)
        if (keep_record(x, r, e)) return -1;
    if (got <= 0) return got;
    if (set_key(&x->to, x->records[x->n - 1].key)) return err_nomem(e);
    buf_u8(&x->to, 0);
    return buf_failed(&x->to) ? err_nomem(e) : 0;
}

/* Begins to read the chunk [x->from, x->to). keys, shard_keys: as for cursor_restart. */
static void begin_chunk(struct chunk_iter *x, uint64_t keys, uint64_t shard_keys) {
    x->n = x->bytes = 0;
    arena_reset(&x->arena);
    cursor_restart(&x->c, buf_slice(&x->from), buf_slice(&x->to), keys, shard_keys);
}

/* Returns the last part that begins before the key, or with at_key at it; the first part if none does. */
static size_t part_of(const struct chunk_iter *x, struct slice key, bool at_key) {
    size_t i = x->n_parts - 1;
    while (i > 0 && slice_cmp(x->parts[i].begin, key) >= (at_key ? 1 : 0)) i--;
    return i;
}

/* Moves x->from upwards to where the wanted rows begin. Searches the piece first: the shard has many removed keys
 * where the piece has rows (Q17). */
static int find_begin(struct chunk_iter *x, const struct range_part *part, uint64_t *keys, uint64_t *shard_keys,
                      struct err *e) {
    struct bisect_range range = {.to = buf_slice(&x->to), .wanted = x->wanted};
    struct rados *s = x->c.s;
    struct buf from;
    char name[PIECE_NAME];
    int rc = 0;
    *keys = 0;
    buf_init(&from, 0);
    if (part->has_piece) {
        piece_name(x->c.table, x->pieces_id, part->piece, name);
        range.from = part->begin;
        rc = bisect_object(s, name, &range, &x->from, keys);
        range.any = true;
    }
    if (rc == 0 && x->c.f.shard) {
        range.from = buf_slice(&x->from);
        rc = bisect_object(s, x->c.f.shard->name, &range, &from, shard_keys);
        struct buf swap = x->from;
        x->from = from;
        from = swap;
    }
    if (!part->has_piece) *keys = *shard_keys;
    buf_fini(&from);
    return rc < 0 ? pool_error(e, rc, POOL_READS, "of rows") : 0;
}

/* Reads a chunk that ends at x->to, which is greater than the range's begin. */
static int load_below(struct chunk_iter *x, struct err *e) {
    const struct range_part *part = &x->parts[part_of(x, buf_slice(&x->to), false)];
    uint64_t keys = BISECT_UNKNOWN, shard_keys = BISECT_UNKNOWN;
    bool is_head = x->n_parts > 1 && !part->has_piece;
    if (set_key(&x->from, part->begin)) return err_nomem(e);
    if (x->wanted <= BISECTED_MAX && !is_head) {
        if (find_begin(x, part, &keys, &shard_keys, e)) return -1;
        x->wanted *= 4;
    }
    struct slice from = buf_slice(&x->from);
    assert(slice_cmp(from, part->begin) >= 0 && slice_cmp(from, buf_slice(&x->to)) < 0); /* Q22 */
    begin_chunk(x, keys, shard_keys);
    return keep_rest(x, SIZE_MAX, e);
}

/* Reads some records from x->from on, which is less than the range's end. */
static int load_above(struct chunk_iter *x, struct err *e) {
    size_t next = part_of(x, buf_slice(&x->from), true) + 1;
    if (set_key(&x->to, next < x->n_parts ? x->parts[next].begin : x->upper)) return err_nomem(e);
    begin_chunk(x, BISECT_UNKNOWN, BISECT_UNKNOWN);
    cursor_expect(&x->c, UPWARDS);
    return keep_rest(x, UPWARDS, e);
}

static int chunk_move(struct kv_iter *it, enum kv_move move, struct slice key, struct err *e) {
    struct chunk_iter *x = (struct chunk_iter *)it;
    struct slice lower = x->parts[0].begin;
    bool seeks = move == KV_SEEK || move == KV_SEEK_BACK, back = move == KV_PREV || move == KV_SEEK_BACK;
    if (seeks && slice_cmp(key, lower) < 0) {
        if (back) return kv_iter_lend(it, 0, e);
        key = lower;
    }
    if (seeks && !back && slice_cmp(key, x->upper) >= 0) return kv_iter_lend(it, 0, e);
    bool there = !seeks || (slice_cmp(key, buf_slice(&x->from)) >= 0 && slice_cmp(key, buf_slice(&x->to)) < 0);
    if (!there && !back && (set_key(&x->from, key) ? err_nomem(e) : load_above(x, e))) return kv_iter_lend(it, -1, e);
    if (!there && back) {
        bool all = slice_cmp(key, x->upper) >= 0;
        int rc = set_key(&x->to, all ? x->upper : key);
        if (!rc && !all) buf_u8(&x->to, 0); /* the chunk includes the key */
        if (rc || buf_failed(&x->to) ? err_nomem(e) : load_below(x, e)) return kv_iter_lend(it, -1, e);
    }
    x->at = moved(x->records, x->n, x->at, move, key);
    while (x->at >= x->n) {
        bool ended = back ? slice_cmp(buf_slice(&x->from), lower) <= 0 : slice_cmp(buf_slice(&x->to), x->upper) >= 0;
        if (ended) return kv_iter_lend(it, 0, e);
        struct buf swap = x->from;
        x->from = x->to;
        x->to = swap;
        if (back ? load_below(x, e) : load_above(x, e)) return kv_iter_lend(it, -1, e);
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
    arena_fini(&x->parts_arena);
    buf_fini(&x->from);
    buf_fini(&x->to);
    free(x->records);
    free(x);
}

static const struct kv_iter_ops chunk_ops = {.iter_move = chunk_move, .iter_free = chunk_free};

/* Divides the range, after the cursor has read its first page. The pieces may have changed when a chunk is
 * read; then it has fewer or more rows. */
static int set_parts(struct chunk_iter *x, struct slice lower, struct err *e) {
    struct pieces p;
    if (pieces_read(cursor_pieces(&x->c), &x->parts_arena, &p) < 0)
        return err_set(e, ERR_SERVER, "the list of a partition's pieces in the Ceph pool is damaged");
    x->parts = ARENA_ARRAY(&x->parts_arena, p.n + 2, struct range_part);
    uint8_t *rows = arena_alloc(&x->parts_arena, x->c.prefix.n + 1);
    if (!x->parts || !rows) return err_nomem(e);
    memcpy(rows, x->c.prefix.p, x->c.prefix.n);
    rows[x->c.prefix.n] = ENGI_ROW;
    x->pieces_id = p.id;
    x->parts[x->n_parts++] = (struct range_part){.begin = lower};
    for (size_t i = 0; i < p.n; i++) {
        struct slice first = slice_of(rows, x->c.prefix.n + 1);
        struct buf b;
        buf_init(&b, 0);
        bool damaged = i > 0 && pieces_first_key(&p, i, x->c.prefix, &b) == -EBADMSG;
        if (i > 0) first = arena_take(&x->parts_arena, &b);
        if (!damaged && !first.p) return err_nomem(e);
        if (damaged) return err_set(e, ERR_SERVER, "the list of a partition's pieces in the Ceph pool is damaged");
        if (slice_cmp(first, x->upper) >= 0) continue;
        /* A part that begins before the range, or where another part does, replaces that one. */
        struct range_part *last = &x->parts[x->n_parts - 1];
        bool replaces = slice_cmp(first, last->begin) <= 0;
        if (!replaces) last = &x->parts[x->n_parts++];
        *last = (struct range_part){
            .begin = replaces ? last->begin : first, .has_piece = true, .piece = p.items[i].number};
    }
    return 0;
}

/* Reads the first chunk, whose first page shows whether the partition is wide. Then the chunk has all records before
 * the rows, and one row, so that a seek to these records finds their end. */
static int open_chunks(struct chunk_iter *x, struct slice lower, struct err *e) {
    const struct record *r;
    struct shard *sh = shard_map_find(&x->c.s->shards, x->c.table, x->c.position);
    /* In a wide partition the first page needs only the records before the rows. */
    if (sh && atomic_load(&sh->has_wide) && atomic_load(&sh->wide_position) == x->c.position) cursor_expect(&x->c, 1);
    int got = cursor_next(&x->c, &r, e);
    if (got < 0 || set_parts(x, lower, e)) return -1;
    if (set_key(&x->from, lower) || set_key(&x->to, x->upper)) return err_nomem(e);
    while (got == 1 && x->n_parts > 1 && slice_cmp(r->key, x->parts[1].begin) < 0) {
        if (keep_record(x, r, e)) return -1;
        got = cursor_next(&x->c, &r, e);
    }
    if (got <= 0) return got;
    if (keep_record(x, r, e)) return -1;
    return keep_rest(x, x->n_parts > 1 ? x->n : OPENED, e);
}

static struct kv_iter *chunks_of_range(struct rados *s, uint32_t table, struct slice prefix, struct slice lower,
                                       struct slice upper, uint64_t wanted, struct err *e) {
    struct chunk_iter *x = calloc(1, sizeof(*x));
    if (!x) return err_null(err_nomem(e));
    assert(prefix.p && upper.p);
    x->it.ops = &chunk_ops;
    x->at = SIZE_MAX;
    x->upper = upper;
    x->wanted = wanted && wanted < BISECTED_MAX ? wanted + 1 : UINT64_MAX; /* the seek's key may be one of them */
    arena_init(&x->arena, 1 << 12, 0);
    arena_init(&x->parts_arena, 1 << 10, 0);
    buf_init(&x->from, 0);
    buf_init(&x->to, 0);
    cursor_init(&x->c, s, table, prefix, lower, upper);
    if (open_chunks(x, lower, e) == 0) return &x->it;
    chunk_free(&x->it);
    return NULL;
}

/* ---- forward ---- */

struct cursor_iter {
    struct kv_iter it;
    struct cursor c;
    struct buf floor; /* no record is between this key and the key of the iterator */
};

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
    it->key.p = NULL;
    if (got == 1) {
        it->key = r->key;
        it->value = r->value;
    }
    return kv_iter_lend(it, got, e);
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
    if (backwards) return chunks_of_range(s, table, prefix, lower, upper, wanted, e);
    struct cursor_iter *x = calloc(1, sizeof(*x));
    if (!x) return err_null(err_nomem(e));
    x->it.ops = &cursor_ops;
    buf_init(&x->floor, 0);
    cursor_init(&x->c, s, table, prefix, lower, upper);
    cursor_expect(&x->c, wanted);
    return &x->it;
}
