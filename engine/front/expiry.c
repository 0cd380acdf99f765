/* Rows that expired, for the listener of them. */
#include "engine/front/eng.h"
#include "engine/front/lock_order.h"
#include "engine/rows/key.h"

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
