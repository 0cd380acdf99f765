/* Decides whether a statement may use something that Amazon Keyspaces refuses. Code that compiles
 * or admits statements calls one function, compat_refuse.
 *
 * Life: the server makes one struct compat for its mode, which cql_db_options carries. Each
 * compilation copies it, and writes the statement's text and its table into the copy.
 * compat_refuse() refuses in mode strict; in mode report it notes the use (report.h) and allows it;
 * in mode off it allows it. So its callers need not know the mode.
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

/* A use by one request. Notes are kept until the request cannot restart on another thread. */
struct compat_note {
    struct compat_note *next;
    enum refusal_id id;
    const char *keyspace, *table;
    struct slice statement;
    const char *words; /* the refusal's text; NULL if the text of the first use */
};
struct compat_notes {
    struct arena *arena;
    struct compat_note *first;
};

struct compat {
    enum compat_mode mode;
    bool exempt;                  /* a table of Tally's own keyspaces: nothing is refused */
    struct compat_report *report; /* mode REPORT: shared by all threads; NULL means only the notes count */
    struct compat_notes *notes;   /* mode REPORT: uses go here first; NULL means to the report */
    struct slice statement;       /* the statement's text; may be empty */
    const char *keyspace, *table; /* or NULL */
    struct refusal_set uses;      /* mode REPORT: the rules that this copy's statement broke */
};

/* Applies one rule; further arguments are those of its words. Returns 0 if the use is allowed
 * (always when c is NULL). Returns -1 if refused, e is set. Any thread, with its own copy. */
int compat_refuse(struct compat *c, enum refusal_id id, struct err *e, ...);
/* Sets the statement's keyspace and table. On Tally's own keyspaces nothing is refused. */
void compat_is_of(struct compat *c, const char *keyspace, const char *table);
/* Notes the uses of this copy once more, because its prepared statement runs again. */
void compat_again(struct compat *c);
/* Moves the notes to the report. */
void compat_notes_give(struct compat_notes *n, struct compat_report *report);
