#include "engine/rados/fetch.h"

#include <assert.h>
#include <errno.h>

#define DROPS "dropped"
enum { TABLE_DIGITS = 5 };

void fetched_fini(struct fetched *f) {
    for (size_t i = 0; i < FETCH_PARTS; i++) omap_pairs_fini(&f->pairs[i]);
    *f = (struct fetched){0};
}

int fetch_object(struct rados *s, const char *name, const struct fetch_part *parts, size_t n, struct arena *a,
                 struct fetched *out) {
    struct omap_read r = {.pool = &s->pool};
    struct omap_pairs head = {0};
    omap_read_add(&r, "", SHARD_HEAD_PREFIX, OMAP_READ_MAX);
    for (size_t i = 0; i < n; i++) omap_read_add(&r, parts[i].start_after, parts[i].prefix, parts[i].max);
    for (size_t i = 0; i < n; i++) out->pairs[i].n = 0;
    int rc = omap_read_run(&r, name);
    if (rc == 0) rc = omap_read_take(&r, 0, a, &head);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = omap_read_take(&r, (uint32_t)i + 1, a, &out->pairs[i]);
        out->more[i] = r.parts[i + 1].more;
    }
    omap_read_fini(&r);
    if (rc == 0 && shard_head_read(&head, a, &out->head) < 0) rc = -EBADMSG;
    omap_pairs_fini(&head);
    return rc;
}

int fetch(struct rados *s, uint32_t table, uint64_t position, const struct fetch_part *parts, size_t n, struct arena *a,
          struct fetched *out) {
    bool again = false;
    for (;;) {
        fetched_fini(out);
        struct shard *sh = shard_map_find(&s->shards, table, position);
        if (!sh) return -ENOMEM;
        int rc = fetch_object(s, sh->name, parts, n, a, out);
        if (rc == -ENOENT && sh->id.depth && !again) {
            /* A table that is dropped while it is read has a split root and no halves. */
            shard_map_forget(&s->shards, sh->id.table);
            again = true;
            continue;
        }
        if (rc == -ENOENT) {
            fetched_fini(out);
            return 0;
        }
        out->shard = sh;
        if (rc < 0) return rc;
        if (out->head.state == SHARD_OPEN || out->head.state == SHARD_FROZEN) return 0;
        if (out->head.state != SHARD_SPLIT || sh->id.depth == SHARD_DEPTH_MAX) return -EBADMSG;
        atomic_store(&sh->split, true);
    }
}

void fetch_as_of(struct omap_pairs *pairs, const char *prefix, const struct shard_head *moment,
                 const struct shard_head *now) {
    struct omap_operand_id id;
    struct buf record;
    size_t kept = 0, n = strlen(prefix);
    buf_init(&record, 0);
    for (size_t i = 0; i < pairs->n; i++) {
        struct slice key = pairs->items[i].key;
        bool visible = true, within = key.n >= n && memcmp(key.p, prefix, n) == 0;
        buf_clear(&record, SIZE_MAX);
        if (within && !omap_key_of_partition(key) && omap_key_read(key, &record, &id) == 0) {
            const struct shard_counter *then = shard_counter_find(moment, id.writer);
            /* A writer without counters is one whose operands a split has copied. */
            visible = !shard_counter_find(now, id.writer) || (then && id.sequence <= then->sequence);
        }
        if (visible) pairs->items[kept++] = pairs->items[i];
    }
    pairs->n = kept;
    buf_fini(&record);
}

int fetch_append(struct omap_pairs *to, const struct omap_pairs *more) {
    if (!more->n) return 0;
    struct omap_pair *items = realloc(to->items, (to->n + more->n) * sizeof(*items));
    if (!items) return -ENOMEM;
    memcpy(items + to->n, more->items, more->n * sizeof(*items));
    to->items = items;
    to->n = to->cap = to->n + more->n;
    return 0;
}

struct slice fetch_partition_value(const struct omap_pairs *pairs, enum omap_partition_key what) {
    for (size_t i = 0; i < pairs->n; i++)
        if (omap_key_of_partition(pairs->items[i].key) == what) return pairs->items[i].value;
    return slice_of("", 0);
}

/* Puts the combination of n operands in *value. */
static int combine(const struct rados *s, const struct omap_pair *operands, size_t n, struct arena *a,
                   struct slice *value) {
    struct buf sum, next;
    int rc = 0;
    *value = operands[0].value;
    if (n == 1) return 0;
    buf_init(&sum, 0);
    buf_init(&next, 0);
    buf_put_slice(&sum, *value);
    for (size_t i = 1; i < n && rc == 0; i++) {
        buf_clear(&next, SIZE_MAX);
        if (s->o.merge(buf_slice(&sum), operands[i].value, &next) < 0 || buf_failed(&next)) rc = -EBADMSG;
        struct buf swap = sum;
        sum = next;
        next = swap;
    }
    if (rc == 0 && !(*value = arena_dup(a, buf_slice(&sum))).p) rc = -ENOMEM;
    buf_fini(&sum);
    buf_fini(&next);
    return rc;
}

int records_of(const struct rados *s, uint32_t table, const struct omap_pairs *pairs, struct arena *a,
               struct records *out) {
    struct omap_operand_id id;
    size_t n;
    *out = (struct records){.items = arena_alloc(a, (pairs->n + 1) * sizeof(out->items[0]))};
    if (!out->items) return -ENOMEM;
    for (size_t i = 0; i < pairs->n; i += n) {
        const struct omap_pair *first = &pairs->items[i];
        struct slice part = omap_key_record_part(first->key);
        n = 1;
        if (omap_key_of_partition(first->key)) continue;
        while (i + n < pairs->n && slice_eq(omap_key_record_part(first[n].key), part)) n++;
        struct record *r = &out->items[out->n++];
        struct omap_pair *operands = arena_alloc(a, n * sizeof(*operands));
        if (!operands) return -ENOMEM;
        memcpy(operands, first, n * sizeof(*operands));
        struct buf key;
        buf_init(&key, 0);
        buf_u32(&key, table);
        if (omap_key_read(first->key, &key, &id) < 0) {
            buf_fini(&key);
            return -EBADMSG;
        }
        *r = (struct record){.key = arena_take(a, &key), .operands = operands, .n_operands = n};
        int rc = r->key.p ? combine(s, first, n, a, &r->value) : -ENOMEM;
        if (rc < 0) return rc;
    }
    return 0;
}

int fetch_copy_key(const struct record *r, struct buf *out) {
    struct omap_operand_id first, last;
    struct slice operand = r->operands[0].key;
    if (r->n_operands > 1) {
        struct buf record;
        buf_init(&record, 0);
        int rc =
            omap_key_read(operand, &record, &first) | omap_key_read(r->operands[r->n_operands - 1].key, &record, &last);
        buf_fini(&record);
        if (rc < 0) return -EBADMSG;
        last.kind = OMAP_COMBINED;
        last.oldest = first.oldest;
        operand = omap_key_record_part(operand);
        buf_put_slice(out, operand);
        omap_key_operand(out, &last);
    } else {
        buf_put_slice(out, operand);
    }
    return buf_failed(out) ? -ENOMEM : 0;
}

/* ---- heads and drops ---- */

int head_note_drop(struct rados *s, uint32_t table) {
    struct omap_write w = {.creates = true};
    struct buf key;
    buf_init(&key, 0);
    omap_key_number(&key, table, TABLE_DIGITS);
    omap_write_set(&w, buf_slice(&key), slice_str("d"));
    int rc = buf_failed(&key) ? -ENOMEM : omap_write_run(&w, &s->pool, DROPS);
    omap_write_fini(&w);
    buf_fini(&key);
    return rc;
}

int head_was_dropped(struct rados *s, uint32_t table, struct arena *a) {
    struct omap_read r = {.pool = &s->pool};
    struct omap_pairs found = {0};
    struct buf key;
    buf_init(&key, 0);
    omap_key_number(&key, table, TABLE_DIGITS);
    buf_u8(&key, 0);
    if (buf_failed(&key)) return -ENOMEM;
    omap_read_add(&r, "", (const char *)key.p, 1); /* all keys have as many digits */
    int rc = omap_read_run(&r, DROPS);
    if (rc == 0) rc = omap_read_take(&r, 0, a, &found);
    if (rc == 0) rc = found.n > 0;
    omap_read_fini(&r);
    omap_pairs_fini(&found);
    buf_fini(&key);
    return rc == -ENOENT ? 0 : rc;
}

int head_read(struct rados *s, const struct shard *sh, bool creates, struct arena *a, struct shard_head *head) {
    struct fetched f = {0};
    int rc = fetch_object(s, sh->name, NULL, 0, a, &f);
    if (rc == -ENOENT && creates && !sh->id.depth) {
        if ((rc = head_was_dropped(s, sh->id.table, a)) != 0) return rc < 0 ? rc : -ENOENT;
        struct omap_write w = {.creates = true, .exclusive = true};
        omap_write_set(&w, shard_state_key, shard_state_value(SHARD_OPEN));
        rc = omap_write_run(&w, &s->pool, sh->name);
        omap_write_fini(&w);
        if (rc < 0 && rc != -EEXIST) return rc;
        if ((rc = head_was_dropped(s, sh->id.table, a)) == 0) rc = fetch_object(s, sh->name, NULL, 0, a, &f);
        assert(!sh->id.depth); /* Q6: only a root is created, and removed again */
        if (rc > 0 && (rc = pool_remove(&s->pool, sh->name)) == 0) rc = -ENOENT;
    }
    if (rc == 0) *head = f.head;
    return rc;
}
