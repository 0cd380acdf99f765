/* Named records: small things that all stores on the pool share, as the catalogue. They are keys of
 * one object, so that several of them change together.
 *
 *   key [01]['g']: changes with every write
 *   key [escaped name]: ['='][value]     never empty: an empty value compares as an absent one does
 */
#pragma once

#include "engine/rados/rados.h"

enum { NAMED_CHANGED = -4 };

struct named_change {
    struct slice key, value;
    bool deleted;
    bool conditional; /* only if the record is as expected; NULL: only if there is none */
    const struct slice *expected;
};

/* All changes happen, or none. 0, -1, or NAMED_CHANGED with err not set: a condition does not hold. */
int named_write(struct rados *s, size_t n, const struct named_change *changes, struct err *e) MUST_CHECK;
/* Calls fn for every record whose name begins with prefix, in order of names, all of one moment. fn
 * returns 0 to go on, -1 to stop with its error. */
typedef int (*named_fn)(void *arg, struct slice key, struct slice value, struct err *e);
int named_scan(struct rados *s, struct slice prefix, named_fn fn, void *arg, struct err *e) MUST_CHECK;

struct named_watch;
/* Calls fn on a thread of its own after records have changed, through any store, within
 * NAMED_LATE_S at the latest: a notice may be lost, so the thread also looks by itself. NULL: e says
 * why. */
enum { NAMED_LATE_S = 1 };
typedef void (*named_notice_fn)(void *arg);
struct named_watch *named_watch_start(struct rados *s, named_notice_fn fn, void *arg, struct err *e) MUST_CHECK;
/* fn is not called any more when it returns. */
void named_watch_stop(struct named_watch *w);
