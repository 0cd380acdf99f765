/* Whether something that Amazon Keyspaces refuses may be: one function, asked where a statement is
 * compiled or admitted.
 *
 * Life: the server makes one struct compat for its mode, which cql_db_options carries. Whoever
 * compiles a statement copies it, and writes into the copy whose use it is: the statement's text
 * and its table. compat_refuse() says no in mode strict; in mode report it notes the use (report.h)
 * and says yes; in mode off it says yes. So code that asks knows nothing of modes.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "keyspaces/refusal.h"

enum compat_mode { COMPAT_OFF, COMPAT_REPORT, COMPAT_STRICT };

struct compat_report; /* report.h */

enum { REFUSAL_WORDS = (REFUSALS + 63) / 64 };
struct refusal_set {
    uint64_t words[REFUSAL_WORDS];
};

/* The uses of one request, kept until it is known that it does not begin anew on another thread. */
struct compat_note {
    struct compat_note *next;
    enum refusal_id id;
    const char *keyspace, *table;
    struct slice statement;
    const char *words; /* as the refusal would say them; NULL: as at the first use */
};
struct compat_notes {
    struct arena *arena;
    struct compat_note *first;
};

struct compat {
    enum compat_mode mode;
    bool exempt;                  /* Tally's own: a table that Keyspaces does not have */
    struct compat_report *report; /* mode REPORT: shared by all threads */
    struct compat_notes *notes;   /* mode REPORT: where uses go first; NULL: to the report at once */
    struct slice statement;       /* whose use it is; may be empty */
    const char *keyspace, *table; /* or NULL */
    struct refusal_set uses;      /* mode REPORT: what was asked of this copy */
};

/* Asks one rule; further arguments are those of its words. 0: it may be (always when c is NULL).
 * -1: refused, e is set. Any thread, with a copy of its own. */
int compat_refuse(struct compat *c, enum refusal_id id, struct err *e, ...);
/* This copy is asked for a statement on that table: of a keyspace that Amazon Keyspaces does not
 * have, nothing is refused. */
void compat_is_of(struct compat *c, const char *keyspace, const char *table);
/* Notes once more what this copy was asked: a prepared statement runs again. */
void compat_again(struct compat *c);
/* Gives the notes to the report, once. */
void compat_notes_give(struct compat_notes *n, struct compat_report *report);
