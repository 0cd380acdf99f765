/* Where a page of a SELECT ended, as opaque bytes that the client sends with the next request.
 *
 *   [version 2][flags 1][uvarint rows left of LIMIT + 1, 0: none][uvarint rows given of the
 *   partition][uvarint subquery of IN] [uvarint n][partition key][uvarint n][clustering key
 *   form][hash of the preceding bytes and of the salt 4]
 *
 * The bytes that a client sends are checked, never trusted: a wrong hash, length or version is ERR_PROTOCOL, and
 * keys only determine where to continue within the rows that the statement itself may read. The salt does not depend
 * on values: a bound value may replace a literal.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

struct paging_state {
    bool has_limit;
    uint64_t limit_left;
    uint64_t given;        /* rows of the current partition returned so far (PER PARTITION LIMIT) */
    uint32_t partition;    /* index among the partitions of an IN; in keyspaces mode, among its subqueries */
    struct slice key;      /* partition; empty: none */
    struct slice ck;       /* p NULL: the partition is done, or, with before, not yet begun */
    bool before;
    bool static_row_due;   /* with ck: no row up to it was visible; the static row is still to be returned */
};

/* salt: of the statement (select.c). Returns 0, or -1 with ERR_SERVER if memory is exhausted. */
int paging_encode(const struct paging_state *s, uint32_t salt, struct arena *a, struct slice *out,
                  struct err *e) MUST_CHECK;
/* Returns -1 and ERR_PROTOCOL "Invalid value for the paging state" if the bytes are no such state. Slices in *out
 * point into bytes. */
int paging_decode(struct slice bytes, uint32_t salt, struct paging_state *out, struct err *e) MUST_CHECK;
/* Sets that error, for a state that does not fit the values of its statement, and returns -1. */
int paging_refuse(struct err *e);
