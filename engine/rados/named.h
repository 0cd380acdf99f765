/* Named records: small things that all stores on the pool share, such as the catalogue. They are keys of
 * one object, so that several of them change together.
 *
 *   key [01]['g']: changes with every write that is not quiet
 *   key [escaped name]: ['='][value]     never empty: an empty value compares as an absent one does
 */
#pragma once

#include "engine/named.h"
#include "engine/rados/rados.h"

/* As eng_meta_write. */
int named_write(struct rados *s, uint32_t n, const struct eng_meta_change *changes, struct err *e) MUST_CHECK;
/* As eng_meta_scan; the records are a consistent snapshot. */
int named_scan(struct rados *s, struct slice prefix, eng_meta_fn fn, void *arg, struct err *e) MUST_CHECK;

struct named_watch;
/* Starts a thread that calls fn after records have changed, through any store, within NAMED_LATE_S
 * at the latest: a notice may be lost, so the thread also reads without one. Returns NULL with e set. */
enum { NAMED_LATE_S = 1 };
struct named_watch *named_watch_start(struct rados *s, eng_notice_fn fn, void *arg, struct err *e) MUST_CHECK;
/* fn is not called any more after the return. */
void named_watch_stop(struct named_watch *w);
