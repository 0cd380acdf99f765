/* Named records, for the catalogue: a few small records in addition to the rows. A write of some is
 * durable when it returns. Blocking; any thread. */
#pragma once

#include "engine/engine.h"

/* Calls fn after another engine on the store, or perhaps this one, has changed a named record; any
 * thread, and fn must not call the engine. At most ENG_WATCHERS_MAX at a time. */
enum { ENG_WATCHERS_MAX = 4 };
typedef void (*eng_notice_fn)(void *arg);
int eng_meta_watch(struct eng *eng, eng_notice_fn fn, void *arg, struct err *e) MUST_CHECK;
/* Ends the watches that have this arg; NULL means all. None of them is called any more when it
 * returns. */
void eng_meta_unwatch(struct eng *eng, const void *arg);

struct eng_meta_change {
    struct slice key, value;
    bool deleted;
    bool conditional; /* only if the record is as expected; NULL if only if there is none */
    const struct slice *expected;
    /* Watchers are not notified. A scan of more records than a store reads at once may then see the
     * change although it does not see an earlier one. */
    bool quiet;
};
/* All of them or none. The check of a condition and the writes are atomic, whatever
 * other threads and other engines on the store write. Returns 0, or -1, or ENG_CHANGED with err not set. */
int eng_meta_write(struct eng *eng, uint32_t n, const struct eng_meta_change *changes, struct err *e) MUST_CHECK;
int eng_meta_put(struct eng *eng, struct slice key, struct slice value, struct err *e) MUST_CHECK;
int eng_meta_delete(struct eng *eng, struct slice key, struct err *e) MUST_CHECK;
/* Calls fn for every record whose key begins with prefix, in key order; fn returns 0 to continue, -1
 * to stop with its error. */
typedef int (*eng_meta_fn)(void *arg, struct slice key, struct slice value, struct err *e);
int eng_meta_scan(struct eng *eng, struct slice prefix, eng_meta_fn fn, void *arg, struct err *e) MUST_CHECK;
