#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "engine/rados/pieces.h"

enum { CHUNK = 64 << 10 };

/* ---- names ---- */

void piece_name(uint32_t table, uint64_t id, uint64_t number, char out[PIECE_NAME]) {
    snprintf(out, PIECE_NAME, "piece.%08" PRIx32 ".%016" PRIx64 ".%" PRIx64, table, id, number);
}

int piece_name_read(const char *name, uint32_t *table, uint64_t *id, uint64_t *number) {
    char again[PIECE_NAME];
    if (sscanf(name, "piece.%8" SCNx32 ".%16" SCNx64 ".%16" SCNx64, table, id, number) != 3) return -1;
    piece_name(*table, *id, *number, again);
    return strcmp(again, name) == 0 ? 0 : -1;
}

/* ---- the value ---- */

int pieces_read(struct slice value, struct arena *a, struct pieces *out) {
    *out = (struct pieces){0};
    if (!value.n) return 0;
    struct rd r = rd_of(value);
    out->id = rd_u64(&r);
    out->move = rd_u64(&r);
    out->begun = rd_u8(&r);
    out->next = rd_u64(&r);
    size_t n = rd_u32(&r);
    if (r.bad || n > rd_left(&r) || !(out->garbage = ARENA_ARRAY(a, n + 1, uint64_t))) return -1;
    while (out->n_garbage < n) out->garbage[out->n_garbage++] = rd_u64(&r);
    n = rd_u32(&r);
    if (r.bad || n > rd_left(&r) || !(out->items = ARENA_ARRAY(a, n + 1, struct piece))) return -1;
    while (out->n < n) {
        struct piece *p = &out->items[out->n++];
        p->number = rd_u64(&r);
        p->first = rd_bytes(&r, rd_u32(&r));
        if (out->n > 1 ? slice_cmp(p[-1].first, p->first) >= 0 : p->first.n > 0) return -1;
    }
    return r.bad || rd_left(&r) ? -1 : 0;
}

void pieces_write(struct buf *out, const struct pieces *p) {
    buf_u64(out, p->id);
    buf_u64(out, p->move);
    buf_u8(out, p->begun);
    buf_u64(out, p->next);
    buf_u32(out, (uint32_t)p->n_garbage);
    for (size_t i = 0; i < p->n_garbage; i++) buf_u64(out, p->garbage[i]);
    buf_u32(out, (uint32_t)p->n);
    for (size_t i = 0; i < p->n; i++) {
        buf_u64(out, p->items[i].number);
        buf_u32(out, (uint32_t)p->items[i].first.n);
        buf_put_slice(out, p->items[i].first);
    }
}

size_t pieces_find(const struct pieces *p, struct slice rest) {
    size_t from = 0, to = p->n; /* from: the last piece known to begin at or before the key */
    while (from + 1 < to) {
        size_t middle = from + (to - from) / 2;
        if (slice_cmp(p->items[middle].first, rest) <= 0) from = middle;
        else to = middle;
    }
    return from;
}

int pieces_first_key(const struct pieces *p, size_t i, struct slice prefix, struct buf *out) {
    buf_clear(out, SIZE_MAX);
    buf_put_slice(out, prefix);
    if (i >= p->n) {
        buf_u8(out, ENGI_PAST);
    } else if (p->items[i].first.n) {
        struct slice first = p->items[i].first; /* with an end mark */
        if (omap_key_unescape(slice_of(first.p, first.n - 1), out) < 0) return -EBADMSG;
    }
    return buf_failed(out) ? -ENOMEM : 0;
}

/* ---- reading ---- */

/* Reads one part of a piece. Returns 0, -EAGAIN if the piece is gone, or holds operands that are newer than the
 * head, or another negative error number. */
static int read_piece(struct rados *s, uint32_t table, const struct pieces *p, size_t i, const struct fetch_part *part,
                      struct arena *a, struct fetched *f) {
    char name[PIECE_NAME];
    piece_name(table, p->id, p->items[i].number, name);
    int rc = fetch_object(s, name, part, 1, a, f);
    if (rc < 0) return rc == -ENOENT ? -EAGAIN : rc;
    const struct shard_counter *written = shard_counter_find(&f->head, 0);
    if (!written) return -EBADMSG;
    return written->sequence <= p->move ? 0 : -EAGAIN; /* Q10 */
}

int pieces_merge(const struct omap_pairs *head, const struct omap_pairs *piece, struct omap_pairs *out) {
    size_t h = 0, p = 0;
    if (!head->n && !piece->n) return 0;
    out->items = malloc((head->n + piece->n) * sizeof(out->items[0]));
    if (!out->items) return -ENOMEM;
    out->cap = head->n + piece->n;
    while (h < head->n || p < piece->n) {
        int c = h == head->n ? 1 : p == piece->n ? -1 : slice_cmp(head->items[h].key, piece->items[p].key);
        out->items[out->n++] = c <= 0 ? head->items[h] : piece->items[p];
        h += c <= 0;
        p += c >= 0;
    }
    return 0;
}

int pieces_add(struct rados *s, struct slice prefix, struct slice value, const struct fetch_part *part, struct arena *a,
               struct omap_pairs *pairs, struct slice *last, bool *more) {
    struct pieces p;
    struct omap_pairs found = {0}, sum = {0};
    struct fetched f = {0};
    bool more_found = false;
    int rc = pieces_read(value, a, &p) < 0 ? -EBADMSG : 0;
    if (rc < 0 || !p.n) return rc;
    const char *escaped = omap_key_string(a, prefix, "");
    if (!escaped) return -ENOMEM;
    size_t n_prefix = strlen(escaped);
    struct slice start = slice_str(part->start_after);
    size_t i = pieces_find(&p, slice_of(start.p + n_prefix, start.n - n_prefix));
    size_t used = a->used;
    size_t n = p.n; /* pieces that are read at most */
    struct slice end = part->end ? slice_str(part->end + n_prefix) : (struct slice){0};
    while (end.p && n > i + 1 && slice_cmp(p.items[n - 1].first, end) >= 0) n--;
    for (; rc == 0 && i < n && !more_found; i++) {
        struct fetch_part rest = *part;
        rest.max = part->max - found.n;
        rc = read_piece(s, load_u32(prefix.p), &p, i, &rest, a, &f);
        if (rc == 0) rc = fetch_append(&found, &f.pairs[0]);
        /* After the last key of a piece, the page ends or continues with the next piece. */
        bool full = found.n >= part->max || (found.n && a->used - used >= PAGE_BYTES);
        more_found = rc == 0 && found.n && (f.more[0] || (full && i + 1 < n));
        /* Keys that begin with the prefix of one record are in one piece. */
        if (strlen(part->prefix) > n_prefix + 1) break;
    }
    fetched_fini(&f);
    /* A list that has more is complete up to its last key. */
    struct slice last_found = found.n ? found.items[found.n - 1].key : slice_of("", 0);
    if (more_found)
        while (pairs->n && slice_cmp(pairs->items[pairs->n - 1].key, last_found) > 0) pairs->n--;
    if (*more)
        while (found.n && slice_cmp(found.items[found.n - 1].key, *last) > 0) found.n--;
    if (more_found && (!*more || slice_cmp(last_found, *last) < 0)) *last = last_found;
    if (rc == 0) rc = pieces_merge(pairs, &found, &sum);
    omap_pairs_fini(&found);
    if (rc < 0) return rc;
    omap_pairs_fini(pairs);
    *pairs = sum;
    *more = *more || more_found;
    return 0;
}

/* ---- all of a shard ---- */

int pieces_each(struct rados *s, const struct shard *sh, piece_fn fn, void *arg) {
    struct arena a;
    struct omap_pairs pairs = {0};
    struct buf start;
    bool more = true;
    int rc = 0;
    arena_init(&a, CHUNK, 0);
    buf_init(&start, 0);
    buf_put_str(&start, SHARD_HEAD_LAST);
    while (rc == 0 && more) {
        struct omap_read r = {.pool = &s->pool};
        struct pieces p;
        pairs.n = 0;
        buf_u8(&start, 0);
        if (buf_failed(&start)) rc = -ENOMEM;
        else omap_read_add(&r, (const char *)start.p, "", OMAP_READ_MAX);
        if (rc == 0) rc = omap_read_run(&r, sh->name);
        if (rc == 0) rc = omap_read_take(&r, 0, &a, &pairs);
        more = rc == 0 && r.parts[0].more && pairs.n;
        omap_read_fini(&r);
        for (size_t i = 0; rc == 0 && i < pairs.n; i++) {
            if (omap_key_of_partition(pairs.items[i].key) != OMAP_PIECES) continue;
            rc = pieces_read(pairs.items[i].value, &a, &p) < 0 ? -EBADMSG : 0;
            for (size_t k = 0; rc == 0 && k < p.n + p.n_garbage; k++) {
                char name[PIECE_NAME];
                piece_name(sh->id.table, p.id, k < p.n ? p.items[k].number : p.garbage[k - p.n], name);
                rc = fn(arg, name);
            }
        }
        buf_clear(&start, SIZE_MAX);
        if (more) buf_put_slice(&start, pairs.items[pairs.n - 1].key);
        arena_reset(&a);
    }
    omap_pairs_fini(&pairs);
    buf_fini(&start);
    arena_fini(&a);
    return rc;
}
