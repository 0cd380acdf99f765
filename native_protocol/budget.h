/* Memory of one kind that all connections together may make the server hold: bytes of unfinished requests, bytes of unread answers.
 *
 * A connection's share says how much of it the connection holds. When all together hold more than the limit, the share that holds the most is
 * named (evicted), its owner is told, and the owner closes the connection: who pays is who holds the most, not who comes next.
 *
 *   B1  the budget's total is the sum of its shares' bytes
 *   B2  a share is in the list exactly while it holds bytes
 *   B3  a share is evicted once, and only while it holds bytes; until it is given back, what it holds counts as leaving
 *
 * Any thread, each function as a whole; under one lock, so owners keep small change to themselves (NP_SHARE_SMALL).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Below it a connection does not count what it holds: the bound is the limit and this much for each connection. */
enum { NP_SHARE_SMALL = 16 << 10 };

struct np_budget {
    pthread_mutex_t lock;
    size_t limit, total, leaving;
    struct np_share *shares; /* that hold bytes */
    void (*tell)(void *owner); /* a share of the owner is evicted; under the lock, on any thread */
};

struct np_share {
    struct np_budget *budget;
    void *owner;
    struct np_share *next, *prev;
    size_t bytes, leaving;
    int64_t since_us; /* when it began to hold bytes */
    _Atomic bool evicted;
};

void npi_budget_init(struct np_budget *b, size_t limit, void (*tell)(void *owner));
void npi_budget_fini(struct np_budget *b);
size_t npi_budget_total(struct np_budget *b);

void npi_share_init(struct np_share *s, struct np_budget *b, void *owner);
/* Gives back what is left. */
void npi_share_fini(struct np_share *s);
/* Holds n bytes more, at this monotonic time. May evict any share, this one, too. */
void npi_share_add(struct np_share *s, size_t n, int64_t now_us);
void npi_share_sub(struct np_share *s, size_t n);
