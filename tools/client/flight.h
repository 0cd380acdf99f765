/* Requests under way, and when the next ones are due: the bookkeeping of the load engine, without
 * sockets and without a clock of its own.
 *
 * A slot is a request from the moment it was meant to be sent until its last answer. In a closed
 * loop a slot is used again at once. In an open loop requests are due at times that the answers do
 * not change: one that finds no free slot, or a server that is slow, is late, and its latency
 * counts from when it was due, not from when it was sent. So a stall shows in every request that it
 * delayed (otherwise "coordinated omission": the one that was sent waits, those that were not are
 * not counted).
 *
 * All times are nanoseconds of one clock, the caller's. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#define FLIGHT_NEVER UINT64_MAX

enum flight_state { SLOT_FREE, SLOT_FLYING, SLOT_WAITING /* for its next try */ };

struct flight_slot {
    enum flight_state state;
    uint32_t tries; /* that were sent */
    uint32_t place; /* FREE: in the stack */
    uint64_t due_ns, sent_ns;
    uint64_t again_ns; /* WAITING: when it goes out again */
    /* what the request is, for whoever makes it */
    uint64_t a, b;
    int64_t c;
};

struct flight {
    uint32_t n, n_free, n_waiting, n_flying;
    struct flight_slot *slots;
    uint32_t *free;    /* a stack of slots */
    uint32_t *waiting; /* a heap by again_ns */
};

/* -1 without memory. */
int flight_init(struct flight *f, uint32_t n) MUST_CHECK;
void flight_fini(struct flight *f);

/* The slot of a new request that was due then; NULL: all are taken. */
struct flight_slot *flight_take(struct flight *f, uint64_t due_ns);
/* The same, one of the n slots from a first one on. */
struct flight_slot *flight_take_of(struct flight *f, uint32_t first, uint32_t n, uint64_t due_ns);
/* It was not sent after all. */
void flight_put_back(struct flight *f, struct flight_slot *s);
/* It is sent now, for the first time or again. */
void flight_sent(struct flight *f, struct flight_slot *s, uint64_t now_ns);
/* Answered for good: its latency. */
uint64_t flight_done(struct flight *f, struct flight_slot *s, uint64_t now_ns);
/* Answered, and it is tried again at that time. */
void flight_again(struct flight *f, struct flight_slot *s, uint64_t at_ns);
/* When the first of those that wait is due; FLIGHT_NEVER: none waits. */
uint64_t flight_next(const struct flight *f);
/* One that is due by now, no longer waiting; NULL: none. */
struct flight_slot *flight_due(struct flight *f, uint64_t now_ns);
static inline uint32_t flight_number(const struct flight *f, const struct flight_slot *s) {
    return (uint32_t)(s - f->slots);
}
