/* Membership: the servers that share one store, and which of them are alive.
 *
 * Each server keeps a record in the store (member.h) and writes it every RENEW_US. Every server
 * reads all records on its own thread, and decides by its own monotonic clock: a server
 * whose record has not changed for EXPIRE_US is dead. No time of one machine is compared with that
 * of another.
 *
 * Life: membership_open reads the records, membership_join writes this server's when clients can
 * reach it, membership_start begins the thread, membership_leave ends it and removes the record. The
 * records of servers that died are removed by any other after REMOVE_US.
 *
 * One of the servers is the leader, which does the work that one server suffices for. The lease is a
 * record that names it. The leader holds it as long as it renews its own record; another server takes
 * it over when the leader is dead or has left.
 *
 * L1. A server is taken for dead only after EXPIRE_US in which reads of its record returned the same
 *     bytes. The time begins when the first of these reads has ended, and ends when the last one
 *     begins, so that no server is declared dead by a read that hangs or an observer that was stopped. A round
 *     that fails restarts the time: while the store fails, the others cannot renew their records either.
 * L2. No two servers lead at the same time, as long as no clock runs a fifth faster than another and
 *     no two servers have one address. A leader trusts its lease for LEASE_US after it began to
 *     renew its record. It renews on the condition that the lease names it, and another server takes
 *     the lease over on the condition that the leader's record is as it was found. So of a renewal
 *     and a take-over that meet, one fails. A leader may still be stopped at any instruction and go
 *     on later. So its work must be correct without the lease, too: it consists of conditional
 *     writes.
 *
 * L3. Of two servers that run with one address one stops. A server that finds another run's record in
 *     place of its own writes its own again. The one that has replaced the other at its start sees
 *     that the other still runs, and stops. A server that could not renew its record for EXPIRE_US
 *     before it finds another's stops itself, because the other rightly took it for dead.
 */
#pragma once

#include <stdatomic.h>

#include "base/clock.h"
#include "engine/engine.h"
#include "membership/member.h"

enum {
    MEMBERSHIP_RENEW_US = 2000000,
    MEMBERSHIP_LEASE_US = 5000000,
    MEMBERSHIP_EXPIRE_US = 6000000,
    MEMBERSHIP_REMOVE_US = 300000000,
};

struct membership;

struct membership_options {
    struct eng *eng;
    struct clock *clock; /* its machine's time */
    struct member self;  /* beat is set here */
};

/* The live servers at one moment, this one among them, in the order of their host ids. */
struct member_list {
    atomic_uint refs;
    uint32_t n, self; /* items[self] is this server */
    struct member items[];
};

enum member_event {
    MEMBER_NEW,     /* there is a server that was not known; it is alive */
    MEMBER_UP,      /* a server that was dead is alive, or it was restarted */
    MEMBER_DOWN,    /* it died, or was stopped */
    MEMBER_REMOVED, /* its record is gone. If it was alive, MEMBER_DOWN comes before */
};
/* Functions that membership calls, on its thread or on that of membership_tick. */
struct membership_hooks {
    /* Called after membership_list gives the new state; not for this server. It may take its time,
     * but at most a second. */
    void (*event)(void *arg, enum member_event event, const struct member *m);
    /* Called when a run of a server has ended, or this server takes it for dead: another server's, or the one of
     * this server before. May be called while records are read, so it waits for nothing. */
    void (*died)(void *arg, const uint8_t incarnation[MEMBER_ID]);
    /* Called once: another server runs with this one's address, and this one is to stop (L3). */
    void (*doubled)(void *arg);
    /* The version of the schema that this server has, once a round. */
    void (*schema)(void *arg, uint8_t version[MEMBER_ID]);
    void *arg;
};

/* Reads the records. Blocks. Returns NULL with e set. */
struct membership *membership_open(const struct membership_options *o, struct err *e) MUST_CHECK;
/* Writes the record: from now on the others know this server. Blocks. */
int membership_join(struct membership *m, const struct membership_hooks *hooks, struct err *e) MUST_CHECK;
/* Begins the thread. */
int membership_start(struct membership *m, struct err *e) MUST_CHECK;
/* Ends the thread and removes the record. No hook is called any more. Blocks. */
void membership_leave(struct membership *m);
/* Without membership_leave before, and without a thread: as if the server was killed. */
void membership_free(struct membership *m);

/* A reference; membership_unref it. Any thread; does not wait for the store. */
const struct member_list *membership_list(struct membership *m);
void membership_unref(const struct member_list *l);
/* Advances with each new list: one atomic load. */
uint64_t membership_generation(const struct membership *m);
/* The time since this server's record was last written, in microseconds. */
int64_t membership_age_us(const struct membership *m);
/* Whether this server is the leader. Any thread; two atomic loads. */
bool membership_leads(const struct membership *m);
/* Has the next round begin now, because the schema has changed. Any thread. */
void membership_hurry(struct membership *m);

/* One round of the thread: reads all records, renews this server's when it is due, acquires the lease
 * when it is free, and reports changes. Blocks. For tests, which have no thread. */
void membership_tick(struct membership *m);
