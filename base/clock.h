/* The time comes from a struct clock, so that tests can control it. A server has one clock, and all
 * of its code reads that one.
 *
 * The service's time is the time that clients see: wall time for write timestamps, TTL, now(),
 * quotas and windows; monotonic time for the delays of DDL and the like. It may be frozen, advanced
 * and set free (struct clock_control). The machine's time serves sockets and threads: time-outs,
 * deadlines, waits. It is never moved, so that a frozen server still answers and an advanced one
 * keeps its connections.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct clock {
    int64_t (*wall_us)(struct clock *); /* microseconds since 1970 UTC; may go back */
    int64_t (*mono_us)(struct clock *); /* microseconds since some fixed moment; never goes back */
    int64_t (*machine_us)(struct clock *); /* monotonic and never moved; NULL if mono_us serves */
};

/* The machine's clocks. Any thread. */
extern struct clock clock_real;

static inline int64_t clock_wall_us(struct clock *c) { return c->wall_us(c); }
static inline int64_t clock_mono_us(struct clock *c) { return c->mono_us(c); }
static inline int64_t clock_machine_us(struct clock *c) { return c->machine_us ? c->machine_us(c) : c->mono_us(c); }

enum { CLOCK_TEXT = 48 };
/* Writes a wall time in UTC as "2026-01-02T03:04:05.678". */
void clock_text(int64_t wall_us, char out[CLOCK_TEXT]);
/* Waits until the condition is signalled, for at most us microseconds, or until clock_real's machine
 * time. A step of the wall clock does not move the time-out. Returns false at the time-out; true may
 * also be a spurious wake-up. All timed waits for a condition in the tree use these two. */
bool clock_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t us);
bool clock_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t machine_us);

/* A clock that can be moved, on top of another clock (the machine's). It begins free. All functions
 * but init and fini may be called on any thread. */
enum clock_state {
    CLOCK_FREE,    /* the other clock's time */
    CLOCK_RUNNING, /* as fast as the other clock, but at another time */
    CLOCK_FROZEN,  /* stands still */
};

typedef void (*clock_moved_cb)(void *arg);

enum { CLOCK_LISTENERS = 4 };

struct clock_control {
    struct clock clock; /* first */
    struct clock *beneath;
    _Atomic int64_t wall_ahead, mono_ahead; /* microseconds ahead of the clock beneath */
    _Atomic int64_t wall_frozen, mono_frozen; /* INT64_MIN: not frozen */
    pthread_mutex_t lock;                     /* held while the clock is moved */
    uint32_t n_listeners;
    struct { clock_moved_cb cb; void *arg; } listeners[CLOCK_LISTENERS];
};

void clock_control_init(struct clock_control *c, struct clock *beneath);
void clock_control_fini(struct clock_control *c);
enum clock_state clock_control_state(struct clock_control *c);
/* How many microseconds the wall time is ahead of that of the clock beneath. */
int64_t clock_control_ahead_us(struct clock_control *c);
void clock_control_freeze(struct clock_control *c);
/* Continues from the time at which the clock is frozen. A clock that is not frozen stays as
 * it is. */
void clock_control_run(struct clock_control *c);
/* Sets the wall time to that of the clock beneath, which may be a step back. The monotonic time
 * never steps back. */
void clock_control_free(struct clock_control *c);
/* Advances the clock by us >= 0. A frozen clock stays frozen. Returns -1 if past the year 9999. */
int clock_control_advance(struct clock_control *c, int64_t us);
/* Sets the wall time, forward or back. The monotonic time moves forward by as much; it stays when
 * the wall time moves back. Returns -1 if before 1970 or past the year 9999. */
int clock_control_set(struct clock_control *c, int64_t wall_us);
/* Calls cb after each move, on the thread that moves the clock. cb must not move the clock.
 * Register listeners before other threads use the clock. */
void clock_control_listen(struct clock_control *c, clock_moved_cb cb, void *arg);
