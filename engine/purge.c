/* What compaction may drop: expired cells and tombstones older than gc_grace_seconds, under which nothing can resurface.
 *
 * The store asks only while it rewrites all of its files, for values without a younger operand in any of them. Younger
 * operands can then be in memory alone, written since the engine was opened: so nothing is dropped whose timestamp is not
 * below every timestamp that the table was written with since. Records of range and partition deletions are kept.
 */
#include "engine/row_codec.h"
#include "engine/store.h"

struct horizon {
    int64_t before_ts, before_seconds;
};

static bool gone(const struct horizon *h, int64_t ts, int64_t since) { return ts < h->before_ts && since < h->before_seconds; }

static bool cell_gone(const struct horizon *h, const struct eng_cell *c) {
    return (rowi_is_deletion(c) || c->flags & ENG_CELL_EXPIRING) && gone(h, c->ts, c->expiry);
}

static int rewrite(const struct horizon *h, struct rowi_reader *r, struct buf *out, uint32_t *dropped, bool *empty) {
    struct rowi_head head = r->head;
    struct rowi_shadow shadow = {.row_ts = head.del_ts, .column_ts = ENG_NO_TS};
    struct eng_cell c;
    struct rowi_writer w;
    if (head.live_ts != ENG_NO_TS && head.live_expiry != ENG_NO_EXPIRY && gone(h, head.live_ts, head.live_expiry)) {
        head.live_ts = ENG_NO_TS;
        head.live_expiry = ENG_NO_EXPIRY;
        ++*dropped;
    }
    if (head.del_ts != ENG_NO_TS && gone(h, head.del_ts, head.del_at)) {
        head.del_ts = ENG_NO_TS;
        ++*dropped;
    }
    rowi_begin(&w, out, &head);
    int got;
    while ((got = rowi_next(r, &c)) > 0) {
        if (rowi_shadowed(&shadow, &c) || cell_gone(h, &c)) ++*dropped;
        else rowi_put(&w, &c);
    }
    *empty = !w.written && head.live_ts == ENG_NO_TS && head.del_ts == ENG_NO_TS;
    rowi_end(&w);
    return got;
}

enum kv_verdict engi_purge(void *arg, struct slice key, struct slice value, struct buf *out) {
    struct eng *eng = arg;
    size_t prefix = engi_prefix_len(key);
    if (!prefix || key.n <= prefix || (key.p[prefix] != ENGI_STATIC && key.p[prefix] != ENGI_ROW)) return KV_KEEP;
    struct engi_table *t = engi_table(eng, load_u32(key.p));
    struct rowi_reader r;
    if (!t || rowi_open(&r, value)) return KV_KEEP;
    struct horizon h = {.before_ts = atomic_load(&t->min_ts),
                        .before_seconds = clock_wall_us(eng->clock) / 1000000 - atomic_load(&t->gc_grace)};
    uint32_t dropped = 0;
    bool empty = false;
    if (rewrite(&h, &r, out, &dropped, &empty) || !dropped) return KV_KEEP;
    return empty ? KV_REMOVE : KV_CHANGE;
}
