/* Where a page of a SELECT ended, as opaque bytes that the client hands back with the next request.
 *
 *   [version 2][flags 1][uvarint rows left of LIMIT + 1, 0: none][uvarint rows given of the
 *   partition][uvarint subquery of IN] [uvarint n][partition key][uvarint n][clustering key
 *   form][hash of all before and of what it is bound to 4]
 *
 * What comes back is checked, never trusted: a wrong hash, length or version is ERR_PROTOCOL, and
 * keys only ever say where to go on within what the statement itself may read. Values are not part
 * of the bond: a bound value may stand for a literal.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

struct paging_state {
    bool has_limit;
    uint64_t limit_left;
    uint64_t given;        /* rows of the current partition given so far (PER PARTITION LIMIT) */
    uint32_t partition;    /* index among the partitions of an IN; in keyspaces mode, among its subqueries */
    struct slice key;      /* partition; empty: none */
    struct slice ck;       /* p NULL: the partition is done, or */
    bool before;           /* not yet begun */
    bool static_row_due;   /* with ck: no row up to there was visible; the static row is to be given */
};

/* salt: what the state is bound to (select.c). 0 / -1 without memory. */
int paging_encode(const struct paging_state *s, uint32_t salt, struct arena *a, struct slice *out,
                  struct err *e) MUST_CHECK;
/* -1 and ERR_PROTOCOL "Invalid value for the paging state". Slices point into bytes. */
int paging_decode(struct slice bytes, uint32_t salt, struct paging_state *out, struct err *e) MUST_CHECK;
/* -1, with that error: for a state that does not fit the values of its statement. */
int paging_refuse(struct err *e);
