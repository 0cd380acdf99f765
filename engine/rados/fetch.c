#include <errno.h>

#include "engine/rados/fetch.h"

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

/* A table that is dropped while it is read has a split root and no halves. */
static int absent(struct rados *s, const struct shard *sh, bool *again) {
    *again = sh->id.depth && !*again;
    if (*again) shard_map_forget(&s->shards, sh->id.table);
    return 0;
}

int fetch(struct rados *s, uint32_t table, uint64_t position, const struct fetch_part *parts, size_t n, struct arena *a,
          struct fetched *out) {
    bool again = false;
    for (;;) {
        fetched_fini(out);
        struct shard *sh = shard_map_find(&s->shards, table, position);
        if (!sh) return -ENOMEM;
        int rc = fetch_object(s, sh->name, parts, n, a, out);
        if (rc == -ENOENT) {
            rc = absent(s, sh, &again);
            if (again) continue;
            fetched_fini(out);
            return rc;
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
    return (struct slice){0};
}

/* The combination of n operands. */
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

/* One record of the n pairs that are its operands. */
static int record_of(const struct rados *s, uint32_t table, const struct omap_pair *pairs, size_t n, struct arena *a,
                     struct record *out) {
    struct omap_operand_id id;
    struct buf key;
    struct omap_pair *operands = arena_alloc(a, n * sizeof(*operands));
    if (!operands) return -ENOMEM;
    memcpy(operands, pairs, n * sizeof(*operands));
    buf_init(&key, 0);
    buf_u32(&key, table);
    if (omap_key_read(pairs[0].key, &key, &id) < 0) {
        buf_fini(&key);
        return -EBADMSG;
    }
    *out = (struct record){.key = arena_take(a, &key), .operands = operands, .n_operands = n};
    return out->key.p ? combine(s, pairs, n, a, &out->value) : -ENOMEM;
}

int records_of(const struct rados *s, uint32_t table, const struct omap_pairs *pairs, struct arena *a,
               struct records *out) {
    size_t n;
    *out = (struct records){.items = arena_alloc(a, (pairs->n + 1) * sizeof(out->items[0]))};
    if (!out->items) return -ENOMEM;
    for (size_t i = 0; i < pairs->n; i += n) {
        struct slice part = omap_key_record_part(pairs->items[i].key);
        n = 1;
        if (omap_key_of_partition(pairs->items[i].key)) continue;
        while (i + n < pairs->n && slice_eq(omap_key_record_part(pairs->items[i + n].key), part)) n++;
        int rc = record_of(s, table, &pairs->items[i], n, a, &out->items[out->n++]);
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
