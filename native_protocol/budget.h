/* Memory of one kind that all connections together may make the server hold: bytes of unfinished
 * requests, bytes of unread answers.
 *
 * A connection's share says how much of it the connection holds. When all together hold more than
 * the limit, the share that holds the most is named (evicted), its owner is told, and the owner
 * closes the connection: who pays is who holds the most, not who comes next. A budget may spare
 * those whose bytes still move: whose peer took some a moment ago, unless they have held bytes for
 * long; nobody is spared above nine eighths of the limit.
 *
 * What is still being made (an answer on a worker) is charged before it is made, and is no reason
 * to evict. The maker of a large answer waits above half of the limit, but for one at a time whose
 * turn it is, and gives up above three quarters; the rest is for small ones. Whoever waits there
 * has others evicted that hold large answers and do not read, never the connection that it makes
 * the answer for.
 *
 * Large answers begin small, and many of them may fill the rest, too. Who wants to make a small one
 * then has the share revoked that makes the most, if that is more than its own: the makers of that
 * share give up when they next ask. Where nobody makes more it waits for room, and gives up what it
 * holds: it is never refused for what others hold.
 *
 *   B1  the budget's total is the sum of its shares' bytes
 *   B2  a share is in the heaps exactly while it is neither evicted nor revoked: by held bytes
 *       while some of them are made, by what it makes while it makes some
 *   B3  a share is evicted once, and only while it holds bytes that are made; until it gives them
 *       back they count as leaving
 *   B4  of a share's bytes at most all are in the making
 *   B5  while a share is revoked, what it has in the making counts as leaving; it is revoked until
 *       nothing of it is in the making
 *
 * Heaps keep the shares in order, so that nothing walks all of them: the work of a call grows with
 * the logarithm of their number. Shares with made bytes that were spared when they were last looked
 * at are ordered by the end of their grace. A share's last move is read when that time has come, so
 * a peer that takes bytes does not touch a heap.
 *
 * Any thread, each function as a whole; under one lock, so owners keep small change to themselves
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

/* SMALL: below it a connection does not count what it holds; the bound is the limit and this much for each connection.
 * OWN: what a maker may make without waiting for others; more than that is a large answer. */
enum { NP_SHARE_SMALL = 16 << 10, NP_SHARE_OWN = 2 << 20 };

struct np_budget_options {
    struct clock *clock;
    size_t limit;
    /* evicted is who has not moved for still_us or has held bytes for long_us; 0 and 0: anyone */
    int64_t still_us, long_us;
    void (*tell)(void *owner); /* a share of the owner is evicted; under the lock, on any thread */
};

struct np_budget {
    struct np_budget_options o;
    pthread_mutex_t lock;
    size_t total, leaving;
    /* Shares that may go. held: those with made bytes, by what they hold; each of them is in still,
     * too, in the same order, or in in_grace, by its end. making: those that make, by how much. */
    struct heap held, still, in_grace, making;
    uint64_t looked; /* shares whose grace was looked at, so far */
    const void *turn; /* the maker of a large answer that need not wait; NULL: none asked */
};

struct np_share {
    struct np_budget *budget;
    void *owner;
    struct heap_node held_node, still_node, grace_node, making_node;
    size_t bytes, making, leaving;
    int64_t grace_us; /* in in_grace: not spared later than this, unless it has moved */
    int64_t since_us; /* when it began to hold bytes */
    _Atomic int64_t moved_us; /* when the peer last took some of them, or it began */
    _Atomic bool evicted;
    bool revoked;
};

void npi_budget_init(struct np_budget *b, const struct np_budget_options *o);
void npi_budget_fini(struct np_budget *b);
size_t npi_budget_total(struct np_budget *b);

void npi_share_init(struct np_share *s, struct np_budget *b, void *owner);
/* Holds n bytes more, or fewer. Adding may evict any share, this one, too. */
void npi_share_add(struct np_share *s, size_t n);
void npi_share_sub(struct np_share *s, size_t n);
size_t npi_share_bytes(struct np_share *s);
/* More than a little of what it holds is made and only waits to be read. */
bool npi_share_is_behind(struct np_share *s);
/* The peer took bytes, as of this time. */
static inline void npi_share_moved(struct np_share *s, int64_t at_us) {
    atomic_store_explicit(&s->moved_us, at_us, memory_order_relaxed);
}

/* Whether a maker may go on. WAIT: it asks again later. GIVE_UP: what it holds is needed for others. */
enum np_may { NP_MAY_GO_ON, NP_MAY_WAIT, NP_MAY_GIVE_UP };
/* The maker, which holds so_far already, is going to make n bytes more. But for GO_ON there is no
 * room for them, and nobody to go for them; WAIT: the answer is small so far, gives up what it
 * holds and starts over when there is (npi_share_has_room). */
enum np_may npi_share_make(struct np_share *s, const void *maker, size_t so_far, size_t n) MUST_CHECK;
/* n of those are made, or given up: they are still held. */
void npi_share_made(struct np_share *s, size_t n);
/* The maker asks whether it may go on now. Who gets the turn so gives it back at its end; a
 * connection that has not read what it was given before gets none. */
enum np_may npi_share_may_make(struct np_share *s, const void *maker, size_t so_far);
/* For a small answer that has not begun; who makes more than one may be revoked for it. */
bool npi_share_has_room(struct np_share *s);
void npi_budget_end_turn(struct np_budget *b, const void *maker);
