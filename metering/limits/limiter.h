/* The limiter decides whether a request may run now, under the configured limits. It is pure: no
 * clock, no I/O, no lock of its own; the same trace of calls gives the same answers, byte for byte.
 *
 * Life of a request: its cost is computed; limiter_admit checks every bucket that the request draws
 * from (connection, account, table, partitions) and takes from all of them. When one is short, it
 * takes only from the connection's bucket, because a refused statement was sent nonetheless. The
 * verdict names the limit, its rate, and when there will be enough. A batch is one request: it is
 * refused as a whole.
 *
 * Writes are prepaid: a bucket must hold their cost, or be full when the cost is larger than the
 * bucket. Reads are postpaid, because their cost is known only after they have run: a read is
 * admitted when none of its buckets is in debt, and then its whole cost is taken, into debt if
 * necessary. Later reads wait until that debt is refilled.
 *
 * The partition guidance is a second, independent meter of entities. It is checked after the
 * limits; when it refuses, their buckets get their units back.
 *
 * The caller sets the limiter's time before any other call (limiter_set_time); all calls use this
 * time until it is set again.
 *
 *   T2  the limiter's time, by which buckets are filled (T1, bucket.h), never goes back: an older
 *       reading of the clock is ignored
 *   T3  a bucket is never ahead of the limiter's time: a restored bucket is moved to it
 *       (limit_table.restored)
 */
#pragma once

#include "base/slice.h"
#include "metering/limits/division.h"
#include "metering/limits/limit.h"
#include "metering/limits/limit_table.h"
#include "metering/limits/bucket.h"
#include "metering/size/op_cost.h"

/* The limiter's state of a connection, initially all zeros. */
struct limit_connection {
    struct bucket statements;
    uint32_t refused_in_row; /* by the guidance, since a statement was let through */
};

/* A reading of both clocks. Buckets fill by now_us, a monotonic clock. Minutes and windows follow
 * wall_us. When that clock is set back, the current minute ends, and counting continues in the
 * earlier one. */
struct limit_time {
    int64_t now_us, wall_us;
};

struct limit_request {
    struct limit_connection *connection;
    int64_t statements;
    uint32_t n_items;
    /* The items of a table are adjacent, and each partition has one item, so that a bucket is checked once, for the
     * sum. */
    const struct charge_item *items;
    /* The input of the group rules, for a batch that writes one partition; group_operations 0: the
     * rules are not checked. */
    int64_t group_operations, group_bytes, group_same_row;
};

/* A limit that a request exceeds; limit is LIMITS when there is none. */
struct limit_over {
    enum limit_id limit;
    bool enforced;     /* else it was only counted: shadow, or a warning */
    uint32_t object;   /* the table's; 0 means of none */
    char keyspace[64], table[64];
    int64_t rate;      /* of the limit: units a second, or its maximum */
    double asked;      /* 0 if a read that has not run */
    int64_t retry_us;  /* from now; 0 if a retry cannot succeed */
    const char *read;  /* the guidance's class of the read that it refuses; NULL means another limit, or a write */
};
struct limit_verdict {
    struct limit_over over;     /* of the limits */
    struct limit_over guidance;
};
static inline bool limit_refuses(const struct limit_verdict *v) {
    return (v->over.limit != LIMITS && v->over.enforced) || (v->guidance.limit != LIMITS && v->guidance.enforced);
}

enum guidance_mode { GUIDANCE_OFF, GUIDANCE_WARN, GUIDANCE_ENFORCE };

struct limiter_options {
    enum limit_mode mode; /* of account and connections, and of tables that no rule names */
    enum guidance_mode guidance;
    bool scales;          /* auto scaling is simulated */
    struct limit_values values;
    struct limit_rules rules;
    uint64_t seed;        /* of the jitter of back-off hints */
};

struct limiter;
struct limiter *limiter_new(const struct limiter_options *o) MUST_CHECK;
void limiter_free(struct limiter *l);

/* Sets the capacity of a table from its definition, of which provisioned, units, warm and scaling
 * count. Returns -1 if memory is exhausted. */
int limiter_define(struct limiter *l, uint32_t object, const char *keyspace, const char *table,
                   const struct capacity *read, const struct capacity *write) MUST_CHECK;
void limiter_drop(struct limiter *l, uint32_t object);

/* Ignores a reading that is older than the newest one (T2). */
void limiter_set_time(struct limiter *l, struct limit_time at);
int64_t limiter_wall_us(const struct limiter *l);

void limiter_admit(struct limiter *l, const struct limit_request *ask, struct limit_verdict *out);

/* Records from which meters an admitted request has taken, and when (wall time of its admission). A
 * meter that the request exceeded, and that let it pass, was not drawn from. v NULL: no limit was
 * exceeded. */
struct limit_took {
    bool of_limits, of_guidance;
    int64_t at_us;
};
static inline struct limit_took limit_took(const struct limit_verdict *v, int64_t asked_us) {
    return (struct limit_took){.of_limits = !v || v->over.limit == LIMITS,
                               .of_guidance = !v || v->guidance.limit == LIMITS,
                               .at_us = asked_us};
}
/* Returns the units of an item of an admitted request that has failed and is free. Peaks and auto
 * scaling forget its counts, unless the minute of the request is over. The statement still counts
 * for its connection. A bucket then holds as much as without the request, or more: units that would
 * have overflowed meanwhile may remain, up to the amount returned. */
void limiter_reverse(struct limiter *l, const struct charge_item *p, struct limit_took took);

/* Checks a read of the table before it runs. Returns false if the account or the table is in debt,
 * so limiter_admit would refuse the read whatever it costs. Then *out is the refusal, and it is
 * counted, as one statement of the connection. Only enforced limits are checked. */
bool limiter_may_read(struct limiter *l, uint32_t object, struct limit_connection *connection,
                      struct limit_verdict *out) MUST_CHECK;

/* Lists the tables, ordered by object, with their capacity as of now. Index 0 holds the state of
 * the account; NULL at the end. Valid until the next call that changes the limiter. */
const struct limit_table *limiter_table(struct limiter *l, uint32_t i);
/* The state of one table; NULL if the table is not defined. */
const struct limit_table *limiter_table_of(struct limiter *l, uint32_t object);
const struct limiter_options *limiter_options(const struct limiter *l);

/* The state that is kept across restarts (limit_table.h). limiter_save calls fn for each table that
 * has changed since the last call; limiter_restore takes those bytes before the table is defined.
 * Returns -1 if memory is exhausted. */
typedef void (*limiter_save_fn)(void *arg, const struct limit_table *t, struct slice state);
int limiter_save(struct limiter *l, limiter_save_fn fn, void *arg) MUST_CHECK;
int limiter_restore(struct limiter *l, uint32_t object, struct slice state) MUST_CHECK;

/* ---- several servers on one store (division.h) ---- */

/* Ends a round: appends this server's demand on each limited table, on the account, and on the
 * partitions whose demand is an eighth of their limit or more, at most LIMIT_HOT_MAX. Demand is counted
 * from the first call on. Returns -1 if memory is exhausted. */
enum { LIMIT_HOT_MAX = 64 };
int limiter_demands(struct limiter *l, struct limit_demands *out) MUST_CHECK;
/* Sets this server's fraction of each limit from its own demand and that of the other servers, whose
 * items it sorts. A limit on which no other server has demand stays whole. The use of the others
 * counts for peaks and auto scaling, too. Without memory the partitions' limits are whole. */
void limiter_divide(struct limiter *l, struct limit_demand *others, size_t n);

/* The text of a refusal, and the JSON of its payload. */
struct buf;
void limit_over_text(const struct limit_over *o, struct buf *out);
void limit_over_json(const struct limit_over *o, struct buf *out);
