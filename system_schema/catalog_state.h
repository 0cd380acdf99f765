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
#include "system_schema/catalog_record.h"
#include "system_schema/ddl_rule.h"
#include "system_schema/recovery.h"
#include "system_schema/snapshot.h"

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
    bool at_once;     /* what is under way has no delay */
    bool with_keyspace; /* DELETING because its keyspace is, and ends with it; its own record does not say so */
    bool busy;        /* not ACTIVE: in catalog.busy */
    bool touched;     /* changed since the current snapshot was made: in catalog.touched */
    int64_t due_us;   /* monotonic: when the status moves on; INT64_MAX: held, or nothing is under way */
    int64_t since_us; /* monotonic: when it got this status */
    bool waits;       /* RESTORING: its rows are not there yet */
    uint32_t restored_from; /* a history; 0: it was not restored since the server was started */
    int64_t restored_at_us;
    uint32_t history; /* that is begun; 0: none */
    char *failure;    /* malloc'ed: the words that what is under way fails with; NULL: it does not */
    struct slice form, next; /* malloc'ed; next is what an UPDATING object becomes */
    uint32_t n_objects;      /* of a keyspace: entries that live in it */
    uint32_t index;          /* in catalog.entries */
    /* of a table: held; in the current snapshot, and in the one that is being made */
    const struct schema_table *shown, *next_shown;
    uint64_t sums[2], next_sums[2];                /* its part of the schema's version, likewise */
    uint64_t notice;                               /* the newest one of it: as notices.queued was then */
    struct entry *id_next, *name_next, *busy_next, *busy_prev, *next_touched;
};

/* DELETING is over: nobody sees it, its data waits to be freed. */
static inline bool entry_is_gone(const struct entry *x) { return x->status == SCHEMA_DELETED; }

enum { FIRST_STORAGE_ID = 16, MAX_LISTENERS = 8, FAILURES_KEPT = 64 };

/* A change that failed, for the client that waits for it. */
struct ddl_failure {
    uint32_t id; /* the object's; 0: none */
    char words[DDL_WORDS_MAX];
};

struct trace_store;
struct saved_keyspaces;

struct listener {
    catalog_change_cb cb;
    void *arg;
};

struct notice {
    struct notice *next;
    struct schema_change change;
};

/* Under the catalogue's lock. catalog_notice.c.
 *
 * N1. Listeners are called without the catalogue's lock, by one thread at a time, in the order of
 *     the queue.
 * N2. A DDL statement is answered when the notices of its own change are delivered.
 * N3. No object is created while a notice that frees its name is queued.
 */
struct notices {
    uint32_t n_spare;
    struct notice *spare; /* reserved */
    struct notice *first, *last;
    uint64_t queued, delivered; /* how many, ever */
    bool delivering;            /* a thread calls the listeners of the first one */
    pthread_cond_t moved;       /* one was delivered */
    uint32_t n_listeners;       /* changed only while nothing is delivered */
    struct listener listeners[MAX_LISTENERS];
};

/* Ids of rows that no object has: catalog_stray.c. */
struct strays {
    bool looked; /* since the catalogue was read */
    uint32_t n;
    uint32_t *ids; /* that are still to be freed */
};

/* Which partitioner clients are told: system_partitioner.c. Under the catalogue's lock, but for now. */
struct partitioner {
    atomic_uint now, next; /* the same when no switch is under way */
    int64_t since_us, due_us; /* monotonic; due: INT64_MAX: held, or none is under way */
    char failure[DDL_WORDS_MAX];
};

struct catalog {
    struct eng *eng;
    struct clock *clock;
    struct clock_control *clock_control; /* the same, when it can be moved; or NULL */
    enum tally_mode mode;
    char *ddl_delay, *ddl_rules; /* the configuration's */
    bool control;
    struct partitioner partitioner;
    struct node_info node;
    struct catalog_quota quota;
    uint32_t n_kinds;  /* in the order of dependency */
    const struct object_kind **kinds;
    uint32_t n_tables; /* of layers above */
    const struct virtual_table *tables;
    uint8_t host_id[16];
    int64_t started_s; /* since 1970; system.local's gossip_generation */

    pthread_mutex_t lock; /* entries, next_id, closing */
    pthread_cond_t moved; /* a status moved, something became due, or closing */
    uint32_t n_entries, n_buckets; /* room for n_buckets entries */
    struct entry **entries, **by_id, **by_name;
    struct entry *busy;    /* those that are not ACTIVE, the gone ones too: all that the worker looks at */
    struct entry *touched; /* those that the next snapshot shows otherwise */
    uint64_t sums[2];      /* of all entries */
    uint32_t next_id;
    uint32_t type_depth; /* of user types that are being decoded */
    uint32_t counts[SCHEMA_STATUSES]; /* entries by status */
    struct ddl_rules rules;
    uint32_t n_failures; /* ever */
    struct ddl_failure failures[FAILURES_KEPT]; /* the newest, in a ring */
    uint32_t n_set_aside;      /* records that could not be read at the start */
    bool closing, has_worker;
    atomic_bool noticed; /* another server on the store has changed a record */
    pthread_t worker;

    pthread_mutex_t current_lock;
    struct snapshot *current;
    atomic_uint_fast64_t generation;

    struct arena arena; /* system keyspaces */
    uint32_t n_system;
    struct space **system;
    bool system_altered; /* since the current snapshot was made */
    struct notices notices;
    struct trace_store *traces;

    const struct catalog_states *states; /* or NULL */
    const struct catalog_scaling *scaling; /* or NULL */
    struct saved_keyspaces *saved;
    bool begin_anew;    /* the next snapshot shares nothing with the one before */
    uint32_t n_reloads;

    struct history *histories; /* under lock */
    int64_t recovery_window_us;
    pthread_cond_t keep; /* something is to be done for histories, or closing */
    bool has_keeper;
    pthread_t keeper;
    struct strays strays; /* of the keeper */
};

/* ---- catalog_entry.c: entries and their records; the lock is held ---- */

struct entry *entry_add(struct catalog *c, const struct object_kind *kind, uint32_t id, uint32_t keyspace_id,
                        const char *name, struct err *e) MUST_CHECK;
void entry_remove(struct catalog *c, struct entry *x);
void entry_free(struct entry *x);
struct entry *entry_by_id(struct catalog *c, uint32_t id);
/* One that is not DELETING. keyspace_id 0: of a keyspace. */
struct entry *entry_find(struct catalog *c, const struct object_kind *kind, uint32_t keyspace_id, const char *name);
/* One that is DELETING and not gone yet. */
struct entry *entry_find_deleting(struct catalog *c, const struct object_kind *kind, uint32_t keyspace_id,
                                  const char *name);
/* The one setter: asserts that the move is legal, stamps the time, moves the counters. */
void entry_set_status(struct catalog *c, struct entry *x, enum schema_status to);
/* Back to what a record says, or to what was before a change that could not be recorded. */
void entry_restore_status(struct catalog *c, struct entry *x, enum schema_status to);
/* What its definitions are decoded with, user types being what they are now; valid as long as the
 * entry and its keyspace. What is being deleted may name types that are gone, which stay names. */
struct object_place entry_place(struct catalog *c, const struct entry *x);
/* Durable when it returns. The one place that writes records: it holds R1 (catalog_record.h). */
int entry_save(struct catalog *c, const struct entry *x, struct err *e) MUST_CHECK;
/* Together with other records: all or none. */
int entry_save_with(struct catalog *c, const struct entry *x, uint32_t n, const struct eng_meta_change *more,
                    struct err *e) MUST_CHECK;
int entry_erase(struct catalog *c, const struct entry *x, struct err *e) MUST_CHECK;
/* Those that cannot be read are set aside: left in the engine as they are, told in the log by name, and not served. */
int entries_load(struct catalog *c, struct err *e) MUST_CHECK;
int entry_next_id(struct catalog *c, uint32_t *id, struct err *e) MUST_CHECK;
/* So many in a row. */
int entry_next_ids(struct catalog *c, uint32_t n, uint32_t *first, struct err *e) MUST_CHECK;
/* Copies the bytes; frees what was there. */
int form_set(struct slice *form, struct slice bytes, struct err *e) MUST_CHECK;

/* ---- catalog_snapshot.c ---- */

/* What clients see of the entry is another now: the next snapshot tells. */
void entry_touch(struct catalog *c, struct entry *x);
int show_keyspace(struct snapshot *s, struct entry *x, struct err *e) MUST_CHECK;
int show_table(struct snapshot *s, struct entry *x, struct err *e) MUST_CHECK;
int show_type(struct snapshot *s, struct entry *x, struct err *e) MUST_CHECK;
/* Makes a snapshot in which the touched entries are as they are now, and makes it the current one. */
int catalog_publish(struct catalog *c, struct err *e) MUST_CHECK;

/* ---- catalog_apply.c: one DDL statement on its way ---- */

struct apply {
    struct catalog *c;
    const struct catalog_change *change;
    struct compat compat; /* the statement's */
    struct arena arena; /* of definitions on the way to their form */
    struct entry *subject;
    enum schema_change_kind kind;
    enum schema_status from; /* of the subject, when it is not new */
    uint64_t told; /* the number of its newest notice; 0: there is none */
    struct err *err;
};

/* What the check of a statement finds. */
enum { NOTHING_TO_DO, BEGUN };

/* A statement is under way on it, or it is in a status that nothing but a drop may be done in: apply_busy says so. */
bool apply_is_unfit(const struct entry *x, bool to_drop);
/* -1: the object is in the middle of another change. */
int apply_busy(struct apply *a, const struct entry *x);
struct entry *apply_being_deleted(struct apply *a, const struct object_kind *kind, uint32_t keyspace_id,
                                  const char *name);
/* The keyspace of the change. NULL and no error: there is none, and the statement does not mind. */
struct entry *apply_keyspace(struct apply *a, bool must_exist);
/* The definition as it is now, in the arena. */
void *apply_definition(struct apply *a, const struct entry *x);
/* What the definition needs is there, and nothing of it in the middle of another change. */
int apply_check_needs(struct apply *a, const struct object_kind *kind, const void *definition);
/* Each gives the status and makes the entry the statement's subject. BEGUN, NOTHING_TO_DO or -1. */
int apply_begin_create(struct apply *a, const struct object_kind *kind, const struct entry *ks, const void *definition);
/* Options with those of the change in their place. */
int apply_merge_options(struct apply *a, uint32_t n_old, const struct schema_option *old, uint32_t *n,
                        const struct schema_option **out) MUST_CHECK;
/* -1: there is a table of the change's name, or one is being deleted. */
int apply_check_table_name(struct apply *a, const struct entry *ks);
/* A table of these parts, whose id and time are in t; its settings are completed and checked. */
int apply_begin_create_table(struct apply *a, const struct entry *ks, struct table_parts *parts,
                             struct schema_table *t);
/* -1: there are as many of the kind as Keyspaces allows. */
int apply_check_number(struct apply *a, const struct object_kind *kind, enum refusal_id rule, uint32_t most) MUST_CHECK;
/* Sets one option of parts; name and value stay the caller's. */
int apply_set_option(struct apply *a, struct table_parts *parts, const char *name, const char *value) MUST_CHECK;
int apply_begin_update(struct apply *a, struct entry *x, const void *definition);
int apply_begin_drop(struct apply *a, struct entry *x);

/* ---- catalog_capacity.c ---- */

/* -1: the table (x NULL: a new one; before: as it was, or NULL) would be provisioned with more than a quota allows. */
int apply_check_capacity(struct apply *a, const struct entry *x, const struct schema_table *t,
                         const struct schema_table *before);
/* Of an ALTER TABLE: notes in the options of parts what later changes of capacity depend on. -1:
 * the change comes too early. */
int apply_note_capacity(struct apply *a, const struct schema_table *before, struct table_parts *parts) MUST_CHECK;

/* ---- catalog_restore.c ---- */

int apply_restore_table(struct apply *a);

/* ---- catalog_column.c: columns that come, go and get other names ---- */

/* The id for a column that is added, that of the dropped one of its name when there is one, which
 * must have been such a column; else -1. */
int64_t apply_column_id(struct apply *a, const struct schema_table *t, const struct catalog_column *col,
                        struct table_parts *parts);
/* -1: a column of the statement, or of the table, has its name */
int apply_refuse_taken(struct apply *a, const struct catalog_column *col);
/* parts holds the table's columns as they are. */
int apply_drop_columns(struct apply *a, const struct schema_table *t, struct table_parts *parts);
int apply_rename_columns(struct apply *a, const struct schema_table *t, struct table_parts *parts);
void apply_unmask_column(struct apply *a, struct table_parts *parts);

/* ---- catalog_truncate.c ---- */

int apply_truncate_table(struct apply *a, struct entry *x);
/* Truncations that a stop cut in two are done: no table has rows that are being freed. */
int truncate_resume(struct catalog *c, struct err *e);

/* ---- catalog_type.c: DDL of user types ---- */

int apply_create_type(struct apply *a);
int apply_alter_type(struct apply *a);
int apply_drop_type(struct apply *a);
/* A type has another definition now: so has what is made of it, tables and types at any depth. */
void type_touch_users(struct catalog *c, const struct entry *type);

/* ---- catalog_worker.c: the state machine's way forward ---- */

/* Gives what is under way the delay and the failure that the rules say for it. */
void entry_schedule(struct catalog *c, struct entry *x);
/* What an entry was before a step that could not be recorded. */
struct entry_before {
    enum schema_status status;
    struct slice form, next;
};
/* What is under way comes to its end, as done or as failed, in memory; it is to be saved then, and
 * one of the other two to be called. */
void entry_finish(struct catalog *c, struct entry *x, struct entry_before *before);
void entry_finish_undo(struct catalog *c, struct entry *x, const struct entry_before *before);
void entry_finish_keep(struct catalog *c, struct entry *x, const struct entry_before *before);
/* Is its end due as soon as it begins? */
bool entry_is_due_at_once(const struct entry *x);
/* "CREATE TABLE": of what is under way. */
void entry_statement(const struct entry *x, char out[DDL_STATEMENT_MAX]);
/* What is under way fails when it is due; NULL: it does not. */
void entry_fail_with(struct entry *x, const char *words);
/* Moves what is due and frees some of what is gone; returns when something is due next
 * (monotonic), INT64_MAX: nothing is. Takes the lock. */
int64_t catalog_step(struct catalog *c);
/* The first half of it: frees nothing. */
void catalog_move(struct catalog *c);
/* Tells the engine what it has to know of a table that is shown. */
void table_tell_engine(struct catalog *c, const struct entry *x);
int worker_start(struct catalog *c, struct err *e) MUST_CHECK;
void worker_stop(struct catalog *c);
/* A statement is under way on it. */
bool entry_is_pending(const struct entry *x);
/* Queues a notice that was reserved. */
void catalog_notify(struct catalog *c, enum schema_change_kind kind, struct entry *x);
void change_describe(struct catalog *c, enum schema_change_kind kind, const struct entry *x, struct schema_change *out);

/* ---- catalog_notice.c: what listeners are told; the lock is held, but for notices_deliver ---- */

void notices_init(struct notices *q);
void notices_fini(struct notices *q);
/* Memory for so many notices, so that queueing them cannot fail. */
int notices_reserve(struct catalog *c, uint32_t n, struct err *e) MUST_CHECK;
/* One that was reserved. Returns its number, which notices_deliver takes. */
uint64_t notice_queue(struct catalog *c, const struct schema_change *change);
/* Returns when the notices up to that one are delivered, by this thread or by others. Takes the
 * lock. */
void notices_deliver(struct catalog *c, uint64_t upto);
/* Is a notice of the object queued or being delivered? The object itself may be gone already. */
bool notices_name_object(const struct catalog *c, uint32_t object);
/* Does a queued notice free the name? name NULL: the keyspace's own. */
bool notices_free_name(const struct catalog *c, const char *keyspace, const char *name);
/* Waits until none does; lets go of the lock meanwhile. */
void notices_await_name(struct catalog *c, const char *keyspace, const char *name);

/* ---- catalog_history.c, whose events catalog_history.h tells ---- */

/* Writes x's record as entry_save does and, when a statement that began in status from has come to
 * its end on it, the events of that: of a keyspace that is dropped, of all its tables. */
int history_save(struct catalog *c, const struct entry *x, enum schema_status from, struct err *e) MUST_CHECK;
/* At the start: drops what is too old. */
int history_prune(struct catalog *c, struct err *e) MUST_CHECK;

/* ---- catalog_reload.c ---- */

/* Reads the objects anew, if another server on the store has changed a record; the lock is held. */
void catalog_look_again(struct catalog *c);

/* ---- catalog.c ---- */

/* Reads everything that is recorded and publishes it; the objects alone. */
int catalog_read(struct catalog *c, struct err *e) MUST_CHECK;
int catalog_read_objects(struct catalog *c, struct err *e) MUST_CHECK;

/* ---- catalog_saved.c: keyspaces of saved states ---- */

struct saved_keyspaces *saved_keyspaces_new(void) MUST_CHECK;
/* Ends the thread; frees the spares' memory, not what they take in the store. */
void saved_keyspaces_free(struct saved_keyspaces *all);
/* When the catalogue is read: spares in the store that memory does not know of are freed. The lock
 * is held, or nobody else is there yet. */
int saved_keyspaces_clean(struct catalog *c, struct err *e) MUST_CHECK;

/* ---- catalog_stray.c; the lock is held ---- */

/* Frees the rows of one id that no object has, after it has looked for them; lets go of the lock
 * meanwhile. 1: done, 0: there is none, -1: to be tried again. */
int strays_free_one(struct catalog *c);
/* The catalogue is read anew, or closed. */
void strays_reset(struct strays *s);

/* ---- catalog_replication.c ---- */

/* Canonical replication of a keyspace ('class' first, fully qualified), in the arena; ERR_CONFIG,
 * ERR_INVALID in Cassandra's words. */
int replication_check(const struct catalog *c, const char *keyspace, uint32_t n, const struct schema_option *given,
                      struct arena *a, struct schema_keyspace *out, struct err *e) MUST_CHECK;

/* ---- catalog_system_keyspace.c ---- */

/* -1: err. Records and shows the change; *out is what clients are told. */
int apply_alter_system_keyspace(struct apply *a, struct schema_change *out);
/* What was altered before the start. */
int system_keyspaces_load(struct catalog *c, struct err *e) MUST_CHECK;

/* ---- system_table.c ---- */

int system_tables_build(struct catalog *c, struct err *e) MUST_CHECK;

/* ---- catalog_rule.c: rules of DDL delays; the lock is held ---- */

/* The configuration's rules, and over them those that were set. */
int rules_load(struct catalog *c, struct err *e) MUST_CHECK;
/* As ddl_rules_prepare, and recorded. */
int rules_set(struct catalog *c, const struct ddl_subject *of, const char *delay, const char *failure,
              struct err *e) MUST_CHECK;
/* Takes the rule of the subject away, the configuration's too; the rule for everything becomes what
 * the configuration says. */
int rules_remove(struct catalog *c, const struct ddl_subject *of, struct err *e) MUST_CHECK;

/* ---- system_partitioner.c; the lock is held, but for the first two ---- */

const char *partitioner_name(const struct catalog *c);
bool partitioner_is_murmur(const struct catalog *c);
/* What was under way goes on. */
int partitioner_load(struct catalog *c, struct err *e) MUST_CHECK;
bool partitioner_is_switching(const struct catalog *c);
/* The switch that is under way is done, if it is due. */
void partitioner_step(struct catalog *c, int64_t now_us);

/* ---- catalog_trace.c ---- */

struct trace_store *trace_store_new(void) MUST_CHECK;
void trace_store_free(struct trace_store *t);
