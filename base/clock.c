#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

static int64_t read_us(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int64_t real_wall(struct clock *c) {
    (void)c;
    return read_us(CLOCK_REALTIME);
}

static int64_t real_mono(struct clock *c) {
    (void)c;
    return read_us(CLOCK_MONOTONIC);
}

struct clock clock_real = {.wall_us = real_wall, .mono_us = real_mono, .machine_us = real_mono};

void clock_text(int64_t wall_us, char out[CLOCK_TEXT]) {
    time_t s = wall_us / 1000000;
    struct tm tm = {0};
    size_t n = gmtime_r(&s, &tm) ? strftime(out, CLOCK_TEXT, "%Y-%m-%dT%H:%M:%S", &tm) : 0;
    snprintf(out + n, CLOCK_TEXT - n, ".%03d", (int)(wall_us % 1000000 / 1000));
}

bool clock_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t machine_us) {
    struct timespec at = {.tv_sec = machine_us / 1000000, .tv_nsec = machine_us % 1000000 * 1000};
    return pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC, &at) != ETIMEDOUT;
}

bool clock_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t us) {
    return clock_cond_wait_until(cond, lock, read_us(CLOCK_MONOTONIC) + us);
}

/* ---- a clock that can be moved ---- */

static const int64_t latest_us = INT64_C(253402300799000000); /* the end of the year 9999 */

static int64_t moved(int64_t beneath, _Atomic int64_t *frozen, _Atomic int64_t *ahead) {
    int64_t at = atomic_load_explicit(frozen, memory_order_acquire);
    return at != INT64_MIN ? at : beneath + atomic_load_explicit(ahead, memory_order_relaxed);
}

static int64_t control_wall(struct clock *clock) {
    struct clock_control *c = (struct clock_control *)clock;
    return moved(clock_wall_us(c->beneath), &c->wall_frozen, &c->wall_ahead);
}

static int64_t control_mono(struct clock *clock) {
    struct clock_control *c = (struct clock_control *)clock;
    return moved(clock_mono_us(c->beneath), &c->mono_frozen, &c->mono_ahead);
}

static int64_t control_machine(struct clock *clock) {
    return clock_machine_us(((struct clock_control *)clock)->beneath);
}

void clock_control_init(struct clock_control *c, struct clock *beneath) {
    *c = (struct clock_control){
        .clock = {.wall_us = control_wall, .mono_us = control_mono, .machine_us = control_machine}, .beneath = beneath};
    atomic_init(&c->wall_frozen, INT64_MIN);
    atomic_init(&c->mono_frozen, INT64_MIN);
    pthread_mutex_init(&c->lock, NULL);
}

void clock_control_fini(struct clock_control *c) { pthread_mutex_destroy(&c->lock); }

void clock_control_listen(struct clock_control *c, clock_moved_cb cb, void *arg) {
    assert(c->n_listeners < CLOCK_LISTENERS);
    c->listeners[c->n_listeners].cb = cb;
    c->listeners[c->n_listeners++].arg = arg;
}

static bool is_frozen(struct clock_control *c) { return atomic_load(&c->wall_frozen) != INT64_MIN; }

/* Sets the times at which the clock is frozen, or from which it continues. A clock that continues loses
 * the microseconds that this call takes. The offsets are stored before the frozen times are
 * cleared, so that a reader of a clock that continues finds the new offset. */
static void place(struct clock_control *c, int64_t wall_us, int64_t mono_us, bool frozen) {
    atomic_store(&c->wall_ahead, wall_us - clock_wall_us(c->beneath));
    atomic_store(&c->mono_ahead, mono_us - clock_mono_us(c->beneath));
    atomic_store(&c->wall_frozen, frozen ? wall_us : INT64_MIN);
    atomic_store(&c->mono_frozen, frozen ? mono_us : INT64_MIN);
}

static void unlock_and_tell(struct clock_control *c) {
    pthread_mutex_unlock(&c->lock);
    for (uint32_t i = 0; i < c->n_listeners; i++) c->listeners[i].cb(c->listeners[i].arg);
}

enum clock_state clock_control_state(struct clock_control *c) {
    if (is_frozen(c)) return CLOCK_FROZEN;
    return atomic_load(&c->wall_ahead) ? CLOCK_RUNNING : CLOCK_FREE;
}

int64_t clock_control_ahead_us(struct clock_control *c) {
    return is_frozen(c) ? clock_wall_us(&c->clock) - clock_wall_us(c->beneath) : atomic_load(&c->wall_ahead);
}

void clock_control_freeze(struct clock_control *c) {
    pthread_mutex_lock(&c->lock);
    place(c, clock_wall_us(&c->clock), clock_mono_us(&c->clock), true);
    unlock_and_tell(c);
}

void clock_control_run(struct clock_control *c) {
    pthread_mutex_lock(&c->lock);
    if (is_frozen(c)) place(c, clock_wall_us(&c->clock), clock_mono_us(&c->clock), false);
    unlock_and_tell(c);
}

void clock_control_free(struct clock_control *c) {
    pthread_mutex_lock(&c->lock);
    place(c, clock_wall_us(c->beneath), clock_mono_us(&c->clock), false);
    atomic_store(&c->wall_ahead, 0);
    unlock_and_tell(c);
}

/* Moves the clock by us. The caller holds the lock; this function releases it. */
static int move_by(struct clock_control *c, int64_t us) {
    int64_t wall_us = clock_wall_us(&c->clock);
    bool fits = us > 0 ? us <= latest_us - wall_us : wall_us + us >= 0;
    if (!fits) {
        pthread_mutex_unlock(&c->lock);
        return -1;
    }
    place(c, wall_us + us, clock_mono_us(&c->clock) + (us > 0 ? us : 0), is_frozen(c));
    unlock_and_tell(c);
    return 0;
}

int clock_control_advance(struct clock_control *c, int64_t us) {
    pthread_mutex_lock(&c->lock);
    return move_by(c, us < 0 ? 0 : us);
}

int clock_control_set(struct clock_control *c, int64_t wall_us) {
    if (wall_us < 0 || wall_us > latest_us) return -1;
    pthread_mutex_lock(&c->lock);
    return move_by(c, wall_us - clock_wall_us(&c->clock));
}
