#include <assert.h>
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "engine/rados/fetch.h"
#include "engine/rados/omap_key.h"
#include "engine/rados/split.h"

enum {
    CHUNK = 64 << 10,
    COPY_BYTES = 4 << 20, /* of one operation */
    OPERAND_BYTES = 32,   /* an operand id has fewer */
    DEPTH_DIGITS = 2,
    DROPPED = -ESTALE,
    PAUSE_FIRST_MS = 2,
    PAUSES = 8, /* each twice as long as the one before: 0.5 s in sum; then the waiter completes the split itself */
};

/* ---- reading all pages of the shard ---- */

struct page {
    struct omap_pairs pairs; /* with the partitions' own keys */
    struct records records;
};
typedef int (*page_fn)(void *arg, const struct page *page);

/* Reads the keys of an object after `start`, whatever its state. If the page ends within the
 * operands of a record, that record is left to the next page. Sets `next` to the start of the next page. */
static int read_page(struct rados *s, const struct shard *sh, const char *start, struct arena *a, struct page *page,
                     struct buf *next, bool *more) {
    struct omap_read r = {.pool = &s->pool};
    struct omap_pairs *pairs = &page->pairs;
    pairs->n = 0;
    omap_read_add(&r, start, "", OMAP_READ_MAX);
    int rc = omap_read_run(&r, sh->name);
    if (rc == 0) rc = omap_read_take(&r, 0, a, pairs);
    *more = rc == 0 && r.parts[0].more;
    omap_read_fini(&r);
    if (rc < 0) return rc;
    struct slice last = pairs->n ? omap_key_record_part(pairs->items[pairs->n - 1].key) : slice_of("", 0);
    size_t n = pairs->n;
    while (*more && n && slice_eq(omap_key_record_part(pairs->items[n - 1].key), last)) n--;
    if (n) pairs->n = n; /* otherwise all are operands of one record, which is copied in parts */
    buf_clear(next, SIZE_MAX);
    if (pairs->n) buf_put_slice(next, pairs->items[pairs->n - 1].key);
    buf_u8(next, 0);
    return buf_failed(next) ? -ENOMEM : records_of(s, sh->id.table, pairs, a, &page->records);
}

static int each_page(struct rados *s, const struct shard *sh, page_fn fn, void *arg) {
    struct arena a;
    struct page page = {0};
    struct buf next;
    bool more = true;
    int rc = 0;
    buf_init(&next, 0);
    arena_init(&a, CHUNK, 0);
    for (const char *start = SHARD_HEAD_LAST; rc == 0 && more; start = (const char *)next.p) {
        rc = read_page(s, sh, start, &a, &page, &next, &more);
        if (rc == 0) rc = fn(arg, &page);
        arena_reset(&a);
    }
    omap_pairs_fini(&page.pairs);
    arena_fini(&a);
    buf_fini(&next);
    return rc;
}

/* ---- is it worth it? ---- */

struct survey {
    uint64_t stored, records; /* operands, and the number of records that they combine to */
    uint64_t bytes, weight;   /* of the operands. The weight is their bytes, and weight_of_key for each */
    uint64_t largest;         /* records of the largest partition */
    struct buf prefix;        /* of the latest partition */
    uint64_t current;         /* its records so far */
    uint64_t rows_weight;     /* the weight of its rows so far */
    struct buf heaviest;      /* the prefix of the partition with the heaviest rows */
    uint64_t most_weight;     /* their weight */
    uint64_t weight_of_key;   /* the limit of bytes per key of the limit of keys */
};

static void survey_record(struct survey *v, const struct record *r) {
    struct slice prefix = slice_of(r->key.p, engi_prefix_len(r->key));
    uint64_t bytes = 0;
    if (!slice_eq(prefix, buf_slice(&v->prefix))) {
        buf_clear(&v->prefix, SIZE_MAX);
        buf_put_slice(&v->prefix, prefix);
        v->current = v->rows_weight = 0;
    }
    if (++v->current > v->largest) v->largest = v->current;
    for (size_t i = 0; i < r->n_operands; i++) bytes += r->operands[i].key.n + r->operands[i].value.n;
    v->stored += r->n_operands;
    v->bytes += bytes;
    v->weight += bytes + r->n_operands * v->weight_of_key;
    if (r->key.p[prefix.n] != ENGI_ROW) return;
    v->rows_weight += bytes + r->n_operands * v->weight_of_key;
    if (v->rows_weight <= v->most_weight) return;
    v->most_weight = v->rows_weight;
    if (slice_eq(prefix, buf_slice(&v->heaviest))) return;
    buf_clear(&v->heaviest, SIZE_MAX);
    buf_put_slice(&v->heaviest, prefix);
}

static int survey_page(void *arg, const struct page *page) {
    struct survey *v = arg;
    v->records += page->records.n;
    for (size_t i = 0; i < page->records.n; i++) survey_record(v, &page->records.items[i]);
    return buf_failed(&v->prefix) || buf_failed(&v->heaviest) ? -ENOMEM : 0;
}

/* ---- the steps ---- */

/* Changes the state of an object. Returns 0, also if another process has changed it already, or a negative error
 * number. */
static int change_state(struct rados *s, const char *object, struct omap_write *w, enum shard_state from,
                        enum shard_state to) {
    omap_write_compare(w, shard_state_key, shard_state_value(from));
    omap_write_set(w, shard_state_key, shard_state_value(to));
    int rc = omap_write_run(w, &s->pool, object);
    omap_write_fini(w);
    return rc == -ECANCELED ? 0 : rc;
}

/* Freezes the shard if that is worth it. Otherwise, if it is too large and consists mostly of the rows of one
 * partition, sets wide to the partition's prefix. */
static int freeze(struct rados *s, struct shard *sh, struct buf *wide) {
    struct omap_write w = {0};
    struct survey v = {.weight_of_key = s->o.split_bytes / s->o.split_keys};
    buf_init(&v.prefix, 0);
    buf_init(&v.heaviest, 0);
    int rc = each_page(s, sh, survey_page, &v);
    bool too_large = v.stored > s->o.split_keys || v.bytes > s->o.split_bytes;
    /* There must be enough records in addition to those of the largest partition. */
    bool many = (v.records - v.largest) * 4 >= v.records && v.records * 2 > s->o.split_keys;
    bool large = v.largest * 2 < v.records && v.records > 1 && v.stored < s->o.split_keys; /* by their bytes */
    bool splits = sh->id.depth < SHARD_DEPTH_MAX && (many || large);
    if (rc == 0 && splits) rc = change_state(s, sh->name, &w, SHARD_OPEN, SHARD_FROZEN);
    else if (rc == 0 && too_large && v.most_weight * 2 > v.weight) buf_put_slice(wide, buf_slice(&v.heaviest));
    buf_fini(&v.prefix);
    buf_fini(&v.heaviest);
    return buf_failed(wide) ? -ENOMEM : rc;
}

struct half {
    char name[SHARD_NAME];
    uint64_t first;               /* its first position */
    bool open;                    /* another process has opened it: nothing more is copied */
    struct shard_counter counter; /* of writer 0: of the copied keys */
    struct omap_write write;
    size_t write_bytes;
};

struct copying {
    struct rados *s;
    uint8_t depth; /* of the halves */
    struct half halves[2];
};

static int flush_half(struct rados *s, struct half *h) {
    int rc = 0;
    if (!h->open && h->write.sets.n) {
        assert(h->write.compares.n == 0);
        omap_write_compare(&h->write, shard_state_key, shard_state_value(SHARD_COPIED));
        assert(h->write.failed || h->write.compares.n == 1); /* Q5 */
        rc = omap_write_run(&h->write, &s->pool, h->name);
    }
    omap_write_clear(&h->write);
    h->write_bytes = 0;
    if (rc != -ECANCELED) return rc;
    h->open = true;
    return 0;
}

static int copy_pair(struct copying *c, uint64_t position, struct slice key, struct slice value) {
    struct half *h = &c->halves[position >= c->halves[1].first];
    omap_write_set(&h->write, key, value);
    if (!omap_key_of_partition(key)) {
        h->counter.keys++;
        h->counter.bytes += key.n + value.n;
    }
    h->write_bytes += key.n + value.n;
    return h->write_bytes > COPY_BYTES ? flush_half(c->s, h) : 0;
}

/* Gives a partition, in its half, a mark of removals because operands were combined. */
static int mark_combined(struct copying *c, struct slice key, struct arena *a) {
    struct half *h = &c->halves[shard_position(key) >= c->halves[1].first];
    struct buf b;
    buf_init(&b, 0);
    omap_key_partition(&b, slice_of(key.p, engi_prefix_len(key)), OMAP_REMOVALS);
    struct slice mark_key = arena_take(a, &b);
    buf_init(&b, 0);
    buf_put_str(&b, "split to ");
    omap_key_number(&b, c->depth, DEPTH_DIGITS);
    struct slice mark = arena_take(a, &b);
    if (!mark_key.p || !mark.p) return -ENOMEM;
    assert(c->depth); /* Q7: the whole's mark, if a split made it, contains a lower depth */
    omap_write_set(&h->write, mark_key, mark);
    return 0;
}

static int copy_page(void *arg, const struct page *page) {
    struct copying *c = arg;
    struct arena a; /* of marks, until they are written */
    struct buf keys;
    size_t bytes = 0;
    int rc = 0;
    arena_init(&a, CHUNK, 0);
    buf_init(&keys, 0);
    for (size_t i = 0; i < page->pairs.n; i++) bytes += page->pairs.items[i].key.n + OPERAND_BYTES;
    if (!buf_reserve(&keys, bytes + 1)) rc = -ENOMEM; /* so that it does not move: writes point into it */
    for (size_t i = 0; rc == 0 && i < page->pairs.n; i++) {
        const struct omap_pair *p = &page->pairs.items[i];
        struct buf record;
        if (!omap_key_of_partition(p->key)) continue;
        buf_init(&record, 0);
        rc = omap_key_record(p->key, &record) == 0 && record.n >= 8 ? 0 : -EBADMSG;
        if (rc == 0) rc = copy_pair(c, load_u64(record.p), p->key, p->value);
        buf_fini(&record);
    }
    for (size_t i = 0; rc == 0 && i < page->records.n; i++) {
        const struct record *r = &page->records.items[i];
        size_t from = keys.n;
        if (r->n_operands > 1) rc = mark_combined(c, r->key, &a);
        if (rc == 0 && (rc = fetch_copy_key(r, &keys)) == 0)
            rc = copy_pair(c, shard_position(r->key), slice_of(keys.p + from, keys.n - from), r->value);
    }
    for (int i = 0; rc == 0 && i < 2; i++) rc = flush_half(c->s, &c->halves[i]);
    buf_fini(&keys);
    arena_fini(&a);
    return rc;
}

/* Steps 2 to 5 of a frozen shard. has_pieces: its mark, which both halves get. */
static int complete(struct rados *s, struct shard *sh, bool has_pieces) {
    struct copying c = {.s = s, .depth = (uint8_t)(sh->id.depth + 1)};
    struct arena a;
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < 2; i++) {
        struct omap_write w = {.creates = true, .exclusive = true};
        struct shard_id id = shard_half(&sh->id, i);
        shard_name(&id, c.halves[i].name);
        c.halves[i].first = id.bits;
        omap_write_set(&w, shard_state_key, shard_state_value(SHARD_COPIED));
        rc = omap_write_run(&w, &s->pool, c.halves[i].name);
        omap_write_fini(&w);
        if (rc == -EEXIST) rc = 0;
    }
    if (rc == 0) rc = each_page(s, sh, copy_page, &c);
    for (unsigned i = 0; i < 2; i++) {
        struct half *h = &c.halves[i];
        struct omap_write w = {0};
        struct buf key, value;
        buf_init(&key, 0);
        buf_init(&value, 0);
        shard_counter_key(&key, h->counter.writer);
        shard_counter_value(&value, &h->counter);
        omap_write_set(&w, buf_slice(&key), buf_slice(&value));
        if (has_pieces) omap_write_set(&w, shard_pieces_key, slice_str("m"));
        if (rc == 0 && (buf_failed(&key) || buf_failed(&value))) rc = -ENOMEM;
        if (rc == 0) rc = change_state(s, h->name, &w, SHARD_COPIED, SHARD_OPEN);
        else omap_write_fini(&w);
        buf_fini(&key);
        buf_fini(&value);
        omap_write_fini(&h->write);
    }
    /* Removes the halves if the table was dropped meanwhile (Q6): the drop may not have found them. */
    arena_init(&a, 1 << 10, 0);
    int dropped = head_was_dropped(s, sh->id.table, &a);
    arena_fini(&a);
    for (unsigned i = 0; dropped > 0 && i < 2; i++) {
        int removed = pool_remove(&s->pool, c.halves[i].name);
        if (removed < 0 && removed != -ENOENT) dropped = removed;
    }
    if (dropped) return dropped > 0 ? DROPPED : dropped;
    if (rc < 0) return rc;
    struct omap_write w = {.clears = true};
    return change_state(s, sh->name, &w, SHARD_FROZEN, SHARD_SPLIT);
}

static int state_of(struct rados *s, struct shard *sh, enum shard_state *state, bool *has_pieces) {
    struct arena a;
    struct shard_head head;
    arena_init(&a, 1 << 10, 0);
    int rc = head_read(s, sh, false, &a, &head);
    arena_fini(&a);
    if (rc == 0) *state = head.state, *has_pieces = head.has_pieces;
    return rc == -ENOENT ? DROPPED : rc;
}

/* Reads the state of the shard. Completes the split of a frozen one, with completes, and marks a split one. */
static int follow(struct rados *s, struct shard *sh, bool completes, enum shard_state *state) {
    bool has_pieces;
    int rc = state_of(s, sh, state, &has_pieces);
    if (rc == 0 && *state == SHARD_FROZEN && completes) {
        rc = complete(s, sh, has_pieces);
        if (rc == -ENOENT) return DROPPED; /* while its split ran */
        if (rc == 0) rc = state_of(s, sh, state, &has_pieces);
    }
    if (rc == 0 && *state == SHARD_SPLIT && sh->id.depth == SHARD_DEPTH_MAX) return -EBADMSG;
    if (rc == 0 && *state == SHARD_SPLIT) atomic_store(&sh->split, true);
    return rc;
}

int split_shard(struct rados *s, struct shard *sh, struct buf *wide) {
    enum shard_state state;
    bool has_pieces;
    int rc = state_of(s, sh, &state, &has_pieces);
    if (rc == 0 && state == SHARD_OPEN) rc = freeze(s, sh, wide);
    if (rc == 0) rc = follow(s, sh, true, &state);
    if (rc == 0 && state == SHARD_SPLIT) atomic_fetch_add(&s->n_splits, 1);
    return rc;
}

int split_await(struct rados *s, struct shard *sh, int64_t until_us) {
    enum shard_state state = SHARD_FROZEN;
    int rc = 0;
    for (int i = 0; rc == 0 && state == SHARD_FROZEN && i <= PAUSES && !atomic_load(&sh->split); i++) {
        rc = clock_machine_us(&clock_real) > until_us ? -ETIMEDOUT : follow(s, sh, i == PAUSES, &state);
        struct timespec pause = {.tv_nsec = (PAUSE_FIRST_MS << i) * 1000000L};
        if (rc == 0 && state == SHARD_FROZEN) nanosleep(&pause, NULL);
    }
    /* No client uses a half before it is open. */
    return rc == 0 && state != SHARD_OPEN && state != SHARD_FROZEN && state != SHARD_SPLIT ? -EBADMSG : rc;
}
