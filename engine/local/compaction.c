/* The data that compaction may drop: expired cells and tombstones older than gc_grace_seconds,
 * under which nothing can resurface.
 *
 * The store asks only while it rewrites all of its files, for values without a younger operand in
 * any of them. Younger operands can then only be in memory, written since the engine was opened. So
 * a value is dropped only if its timestamp is below every timestamp written to the table since
 * then. Records of range and partition deletions are kept. Other compactions drop nothing, because
 * a younger operand may be in a file that takes no part; there the reclaimer
 * (engine/local/reclaim.h) removes the data.
 */
#include "engine/local/eng.h"
#include "engine/front/lock_order.h"
#include "engine/local/table.h"
#include "engine/rows/key.h"
#include "engine/rows/purge.h"

int engi_merge(void *arg, struct slice a, struct slice b, struct buf *out) {
    (void)arg;
    return eng_row_merge(a, b, out);
}

static enum kv_verdict purge(struct eng *eng, struct engi_table *t, struct slice key, struct slice value,
                             struct buf *out) {
    struct engi_purge_limits limits = {.before_ts = atomic_load(&t->min_ts), .covered_ts = ENG_NO_TS,
                                       .before_seconds = engi_table_now(eng, t) - atomic_load(&t->gc_grace)};
    struct engi_purged purged;
    if (engi_purge_row(&limits, value, out, &purged) || !purged.dropped) return KV_KEEP;
    engi_changed(t, engi_bucket_of_key(key));
    if (purged.expired) engi_tell_expiry(eng, key, value, ENG_NO_TS);
    return purged.empty ? KV_REMOVE : KV_CHANGE;
}

enum kv_verdict engi_purge(void *arg, struct slice key, struct slice value, struct buf *out) {
    struct eng *eng = arg;
    size_t prefix = engi_prefix_len(key);
    if (!prefix || key.n <= prefix || (key.p[prefix] != ENGI_STATIC && key.p[prefix] != ENGI_ROW)) return KV_KEEP;
    struct engi_section section = engi_enter(&eng->epoch);
    struct engi_table *t = engi_table(eng, load_u32(key.p));
    enum kv_verdict verdict = t ? purge(eng, t, key, value, out) : KV_KEEP;
    engi_leave(&eng->epoch, section);
    return verdict;
}

/* ---- rows that expired ---- */

void eng_on_expiry(struct eng *eng, eng_expiry_fn fn, void *arg) {
    engi_mutex_lock(&eng->expiry_lock, ENGI_RANK_LEAF);
    eng->expiry = fn;
    eng->expiry_arg = arg;
    engi_mutex_unlock(&eng->expiry_lock, ENGI_RANK_LEAF);
}

static void tell_expiry(struct eng *eng, struct slice key, size_t n, struct slice value, int64_t covered_ts) {
    struct err e = {0};
    struct arena a;
    arena_init(&a, 1024, 0);
    struct eng_expiry x = {.part = engi_prefix_part(slice_of(key.p, n))};
    eng_row_init(&x.row, key.p[n] == ENGI_STATIC ? ENG_STATIC : ENG_ROW, slice_of(key.p + n + 1, key.n - n - 1));
    if (!eng_row_decode(value, &a, &x.row, &e)) {
        if (covered_ts > x.row.del_ts) {
            x.row.del_ts = covered_ts;
            x.row.del_at = ENG_COVERED;
        }
        eng->expiry(eng->expiry_arg, &x);
    }
    arena_fini(&a);
}

void engi_tell_expiry(struct eng *eng, struct slice key, struct slice value, int64_t covered_ts) {
    size_t n = engi_prefix_len(key);
    if (!n || key.n <= n) return;
    engi_mutex_lock(&eng->expiry_lock, ENGI_RANK_LEAF);
    if (eng->expiry) tell_expiry(eng, key, n, value, covered_ts);
    engi_mutex_unlock(&eng->expiry_lock, ENGI_RANK_LEAF);
}
