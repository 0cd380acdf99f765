#include <assert.h>
#include <errno.h>

#include "engine/rados/cursor.h"
#include "engine/rados/jobs.h"
#include "engine/rados/pieces.h"

enum {
    PAGE_LEAST = 3,
    PAGE_UNKNOWN = 12, /* keys at most while the size of a shard's rows is unknown */
    PAGE_FIRST = 128, /* keys of the first page of a partition at most: many readers want few rows */
    PAGE_MORE = 8,    /* keys beyond the records that a caller expects: deletions, a static row, second operands */
    PAGE_TIMES = 4,   /* as many the next time */
    /* Keys read from a wide partition's shard: each may be a fence, and an OSD skips many removed keys
     * up to it (Q17). */
    WIDE_FIRST = 4,
    WIDE_TIMES = 4, /* as many the next time, if none was a fence */
    CHUNK = 32 << 10,
    FOLD_OPERANDS = 8,
    TRIES = 16, /* of a page whose first part was read as of a moment that is past */
};

/* The next page begins in the partition with that prefix; an empty prefix means in no partition, or an unknown one. */
static void enter(struct cursor *c, struct slice prefix) {
    if (prefix.n && slice_eq(prefix, buf_slice(&c->part))) return;
    buf_clear(&c->part, SIZE_MAX);
    buf_put_slice(&c->part, prefix);
    c->has_moment = false;
}

/* The next page begins with the first record of the table that is not less than key. */
static int start_at(struct cursor *c, struct slice key) {
    uint8_t token[8] = {0};
    size_t n = key.n > ENGI_KEY_TOKEN ? key.n - ENGI_KEY_TOKEN : 0;
    buf_clear(&c->start, SIZE_MAX);
    if (n) omap_key_escape(&c->start, slice_of(key.p + ENGI_KEY_TOKEN, n));
    else buf_put_str(&c->start, SHARD_HEAD_LAST);
    buf_u8(&c->start, 0);
    memcpy(token, key.p + ENGI_KEY_TOKEN, n < sizeof(token) ? n : sizeof(token));
    c->position = load_u64(token);
    enter(c, slice_of(key.p, engi_prefix_len(key)));
    return buf_failed(&c->start) || buf_failed(&c->part) ? -ENOMEM : 0;
}

/* The next page begins after a key of the same shard. */
static int start_after(struct cursor *c, struct slice key) {
    buf_clear(&c->start, SIZE_MAX);
    buf_put_slice(&c->start, key);
    buf_u8(&c->start, 0);
    return buf_failed(&c->start) ? -ENOMEM : 0;
}

/* Reads the prefix of the partition from an object's key, into the page's arena. */
static int partition_of(struct cursor *c, struct slice key, struct slice *prefix) {
    struct buf record;
    buf_init(&record, 0);
    buf_u32(&record, c->table);
    int rc = omap_key_record(key, &record);
    size_t n = rc == 0 ? engi_prefix_len(buf_slice(&record)) : 0;
    *prefix = arena_take(&c->page, &record);
    prefix->n = n;
    return prefix->p && n ? 0 : -EBADMSG;
}

/* Makes the latest read the moment of the partition in which the next page begins. The partition's own keys are
 * among the pairs. */
static int keep_moment(struct cursor *c, const struct omap_pairs *pairs) {
    arena_reset(&c->moment_arena);
    c->shard = c->f.shard;
    c->moment = c->f.head;
    c->moment.counters = ARENA_ARRAY(&c->moment_arena, c->f.head.n_counters + 1, struct shard_counter);
    buf_clear(&c->mark, SIZE_MAX);
    buf_clear(&c->pieces, SIZE_MAX);
    buf_put_slice(&c->mark, fetch_partition_value(pairs, OMAP_REMOVALS));
    buf_put_slice(&c->pieces, fetch_partition_value(pairs, OMAP_PIECES));
    if (!c->moment.counters || buf_failed(&c->mark) || buf_failed(&c->pieces)) return -ENOMEM;
    memcpy(c->moment.counters, c->f.head.counters, c->f.head.n_counters * sizeof(struct shard_counter));
    c->has_moment = true;
    return 0;
}

/* Continues with a partition as of its moment; later partitions begin as of now. If operands were removed or
 * moved meanwhile, that moment is past, and the page begins as of now. Returns 0, or -EAGAIN if the page must start
 * again, because its first part was read as of the earlier moment. */
static int apply_moment(struct cursor *c) {
    const struct omap_pairs *own = &c->f.pairs[1];
    struct slice pieces = fetch_partition_value(own, OMAP_PIECES);
    bool passed = c->f.shard != c->shard || !slice_eq(fetch_partition_value(own, OMAP_REMOVALS), buf_slice(&c->mark)) ||
                  !slice_eq(pieces, buf_slice(&c->pieces));
    if (passed) return c->pairs.n ? -EAGAIN : keep_moment(c, own);
    const char *prefix = omap_key_string(&c->page, buf_slice(&c->part), "");
    if (!prefix) return -ENOMEM;
    fetch_as_of(&c->f.pairs[0], prefix, &c->moment, &c->f.head);
    return 0;
}

/* No more keys are in this shard: the next page begins with the next shard. */
static int next_shard(struct cursor *c) {
    uint8_t key[ENGI_KEY_LENGTH];
    uint64_t last = c->f.shard ? shard_last(&c->f.shard->id) : ~(uint64_t)0;
    c->ended = c->prefix.p || last == ~(uint64_t)0;
    if (c->ended) return 0;
    store_u32(key, c->table);
    store_u64(key + ENGI_KEY_TOKEN, last + 1);
    if (c->upper.p && slice_cmp(slice_of(key, sizeof(key)), c->upper) >= 0) c->ended = true;
    return start_at(c, slice_of(key, sizeof(key)));
}

/* More keys follow the page, whose first and last keys as read are given. So its last record and its
 * last partition may be incomplete. The page ends before its last partition, if it has another one; otherwise it ends
 * before its last record, and its partition continues as of now. Returns 1 if the page is complete, or 0 if all of it
 * is one record. */
static int cut_page(struct cursor *c, struct slice first, struct slice last) {
    struct slice first_part, last_part, record = omap_key_record_part(last);
    struct omap_pairs *p = &c->pairs;
    if (partition_of(c, first, &first_part) < 0 || partition_of(c, last, &last_part) < 0) return -EBADMSG;
    if (!slice_eq(first_part, last_part)) {
        const char *begin = omap_key_string(&c->page, last_part, "");
        if (!begin) return -ENOMEM;
        while (p->n && slice_cmp(p->items[p->n - 1].key, slice_str(begin)) > 0) p->n--;
        return start_at(c, last_part) < 0 ? -ENOMEM : 1;
    }
    /* A partition that begins in the page has its own keys in the page, too. */
    const struct omap_pairs *own = &c->f.pairs[slice_eq(buf_slice(&c->part), last_part) ? 1 : 0];
    enter(c, last_part);
    if (buf_failed(&c->part) || (!c->has_moment && keep_moment(c, own) < 0)) return -ENOMEM;
    size_t n = p->n;
    while (n && slice_eq(omap_key_record_part(p->items[n - 1].key), record)) n--;
    if (!n) return start_after(c, last);
    p->n = n;
    return start_after(c, slice_of(record.p, record.n - 1)) < 0 ? -ENOMEM : 1;
}

/* Returns the number of keys that a page should have. */
static uint64_t page_keys(const struct cursor *c, const struct shard *sh) {
    uint64_t bytes = sh ? atomic_load(&sh->key_bytes) : 0;
    uint64_t fit = bytes ? PAGE_BYTES / bytes : PAGE_UNKNOWN;
    return fit < PAGE_LEAST ? PAGE_LEAST : fit < c->max ? fit : c->max;
}

/* Small rows may precede large ones. So the average falls by at most half at a time. */
static void note_size(const struct omap_pairs *got, struct shard *sh) {
    uint64_t bytes = 0, n = 0, before = atomic_load(&sh->key_bytes) / 2;
    for (size_t i = 0; i < got->n; i++) {
        if (omap_key_of_partition(got->items[i].key)) continue;
        bytes += got->items[i].key.n + got->items[i].value.n;
        n++;
    }
    if (n) atomic_store(&sh->key_bytes, bytes / n > before ? bytes / n : before);
}

/* Adapts the number of keys to read, after the shard has returned keys of a wide partition. */
static void note_wide(struct cursor *c) {
    const struct omap_pairs *got = &c->f.pairs[0];
    bool fence = false;
    for (size_t i = 0; i < got->n; i++) fence = fence || omap_key_of_partition(got->items[i].key) == OMAP_FENCE;
    c->wide_max = fence ? WIDE_FIRST : c->wide_max * WIDE_TIMES;
    if (c->wide_max > OMAP_READ_MAX) c->wide_max = OMAP_READ_MAX;
    atomic_store(&c->f.shard->wide_position, c->position);
    atomic_store(&c->f.shard->has_wide, true);
}

static void cut_at(struct omap_pairs *pairs, struct slice key) {
    while (pairs->n && slice_cmp(pairs->items[pairs->n - 1].key, key) >= 0) pairs->n--;
}

/* The page begins in a wide partition: it ends with the partition at the latest, and gets the rows of its pieces. */
static int take_wide(struct cursor *c, struct slice pieces, const char *range_end, struct slice *last, bool *more) {
    struct omap_pairs *got = &c->f.pairs[0];
    note_size(got, c->f.shard);
    struct fetch_part part = {(const char *)c->start.p, "", page_keys(c, c->f.shard), range_end};
    const char *end = omap_key_string(&c->page, buf_slice(&c->part), "\xff");
    if (!end) return -ENOMEM;
    cut_at(got, slice_str(end));
    *more = *more && slice_cmp(*last, slice_str(end)) < 0;
    return pieces_add(c->s, buf_slice(&c->part), pieces, &part, &c->page, got, last, more);
}

/* Ends the page before the first wide partition that begins in it. Returns 1 if there is one; the
 * next page begins there. */
static int stop_at_wide(struct cursor *c) {
    struct omap_pairs *got = &c->f.pairs[0];
    struct slice prefix;
    size_t i = 0;
    while (i < got->n && omap_key_of_partition(got->items[i].key) != OMAP_PIECES) i++;
    if (i == got->n) return 0;
    if (partition_of(c, got->items[i].key, &prefix) < 0) return -EBADMSG;
    const char *begin = omap_key_string(&c->page, prefix, "");
    const char *own = omap_key_string(&c->page, prefix, OMAP_PARTITION_KEYS "P");
    if (!begin || !own) return -ENOMEM;
    /* Otherwise the next page, which reads the partition's own keys, would not find this one. */
    if (!slice_eq(got->items[i].key, slice_str(own))) return -EBADMSG;
    cut_at(got, slice_str(begin));
    return start_at(c, prefix) < 0 ? -ENOMEM : 1;
}

/* Reads a page; a page that consists of operands of one record continues until it has all of them. */
static int read_page(struct cursor *c) {
    struct slice first = {0};
    const char *end = c->prefix.p && c->upper.p ? omap_key_string(&c->page, c->upper, "") : NULL; /* of the range */
    int rc = c->prefix.p && c->upper.p && !end ? -ENOMEM : 0;
    while (rc == 0) {
        struct shard *sh = shard_map_find(&c->s->shards, c->table, c->position);
        uint64_t max = page_keys(c, sh);
        bool wide = c->part.n && sh && atomic_load(&sh->has_wide) && atomic_load(&sh->wide_position) == c->position;
        if (wide && c->wide_max < max) max = c->wide_max;
        const char *within = c->prefix.p ? omap_key_string(&c->page, c->prefix, "") : "";
        const char *own = c->part.n ? omap_key_string(&c->page, buf_slice(&c->part), OMAP_PARTITION_KEYS) : NULL;
        struct fetch_part parts[2] = {{(const char *)c->start.p, within, max}, {own, own, OMAP_PARTITION_KEYS_MAX}};
        if (!within || (c->part.n && !own)) return -ENOMEM;
        if ((rc = fetch(c->s, c->table, c->position, parts, own ? 2 : 1, &c->page, &c->f)) < 0) return rc;
        struct omap_pairs *got = &c->f.pairs[0];
        struct slice pieces = fetch_partition_value(&c->f.pairs[1], OMAP_PIECES);
        bool more = c->f.shard && c->f.more[0] && got->n, stops = false;
        /* As read: the page continues after `last`, also if all keys were appended after the moment. */
        struct slice begin = got->n ? got->items[0].key : first, last = got->n ? got->items[got->n - 1].key : first;
        if (pieces.n) note_wide(c);
        if (c->has_moment && c->f.shard) rc = apply_moment(c);
        if (rc == 0 && pieces.n) rc = take_wide(c, pieces, end, &last, &more);
        else if (rc == 0) stops = (rc = stop_at_wide(c)) == 1;
        if (rc >= 0 && c->f.shard) note_size(got, c->f.shard);
        if (!first.p) first = got->n ? got->items[0].key : begin;
        if (rc < 0 || (rc = fetch_append(&c->pairs, got)) < 0) return rc;
        if (stops) return 0;
        if (!more && pieces.n) { /* the next page begins after the wide partition */
            const char *past = omap_key_string(&c->page, buf_slice(&c->part), "\xff");
            c->ended = c->prefix.p != NULL;
            enter(c, slice_of("", 0));
            return past ? start_after(c, slice_str(past)) : -ENOMEM;
        }
        if (!more) return next_shard(c);
        if (end && slice_cmp(last, slice_str(end)) >= 0) {
            c->ended = true;
            return 0;
        }
        rc = cut_page(c, first, last);
    }
    return rc < 0 ? rc : 0;
}

static int next_page(struct cursor *c) {
    int rc = -EAGAIN;
    buf_clear(&c->begin, SIZE_MAX);
    buf_put_slice(&c->begin, buf_slice(&c->start));
    if (buf_failed(&c->begin)) return -ENOMEM;
    for (int i = 0; rc == -EAGAIN && i < TRIES; i++) {
        arena_reset(&c->page);
        c->pairs.n = c->records.n = c->at = 0;
        rc = read_page(c);
        if (rc != -EAGAIN) break;
        buf_clear(&c->start, SIZE_MAX);
        buf_put_slice(&c->start, buf_slice(&c->begin));
        c->has_moment = false;
    }
    c->max = c->max * PAGE_TIMES < OMAP_READ_MAX ? c->max * PAGE_TIMES : OMAP_READ_MAX;
    return rc < 0 ? rc : records_of(c->s, c->table, &c->pairs, &c->page, &c->records);
}

void cursor_init(struct cursor *c, struct rados *s, uint32_t table, struct slice prefix, struct slice lower,
                 struct slice upper) {
    *c = (struct cursor){.s = s, .table = table, .prefix = prefix, .upper = upper, .wide_max = WIDE_FIRST,
                         .max = prefix.p ? PAGE_FIRST : OMAP_READ_MAX};
    arena_init(&c->page, CHUNK, 0);
    arena_init(&c->moment_arena, 1 << 10, 0);
    buf_init(&c->start, 0);
    buf_init(&c->part, 0);
    buf_init(&c->begin, 0);
    buf_init(&c->mark, 0);
    buf_init(&c->pieces, 0);
    if (start_at(c, lower) < 0) c->start.failed = true;
}

void cursor_expect(struct cursor *c, uint64_t records) {
    if (records && records < c->max - PAGE_MORE) c->max = records + PAGE_MORE;
}

void cursor_restart(struct cursor *c, struct slice lower, struct slice upper, uint64_t keys, uint64_t shard_keys) {
    assert(c->prefix.p);
    c->ended = false;
    /* One key more: a key after the range shows that all of the range was read. */
    c->max = keys < OMAP_READ_MAX ? keys + 1 : OMAP_READ_MAX;
    if (shard_keys < OMAP_READ_MAX) c->wide_max = shard_keys + 1;
    c->at = c->records.n = 0;
    c->upper = upper;
    if (start_at(c, lower) < 0) c->start.failed = true;
}

struct slice cursor_pieces(const struct cursor *c) { return fetch_partition_value(&c->f.pairs[1], OMAP_PIECES); }

void cursor_fini(struct cursor *c) {
    fetched_fini(&c->f);
    arena_fini(&c->page);
    arena_fini(&c->moment_arena);
    buf_fini(&c->start);
    omap_pairs_fini(&c->pairs);
    buf_fini(&c->part);
    buf_fini(&c->begin);
    buf_fini(&c->mark);
    buf_fini(&c->pieces);
}

int cursor_next(struct cursor *c, const struct record **out, struct err *e) {
    while (c->at == c->records.n) {
        if (c->ended) return 0;
        int rc = buf_failed(&c->start) ? -ENOMEM : next_page(c);
        if (rc == -EAGAIN)
            return err_set(e, ERR_READ_TIMEOUT, "the partition was rewritten while it was read; try again");
        if (rc < 0) return pool_error(e, rc, POOL_READS, c->f.shard ? c->f.shard->name : "of rows");
    }
    const struct record *r = &c->records.items[c->at];
    if (c->upper.p && slice_cmp(r->key, c->upper) >= 0) {
        c->ended = true;
        c->at = c->records.n = 0;
        return 0;
    }
    if (r->n_operands >= FOLD_OPERANDS) jobs_add_fold(c->s, r->key);
    c->at++;
    *out = r;
    return 1;
}

int cursor_seek(struct cursor *c, struct slice key, const struct record **out, struct err *e) {
    while (c->at < c->records.n && slice_cmp(c->records.items[c->at].key, key) < 0) c->at++;
    if (c->at == c->records.n && !c->ended) {
        struct buf b;
        buf_init(&b, 0);
        if (key.n > ENGI_KEY_TOKEN) omap_key_escape(&b, slice_of(key.p + ENGI_KEY_TOKEN, key.n - ENGI_KEY_TOKEN));
        bool skips = buf_failed(&b) || slice_cmp(buf_slice(&b), slice_of(c->start.p, c->start.n - 1)) > 0;
        buf_fini(&b);
        if (skips && start_at(c, key) < 0) return err_nomem(e);
    }
    return cursor_next(c, out, e);
}
