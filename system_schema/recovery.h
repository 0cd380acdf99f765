/* Point-in-time recovery: which tables have a history in the engine (engine/history.h), what they
 * looked like when, and tables that are being restored. Inside system_schema only. docs/restore.md
 *
 * Life of a history: a table that has the property becomes ACTIVE (recovery_follow) and its history
 * begins, at once when the table is new, by the keeper thread when it may hold rows; each
 * definition that the table gets is noted with its time; when the table is gone the history stays,
 * until the window has passed over the moment it went; when the property is taken away the history
 * goes with it. Life of a restored table: its entry is RESTORING and waits; the keeper has the
 * engine make its rows; then the entry's own delay counts, and the worker makes it ACTIVE. What is
 * recorded survives kill -9 at any point: a restart begins the restore anew.
 *
 * TRUNCATE ends a history and begins another for the table's new place, in one batch with the
 * table's record (recovery_turn_begin): both are of one lineage, and a restore takes the one that
 * its moment is in.
 *
 *   record "recovery/" id u32:  version u8 | begun u8 | table id u32 | gone us u64 | lineage u32
 *                               (from version 2) | keyspace | name |
 *                               versions uvarint, each: from us u64 | form
 *   record "restore/" table id u32:  history u32 | at us u64
 *
 * W1. A history whose record says begun is followed by the engine from before anybody can write to
 *     its table.
 */
#pragma once

#include "engine/engine.h"
#include "system_schema/schema.h"

struct catalog;
struct entry;
struct meta_batch;

enum { RECOVERY_DAY_S = 86400, RECOVERY_WINDOW_S = 35 * RECOVERY_DAY_S };

struct history_version {
    int64_t from_us;
    struct slice form; /* malloc'ed */
};

struct history {
    struct history *next;
    uint32_t id;    /* of the engine's history */
    uint32_t table; /* the entry whose writes it takes; 0: it takes none any more */
    uint32_t lineage; /* the entry, also when it is gone */
    char *keyspace, *name;
    int64_t gone_us; /* INT64_MAX: it is not */
    bool begun;
    bool unwanted;   /* to be freed */
    uint32_t users;  /* threads that have let the lock go while they use it */
    uint32_t n_versions;
    struct history_version *versions; /* of the definition, by time */
};

/* ---- the lock is held ---- */

/* At the start, when the entries are loaded. */
int recovery_load(struct catalog *c, struct err *e) MUST_CHECK;
/* The entry has been recorded as it is now and nobody has seen it yet; fresh: it holds no rows. A
 * keyspace's too: when it is gone its tables are. */
void recovery_follow(struct catalog *c, struct entry *x, bool fresh);
/* The newest of the table of that name now, or, when there is none, of the last one that was; NULL: it has none. */
struct history *recovery_find(struct catalog *c, const char *keyspace, const char *name);
/* Of its lineage, the one that the moment is in. */
struct history *recovery_at(struct catalog *c, struct history *newest, int64_t at_us);
/* The first moment that can be restored, of its lineage. */
int64_t recovery_earliest(struct catalog *c, const struct history *h);
/* The definition's form at a moment. */
struct slice recovery_form(const struct history *h, int64_t at_us);
/* Records what the entry is to be restored from, before the entry is. */
int recovery_plan(struct catalog *c, struct entry *x, const struct history *h, int64_t at_us, struct err *e) MUST_CHECK;
void recovery_free(struct catalog *c);
/* A table's rows get another, empty place: the history that it has ends, and one of that place
 * begins. What says so is to be recorded with the table, in one batch; then comes the end, done or
 * not. */
struct recovery_turn {
    struct history *old, *fresh; /* NULL: the table has none */
    uint32_t n;
    struct eng_meta_change changes[2];
    uint8_t keys[2][16];
    struct buf records[2];
};
int recovery_turn_begin(struct catalog *c, struct entry *x, uint32_t storage, struct recovery_turn *turn,
                        struct err *e) MUST_CHECK;
/* storage: the place that is left: the old one when it is done, else the new one. */
void recovery_turn_end(struct catalog *c, struct entry *x, uint32_t storage, struct recovery_turn *turn, bool done);
/* Of a saved state (catalog_saved.c): the histories of a keyspace's tables, those that are gone too. */
int recovery_each_saved(struct eng *state, const char *keyspace, int (*fn)(void *arg, uint32_t id, struct err *e),
                        void *arg, struct err *e) MUST_CHECK;
/* They take the place of the keyspace's own, which are freed. id_of: the id that a history has in
 * this store; restores that were under way go on. */
int recovery_take_over(struct catalog *c, struct eng *state, const char *keyspace,
                       uint32_t (*id_of)(const void *arg, uint32_t id), const void *arg, struct meta_batch *b,
                       struct err *e) MUST_CHECK;
/* For the keeper. Each records what it says. */
int recovery_record(struct catalog *c, const struct history *h, struct err *e) MUST_CHECK;
int recovery_begun(struct catalog *c, struct history *h, struct entry *x, struct err *e) MUST_CHECK;
void recovery_rolled(struct catalog *c, struct history *h, int64_t floor_us);
/* The history and its record go. */
int recovery_erase(struct catalog *c, struct history *h, struct err *e) MUST_CHECK;

/* ---- without it ---- */

int recovery_start(struct catalog *c, struct err *e) MUST_CHECK;
void recovery_stop(struct catalog *c);
