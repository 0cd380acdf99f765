/* The range tombstones of one partition, and what covers its rows at one moment of the store.
 *
 * A range deletion is stored loose, as it came: a blind put. Every so often the loose ones of a
 * partition are made into fragments, which are disjoint, so that one at most covers a row
 * (engine/local/fragment.h). A reader looks at few loose records, and then at the one fragment
 * where it is, or at a window of them as it goes along.
 *
 * Life of an engi_tombs: engi_tombs_add every record, engi_tombs_fragment once, then ask for rows
 * in any order.
 */
#pragma once

#include "engine/rows/key.h"

struct engi_tomb {
    struct engi_interval range;
    int64_t ts, at; /* microseconds; seconds, when it was made */
};

/* Bounds of the loose records that a reader handles itself; above them the loose ones are made into
 * fragments first. */
enum { ENGI_LOOSE_MAX = 256, ENGI_LOOSE_BYTES_MAX = 1 << 20 };

struct engi_tombs {
    struct arena *arena; /* holds everything, also the bounds */
    int64_t partition_ts;
    struct engi_tomb *tombs; /* as added; the newest first once fragmented */
    uint32_t n, cap;
    struct slice *bounds;           /* ascending; piece i is [bounds[i], bounds[i + 1]), the last one goes to the end */
    const struct engi_tomb **piece; /* the newest that covers it, or NULL */
    uint32_t n_bounds;
};

void engi_tombs_init(struct engi_tombs *t, struct arena *a);
/* Bytes are copied. */
int engi_tombs_add(struct engi_tombs *t, const struct engi_tomb *tomb, struct err *e) MUST_CHECK;
int engi_tombs_fragment(struct engi_tombs *t, struct err *e) MUST_CHECK;
/* After engi_tombs_fragment: the newest deletion that covers a row; ENG_NO_TS: none. */
int64_t engi_tombs_at(const struct engi_tombs *t, struct slice ck);

/* Iterates over the fragmented ranges; neighbours with the same timestamp are one range, and
 * out->at is their latest. *i starts at 0; false: no more. */
bool engi_tombs_next(const struct engi_tombs *t, uint32_t *i, struct engi_tomb *out);
/* Number of fragmented ranges in the slices. */
uint32_t engi_tombs_count(const struct engi_tombs *t, const struct engi_interval *slices, uint32_t n_slices);

/* Copies the bounds to the arena. Returns -1 if it has no memory. */
int engi_interval_keep(struct engi_interval *i, struct arena *a) MUST_CHECK;

/* ---- records ---- */

/* The deletion that a stored value holds. Returns -1 if damaged. */
int engi_tomb_deletion(struct slice value, int64_t *ts, int64_t *at, struct err *e) MUST_CHECK;
/* Decodes a loose or a fragmented record. rest is the key after the kind; the result points into rest
 * and value. */
int engi_tomb_read(struct slice rest, struct slice value, struct engi_tomb *out, struct err *e) MUST_CHECK;
/* Decodes any record, or one operand of it, of a partition (record.c). Returns -1 if it is damaged,
 * and e says how. Memory comes from the arena. */
int engi_check_record(struct slice key, struct slice value, struct arena *a, struct err *e) MUST_CHECK;
/* Whether the iterator is on a fragment of the partition. */
struct kv_iter;
bool engi_on_fragment(const struct kv_iter *it, struct slice prefix);
/* Appends the value of a record: with the start of a fragment. */
void engi_tomb_value(struct buf *out, const struct engi_tomb *tomb, bool fragmented);
