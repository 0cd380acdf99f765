/* Membership: the servers that share one store, and which of them are alive.
 *
 * Each server keeps a record in the store (member.h) and writes it every RENEW_US. Every server
 * reads the records of all, on a thread of its own, and judges by its own monotonic clock: a server
 * whose record has not changed for EXPIRE_US is dead. No time of one machine is compared with that
 * of another.
 *
 * Life: membership_open writes the record and reads the others, membership_start begins the thread,
 * membership_close ends it and removes the record. The records of servers that died are removed by
 * any other after REMOVE_US.
 *
 * L1. A server is taken for dead only after EXPIRE_US in which reads of its record returned the same
 *     bytes. The time begins when the first of these reads has ended, and ends when the last one
 *     begins, so that a read that hangs, or an observer that was stopped, declares nobody dead.
 */
#pragma once

#include <stdatomic.h>

#include "base/clock.h"
#include "engine/engine.h"
#include "membership/member.h"

enum {
    MEMBERSHIP_RENEW_US = 2000000,
    MEMBERSHIP_EXPIRE_US = 6000000,
    MEMBERSHIP_REMOVE_US = 300000000,
};

struct membership;

struct membership_options {
    struct eng *eng;
    struct clock *clock; /* its machine's time */
    struct member self;  /* incarnation and beat are set here */
};

/* The live servers at one moment, this one among them, in the order of their host ids. */
struct member_list {
    atomic_uint refs;
    uint32_t n, self; /* items[self] is this server */
    struct member items[];
};

enum member_event {
    MEMBER_NEW,     /* there is a server that was not known; it is alive */
    MEMBER_UP,      /* a server that was dead is alive, or it was started anew */
    MEMBER_DOWN,    /* it died, or was stopped */
    MEMBER_REMOVED, /* its record is gone. If it was alive, MEMBER_DOWN comes before */
};
/* Called on membership's thread, or on that of membership_tick, after membership_list gives the new
 * state; not for this server. It may take its time, but at most a second. */
typedef void (*member_event_fn)(void *arg, enum member_event event, const struct member *m);

/* Blocks. NULL: e says why. */
struct membership *membership_open(const struct membership_options *o, struct err *e) MUST_CHECK;
/* Sets the listener. Call it before membership_start, or while the thread is stopped. */
void membership_hear(struct membership *m, member_event_fn fn, void *arg);
int membership_start(struct membership *m, struct err *e) MUST_CHECK;
/* Ends the thread: no event is reported any more. */
void membership_stop(struct membership *m);
/* Removes the record and frees m; stops first. Blocks. */
void membership_close(struct membership *m);
/* Frees m, and leaves the record as a server does that is killed. */
void membership_abandon(struct membership *m);

/* A reference; membership_unref it. Any thread; does not wait for the store. */
const struct member_list *membership_list(struct membership *m);
void membership_unref(const struct member_list *l);
/* Advances with each new list: one atomic load. */
uint64_t membership_generation(const struct membership *m);
/* The time since this server's record was last written, in microseconds. */
int64_t membership_age_us(const struct membership *m);
/* Publishes the version of the schema that this server has. Any thread. */
void membership_set_schema(struct membership *m, const uint8_t version[MEMBER_ID]);

/* One round of the thread: renews the record when it is time, reads all, reports what has changed.
 * Blocks. For tests, which have no thread. */
void membership_tick(struct membership *m);
