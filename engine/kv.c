/* What every store does the same way. */
#include <time.h>

#include "base/clock.h"
#include "engine/kv.h"

int kv_wait_for_room(struct kv *kv, struct err *e) {
    enum { WAIT_US = 60000000, STEP_NS = 2000000 };
    int64_t until = clock_machine_us(&clock_real) + WAIT_US;
    do {
        nanosleep(&(struct timespec){.tv_nsec = STEP_NS}, NULL);
        if (kv->ops->has_room(kv)) return 0;
    } while (clock_machine_us(&clock_real) < until);
    return err_set(e, ERR_OVERLOADED, "the store has been flushing and compacting for a minute; no write is taken");
}

int kv_write_patiently(struct kv *kv, struct kv_batch *b, struct err *e) {
    int rc;
    while ((rc = kv->ops->write(kv, b, true, e)) == KV_BUSY)
        if (kv_wait_for_room(kv, e)) return -1;
    return rc;
}
