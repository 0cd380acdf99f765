/* A budget bounds memory of one kind over all connections: bytes of unfinished requests, or bytes
 * of unread answers.
 *
 * Each connection has a share, which counts the bytes that the connection holds. When all shares
 * together hold more than the limit, the share that holds the most is evicted: the budget notifies
 * its owner, and the owner closes the connection. So the largest holder loses its connection, not
 * the next client. A budget may spare shares whose bytes still move: their peer took some a moment
 * ago, and they have not held bytes for long. Above nine eighths of the limit no share is spared.
 *
 * Bytes in the making (an answer on a worker) are charged before they are made, and are no reason
 * to evict. The maker of a large answer waits above half of the limit and gives up above three
 * quarters; one maker at a time has the turn and continues. The last quarter serves small answers.
 * The makers of a connection with finished answers to read do not give up before the whole limit
 * is in use: they wait until those are read.
 * A waiting maker has other shares evicted that hold large answers and do not read, never the share
 * of its own connection.
 *
 * Large answers begin small, and many of them may fill the last quarter, too. The maker of a small
 * answer then revokes the share that makes the most, if that share makes more than its own: the
 * makers of a revoked share give up at their next call. If no share makes more, the maker of the
 * small answer drops its bytes and waits for room; it is never refused because of other shares.
 *
 *   B1  the budget's total is the sum of its shares' bytes
 *   B2  a share is in the heaps exactly while it is neither evicted nor revoked: in the heap of
 *       held bytes while some of them are made, in the heap of makers while it makes some
 *   B3  a share is evicted once, and only while it holds finished bytes; its bytes count as leaving
 *       until it gives them back
 *   B4  a share's bytes in the making are at most all its bytes
 *   B5  while a share is revoked, its bytes in the making count as leaving; it stays revoked until
 *       it has none
 *
 * Heaps keep the shares in order, so the work of a call grows with the logarithm of their number.
 * Shares with finished bytes that were spared at the last check are ordered by the end of their
 * grace. A share's last move is read only at that time, so a peer that takes bytes does not change
 * a heap.
 *
 * Any thread; each function takes the budget's one lock, so owners do not report small amounts
 * (NP_SHARE_SMALL).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/heap.h"

/* SMALL: a connection that holds less does not count it, so the real bound is the limit plus this
 * much for each connection. OWN: a maker may make this much without waiting for others; an answer
 * above it is called large. */
enum { NP_SHARE_SMALL = 16 << 10, NP_SHARE_OWN = 2 << 20 };

struct np_budget_options {
    struct clock *clock;
    size_t limit;
    /* a share may be evicted when it has not moved for still_us, or has held bytes for long_us; 0
     * and 0: always */
    int64_t still_us, long_us;
    void (*notify)(void *owner); /* notifies the owner of an evicted share; called under the lock, on any thread */
};

struct np_budget {
    struct np_budget_options o;
    pthread_mutex_t lock;
    size_t total, leaving;
    /* Shares that may be evicted or revoked. held: shares with finished bytes, ordered by held
     * bytes; each of them is also in still, in the same order, or in in_grace, ordered by the end
     * of its grace. making: shares with bytes in the making, ordered by their number. */
    struct heap held, still, in_grace, making;
    uint64_t looked; /* number of checks of a share's grace, so far */
    const void *turn; /* the maker of a large answer that has the turn; NULL if none */
};

struct np_share {
    struct np_budget *budget;
    void *owner;
    struct heap_node held_node, still_node, grace_node, making_node;
    size_t bytes, making, leaving;
    int64_t grace_us; /* in in_grace: end of the grace as of the last check */
    int64_t since_us; /* when it began to hold bytes */
    _Atomic int64_t moved_us; /* when the peer last took bytes, or the share began to hold some */
    _Atomic bool evicted;
    bool revoked;
};

void npi_budget_init(struct np_budget *b, const struct np_budget_options *o);
void npi_budget_fini(struct np_budget *b);
size_t npi_budget_total(struct np_budget *b);

void npi_share_init(struct np_share *s, struct np_budget *b, void *owner);
/* Adds n bytes to the share, or takes them away. Adding may evict any share, also this one. */
void npi_share_add(struct np_share *s, size_t n);
void npi_share_sub(struct np_share *s, size_t n);
size_t npi_share_bytes(struct np_share *s);
/* More than NP_SHARE_OWN of its bytes are finished and only wait to be read. */
bool npi_share_has_unread(struct np_share *s);
/* Records that the peer took bytes at this time. */
static inline void npi_share_moved(struct np_share *s, int64_t at_us) {
    atomic_store_explicit(&s->moved_us, at_us, memory_order_relaxed);
}

/* Whether a maker may continue. WAIT: ask again later. GIVE_UP: drop the answer, others need its
 * room. */
enum np_may { NP_MAY_GO_ON, NP_MAY_WAIT, NP_MAY_GIVE_UP };
/* Charges n more bytes to a maker that holds so_far already. GO_ON: they are charged. Otherwise
 * there is no room, and no share to evict or revoke for them. WAIT: the answer is small so far; the
 * caller drops it and starts over once npi_share_has_room returns true. */
enum np_may npi_share_make(struct np_share *s, const void *maker, size_t so_far, size_t n) MUST_CHECK;
/* n bytes are no longer in the making (finished, or given up); they still count as held. */
void npi_share_made(struct np_share *s, size_t n);
/* Whether the maker may continue now. A maker may get the turn here and gives it back at its
 * end (npi_budget_end_turn). The makers of a connection that has not read its earlier answers do
 * not get it. */
enum np_may npi_share_may_make(struct np_share *s, const void *maker, size_t so_far);
/* Whether there is room for a small answer that has not begun. A share that makes more may be
 * revoked for it. */
bool npi_share_has_room(struct np_share *s);
void npi_budget_end_turn(struct np_budget *b, const void *maker);
