/* The migration report: every use of something that Amazon Keyspaces would refuse, by rule, table
 * and statement, with counts and times.
 *
 * Each rule keeps at most REPORT_STATEMENTS statements; further ones are counted in one row without
 * statement and table. A client that keeps sending new statements thus makes the report of one rule
 * less detailed, and not that of others. Literals of a statement are shown as ?, so that statements
 * that differ only in values share a row. Any thread.
 */
#pragma once

#include "base/clock.h"
#include "keyspaces/refusal.h"

enum { REPORT_STATEMENTS = 64, REPORT_TEXT = 512 };

struct compat_report *compat_report_new(struct clock *clock, struct err *e) MUST_CHECK;
void compat_report_free(struct compat_report *r);

/* Notes that a statement on a table broke a rule; keyspace and table may be NULL. words: the
 * refusal's text, or NULL when it is not known, as when a prepared statement runs again. A row
 * keeps the first words that it gets. */
void compat_report_note(struct compat_report *r, enum refusal_id id, const char *keyspace, const char *table,
                        struct slice statement, const char *words);

struct compat_use {
    enum refusal_id id;
    const char *keyspace, *table; /* "": the statement names none, or the row of all others */
    const char *statement;        /* literals as ?, cut at REPORT_TEXT; "": all others */
    const char *words;            /* cut at REPORT_TEXT; of all others: what the rule checks */
    uint64_t uses;
    int64_t first_us, last_us; /* wall clock */
};
/* Calls take for each row until take returns -1. The row is valid during the call only. */
int compat_report_each(struct compat_report *r, int (*take)(void *arg, const struct compat_use *u), void *arg);
