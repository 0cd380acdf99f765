/* An engine, whatever its store: its tables, the stripe locks, the commit thread, the
 * reclaimer, the write clock. store.own points to the store's state. Private to engine/.
 *
 * Its parts have functions in the headers and files that the comments name. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "engine/front/epoch.h"
#include "engine/front/gather.h"
#include "engine/store.h"

struct engi_table;

/* engine/front/table.h */
enum { ENGI_TABLE_PLACES = 4096, ENGI_FREED_BLOCKS = 16384 };

struct engi_tables {
    pthread_mutex_t lock; /* held to make, pin, close or free a table */
    _Atomic(struct engi_table *) places[ENGI_TABLE_PLACES]; /* lists, by id */
    uint64_t *freed[ENGI_FREED_BLOCKS]; /* a bit for each id; under the lock. NULL if none of its ids was freed */
    _Atomic uint32_t n;
};

/* engine/front/stripe.h */
enum { ENGI_STRIPES = 1024 };

struct engi_stripe {
    pthread_mutex_t lock; /* of owner and n_waiting */
    pthread_cond_t left;
    _Atomic(pthread_t) owner; /* 0 if free; a thread; ENGI_STRIPE_OF_BATCH */
    uint32_t n_waiting;
    struct engi_ballot *ballots; /* the owner's, in a store with several writers */
    bool ballots_lost;           /* there was no memory for one of them */
};

/* engine/front/reclaim.c */
struct engi_reclaim {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_mutex_t pass; /* held during a pass */
    bool running;
    _Atomic bool stop;
    uint32_t rows_per_second; /* 0 for no thread */
};

/* engine/front/write_clock.c */
enum { ENGI_CLOCK_STEP = 100000 }; /* microseconds */

struct engi_write_clock {
    _Atomic int64_t last_us, last_tick;
};

/* engine/front/commit.c */
enum { ENGI_CALLBACKS_MAX = 64 };

struct engi_commit {
    pthread_mutex_t turn; /* held during a sync, by the commit thread or by a loop; taken before lock */
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    pthread_t thread;
    bool running, stop;                /* under lock */
    _Atomic uint64_t written, wanted;  /* sequences: of the newest commit; the newest that a request waits for */
    _Atomic uint64_t durable;
    _Atomic uint64_t asked;  /* total of requests that have asked */
    _Atomic uint64_t enough; /* total of asked up to which the thread need not be woken */
    struct engi_gather gather; /* under lock */
    int64_t told_us; /* under turn: when the log last said why writes are refused */
    bool synced_here;          /* under turn: a loop has synced since the thread last checked */
    _Atomic bool failed;
    struct { eng_durable_cb cb; void *arg; } callbacks[ENGI_CALLBACKS_MAX];
    _Atomic uint32_t n_callbacks; /* callbacks below it are set */
};

struct eng {
    struct store store;
    enum eng_durability durability;
    struct clock *clock;
    struct engi_commit commit;
    struct engi_reclaim reclaim;
    _Atomic uint64_t stats[ENG_STATS]; /* rare events; frequent ones are counted in the part that they concern */
    struct engi_write_clock write_clock;
    struct engi_stripe stripes[ENGI_STRIPES];
    pthread_mutex_t expiry_lock; /* of expiry; held while it is called */
    eng_expiry_fn expiry;        /* NULL if not set */
    void *expiry_arg;
    pthread_mutex_t notice_lock; /* of watchers; held while they are called, and no other lock is taken under it */
    struct { eng_notice_fn fn; void *arg; } watchers[ENG_WATCHERS_MAX]; /* fn NULL: free */
    bool watches; /* the store reports changes */
    struct engi_epoch epoch;
    struct engi_tables tables;
};

static inline void engi_count(struct eng *eng, enum eng_stat stat) {
    atomic_fetch_add_explicit(&eng->stats[stat], 1, memory_order_relaxed);
}

/* An engine without a store, whose ops and own the store's opening sets; then engi_start starts its
 * threads. eng_close ends either. */
struct eng *engi_new(const struct eng_options *o, struct err *e) MUST_CHECK;
int engi_start(struct eng *eng, struct err *e) MUST_CHECK;

extern const struct store_front engi_front;

/* ---- commit.c ---- */

int engi_commit_start(struct eng *eng, struct err *e) MUST_CHECK;
/* Ends the thread and syncs what the durability promises at a clean end. */
void engi_commit_stop(struct eng *eng);
/* A new sequence, for a write that the store has just taken. */
uint64_t engi_commit_next_seq(struct eng *eng);
/* -1 while a failed sync is not healed: nothing may be written. */
int engi_commit_check(const struct eng *eng, struct err *e) MUST_CHECK;
/* Has seq synced, also where writes are acknowledged before their sync, and waits for it. One
 * thread syncs at a time, and none after a failed sync: a second fsync may succeed although the
 * first one lost data. */
int engi_commit_wait(struct eng *eng, uint64_t seq, struct err *e) MUST_CHECK;

/* ---- write_clock.c ---- */

/* Starts the clock at the recorded ceiling. now_us: the machine's clock. */
void engi_write_clock_start(struct engi_write_clock *c, int64_t ceiling, int64_t now_us);
/* A ceiling above all assigned timestamps. */
int64_t engi_write_clock_end(const struct engi_write_clock *c);

/* ---- reclaim.c ---- */

void engi_reclaim_init(struct engi_reclaim *r, uint32_t rows_per_second);
void engi_reclaim_fini(struct engi_reclaim *r);
int engi_reclaim_start(struct eng *eng, struct err *e) MUST_CHECK;
void engi_reclaim_stop(struct eng *eng);
/* Calls eng->expiry for a row whose expired data is removed. */
void engi_tell_expiry(struct eng *eng, struct slice key, struct slice value, int64_t covered_ts);
