#include "engine/local/rocksdb/kv.h"

#include <time.h>

#include "base/clock.h"

int kv_scan(struct kv *kv, const struct kv_snapshot *at, struct slice from, struct slice to,
            int (*fn)(void *arg, struct slice key, struct slice value, struct err *e), void *arg, struct err *e) {
    struct kv_iter_spec spec = {.tier = ENG_TIER_ANY, .snapshot = at, .lower = from, .upper = to};
    struct kv_iter *it = kv_iter_new(kv, &spec, e);
    if (!it) return -1;
    int got = it->ops->iter_move(it, KV_SEEK, from, e), rc = 0;
    while (got > 0 && rc == 0) {
        rc = fn(arg, it->key, it->value, e);
        if (rc == 0) got = it->ops->iter_move(it, KV_NEXT, from, e);
    }
    it->ops->iter_free(it);
    return rc || got < 0 ? -1 : 0;
}

int kv_wait_for_room(struct kv *kv, struct err *e) {
    enum { WAIT_US = 60000000, STEP_NS = 2000000 };
    int64_t until = clock_machine_us(&clock_real) + WAIT_US;
    do {
        nanosleep(&(struct timespec){.tv_nsec = STEP_NS}, NULL);
        if (kv_has_room(kv)) return 0;
    } while (clock_machine_us(&clock_real) < until);
    return err_set(e, ERR_OVERLOADED, "the store has been flushing and compacting for a minute; no write is taken");
}

int kv_write_patiently(struct kv *kv, struct kv_batch *b, struct err *e) {
    int rc;
    while ((rc = kv_write(kv, b, true, e)) == KV_BUSY)
        if (kv_wait_for_room(kv, e)) return -1;
    return rc;
}
