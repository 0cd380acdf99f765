#include <assert.h>
#include <errno.h>

#include "base/random.h"
#include "engine/rados/fetch.h"
#include "engine/rados/move.h"
#include "engine/rados/split.h"
#include "engine/rados/write.h"

enum {
    DROPPED = -ESTALE,
    MOVES_MAX = 64,   /* successive moves of a partition, while writers add rows */
    PURGE_PIECES = 4, /* full pieces that are purged together */
};

/* The rows for a piece, and how it changes. Pieces that are purged together are one part. */
struct move_part {
    size_t from, n;                /* of the move's rows */
    uint64_t bytes;
    size_t piece, n_pieces;        /* of the pieces as read; n_pieces 0 if the partition has none */
    struct shard_counter counter;  /* of the piece, as read; summed if there are several */
    bool purges, replaces;
    uint64_t first_number;         /* of the pieces that replace it */
    size_t n_numbers;              /* their number, at most */
    struct piece *made;
    size_t n_made;
};

static uint32_t table_of(const struct move *m) { return load_u32(m->prefix.p); }

/* ---- 1. read ---- */

/* Returns the part of an object's key after the escaped prefix, up to the end mark. */
static struct slice rest_of(const struct move *m, struct slice key) {
    struct slice record = omap_key_record_part(key);
    return slice_of(record.p + m->n_prefix, record.n - m->n_prefix);
}

int move_read(struct move *m) {
    static const char row[] = {ENGI_ROW, 0};
    struct fetched f = {0};
    struct omap_pairs pairs = {0};
    const char *rows = omap_key_string(&m->arena, m->prefix, row);
    const char *own = omap_key_string(&m->arena, m->prefix, OMAP_PARTITION_KEYS);
    struct fetch_part parts[2] = {{rows, rows, OMAP_READ_MAX}, {own, own, OMAP_PARTITION_KEYS_MAX}};
    size_t bytes = 0;
    int rc = rows && own ? 0 : -ENOMEM;
    if (rows) m->n_prefix = strlen(rows) - 1;
    for (m->more = true; rc == 0 && m->more && pairs.n < MOVE_KEYS && bytes < MOVE_BYTES;) {
        size_t from = pairs.n;
        rc = fetch(m->s, table_of(m), shard_position(m->prefix), parts, 2, &m->arena, &f);
        if (rc == 0 && !f.shard) rc = DROPPED;
        if (rc < 0) break;
        struct slice removals = fetch_partition_value(&f.pairs[1], OMAP_REMOVALS);
        struct slice value = fetch_partition_value(&f.pairs[1], OMAP_PIECES);
        /* While no mark changes, the operands of all pages exist together. */
        if (from && (!slice_eq(removals, m->removals) || !slice_eq(value, m->value))) rc = -EAGAIN;
        m->removals = removals;
        m->value = value;
        m->more = f.more[0];
        if (rc == 0) rc = fetch_append(&pairs, &f.pairs[0]);
        for (size_t i = from; rc == 0 && i < pairs.n; i++) bytes += pairs.items[i].value.n;
        struct slice last = pairs.n ? arena_dup(&m->arena, pairs.items[pairs.n - 1].key) : (struct slice){0};
        if (pairs.n) parts[0].start_after = (const char *)last.p;
        if (pairs.n && !last.p) rc = -ENOMEM;
    }
    fetched_fini(&f);
    if (rc == 0) rc = records_of(m->s, table_of(m), &pairs, &m->arena, &m->rows);
    if (rc == 0 && pieces_read(m->value, &m->arena, &m->pieces) < 0) rc = -EBADMSG;
    m->n_operands = pairs.n;
    omap_pairs_fini(&pairs);
    return rc;
}

/* ---- 2. begin ---- */

/* Assigns the rows to pieces. */
static int make_parts(struct move *m) {
    size_t n = 0, piece = 0;
    m->parts = ARENA_ARRAY(&m->arena, m->pieces.n + 1, struct move_part);
    if (!m->parts) return -ENOMEM;
    do {
        struct move_part *part = &m->parts[m->n_parts++];
        *part = (struct move_part){.from = n, .piece = piece, .n_pieces = m->pieces.n > 0};
        part->purges = m->n_purged && piece == m->first_purged;
        if (part->purges) part->n_pieces = m->n_purged;
        piece += part->n_pieces;
        for (; n < m->rows.n; n++) {
            struct slice rest = rest_of(m, m->rows.items[n].operands[0].key);
            if (m->pieces.n && pieces_find(&m->pieces, rest) >= piece) break;
            part->bytes += m->rows.items[n].operands[0].key.n + m->rows.items[n].value.n;
        }
        part->n = n - part->from;
    } while (piece < m->pieces.n);
    assert(n == m->rows.n); /* rows and pieces are sorted */
    return 0;
}

static int read_counter(struct move *m, size_t i, struct shard_counter *out) {
    char name[PIECE_NAME];
    struct fetched f = {0};
    piece_name(table_of(m), m->pieces.id, m->pieces.items[i].number, name);
    int rc = fetch_object(m->s, name, NULL, 0, &m->arena, &f);
    if (rc < 0) return rc == -ENOENT ? -EAGAIN : rc;
    const struct shard_counter *c = shard_counter_find(&f.head, 0);
    if (!c) return -EBADMSG;
    *out = *c;
    return 0;
}

/* Chooses the pieces that are purged. */
static int choose_purged(struct move *m) {
    const struct rados_options *o = &m->s->o;
    uint64_t keys = 0, bytes = 0;
    int rc = 0;
    struct slice from = m->purge->from;
    struct buf b;
    buf_init(&b, 0);
    omap_key_escape(&b, slice_of(from.p + m->prefix.n, from.n - m->prefix.n));
    buf_u8(&b, OMAP_KEY_END);
    m->first_purged = pieces_find(&m->pieces, buf_slice(&b));
    if (buf_failed(&b)) rc = -ENOMEM;
    buf_fini(&b);
    for (size_t i = m->first_purged; rc == 0 && i < m->pieces.n; i++) {
        struct shard_counter c;
        if ((rc = read_counter(m, i, &c)) < 0) break;
        keys += c.keys;
        bytes += c.bytes;
        if (m->n_purged && (keys > PURGE_PIECES * o->split_keys || bytes > PURGE_PIECES * o->split_bytes)) break;
        m->n_purged++;
    }
    return rc;
}

/* A new piece is filled to three quarters. */
static uint64_t fill(uint64_t limit) { return limit - limit / 4; }

/* Decides which pieces are replaced, and gives numbers to the new ones. */
static int plan(struct move *m) {
    const struct rados_options *o = &m->s->o;
    int rc = m->purge ? choose_purged(m) : 0;
    if (rc == 0) rc = make_parts(m);
    for (size_t i = 0; rc == 0 && i < m->n_parts; i++) {
        struct move_part *part = &m->parts[i];
        if (!part->n && !part->purges) continue;
        for (size_t k = 0; k < part->n_pieces; k++) {
            struct shard_counter c, *sum = &part->counter;
            if ((rc = read_counter(m, part->piece + k, &c)) < 0) return rc;
            *sum = (struct shard_counter){.writer = c.writer,
                                          .sequence = c.sequence,
                                          .keys = sum->keys + c.keys,
                                          .bytes = sum->bytes + c.bytes,
                                          .removals = sum->removals + c.removals};
        }
        uint64_t keys = part->counter.keys + part->n, bytes = part->counter.bytes + part->bytes;
        part->replaces = part->purges || !m->pieces.n || keys > o->split_keys || bytes > o->split_bytes;
        if (!part->replaces) continue;
        part->first_number = m->pieces.next;
        part->n_numbers = keys / fill(o->split_keys) + bytes / fill(o->split_bytes) + 1;
        m->pieces.next += part->n_numbers;
    }
    return rc;
}

/* Writes m->pieces as the partition's pieces, with the group's changes and fences. */
static int write_pieces(struct move *m, struct write_group g) {
    struct buf b;
    struct err e = {0};
    buf_init(&b, 0);
    pieces_write(&b, &m->pieces);
    struct slice next = arena_take(&m->arena, &b), before = m->value;
    if (!next.p) return -ENOMEM;
    g.prefix = m->prefix;
    g.pieces = &before;
    g.next_pieces = next;
    if (!m->pieces.begun) g.removals = &m->removals;
    int rc = write_groups(m->s, &g, 1, &e);
    err_clear(&e);
    if (rc < 0) return g.rc < 0 ? g.rc : -EIO;
    if (g.result == WRITE_CHANGED) return -EAGAIN;
    m->value = next;
    return 0;
}

static int remove_piece(struct move *m, uint64_t number) {
    char name[PIECE_NAME];
    piece_name(table_of(m), m->pieces.id, number, name);
    int rc = pool_remove(&m->s->pool, name);
    return rc == -ENOENT ? 0 : rc;
}

int move_begin(struct move *m) {
    struct err e = {0};
    uint64_t *old = m->pieces.garbage;
    size_t n_old = m->pieces.n_garbage, n = n_old;
    uint64_t next = m->pieces.next;
    int rc = 0;
    if (!m->pieces.id && random_bytes(&m->pieces.id, sizeof(m->pieces.id), &e) < 0) return -EIO;
    if ((rc = plan(m)) < 0) return rc;
    m->pieces.move++;
    m->pieces.begun = true;
    m->pieces.garbage = ARENA_ARRAY(&m->arena, n_old + (m->pieces.next - next) + 1, uint64_t);
    if (!m->pieces.garbage) return -ENOMEM;
    if (n_old) memcpy(m->pieces.garbage, old, n_old * sizeof(*old));
    while (next < m->pieces.next) m->pieces.garbage[n++] = next++;
    m->pieces.n_garbage = n;
    if ((rc = write_pieces(m, (struct write_group){0})) < 0) return rc;
    /* No move that was begun earlier completes any more, so the pieces that it has made are not needed. */
    for (size_t i = 0; rc == 0 && i < n_old; i++) rc = remove_piece(m, old[i]);
    return rc;
}

/* ---- 3. copy ---- */

static int counter_pair(struct move *m, const struct shard_counter *c, struct omap_pair *out) {
    struct buf key, value;
    buf_init(&key, 0);
    buf_init(&value, 0);
    shard_counter_key(&key, 0);
    shard_counter_value(&value, c);
    out->key = arena_take(&m->arena, &key);
    out->value = arena_take(&m->arena, &value);
    return out->key.p && out->value.p ? 0 : -ENOMEM;
}

/* Makes the pairs under which a piece stores the rows. */
static int pairs_of(const struct record *rows, size_t n, struct arena *a, struct omap_pairs *out) {
    struct buf key;
    buf_init(&key, 0);
    out->items = malloc((n + 1) * sizeof(out->items[0]));
    int rc = out->items ? 0 : -ENOMEM;
    for (out->n = 0; rc == 0 && out->n < n; out->n++) {
        struct omap_pair *p = &out->items[out->n];
        buf_clear(&key, SIZE_MAX);
        rc = fetch_copy_key(&rows[out->n], &key);
        p->key = arena_dup(a, buf_slice(&key));
        p->value = rows[out->n].value;
        if (!p->key.p) rc = -ENOMEM;
    }
    buf_fini(&key);
    return rc;
}

/* Adds the rows of a part to its piece. */
static int append(struct move *m, const struct move_part *part) {
    struct shard_counter next = part->counter;
    struct omap_pair before, after;
    struct omap_write w = {0};
    struct omap_pairs pairs = {0};
    char name[PIECE_NAME];
    if (part->counter.sequence >= m->pieces.move) return -EAGAIN;
    int rc = pairs_of(&m->rows.items[part->from], part->n, &m->arena, &pairs);
    for (size_t k = 0; rc == 0 && k < pairs.n; k++) {
        omap_write_set(&w, pairs.items[k].key, pairs.items[k].value);
        next.bytes += pairs.items[k].key.n + pairs.items[k].value.n;
    }
    next.keys += part->n;
    next.sequence = m->pieces.move;
    if (rc == 0) rc = counter_pair(m, &part->counter, &before);
    if (rc == 0) rc = counter_pair(m, &next, &after);
    if (rc == 0) {
        omap_write_compare(&w, before.key, before.value);
        omap_write_set(&w, after.key, after.value);
        assert(w.failed || (w.compares.n == 1 && next.sequence > part->counter.sequence)); /* Q11 */
        piece_name(table_of(m), m->pieces.id, m->pieces.items[part->piece].number, name);
        rc = omap_write_run(&w, &m->s->pool, name);
    }
    omap_write_fini(&w);
    omap_pairs_fini(&pairs);
    return rc == -ECANCELED || rc == -ENOENT ? -EAGAIN : rc;
}

/* Reads all operands of a piece. */
static int read_all(struct move *m, uint64_t number, struct arena *a, struct omap_pairs *out) {
    struct fetched f = {0};
    struct fetch_part part = {SHARD_HEAD_LAST, "", OMAP_READ_MAX};
    char name[PIECE_NAME];
    int rc = 0;
    piece_name(table_of(m), m->pieces.id, number, name);
    for (bool more = true; rc == 0 && more;) {
        rc = fetch_object(m->s, name, &part, 1, a, &f);
        if (rc == 0) rc = fetch_append(out, &f.pairs[0]);
        more = rc == 0 && f.more[0] && f.pairs[0].n;
        if (!more) break;
        part.start_after = (const char *)arena_dup(a, out->items[out->n - 1].key).p;
        if (!part.start_after) rc = -ENOMEM;
    }
    fetched_fini(&f);
    return rc == -ENOENT ? -EAGAIN : rc;
}

/* Makes the next piece of a part from the first of *n pairs. Sets *n to the number of pairs in it. */
static int make_piece(struct move *m, struct move_part *part, const struct omap_pair *pairs, size_t *n) {
    const struct rados_options *o = &m->s->o;
    struct shard_counter c = {.sequence = m->pieces.move};
    struct omap_write w = {.creates = true, .exclusive = true};
    struct omap_pair counter;
    char name[PIECE_NAME];
    while (c.keys < *n && (!c.keys || (c.keys < fill(o->split_keys) && c.bytes < fill(o->split_bytes)))) {
        const struct omap_pair *p = &pairs[c.keys++];
        omap_write_set(&w, p->key, p->value);
        c.bytes += p->key.n + p->value.n;
    }
    *n = c.keys;
    assert(part->n_made < part->n_numbers);
    struct piece *made = &part->made[part->n_made];
    *made = (struct piece){.number = part->first_number + part->n_made,
                           .first = arena_dup(&m->arena, rest_of(m, pairs[0].key))};
    int rc = made->first.p ? counter_pair(m, &c, &counter) : -ENOMEM;
    if (rc == 0) {
        omap_write_set(&w, counter.key, counter.value);
        omap_write_set(&w, shard_state_key, shard_state_value(SHARD_OPEN));
        piece_name(table_of(m), m->pieces.id, made->number, name);
        part->n_made++;
        rc = omap_write_run(&w, &m->s->pool, name);
    }
    omap_write_fini(&w);
    return rc;
}

/* Drops the dead parts of the records. */
static int purge(const struct move_purge *purge, struct records *records, struct arena *a) {
    struct buf left;
    size_t kept = 0;
    int rc = 0;
    buf_init(&left, 0);
    for (size_t i = 0; rc >= 0 && i < records->n; i++) {
        struct record *r = &records->items[i];
        buf_clear(&left, SIZE_MAX);
        if ((rc = purge->judge(purge->arg, r, &left)) == 1)
            r->value = left.n ? arena_dup(a, buf_slice(&left)) : slice_of("", 0);
        if (buf_failed(&left) || !r->value.p) rc = -ENOMEM;
        if (r->value.n) records->items[kept++] = *r;
    }
    records->n = kept;
    buf_fini(&left);
    return rc < 0 ? rc : 0;
}

/* Makes new pieces from the old ones of a part, if any, and its rows. */
static int replace(struct move *m, struct move_part *part, struct arena *a) {
    struct omap_pairs old = {0}, moved = {0}, all = {0}, pairs = {0};
    struct records records = {0};
    part->made = ARENA_ARRAY(&m->arena, part->n_numbers, struct piece);
    int rc = part->made ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < part->n_pieces; i++)
        rc = read_all(m, m->pieces.items[part->piece + i].number, a, &old);
    if (rc == 0) rc = pairs_of(&m->rows.items[part->from], part->n, a, &moved);
    if (rc == 0) rc = pieces_merge(&moved, &old, &all);
    if (rc == 0) rc = records_of(m->s, table_of(m), &all, a, &records);
    if (rc == 0 && part->purges) rc = purge(m->purge, &records, a);
    if (rc == 0) rc = pairs_of(records.items, records.n, a, &pairs);
    for (size_t at = 0, n; rc == 0 && at < pairs.n; at += n) {
        n = pairs.n - at;
        rc = make_piece(m, part, pairs.items + at, &n);
    }
    if (part->n_made) part->made[0].first = m->pieces.n ? m->pieces.items[part->piece].first : slice_of("", 0);
    omap_pairs_fini(&old);
    omap_pairs_fini(&moved);
    omap_pairs_fini(&all);
    omap_pairs_fini(&pairs);
    return rc;
}

/* Removes the pieces that this move has made. */
static void remove_made(struct move *m) {
    for (size_t i = 0; i < m->n_parts; i++)
        for (size_t k = 0; k < m->parts[i].n_made; k++)
            if (remove_piece(m, m->parts[i].made[k].number) < 0) return; /* the next move removes it, as garbage */
}

int move_copy(struct move *m) {
    struct arena a;
    bool made = false;
    int rc = 0;
    assert(m->pieces.begun); /* Q10 */
    arena_init(&a, MOVE_CHUNK, 0);
    for (size_t i = 0; rc == 0 && i < m->n_parts; i++) {
        struct move_part *part = &m->parts[i];
        if (part->replaces) rc = replace(m, part, &a);
        else if (part->n) rc = append(m, part);
        made = made || part->n_made;
        arena_reset(&a);
    }
    if (rc == 0 && made) rc = head_was_dropped(m->s, table_of(m), &a); /* Q6 */
    arena_fini(&a);
    if (rc > 0) remove_made(m);
    return rc > 0 ? DROPPED : rc;
}

/* ---- 4. complete ---- */

/* Makes the key of the fence where a piece begins (Q17). */
static struct slice fence_of(struct move *m, const struct piece *p) {
    static const char first[] = {ENGI_ROW, OMAP_KEY_END, 0};
    struct buf b;
    buf_init(&b, 0);
    omap_key_escape(&b, slice_of(m->prefix.p + ENGI_KEY_TOKEN, m->prefix.n - ENGI_KEY_TOKEN));
    if (p->first.n) buf_put_slice(&b, p->first);
    else buf_put_str(&b, first); /* before all rows */
    buf_u8(&b, OMAP_FENCE);
    return arena_take(&m->arena, &b);
}

/* Lists the fences of pieces before the move that no piece after it has. */
static int old_fences(struct move *m, const struct pieces *before, struct slice **out, size_t *n) {
    *n = 0;
    if (!(*out = ARENA_ARRAY(&m->arena, before->n + 1, struct slice))) return -ENOMEM;
    for (size_t i = 0, k = 0; i < before->n; i++) {
        while (k < m->pieces.n && slice_cmp(m->pieces.items[k].first, before->items[i].first) < 0) k++;
        if (k < m->pieces.n && slice_eq(m->pieces.items[k].first, before->items[i].first)) continue;
        if (!((*out)[(*n)++] = fence_of(m, &before->items[i])).p) return -ENOMEM;
    }
    return 0;
}

/* Sets m->pieces to the pieces after the move, with the replaced ones as garbage. */
static int take_made(struct move *m) {
    size_t n = m->pieces.n + 1;
    for (size_t i = 0; i < m->n_parts; i++) n += m->parts[i].n_made;
    struct pieces next = m->pieces;
    next.items = ARENA_ARRAY(&m->arena, n, struct piece);
    next.garbage = ARENA_ARRAY(&m->arena, n, uint64_t);
    if (!next.items || !next.garbage) return -ENOMEM;
    next.n = next.n_garbage = 0;
    next.begun = false;
    for (size_t i = 0; i < m->n_parts; i++) {
        const struct move_part *part = &m->parts[i];
        const struct piece *old = m->pieces.items + part->piece;
        for (size_t k = 0; k < part->n_pieces; k++) {
            if (part->replaces) next.garbage[next.n_garbage++] = old[k].number;
            else next.items[next.n++] = old[k];
        }
        assert(part->n_made || part->purges || !part->replaces);
        if (!next.n && part->n_made) part->made[0].first = slice_of("", 0);
        for (size_t k = 0; k < part->n_made; k++) next.items[next.n++] = part->made[k];
    }
    if (next.n) next.items[0].first = slice_of("", 0); /* the pieces before it may be gone */
    m->pieces = next;
    return 0;
}

int move_complete(struct move *m) {
    struct write_change *changes = ARENA_ARRAY(&m->arena, m->rows.n + 1, struct write_change);
    struct slice *fences = NULL, *old = NULL;
    struct pieces before = m->pieces;
    struct write_group g = {.changes = changes, .n = m->rows.n};
    int rc = changes ? take_made(m) : -ENOMEM;
    size_t n_made = 0;
    for (size_t i = 0; i < m->n_parts; i++) n_made += m->parts[i].n_made;
    if (rc == 0 && !(fences = ARENA_ARRAY(&m->arena, n_made + 1, struct slice))) rc = -ENOMEM;
    for (size_t i = 0; rc == 0 && i < m->n_parts; i++)
        for (size_t k = 0; rc == 0 && k < m->parts[i].n_made; k++) {
            struct slice fence = fences[g.n_fences++] = fence_of(m, &m->parts[i].made[k]);
            if (!fence.p) rc = -ENOMEM;
            else assert(omap_key_of_partition(fence) == OMAP_FENCE); /* Q17 */
        }
    if (rc == 0) rc = old_fences(m, &before, &old, &g.n_old_fences);
    g.fences = fences;
    g.old_fences = old;
    for (size_t i = 0; rc == 0 && i < m->rows.n; i++)
        changes[i] = (struct write_change){.kind = WRITE_REMOVE,
                                           .key = m->rows.items[i].key,
                                           .seen = m->rows.items[i].operands,
                                           .n_seen = m->rows.items[i].n_operands};
    if (rc == 0) rc = write_pieces(m, g);
    if (rc == -EAGAIN) remove_made(m); /* nothing was written, and only the garbage names them */
    if (rc == 0) atomic_fetch_add(&m->s->n_moves, 1);
    for (size_t i = 0; rc == 0 && i < m->pieces.n_garbage; i++) rc = remove_piece(m, m->pieces.garbage[i]);
    return rc;
}

/* ---- all steps ---- */

/* Whether another process is perhaps moving rows of the same partition. */
static bool is_moved_elsewhere(struct shard *sh, const struct pieces *p) {
    pthread_mutex_lock(&sh->lock);
    bool again = sh->begun_id == p->id && sh->begun_move == p->move;
    sh->begun_id = p->begun ? p->id : 0;
    sh->begun_move = p->move;
    pthread_mutex_unlock(&sh->lock);
    return p->begun && !again;
}

int move_rows(struct rados *s, struct shard *sh, struct slice prefix) {
    bool more = true;
    int rc = 0;
    for (int i = 0; rc == 0 && more && i < MOVES_MAX; i++) {
        struct move m;
        move_init(&m, s, prefix);
        rc = move_read(&m);
        more = rc == 0 && m.rows.n && !is_moved_elsewhere(sh, &m.pieces);
        if (more) rc = move_begin(&m);
        if (more && rc == 0) rc = move_copy(&m);
        if (more && rc == 0) rc = move_complete(&m);
        more = more && m.more;
        move_fini(&m);
    }
    return rc == -EAGAIN || rc == DROPPED ? 0 : rc;
}

int move_purge(struct rados *s, struct slice prefix, struct slice removals, const struct move_purge *purge,
               struct buf *end) {
    struct shard *sh = shard_map_find(&s->shards, load_u32(prefix.p), shard_position(prefix));
    struct move m;
    if (!sh) return -ENOMEM;
    move_init(&m, s, prefix);
    int rc = move_read(&m);
    if (rc == 0 && is_moved_elsewhere(sh, &m.pieces)) rc = -EBUSY;
    if (rc == 0 && (!m.pieces.n || !slice_eq(m.removals, removals))) rc = -EAGAIN;
    bool purges = rc == 0 && !m.more; /* otherwise it only moves rows, so that the next move has all of them */
    if (purges) m.purge = purge;
    if (rc == 0) rc = move_begin(&m);
    if (rc == 0 && purges) rc = pieces_first_key(&m.pieces, m.first_purged + m.n_purged, prefix, end);
    if (rc == 0) rc = move_copy(&m);
    assert(!m.purge || !m.more); /* Q18 */
    if (rc == 0) rc = move_complete(&m);
    move_fini(&m);
    return rc == 0 && !purges ? -EAGAIN : rc;
}

int move_relieve(struct rados *s, struct shard *sh) {
    struct buf wide;
    buf_init(&wide, 0);
    int rc = split_shard(s, sh, &wide);
    atomic_store(&sh->is_indivisible, rc == 0 && !wide.n && !atomic_load(&sh->split));
    if (rc == 0 && wide.n) rc = move_rows(s, sh, buf_slice(&wide));
    buf_fini(&wide);
    return rc == DROPPED ? 0 : rc;
}
