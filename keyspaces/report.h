/* The migration report: every use of something that Amazon Keyspaces would refuse, by rule, table
 * and statement, with counts and times.
 *
 * Bounded: each rule keeps REPORT_STATEMENTS statements; of more it counts the uses in one row
 * without statement and table. So whoever sends ever new statements pays with their own rule's
 * detail; other rules keep theirs. Literals of a statement are shown as ?, so that statements that
 * differ in values alone are one row. Any thread.
 */
#pragma once

#include "base/clock.h"
#include "keyspaces/refusal.h"

enum { REPORT_STATEMENTS = 64, REPORT_TEXT = 512 };

struct compat_report *compat_report_new(struct clock *clock, struct err *e) MUST_CHECK;
void compat_report_free(struct compat_report *r);

/* Notes a use of a rule by a statement on a table; keyspace and table may be NULL. words: as the
 * refusal would say them; NULL when they are not known, as of a prepared statement that runs again:
 * a row keeps those of its first use that has some. */
void compat_report_note(struct compat_report *r, enum refusal_id id, const char *keyspace, const char *table,
                        struct slice statement, const char *words);

struct compat_use {
    enum refusal_id id;
    const char *keyspace, *table; /* "" when the statement names none, or for the row of all others */
    const char *statement;        /* literals as ?, cut at REPORT_TEXT; "" in the row of all others */
    const char *words;            /* cut at REPORT_TEXT; in the row of all others what the rule checks */
    uint64_t uses;
    int64_t first_us, last_us; /* wall clock */
};
/* Calls take for each row, until it says -1; what it is given ends with the call. */
int compat_report_each(struct compat_report *r, int (*take)(void *arg, const struct compat_use *u), void *arg);
