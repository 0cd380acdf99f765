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
#include "engine/local/local.h"
#include "engine/local/table.h"
#include "engine/rows/key.h"
#include "engine/rows/purge.h"

int engi_merge(void *arg, struct slice a, struct slice b, struct buf *out) {
    (void)arg;
    return eng_row_merge(a, b, out);
}

static enum kv_verdict purge(struct local *own, struct local_table *t, struct slice key, struct slice value,
                             struct buf *out) {
    struct engi_purge_limits limits = {.before_ts = atomic_load(&t->min_ts), .covered_ts = ENG_NO_TS,
                                       .before_seconds = engi_table_now(own, t) - atomic_load(&t->front.gc_grace)};
    struct engi_purged purged;
    if (engi_purge_row(&limits, value, out, &purged) || !purged.dropped) return KV_KEEP;
    engi_changed(t, engi_bucket_of_key(key));
    if (purged.expired) engi_tell_expiry(own->eng, key, value, ENG_NO_TS);
    return purged.empty ? KV_REMOVE : KV_CHANGE;
}

enum kv_verdict engi_purge(void *arg, struct slice key, struct slice value, struct buf *out) {
    struct local *own = arg;
    size_t prefix = engi_prefix_len(key);
    if (!prefix || key.n <= prefix || (key.p[prefix] != ENGI_STATIC && key.p[prefix] != ENGI_ROW)) return KV_KEEP;
    struct engi_section section = engi_enter(&own->eng->epoch);
    struct local_table *t = local_table(own, load_u32(key.p));
    enum kv_verdict verdict = t ? purge(own, t, key, value, out) : KV_KEEP;
    engi_leave(&own->eng->epoch, section);
    return verdict;
}
