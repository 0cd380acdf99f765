/* Point-in-time recovery: the tables that have a history in the engine (engine/local/history.h), their
 * definitions over time, and the tables that are being restored. Inside system_schema only.
 * docs/restore.md
 *
 * Life of a history: a table that has the property becomes ACTIVE (recovery_follow) and its history
 * begins. It begins at once when the table is new; the recovery worker begins it when the table may
 * hold rows. Each new definition of the table is recorded with its time. After a drop the history
 * stays until the recovery window has passed over the drop. When the property is removed the
 * history is deleted. Life of a restored table: its object is RESTORING and waits; the recovery worker makes
 * the engine write its rows; then the object's own delay counts, and the worker makes it ACTIVE. The
 * records survive kill -9 at any point: a restart begins the restore again.
 *
 * TRUNCATE ends a history and begins another for the table's new storage id, in one batch with the
 * table's record (recovery_turn_begin). Both are of one lineage, and a restore takes the one that
 * covers its moment.
 *
 *   record "recovery/" id u32:  version u8 | begun u8 | table id u32 | gone us u64 | lineage u32
 *                               (from version 2) | keyspace | name |
 *                               versions uvarint, each: from us u64 | form
 *   record "restore/" table id u32:  history u32 | at us u64
 *
 * W1. If a history's record says begun, the engine follows the history before any client can write
 *     to its table.
 */
#pragma once

#include "engine/history.h"
#include "engine/named.h"
#include "system_schema/objects/objects.h"
#include "system_schema/recovery/history_report.h"

struct meta_batch;
struct saved_keyspaces;

enum { RECOVERY_DAY_S = 86400, RECOVERY_WINDOW_S = 35 * RECOVERY_DAY_S };

struct history_version {
    int64_t from_us;
    struct slice form; /* malloc'ed */
};

struct history {
    struct history *next;
    uint32_t id;    /* id of the engine's history */
    uint32_t table; /* the object whose writes it records; 0 if it records none any more */
    uint32_t lineage; /* id of that object; stays after the table is gone */
    char *keyspace, *name;
    int64_t gone_us; /* INT64_MAX: the table exists */
    bool begun;
    bool unwanted;   /* to be freed */
    uint32_t users;  /* threads that use it without the lock */
    uint32_t n_versions;
    struct history_version *versions; /* forms of the definition, by time */
};

/* Ids whose rows belong to no object: stray.c. */
struct strays {
    bool looked; /* since the catalogue was read */
    uint32_t n;
    uint32_t *ids; /* still to be freed */
};

/* The context of the room. objects->lock guards it (C1). */
struct recovery {
    struct objects *objects;
    struct history *histories;
    int64_t window_us;   /* how far back tables can be restored */
    struct ticker worker; /* recovery_worker.c */
    struct strays strays; /* used by the recovery worker */
    struct saved_keyspaces *saved;
};

int recovery_init(struct recovery *r, struct objects *o, int64_t window_s, struct err *e) MUST_CHECK;
/* The worker is stopped. */
void recovery_fini(struct recovery *r);

/* ---- the lock is held ---- */

/* At the start, after the objects are loaded. */
int recovery_load(struct recovery *r, struct err *e) MUST_CHECK;
/* Call after the object was recorded and before its change is visible. fresh: it holds no rows.
 * Also for keyspaces: a dropped one ends the histories of its tables. */
void recovery_follow(struct recovery *r, struct catalog_object *x, bool fresh);
/* The newest history of the table of that name, or, if there is no such table, of the last one that
 * had the name. Returns NULL if there is none. */
struct history *recovery_find(struct recovery *r, const char *keyspace, const char *name);
/* The history of newest's lineage that covers the moment. */
struct history *recovery_at(struct recovery *r, struct history *newest, int64_t at_us);
/* The moment of a change of the history's table: see eng_history_moment. */
int64_t recovery_moment(struct recovery *r, const struct history *h);
/* The first moment to which tables of h's lineage can be restored. */
int64_t recovery_earliest(struct recovery *r, const struct history *h);
/* The definition's form at a moment. */
struct slice recovery_form(const struct history *h, int64_t at_us);
/* Records the source of the restore, before the object itself is recorded. */
int recovery_plan(struct recovery *r, struct catalog_object *x, const struct history *h, int64_t at_us,
                  struct err *e) MUST_CHECK;
void recovery_free(struct recovery *r);
/* A table gets a new, empty storage id: its history ends, and one for the new id begins. The
 * caller records changes together with the table, in one batch, and then calls
 * recovery_turn_end, also if that failed. */
struct recovery_turn {
    struct history *old, *fresh; /* NULL if the table has none */
    uint32_t n;
    struct eng_meta_change changes[2];
    uint8_t keys[2][16];
    struct buf records[2];
};
int recovery_turn_begin(struct recovery *r, struct catalog_object *x, uint32_t storage, struct recovery_turn *turn,
                        struct err *e) MUST_CHECK;
/* storage: the storage id that is given up: the old one if done, else the new one. */
void recovery_turn_end(struct recovery *r, struct catalog_object *x, uint32_t storage, struct recovery_turn *turn,
                       bool done);
/* Calls fn for the histories in a saved state (recovery/saved.c) of a keyspace's tables,
 * including dropped ones. */
int recovery_each_saved(struct eng *state, const char *keyspace, int (*fn)(void *arg, uint32_t id, struct err *e),
                        void *arg, struct err *e) MUST_CHECK;
/* Replaces the keyspace's histories, which are freed, by those of the saved state. id_of: maps a
 * history's id in the state to its id in this store. Restores that were under way in the state
 * go on. */
int recovery_take_over(struct recovery *r, struct eng *state, const char *keyspace,
                       uint32_t (*id_of)(const void *arg, uint32_t id), const void *arg, struct meta_batch *b,
                       struct err *e) MUST_CHECK;
/* Used by the recovery worker. Each writes the history's record. */
int recovery_record(struct recovery *r, const struct history *h, struct err *e) MUST_CHECK;
int recovery_begun(struct recovery *r, struct history *h, struct catalog_object *x, struct err *e) MUST_CHECK;
void recovery_rolled(struct recovery *r, struct history *h, int64_t floor_us);
/* Frees the history and erases its record. */
int recovery_erase(struct recovery *r, struct history *h, struct err *e) MUST_CHECK;

/* ---- the lock is not held ---- */

/* One round of the recovery worker, for its ticker. arg: the struct recovery. */
int64_t recovery_work(void *arg);
/* ---- saved.c: keyspaces of saved states ---- */

struct saved_keyspaces *saved_keyspaces_new(struct recovery *r) MUST_CHECK;
/* Ends the thread; frees the spares' memory, not what they take in the store. */
void saved_keyspaces_free(struct saved_keyspaces *all);
/* Frees spares in the store that memory does not know, when the catalogue is read. The lock is
 * held, or no other thread exists yet. */
int saved_keyspaces_clean(struct recovery *r, struct err *e) MUST_CHECK;
/* ---- stray.c; the lock is held ---- */

/* Frees the rows of one id that belongs to no object; the first call searches for such ids.
 * Releases the lock meanwhile. Returns 1 on success, 0 if there is none, or -1 to try again
 * later. */
int strays_free_one(struct recovery *r);
/* Call when the catalogue is read again, or closed. */
void strays_reset(struct strays *s);
