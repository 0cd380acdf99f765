/* Requests under way, and when the next ones are due: the bookkeeping of the load engine, without
 * sockets and without its own clock.
 *
 * A slot is a request from the moment it is due until its last answer. A closed loop reuses a slot
 * at once. In an open loop the answers do not change when requests are due. A request that finds no
 * free slot, or a slow server, is late, and its latency counts from its due time and not from its
 * sending. So a stall shows in the latency of every request that it delayed. Counting from the
 * sending would hide the delayed requests ("coordinated omission").
 *
 * All times are nanoseconds of one clock, the caller's. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#define FLIGHT_NEVER UINT64_MAX

enum flight_state { SLOT_FREE, SLOT_FLYING, SLOT_WAITING /* for the next try */ };

struct flight_slot {
    enum flight_state state;
    uint32_t tries; /* times sent */
    uint32_t place; /* FREE: index in the stack of free slots */
    uint64_t due_ns, sent_ns;
    uint64_t again_ns; /* WAITING: time of the next try */
    /* the driver's description of the request */
    uint64_t a, b;
    int64_t c;
};

struct flight {
    uint32_t n, n_free, n_waiting, n_flying;
    struct flight_slot *slots;
    uint32_t *free;    /* stack of free slots */
    uint32_t *waiting; /* heap of waiting slots by again_ns */
};

/* -1 without memory. */
int flight_init(struct flight *f, uint32_t n) MUST_CHECK;
void flight_fini(struct flight *f);

/* Takes a free slot for a request that is due at due_ns; NULL if all are in use. */
struct flight_slot *flight_take(struct flight *f, uint64_t due_ns);
/* Takes a free slot among slots first to first + n - 1; NULL if all of them are in use. */
struct flight_slot *flight_take_of(struct flight *f, uint32_t first, uint32_t n, uint64_t due_ns);
/* Frees a slot whose request was not sent. */
void flight_put_back(struct flight *f, struct flight_slot *s);
/* Records that the request is sent now, for the first time or again. */
void flight_sent(struct flight *f, struct flight_slot *s, uint64_t now_ns);
/* Frees the slot after the last answer. Returns the latency in nanoseconds. */
uint64_t flight_done(struct flight *f, struct flight_slot *s, uint64_t now_ns);
/* Records an answer after which the request is tried again at at_ns. */
void flight_again(struct flight *f, struct flight_slot *s, uint64_t at_ns);
/* When the first waiting request is due; FLIGHT_NEVER: none waits. */
uint64_t flight_next(const struct flight *f);
/* Removes a request that is due by now_ns from the waiting ones; NULL if none is due. */
struct flight_slot *flight_due(struct flight *f, uint64_t now_ns);
static inline uint32_t flight_number(const struct flight *f, const struct flight_slot *s) {
    return (uint32_t)(s - f->slots);
}
