/* What the files of the fleet share (fleet.h): its state, and the steps of a round. */
#pragma once

#include <pthread.h>
#include <stdlib.h>

#include "base/array.h"
#include "server/fleet.h"
#include "server/fleet_record.h"

enum { FLEET_CHUNK = 64 << 10 };
enum { FLEET_MINUTE_US = 60000000, FLEET_FOLD_US = 60000000 /* at most one fold in so long */ };

/* Another server's share. */
struct other {
    uint64_t id, tables; /* tables: the sequence of those that were read */
    size_t n, cap;
    uint32_t *objects;   /* that it has, ascending */
    uint64_t incarnation, sequence; /* of the head that was read last */
    int64_t changed_us;             /* when another one was read */
    struct limit_demands demands;   /* in it */
};

struct fleet {
    struct fleet_options o;
    uint64_t id;
    struct fleet_head head;     /* as it was written last */
    struct buf demands;   /* in it */
    bool is_new;          /* the ledger has not had a share before */
    bool owned;           /* the stored head is this process's */
    int64_t folded_us;    /* when a fold was last tried */
    bool all;             /* the next write has all tables */
    int64_t written_us;   /* when the tables were last written; 0: not yet */
    size_t n_objects, objects_cap;
    uint32_t *objects;    /* whose records are in the store, ascending; SHARE_DROPPED left out */
    size_t n_others, others_cap;
    struct other **others;
    struct fleet_limits limits; /* demands NULL: they are not shared */
    bool (*exists)(void *arg, uint32_t object);
    void *exists_arg;
    pthread_t thread;
    pthread_mutex_t lock; /* of ends */
    pthread_cond_t wakes;
    bool runs, ends, failing;
};

static inline bool fleet_has_object(const uint32_t *objects, size_t n, uint32_t object) {
    return n && bsearch(&object, objects, n, sizeof(*objects), array_u32_order);
}

void fleet_other_free(struct other *o);
/* Makes the stored head of the own share this process's: at the start, and after a write whose outcome is
 * unknown. */
int fleet_own(struct fleet *f, struct err *e) MUST_CHECK;
/* Takes back what the ledger has lost, from the own share (E2), and learns which tables are in it. */
int fleet_recover(struct fleet *f, struct err *e) MUST_CHECK;
/* Writes the tables that have changed, if it is their turn, and the demands, in each round. */
int fleet_write(struct fleet *f, bool tables, struct slice demands, struct err *e) MUST_CHECK;
/* Reads the shares of the others, as far as they have changed, forgets those that are gone, and folds
 * one that is old. */
int fleet_read_others(struct fleet *f, struct err *e) MUST_CHECK;
/* Folds a share into the common one. Heads are given as they were read; common NULL: there is none. The
 * ledger has the tables of both as of these heads. */
int fleet_fold(struct fleet *f, uint64_t id, const struct fleet_head *head, const struct fleet_head *common,
               struct err *e) MUST_CHECK;
/* Takes off the ledger's totals what was folded of its share, which is not there, and gives it another. */
int fleet_resume(struct fleet *f, struct err *e) MUST_CHECK;
