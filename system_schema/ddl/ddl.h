/* The context of the room: statements that change the schema, and the changes that are under way.
 *
 * Life of a change: catalog_apply checks a statement, records the object in its new status and answers.
 * The rules give it a delay. When that is over the worker (worker.c) records the final status and
 * shows it to clients. start.c resumes unfinished changes after a start. Inside system_schema only.
 */
#pragma once

#include "membership/membership.h"
#include "system_schema/ddl/change.h"
#include "system_schema/ddl/ddl_rule.h"
#include "system_schema/recovery/recovery.h"

enum { FAILURES_KEPT = 64 };

/* The error of a failed change, kept for the client that waits for its outcome. */
struct ddl_failure {
    uint32_t id; /* the object's; 0 if none */
    char words[DDL_WORDS_MAX];
};

/* A change that is no object's, and that the worker ends like one: a switch of the partitioner. */
struct ddl_guest {
    int64_t due_us; /* monotonic; set by its owner. INT64_MAX: held, or none is under way */
    /* Ends the change that is due, and sets due_us. The lock is held. */
    void (*step)(void *arg, int64_t now_us);
    /* Reads its record again, which another server may have written, and sets due_us. The lock is held. */
    int (*look_again)(void *arg, struct err *e);
    void *arg;
};

/* objects->lock guards all fields (C1). */
struct ddl {
    struct objects *objects;
    struct recovery *recovery;
    struct membership *membership; /* NULL if there is one server */
    struct catalog_quota quota;
    const char *datacenter; /* this server's */
    const char *delay, *rule_text; /* the configuration's */
    struct ddl_rules rules;
    uint64_t rules_sum; /* of their records */
    uint32_t n_failures; /* ever */
    struct ddl_failure failures[FAILURES_KEPT]; /* the newest, in a ring */
    struct ddl_guest guest;
    uint32_t n_reloads;
};

/* delay and rule_text, which may be NULL, must outlive it. */
int ddl_init(struct ddl *d, struct objects *o, struct recovery *r, const char *delay, const char *rule_text,
             struct err *e) MUST_CHECK;
void ddl_fini(struct ddl *d);

/* ---- start.c: what is recorded is read; the lock is held ---- */

/* Reads everything that is recorded and publishes it. */
int ddl_read(struct ddl *d, struct err *e) MUST_CHECK;
/* Reads it again after the store was replaced, and queues a notice for each difference. */
int ddl_reload(struct ddl *d, struct err *e) MUST_CHECK;
/* Reads the rules, the guest's record and the objects again if another server on the store has changed them. */
void ddl_look_again(struct ddl *d);

/* ---- worker.c: the status changes that follow a statement ---- */

/* Sets the delay and the failure of the change under way, as the rules say. */
void change_schedule(struct ddl *d, struct catalog_object *x);
/* The state of an object before change_finish, for undoing it. */
struct change_before {
    enum schema_status status;
    struct slice form;
};
/* Ends the change under way in memory, as done or as failed. The caller then saves the object and
 * calls one of the other two: undo if saving failed, else keep. */
void change_finish(struct ddl *d, struct catalog_object *x, struct change_before *before);
void change_finish_undo(struct ddl *d, struct catalog_object *x, const struct change_before *before);
void change_finish_keep(struct ddl *d, struct catalog_object *x, const struct change_before *before);
/* Keeps the words for the client that waits for the end of the change, which was under way in that
 * status. */
void ddl_note_failure(struct ddl *d, const struct catalog_object *x, enum schema_status during, const char *words);
/* True if the change ends in the same step that begins it. */
bool change_ends_at_once(const struct catalog_object *x);
/* The statement under way, for example "CREATE TABLE". */
void change_statement(const struct catalog_object *x, char out[DDL_STATEMENT_MAX]);
/* Ends the changes that are due and frees some deleted objects. Takes the lock. Returns the number of
 * microseconds until it is to be called again; TICKER_WHEN_WOKEN if nothing is due or to be freed. */
int64_t ddl_step(struct ddl *d);
/* The same without freeing. */
void ddl_move(struct ddl *d);
/* Passes a visible table's schema_gc_grace and dropped columns to the engine. */
void table_tell_engine(struct objects *o, const struct catalog_object *x);

/* ---- truncate.c ---- */

/* Forgets truncations that an older version had half recorded when it was killed: the table keeps its
 * rows. */
int truncate_forget(struct ddl *d, struct err *e) MUST_CHECK;

/* ---- type.c ---- */

/* Call after a type's definition changed: touches the tables and types that use it, at any
 * depth. */
void type_touch_users(struct ddl *d, const struct catalog_object *type);

/* ---- region.c: Regions that ALTER KEYSPACE adds ---- */

/* Spreads the tables that are not in the new Regions yet over the delay of the change under way;
 * below 0: it is held. Does nothing for other changes. */
void regions_schedule(struct ddl *d, struct catalog_object *x, int64_t delay_us);
/* When the next table gets to the new Regions; INT64_MAX: not before the change ends. */
int64_t regions_next_us(const struct catalog_object *x);
/* Records and shows the tables that are due. */
void regions_step(struct ddl *d, struct catalog_object *x, int64_t now_us);

/* ---- system_keyspace.c ---- */

/* Loads the alterations that are recorded. */
int system_keyspaces_load(struct ddl *d, struct err *e) MUST_CHECK;

/* ---- rule.c: rules of DDL delays; the lock is held ---- */

/* Loads the configuration's rules, overridden by the rules set at run time. */
int rules_load(struct ddl *d, struct err *e) MUST_CHECK;
/* Loads them again if another server has changed a record. */
int rules_look_again(struct ddl *d, struct err *e) MUST_CHECK;
/* Changes a rule as ddl_rules_prepare does, records it and puts it into effect. */
int rules_set(struct ddl *d, const struct ddl_subject *of, const char *delay, const char *failure,
              struct err *e) MUST_CHECK;
/* Removes the rule of the subject, also one of the configuration. The rule for everything is
 * reset to the configuration's. */
int rules_remove(struct ddl *d, const struct ddl_subject *of, struct err *e) MUST_CHECK;
