/* Time comes from a struct clock, so that tests own it. A server has one, and all of its code asks
 * that one.
 *
 * The service's time is what clients live in: wall time for write timestamps, TTL, now(), quotas
 * and windows; monotonic time for the delays of DDL and the like. It may be frozen, advanced and
 * set free (struct clock_control). The machine's time is for what happens on sockets and threads:
 * time-outs, deadlines, waits. Nobody moves it, so that a frozen server still answers and an
 * advanced one keeps its connections.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct clock {
    int64_t (*wall_us)(struct clock *); /* microseconds since 1970 UTC; may go back */
    int64_t (*mono_us)(struct clock *); /* microseconds since some fixed moment, never back */
    int64_t (*machine_us)(struct clock *); /* the same at the machine's pace; NULL: mono_us is */
};

/* The machine's clocks. Any thread. */
extern struct clock clock_real;

static inline int64_t clock_wall_us(struct clock *c) { return c->wall_us(c); }
static inline int64_t clock_mono_us(struct clock *c) { return c->mono_us(c); }
static inline int64_t clock_machine_us(struct clock *c) { return c->machine_us ? c->machine_us(c) : c->mono_us(c); }

/* A clock that can be moved. It begins free, which is another clock's time (the machine's). Any
 * thread, but for init and fini. */
enum clock_state {
    CLOCK_FREE,    /* the other clock's time */
    CLOCK_RUNNING, /* as fast as that one, but ahead of it, or behind */
    CLOCK_FROZEN,  /* stands still */
};

typedef void (*clock_moved_cb)(void *arg);

enum { CLOCK_LISTENERS = 4 };

struct clock_control {
    struct clock clock; /* first */
    struct clock *beneath;
    _Atomic int64_t wall_ahead, mono_ahead; /* of the one beneath */
    _Atomic int64_t wall_frozen, mono_frozen; /* INT64_MIN: not frozen */
    pthread_mutex_t lock;                     /* of those who move it */
    uint32_t n_listeners;
    struct { clock_moved_cb cb; void *arg; } listeners[CLOCK_LISTENERS];
};

void clock_control_init(struct clock_control *c, struct clock *beneath);
void clock_control_fini(struct clock_control *c);
enum clock_state clock_control_state(struct clock_control *c);
/* How far the wall time is ahead of the one beneath. */
int64_t clock_control_ahead_us(struct clock_control *c);
void clock_control_freeze(struct clock_control *c);
/* Goes on from where it stands. */
void clock_control_run(struct clock_control *c);
/* The wall time of the one beneath again, which may be a step back; the monotonic time only goes on. */
void clock_control_free(struct clock_control *c);
/* By us >= 0; frozen it stays so. -1: past the year 9999. */
int clock_control_advance(struct clock_control *c, int64_t us);
/* To a wall time, forward or back; the monotonic time follows forward and stands still back. -1:
 * before 1970 or past the year 9999. */
int clock_control_set(struct clock_control *c, int64_t wall_us);
/* cb is called after each move, on the mover's thread, and must not move the clock. Once, before
 * other threads use the clock. */
void clock_control_listen(struct clock_control *c, clock_moved_cb cb, void *arg);
