/* The delay of a DDL statement, as --ddl-delay, --ddl-rules and system_control.ddl give it.
 *
 *   none                          0
 *   250                           so many milliseconds
 *   100..300                      evenly between them
 *   uniform(100, 300, 7)          the same; the seed, which may be left out, makes the sequence of
 *                                 delays the same every time
 *   lognormal(150, 0.5, 7)        the median, and the standard deviation of the delay's logarithm:
 *                                 most near the median, a few far above
 *   realistic                     10 to 20 s, evenly, or what ddl_statement.def says of the
 *                                 statement
 *   held                          until system_control.objects lets it go
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

struct ddl_delay {
    enum { DDL_NONE, DDL_FIXED, DDL_RANGE, DDL_LOGNORMAL, DDL_REALISTIC, DDL_HELD } kind;
    int64_t min_ms, max_ms; /* FIXED: both the same; LOGNORMAL: the median in min_ms */
    double sigma;           /* LOGNORMAL */
    bool seeded;
    uint64_t seed;
};

enum { DDL_DELAY_MAX_MS = 86400 * 1000 };

int ddl_delay_parse(const char *text, struct ddl_delay *out, struct err *e) MUST_CHECK;
/* Draws the delay of a statement such as "CREATE TABLE" in microseconds; -1 means held. Advances
 * *random. */
int64_t ddl_delay_draw(const struct ddl_delay *d, const char *statement, uint64_t *random);
/* True if ddl_statement.def lists the statement. */
bool ddl_statement_is_known(const char *statement);
/* "CREATE KEYSPACE, ALTER KEYSPACE, ..." */
void ddl_statement_list(struct buf *out);
