#include <assert.h>
#include <errno.h>

#include "engine/rados/jobs.h"
#include "engine/rados/pieces.h"
#include "engine/rados/read.h"
#include "engine/rados/write.h"

enum {
    TRIES = 16,        /* of a partition that changes while it is read in several operations */
    FOLD_OPERANDS = 8, /* a record with this number of operands is folded when it is read */
    PART_KEYS = 2,     /* the parts of a read: the partition's own, its range deletions, and one for each key */
    CHUNK = 4 << 10,
};

static struct slice last_key(const struct omap_pairs *pairs) {
    return pairs->n ? pairs->items[pairs->n - 1].key : slice_of("", 0);
}

/* Reads the rest of a part as of the moment of its first operation. Returns 0, -EAGAIN if that moment is past, or
 * another negative error number. adds_pieces: the part has rows, which a wide partition also has in pieces. */
static int read_rest(struct rados *s, struct slice prefix, const struct fetch_part *part, bool adds_pieces,
                     struct arena *a, struct fetched *f, size_t i) {
    struct fetched more = {0};
    struct slice mark = fetch_partition_value(&f->pairs[0], OMAP_REMOVALS);
    struct slice pieces = fetch_partition_value(&f->pairs[0], OMAP_PIECES);
    struct slice last = last_key(&f->pairs[i]); /* as read: keys from after the moment are removed later */
    int rc = adds_pieces ? pieces_add(s, prefix, pieces, part, a, &f->pairs[i], &last, &f->more[i]) : 0;
    while (rc == 0 && f->more[i]) {
        struct fetch_part parts[2] = {
            {.start_after = (const char *)arena_dup(a, last).p, .prefix = part->prefix, .max = OMAP_READ_MAX}};
        const char *own = omap_key_string(a, prefix, OMAP_PARTITION_KEYS);
        parts[1] = (struct fetch_part){.start_after = own, .prefix = own, .max = OMAP_PARTITION_KEYS_MAX};
        if (!parts[0].start_after || !own) rc = -ENOMEM;
        else rc = fetch(s, load_u32(prefix.p), shard_position(prefix), parts, 2, a, &more);
        if (rc < 0) break;
        if (more.shard != f->shard || !slice_eq(fetch_partition_value(&more.pairs[1], OMAP_REMOVALS), mark) ||
            !slice_eq(fetch_partition_value(&more.pairs[1], OMAP_PIECES), pieces))
            rc = -EAGAIN;
        more.more[0] = more.more[0] && more.pairs[0].n;
        last = last_key(&more.pairs[0]);
        fetch_as_of(&more.pairs[0], part->prefix, &f->head, &more.head);
        if (rc == 0 && adds_pieces)
            rc = pieces_add(s, prefix, pieces, &parts[0], a, &more.pairs[0], &last, &more.more[0]);
        if (rc == 0) rc = fetch_append(&f->pairs[i], &more.pairs[0]);
        f->more[i] = more.more[0];
    }
    fetched_fini(&more);
    return rc;
}

/* Parts from PART_KEYS on are of rows. */
static int read_parts(struct rados *s, struct slice prefix, const struct fetch_part *parts, size_t n, bool adds_pieces,
                      struct arena *a, struct fetched *f) {
    int rc = -EAGAIN;
    for (int i = 0; rc == -EAGAIN && i < TRIES; i++) {
        rc = fetch(s, load_u32(prefix.p), shard_position(prefix), parts, n, a, f);
        for (size_t part = 0; rc == 0 && part < n; part++)
            rc = read_rest(s, prefix, &parts[part], adds_pieces && part >= PART_KEYS, a, f, part);
    }
    return rc == -EAGAIN ? -ETIMEDOUT : rc;
}

static int read(struct rados *s, struct slice prefix, const struct slice *keys, size_t n, bool adds_pieces,
                struct arena *a, struct read_result *out, struct err *e) {
    const uint32_t table = load_u32(prefix.p);
    struct fetch_part parts[FETCH_PARTS] = {0};
    struct fetched f = {0};
    struct pieces pieces;
    struct records row;
    int rc = 0;
    assert(n <= READ_KEYS);
    *out = (struct read_result){0};
    /* After the escaped prefix, kinds 0 to 2 begin with 02 (the partition's own keys, its deletion
     * and its static row), and kind 3 is 03 (range deletions). */
    parts[0].prefix = omap_key_string(a, prefix, "\x02");
    parts[1].prefix = omap_key_string(a, prefix, "\x03");
    for (size_t i = 0; i < n; i++) parts[i + PART_KEYS].prefix = omap_key_string(a, keys[i], "\x01");
    for (size_t i = 0; i < n + PART_KEYS; i++) {
        if (!parts[i].prefix) rc = -ENOMEM;
        parts[i].start_after = parts[i].prefix;
        parts[i].max = OMAP_READ_MAX;
    }
    if (rc == 0) rc = read_parts(s, prefix, parts, n + PART_KEYS, adds_pieces, a, &f);
    const char *object = f.shard ? f.shard->name : "of rows";
    if (rc < 0) goto fini;
    const struct omap_pairs *own = &f.pairs[0];
    out->ballot = fetch_partition_value(own, OMAP_BALLOT);
    out->removals = fetch_partition_value(own, OMAP_REMOVALS);
    if (pieces_read(fetch_partition_value(own, OMAP_PIECES), a, &pieces) < 0) rc = -EBADMSG;
    else rc = records_of(s, table, own, a, &out->head);
    if (rc == 0) rc = records_of(s, table, &f.pairs[1], a, &out->ranges);
    out->is_wide = rc == 0 && pieces.n;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = records_of(s, table, &f.pairs[i + PART_KEYS], a, &row);
        if (rc == 0 && row.n) out->keys[i] = row.items[0];
        if (rc == 0 && row.n && row.items[0].n_operands >= FOLD_OPERANDS) jobs_add_fold(s, row.items[0].key);
    }
fini:
    fetched_fini(&f);
    return rc < 0 ? pool_error(e, rc, POOL_READS, object) : 0;
}

int read_partition(struct rados *s, struct slice prefix, const struct slice *keys, size_t n, struct arena *a,
                   struct read_result *out, struct err *e) {
    return read(s, prefix, keys, n, true, a, out, e);
}

int read_fold(struct rados *s, struct slice key, struct err *e) {
    struct read_result r;
    struct arena a;
    struct slice prefix = slice_of(key.p, engi_prefix_len(key));
    arena_init(&a, CHUNK, 0);
    /* Operands in a piece are combined when the piece is replaced. */
    int rc = read(s, prefix, &key, 1, false, &a, &r, e);
    const struct record *record = &r.keys[0];
    if (rc == 0 && record->n_operands > 1) {
        struct write_change c = {.kind = WRITE_REPLACE,
                                 .key = key,
                                 .value = record->value,
                                 .seen = record->operands,
                                 .n_seen = record->n_operands};
        struct write_group g = {.prefix = prefix, .changes = &c, .n = 1, .removals = &r.removals};
        rc = write_groups(s, &g, 1, e);
        if (g.result == 0) atomic_fetch_add(&s->n_folds, 1);
    }
    arena_fini(&a);
    return rc;
}
