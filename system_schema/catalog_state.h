/* The catalogue's own state. Inside system_schema only.
 *
 * One entry per keyspace and table, kept as its persisted form; snapshots are decoded from the
 * entries. An entry's status moves only through entry_set_status. The mutex guards entries; a
 * second one guards the pointer to the current snapshot, so that taking a reference never waits for
 * a DDL's fsync.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "system_schema/catalog.h"
#include "system_schema/objects/record.h"
#include "system_schema/ddl/ddl_rule.h"
#include "system_schema/objects/snapshot.h"
#include "system_schema/objects/table_parts.h"

struct entry {
    const struct object_kind *kind;
    struct catalog *catalog;
    uint32_t id;          /* never reused, by no kind */
    uint32_t storage;     /* where its rows are; changes when the object stays and its rows do not */
    uint32_t keyspace_id; /* of what lives in a keyspace */
    uint32_t shape;       /* schema_table.shape */
    char *name;
    enum schema_status status;
    bool old_keys;    /* as the record said at the start */
    bool freeing;     /* a thread is freeing its data */
    bool at_once;     /* the change under way has no delay */
    bool with_keyspace; /* DELETING because its keyspace is, until that drop ends; its own record does not say so */
    bool adds_regions; /* the change under way adds Regions to the keyspace (ddl/region.c) */
    bool busy;        /* not ACTIVE: in catalog.busy */
    bool touched;     /* changed since the current snapshot was made: in catalog.touched */
    int64_t due_us;   /* monotonic: when the status changes next; INT64_MAX: held, or no change is under way */
    int64_t since_us; /* monotonic: when it got this status */
    uint32_t replicated; /* of a keyspace that gets Regions: the object id of the last table that is in them */
    int64_t step_us, step_every_us; /* monotonic: when the next table is; INT64_MAX: not before the change ends */
    bool waits;       /* RESTORING: its rows are not there yet */
    uint32_t restored_from; /* a history; 0: it was not restored since the server was started */
    int64_t restored_at_us;
    uint32_t history; /* that is begun; 0: none */
    char *failure;    /* malloc'ed: the error that the change under way ends with; NULL: it succeeds */
    struct slice form, next; /* malloc'ed; next: the form that an UPDATING object will get */
    uint32_t n_objects;      /* of a keyspace: entries that live in it */
    uint32_t index;          /* in catalog.entries */
    /* references to the table in the current snapshot and in the one that is being built */
    const struct schema_table *shown, *next_shown;
    uint64_t sums[2], next_sums[2];                /* its part of the schema's version, in the same two snapshots */
    uint64_t notice;                               /* number of its newest notice (the value of notices.queued then) */
    struct entry *id_next, *name_next, *busy_next, *busy_prev, *next_touched;
};

/* The drop has ended: clients no longer see the object; its data is still to be freed. */
static inline bool entry_is_gone(const struct entry *x) { return x->status == SCHEMA_DELETED; }

enum { FIRST_STORAGE_ID = 16, MAX_LISTENERS = 8, FAILURES_KEPT = 64 };

/* The error of a failed change, kept for the client that waits for its outcome. */
struct ddl_failure {
    uint32_t id; /* the object's; 0: none */
    char words[DDL_WORDS_MAX];
};

struct history; /* recovery.h */
struct saved_keyspaces;

struct listener {
    catalog_change_cb cb;
    void *arg;
};

struct notice {
    struct notice *next;
    struct schema_change change;
};

/* Under the catalogue's lock. objects/notice.c.
 *
 * N1. Listeners are called without the catalogue's lock, by one thread at a time, in the order of
 *     the queue.
 * N2. A DDL statement is answered after the notices of its own change are delivered.
 * N3. No object is created while a notice that frees its name is queued.
 */
struct notices {
    uint32_t n_spare;
    struct notice *spare; /* reserved */
    struct notice *first, *last;
    uint64_t queued, delivered; /* counters since the start */
    bool delivering;            /* a thread is calling the listeners for the first notice */
    pthread_cond_t moved;       /* one was delivered */
    uint32_t n_listeners;       /* changed only while nothing is delivered */
    struct listener listeners[MAX_LISTENERS];
};

/* Ids whose rows belong to no object: recovery/stray.c. */
struct strays {
    bool looked; /* since the catalogue was read */
    uint32_t n;
    uint32_t *ids; /* still to be freed */
};

/* The partitioner that system.local reports: system_partitioner.c. The catalogue's lock guards
 * all fields except now. */
struct partitioner {
    atomic_uint now, next; /* the same when no switch is under way */
    int64_t since_us, due_us; /* monotonic; due_us INT64_MAX: held, or no switch is under way */
    char failure[DDL_WORDS_MAX];
};

/* The objects and their records: objects/entry.c. */
struct objects {
    uint32_t n_kinds;  /* in the order of dependency */
    const struct object_kind **kinds;
    uint32_t n_entries, n_buckets; /* room for n_buckets entries */
    struct entry **entries, **by_id, **by_name;
    struct entry *busy;    /* entries that are not ACTIVE; the worker visits only these */
    struct entry *touched; /* entries that differ from the current snapshot */
    uint64_t sums[2];      /* of all entries */
    uint32_t next_id;
    uint32_t type_depth; /* nesting of the user types being decoded */
    uint32_t counts[SCHEMA_STATUSES]; /* entries by status */
    uint32_t n_set_aside;      /* records that could not be read at the start */
};

/* Changes that are under way: ddl/apply.c begins them, ddl/worker.c ends them. */
struct ddl_state {
    char *delay, *rule_text; /* the configuration's */
    struct ddl_rules rules;
    uint32_t n_failures; /* ever */
    struct ddl_failure failures[FAILURES_KEPT]; /* the newest, in a ring */
    bool has_worker;
    pthread_t worker;
};

/* The current snapshot: objects/publish.c. The lock guards only the pointer; who replaces the
 * snapshot has the catalogue's lock, too. */
struct published {
    pthread_mutex_t lock;
    struct snapshot *current;
    atomic_uint_fast64_t generation;
    bool begin_anew;     /* the next snapshot shares nothing with the previous one */
    bool system_altered; /* a system keyspace has changed since the current snapshot was made */
};

/* The server's own keyspaces and what their tables show: system_table.c and system_<name>.c. */
struct system_state {
    struct arena arena;
    uint32_t n;
    struct space **spaces;
    uint32_t n_tables; /* of layers above */
    const struct virtual_table *tables;
    bool control;      /* the keyspace system_control exists */
    struct node_info node;
    uint8_t host_id[16];
    int64_t started_s; /* since 1970; system.local's gossip_generation */
    struct partitioner partitioner;
    struct trace_store *traces; /* of catalog_options; NULL: none */
};

/* Point-in-time recovery: recovery.c, recovery_worker.c, recovery/stray.c. */
struct recovery_state {
    struct history *histories;
    int64_t window_us;
    pthread_cond_t keep; /* work for the recovery worker, or closing */
    bool has_worker;
    pthread_t worker;
    struct strays strays; /* used by the recovery worker */
};

/* The lock guards all parts but published.lock's and what is atomic. */
struct catalog {
    struct eng *eng;
    struct clock *clock;
    struct clock_control *clock_control; /* the same clock, when it can be moved; or NULL */
    enum tally_mode mode;
    struct catalog_quota quota;
    pthread_mutex_t lock;
    pthread_cond_t moved; /* a status moved, something became due, or closing */
    bool closing;
    struct objects objects;
    struct ddl_state ddl;
    struct published published;
    struct system_state system;
    struct recovery_state recovery;
    struct notices notices;
    atomic_bool noticed; /* another server on the store has changed a record */
    uint32_t n_reloads;
    struct saved_keyspaces *saved;
    const struct catalog_states *states; /* or NULL */
    const struct catalog_scaling *scaling; /* or NULL */
};

/* ---- objects/entry.c: entries and their records; the lock is held ---- */

struct entry *entry_add(struct catalog *c, const struct object_kind *kind, uint32_t id, uint32_t keyspace_id,
                        const char *name, struct err *e) MUST_CHECK;
void entry_remove(struct catalog *c, struct entry *x);
void entry_free(struct entry *x);
struct entry *entry_by_id(struct catalog *c, uint32_t id);
/* One that is not DELETING. keyspace_id 0: find a keyspace. */
struct entry *entry_find(struct catalog *c, const struct object_kind *kind, uint32_t keyspace_id, const char *name);
/* One that is DELETING and not gone yet. */
struct entry *entry_find_deleting(struct catalog *c, const struct object_kind *kind, uint32_t keyspace_id,
                                  const char *name);
/* The one setter: asserts that the move is legal, stamps the time, moves the counters. */
void entry_set_status(struct catalog *c, struct entry *x, enum schema_status to);
/* Sets the status of a record that was read, or the status from before a change that could not
 * be recorded. */
void entry_restore_status(struct catalog *c, struct entry *x, enum schema_status to);
/* The context to decode the entry's forms with: names, and a lookup of user types by their
 * current definition. Valid as long as the entry and its keyspace. An object that is being
 * deleted may use types that no longer exist; those stay bare names. */
struct object_place entry_place(struct catalog *c, const struct entry *x);
/* Durable when it returns. Checks R1 (objects/record.h) before it writes the record. */
int entry_save(struct catalog *c, const struct entry *x, struct err *e) MUST_CHECK;
/* Writes the record together with other changes: all or none. */
int entry_save_with(struct catalog *c, const struct entry *x, uint32_t n, const struct eng_meta_change *more,
                    struct err *e) MUST_CHECK;
int entry_erase(struct catalog *c, const struct entry *x, struct err *e) MUST_CHECK;
/* Reads all entries. A record that cannot be read is set aside: it stays in the engine
 * unchanged, the log names it, and the object is not served. */
int entries_load(struct catalog *c, struct err *e) MUST_CHECK;
int entry_next_id(struct catalog *c, uint32_t *id, struct err *e) MUST_CHECK;
/* Reserves n consecutive ids. */
int entry_next_ids(struct catalog *c, uint32_t n, uint32_t *first, struct err *e) MUST_CHECK;
/* Replaces the form by a copy of the bytes. */
int form_set(struct slice *form, struct slice bytes, struct err *e) MUST_CHECK;

/* ---- objects/publish.c ---- */

/* Marks the entry as changed for clients: the next snapshot decodes it again. */
void entry_touch(struct catalog *c, struct entry *x);
int show_keyspace(struct snapshot *s, struct entry *x, struct err *e) MUST_CHECK;
int show_table(struct snapshot *s, struct entry *x, struct err *e) MUST_CHECK;
int show_type(struct snapshot *s, struct entry *x, struct err *e) MUST_CHECK;
/* Builds a snapshot with the present state of the touched entries, and makes it the current one. */
int catalog_publish(struct catalog *c, struct err *e) MUST_CHECK;

/* ---- ddl/apply.c: one DDL statement on its way ---- */

struct apply {
    struct catalog *c;
    const struct catalog_change *change;
    struct compat compat; /* the statement's */
    struct arena arena; /* for definitions until they are encoded */
    struct entry *subject;
    enum schema_change_kind kind;
    enum schema_status from; /* of the subject, when it is not new */
    uint64_t told; /* number of the statement's newest notice; 0: none */
    struct err *err;
};

/* Results of the functions that check and begin a statement; -1: err. */
enum { NOTHING_TO_DO, BEGUN };

/* True if another statement is under way on the entry, or its status allows nothing but a drop.
 * apply_busy makes the error. */
bool apply_is_unfit(const struct entry *x, bool to_drop);
/* Sets the error that another change of the object is under way; returns -1. */
int apply_busy(struct apply *a, const struct entry *x);
struct entry *apply_being_deleted(struct apply *a, const struct object_kind *kind, uint32_t keyspace_id,
                                  const char *name);
/* The keyspace of the change. NULL without an error: it does not exist and must_exist is false. */
struct entry *apply_keyspace(struct apply *a, bool must_exist);
/* The definition as it is now, in the arena. */
void *apply_definition(struct apply *a, const struct entry *x);
/* Checks that the objects that the definition needs exist and have no change under way. */
int apply_check_needs(struct apply *a, const struct object_kind *kind, const void *definition);
/* Creates the entry in status CREATING and makes it the statement's subject. BEGUN or -1. */
int apply_begin_create(struct apply *a, const struct object_kind *kind, const struct entry *ks, const void *definition);
/* Merges the options of the change into the old ones. */
int apply_merge_options(struct apply *a, uint32_t n_old, const struct schema_option *old, uint32_t *n,
                        const struct schema_option **out) MUST_CHECK;
/* -1: the name of the change is taken by a table, or by one that is being deleted. */
int apply_check_table_name(struct apply *a, const struct entry *ks);
/* Creates a table of these parts; t holds its id and creation time. Completes and checks its
 * settings. */
int apply_begin_create_table(struct apply *a, const struct entry *ks, struct table_parts *parts,
                             struct schema_table *t);
/* -1: there are already as many objects of the kind as Keyspaces allows. */
int apply_check_number(struct apply *a, const struct object_kind *kind, enum refusal_id rule, uint32_t most) MUST_CHECK;
/* Sets one option of parts; name and value stay the caller's. */
int apply_set_option(struct apply *a, struct table_parts *parts, const char *name, const char *value) MUST_CHECK;
int apply_begin_update(struct apply *a, struct entry *x, const void *definition);
int apply_begin_drop(struct apply *a, struct entry *x);

/* ---- ddl/capacity.c ---- */

/* -1: the table (x NULL: a new one; before: as it was, or NULL) would be provisioned with more
 * than a quota allows. */
int apply_check_capacity(struct apply *a, const struct entry *x, const struct schema_table *t,
                         const struct schema_table *before);
/* For ALTER TABLE: records in the options of parts the times that later changes of capacity
 * depend on. -1: the change comes too early. */
int apply_note_capacity(struct apply *a, const struct schema_table *before, struct table_parts *parts) MUST_CHECK;

/* ---- ddl/restore.c ---- */

int apply_restore_table(struct apply *a);

/* ---- ddl/column.c: columns that ALTER TABLE adds, drops and renames ---- */

/* The id for an added column. A dropped column of that name passes its id on; -1: the new
 * definition is incompatible with it. */
int64_t apply_column_id(struct apply *a, const struct schema_table *t, const struct catalog_column *col,
                        struct table_parts *parts);
/* Sets the error that the name is taken by a column of the statement or of the table; returns
 * -1. */
int apply_refuse_taken(struct apply *a, const struct catalog_column *col);
/* On entry parts holds the table's present columns. */
int apply_drop_columns(struct apply *a, const struct schema_table *t, struct table_parts *parts);
int apply_rename_columns(struct apply *a, const struct schema_table *t, struct table_parts *parts);

/* ---- ddl/truncate.c ---- */

int apply_truncate_table(struct apply *a, struct entry *x);
/* Completes truncations that a stop interrupted, so that no table keeps rows that are being
 * freed. */
int truncate_resume(struct catalog *c, struct err *e);

/* ---- ddl/type.c: DDL of user types ---- */

int apply_create_type(struct apply *a);
int apply_alter_type(struct apply *a);
int apply_drop_type(struct apply *a);
/* Call after a type's definition changed: touches the tables and types that use it, at any
 * depth. */
void type_touch_users(struct catalog *c, const struct entry *type);

/* ---- ddl/region.c: Regions that ALTER KEYSPACE adds ---- */

/* Fills in the Regions of a keyspace's definition. */
int regions_show(const struct entry *x, struct schema_keyspace *ks, struct arena *a, struct err *e) MUST_CHECK;
/* True while Regions are being added to the keyspace. */
bool regions_are_added(const struct entry *ks);
/* Spreads the tables that are not in the new Regions yet over the delay of the change under way;
 * below 0: it is held. Does nothing for other changes. */
void regions_schedule(struct catalog *c, struct entry *x, int64_t delay_us);
/* When the next table gets to the new Regions; INT64_MAX: not before the change ends. */
int64_t regions_next_us(const struct entry *x);
/* Records and shows the tables that are due. */
void regions_step(struct catalog *c, struct entry *x, int64_t now_us);

/* ---- ddl/worker.c: the status changes that follow a statement ---- */

/* Sets the delay and the failure of the change under way, as the rules say. */
void entry_schedule(struct catalog *c, struct entry *x);
/* The state of an entry before entry_finish, for undoing it. */
struct entry_before {
    enum schema_status status;
    struct slice form, next;
    uint32_t replicated;
};
/* Ends the change under way in memory, as done or as failed. The caller then saves the entry and
 * calls one of the other two: undo if saving failed, else keep. */
void entry_finish(struct catalog *c, struct entry *x, struct entry_before *before);
void entry_finish_undo(struct catalog *c, struct entry *x, const struct entry_before *before);
void entry_finish_keep(struct catalog *c, struct entry *x, const struct entry_before *before);
/* True if the change ends in the same step that begins it. */
bool entry_is_due_at_once(const struct entry *x);
/* The statement under way, for example "CREATE TABLE". */
void entry_statement(const struct entry *x, char out[DDL_STATEMENT_MAX]);
/* Makes the change under way fail with these words when it is due; NULL: it succeeds. */
void entry_fail_with(struct entry *x, const char *words);
/* Ends the changes that are due and frees some deleted objects. Returns the monotonic time when
 * something is due next; INT64_MAX: nothing is. Takes the lock. */
int64_t catalog_step(struct catalog *c);
/* The same without freeing. */
void catalog_move(struct catalog *c);
/* Passes a visible table's gc_grace_seconds and dropped columns to the engine. */
void table_tell_engine(struct catalog *c, const struct entry *x);
int worker_start(struct catalog *c, struct err *e) MUST_CHECK;
void worker_stop(struct catalog *c);
/* True if a statement is under way on the entry. */
bool entry_is_pending(const struct entry *x);
/* Queues a notice that was reserved. */
void catalog_notify(struct catalog *c, enum schema_change_kind kind, struct entry *x);
void change_describe(struct catalog *c, enum schema_change_kind kind, const struct entry *x, struct schema_change *out);

/* ---- objects/notice.c: notices to listeners; the lock is held, except for notices_deliver ---- */

void notices_init(struct notices *q);
void notices_fini(struct notices *q);
/* Allocates n notices in advance, so that queueing them cannot fail. */
int notices_reserve(struct catalog *c, uint32_t n, struct err *e) MUST_CHECK;
/* Queues a reserved notice. Returns its number for notices_deliver. */
uint64_t notice_queue(struct catalog *c, const struct schema_change *change);
/* Returns when the notices up to that one are delivered, by this thread or by others. Takes the
 * lock. */
void notices_deliver(struct catalog *c, uint64_t upto);
/* True if a notice of the object is queued or being delivered. The object itself may be gone
 * already. */
bool notices_name_object(const struct catalog *c, uint32_t object);
/* True if a queued notice frees the name; name NULL: the keyspace's name. */
bool notices_free_name(const struct catalog *c, const char *keyspace, const char *name);
/* Waits until no queued notice frees the name; releases the lock meanwhile. */
void notices_await_name(struct catalog *c, const char *keyspace, const char *name);

/* ---- objects/table_event.c; objects/table_event.h describes the events ---- */

/* Writes x's record as entry_save does. If a statement that began in status from has ended, also
 * writes its event; for a dropped keyspace, an event for each of its tables. */
int history_save(struct catalog *c, const struct entry *x, enum schema_status from, struct err *e) MUST_CHECK;
/* At the start: deletes events that are too old. */
int history_prune(struct catalog *c, struct err *e) MUST_CHECK;

/* ---- ddl/reload.c ---- */

/* Reads the objects again if another server on the store has changed a record; the lock is held. */
void catalog_look_again(struct catalog *c);

/* ---- catalog_open.c ---- */

/* The first reads everything that is recorded and publishes it; the second reads only the
 * objects. */
int catalog_read(struct catalog *c, struct err *e) MUST_CHECK;
int catalog_read_objects(struct catalog *c, struct err *e) MUST_CHECK;

/* ---- recovery/saved.c: keyspaces of saved states ---- */

struct saved_keyspaces *saved_keyspaces_new(void) MUST_CHECK;
/* Ends the thread; frees the spares' memory, not what they take in the store. */
void saved_keyspaces_free(struct saved_keyspaces *all);
/* Frees spares in the store that memory does not know, when the catalogue is read. The lock is
 * held, or no other thread exists yet. */
int saved_keyspaces_clean(struct catalog *c, struct err *e) MUST_CHECK;

/* ---- recovery/stray.c; the lock is held ---- */

/* Frees the rows of one id that belongs to no object; the first call searches for such ids.
 * Releases the lock meanwhile. 1: done, 0: there is none, -1: try again later. */
int strays_free_one(struct catalog *c);
/* Call when the catalogue is read again, or closed. */
void strays_reset(struct strays *s);

/* ---- ddl/replication.c ---- */

/* Canonical replication of a keyspace ('class' first, fully qualified), in the arena; ERR_CONFIG,
 * ERR_INVALID in Cassandra's words. */
int replication_check(const struct catalog *c, const char *keyspace, uint32_t n, const struct schema_option *given,
                      struct arena *a, struct schema_keyspace *out, struct err *e) MUST_CHECK;

/* ---- ddl/system_keyspace.c ---- */

/* Records and publishes the change; *out is the change to report to clients. -1: err. */
int apply_alter_system_keyspace(struct apply *a, struct schema_change *out);
/* Loads the alterations recorded before the start. */
int system_keyspaces_load(struct catalog *c, struct err *e) MUST_CHECK;

/* ---- system_table.c ---- */

int system_tables_build(struct catalog *c, struct err *e) MUST_CHECK;

/* ---- ddl/rule.c: rules of DDL delays; the lock is held ---- */

/* Loads the configuration's rules, overridden by the rules set at run time. */
int rules_load(struct catalog *c, struct err *e) MUST_CHECK;
/* Changes a rule as ddl_rules_prepare does, records it and puts it into effect. */
int rules_set(struct catalog *c, const struct ddl_subject *of, const char *delay, const char *failure,
              struct err *e) MUST_CHECK;
/* Removes the rule of the subject, also one of the configuration. The rule for everything is
 * reset to the configuration's. */
int rules_remove(struct catalog *c, const struct ddl_subject *of, struct err *e) MUST_CHECK;

/* ---- system_partitioner.c; the lock is held, except for the first two ---- */

const char *partitioner_name(const struct catalog *c);
bool partitioner_is_murmur(const struct catalog *c);
/* Loads the record; a switch that was under way goes on. */
int partitioner_load(struct catalog *c, struct err *e) MUST_CHECK;
bool partitioner_is_switching(const struct catalog *c);
/* Ends the switch under way, if it is due. */
void partitioner_step(struct catalog *c, int64_t now_us);

