/* Loaded before a server by tests (LD_PRELOAD): the wall clock steps when the test says so.
 *
 * STEPPED_CLOCK   a file of one i64, shared with the test: how many microseconds the wall clock is
 *                 ahead of the machine's
 *
 * The monotonic clock is the machine's. A wait until a moment of the wall clock follows each step
 * while it lasts, as in Linux.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

enum { SLICE_NS = 20000000 /* a waiting thread looks for a step this often */ };

static const int64_t second_ns = 1000000000;
static _Atomic int64_t *ahead_us;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("STEPPED_CLOCK");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*ahead_us), PROT_READ, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED) ahead_us = at;
    if (fd >= 0) close(fd);
}

static int64_t to_ns(const struct timespec *t) { return t->tv_sec * second_ns + t->tv_nsec; }

static struct timespec of_ns(int64_t ns) {
    return (struct timespec){.tv_sec = ns / second_ns, .tv_nsec = ns % second_ns};
}

static int64_t machine_ns(void) {
    struct timespec t;
    REAL(clock_gettime)(CLOCK_REALTIME, &t);
    return to_ns(&t);
}

static int64_t ahead_ns(void) { return ahead_us ? atomic_load(ahead_us) * 1000 : 0; }

int clock_gettime(clockid_t id, struct timespec *t) {
    int rc = REAL(clock_gettime)(id, t);
    if (!rc && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) *t = of_ns(to_ns(t) + ahead_ns());
    return rc;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
    int64_t ns = machine_ns() + ahead_ns();
    (void)zone;
    *t = (struct timeval){.tv_sec = ns / second_ns, .tv_usec = ns % second_ns / 1000};
    return 0;
}

time_t time(time_t *t) {
    time_t now = (machine_ns() + ahead_ns()) / second_ns;
    if (t) *t = now;
    return now;
}

static int wait_for_wall(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *until) {
    for (;;) {
        int64_t now_ns = machine_ns(), left_ns = to_ns(until) - now_ns - ahead_ns();
        if (left_ns <= 0) return ETIMEDOUT;
        struct timespec at = of_ns(now_ns + (left_ns < SLICE_NS ? left_ns : SLICE_NS));
        int rc = REAL(pthread_cond_clockwait)(cond, lock, CLOCK_REALTIME, &at);
        if (rc != ETIMEDOUT) return rc;
    }
}

int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *lock, clockid_t id, const struct timespec *until) {
    return id == CLOCK_REALTIME ? wait_for_wall(cond, lock, until)
                                : REAL(pthread_cond_clockwait)(cond, lock, id, until);
}

/* A condition of the monotonic clock waits until a moment within the machine's uptime. */
int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *until) {
    return to_ns(until) > machine_ns() / 2 ? wait_for_wall(cond, lock, until)
                                           : REAL(pthread_cond_clockwait)(cond, lock, CLOCK_MONOTONIC, until);
}
