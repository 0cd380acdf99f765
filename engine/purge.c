/* The data that compaction may drop: expired cells and tombstones older than gc_grace_seconds,
 * under which nothing can resurface.
 *
 * The store asks only while it rewrites all of its files, for values without a younger operand in
 * any of them. Younger operands can then only be in memory, written since the engine was opened. So
 * a value is dropped only if its timestamp is below every timestamp written to the table since
 * then. Records of range and partition deletions are kept. Other compactions drop nothing, because
 * a younger operand may be in a file that takes no part; there the reclaimer (engine/reclaim.h)
 * removes the data.
 */
#include "engine/purge.h"

#include "engine/store.h"

static bool gone(const struct engi_purge_limits *l, int64_t ts, int64_t since) {
    return ts < l->before_ts && since < l->before_seconds;
}

static bool is_mortal(const struct eng_cell *c) { return rowi_is_deletion(c) || c->flags & ENG_CELL_EXPIRING; }

static void purge_head(const struct engi_purge_limits *l, struct rowi_head *head, struct engi_purged *p) {
    bool expired = head->live_expiry != ENG_NO_EXPIRY && gone(l, head->live_ts, head->live_expiry);
    if (head->live_ts != ENG_NO_TS && (head->live_ts <= l->covered_ts || expired)) {
        head->live_ttl = 0;
        head->live_expiry = ENG_NO_EXPIRY;
        p->expired += head->live_ts > l->covered_ts && head->live_ts > head->del_ts;
        head->live_ts = ENG_NO_TS;
        p->dropped++;
    }
    if (head->del_ts != ENG_NO_TS && (head->del_ts <= l->covered_ts || gone(l, head->del_ts, head->del_at))) {
        head->del_ts = ENG_NO_TS;
        p->dropped++;
    }
    p->row_deletion = head->del_ts != ENG_NO_TS;
    p->dead_cells = head->live_ts != ENG_NO_TS && head->live_expiry != ENG_NO_EXPIRY;
    p->newest_ts = head->live_ts > head->del_ts ? head->live_ts : head->del_ts;
}

int engi_purge_row(const struct engi_purge_limits *l, struct slice value, struct buf *out, struct engi_purged *p) {
    struct rowi_reader r;
    struct rowi_writer w;
    struct eng_cell c;
    int got;
    *p = (struct engi_purged){.newest_ts = ENG_NO_TS};
    if (rowi_open(&r, value)) return -1;
    struct rowi_head head = r.head;
    struct rowi_shadow shadow = {.row_ts = head.del_ts > l->covered_ts ? head.del_ts : l->covered_ts,
                                 .column_ts = ENG_NO_TS};
    purge_head(l, &head, p);
    rowi_begin(&w, out, &head);
    while ((got = rowi_next(&r, &c)) > 0) {
        bool covered = rowi_shadowed(&shadow, &c);
        if (covered || (is_mortal(&c) && gone(l, c.ts, c.expiry))) {
            p->dropped++;
            p->expired += !covered && !rowi_is_deletion(&c);
            continue;
        }
        rowi_put(&w, &c);
        p->dead_cells = p->dead_cells || is_mortal(&c);
        if (c.ts > p->newest_ts) p->newest_ts = c.ts;
    }
    p->empty = !w.written && head.live_ts == ENG_NO_TS && head.del_ts == ENG_NO_TS;
    rowi_end(&w);
    return got < 0 || buf_failed(out) ? -1 : 0;
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

int64_t engi_purge_from(struct slice value) {
    struct rowi_reader r;
    struct eng_cell cell;
    int got;
    if (rowi_open(&r, value)) return INT64_MIN;
    struct rowi_shadow shadow = {.row_ts = r.head.del_ts, .column_ts = ENG_NO_TS};
    int64_t from = r.head.live_ts != ENG_NO_TS && r.head.live_expiry < INT64_MAX ? r.head.live_expiry : INT64_MAX;
    if (r.head.del_ts != ENG_NO_TS && r.head.del_at < from) from = r.head.del_at;
    if (r.head.del_ts == ENG_NO_TS) rowi_pass_values(&r); /* nothing covers them, and they stay */
    while ((got = rowi_next(&r, &cell)) > 0) {
        if (rowi_shadowed(&shadow, &cell)) return INT64_MIN;
        if (is_mortal(&cell) && cell.expiry < from) from = cell.expiry;
    }
    return got < 0 ? INT64_MIN : from;
}

bool engi_may_be_purged(const struct eng *eng, const struct engi_table *t, int64_t from) {
    return from != INT64_MAX &&
           from < engi_table_now(eng, t) - atomic_load_explicit(&t->gc_grace, memory_order_relaxed);
}
