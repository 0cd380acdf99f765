/* The context of the room: keyspaces, types and tables in memory, their records in the engine, and
 * the snapshot of them that clients read. Inside system_schema only.
 *
 * Life of an object: a DDL statement or the start adds it (object_add). object_set_status moves its
 * status, and nothing else does. object_save records it, and objects_publish decodes what has changed
 * since the current snapshot into the next one. When its rows are freed, object_remove ends it.
 *
 * C1. struct objects.lock guards the objects, the notices and the contexts of the rooms above
 *     (struct recovery, struct ddl, struct partitioner), except for what is atomic.
 * C2. published.lock is taken after it and guards only the pointer to the current snapshot, so that
 *     a reader never waits for a statement's fsync. The thread that replaces the snapshot holds
 *     both. The lock of saved keyspaces (recovery/saved.c) is taken after it, too.
 * C3. Records of objects change only by objects_write, which advances the catalogue's version on
 *     the condition that it is the version of the objects in memory. So of two servers on one store
 *     that change the schema at the same time one fails, whatever objects the two change. It reads
 *     the records again, and decides the statement anew (catalog_apply).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/ticker.h"
#include "engine/named.h"
#include "system_schema/objects/object_kind.h"
#include "system_schema/objects/record.h"
#include "system_schema/objects/snapshot.h"

/* The catalogue: the contexts of its rooms. */
struct catalog {
    struct objects *objects;
    struct recovery *recovery;
    struct ddl *ddl;
    struct system_tables *tables;
};

/* A statement's change of an object, from the statement until its end is recorded. */
struct change_under_way {
    int64_t due_us;      /* monotonic: when it ends; INT64_MAX if it is held */
    bool at_once;        /* it has no delay */
    bool waits;          /* RESTORING: the rows are not written yet */
    char *failure;       /* malloc'ed: the error that it ends with; NULL if it succeeds */
    struct slice next;   /* malloc'ed: the form that an UPDATING object will get; else empty */
    bool adds_regions;   /* to the keyspace (ddl/region.c). Then: */
    uint32_t replicated; /* the tables up to this object id are in the new Regions */
    int64_t step_us, step_every_us; /* monotonic: when the next table is; INT64_MAX: not before the change ends */
};

/* A keyspace, a type, a table or an object of a further kind. */
struct catalog_object {
    const struct object_kind *kind;
    struct objects *objects;
    uint32_t id;          /* never reused, by no kind */
    uint32_t storage;     /* where its rows are; changes when the object stays and its rows do not */
    uint32_t keyspace_id; /* of the keyspace that it is in; 0 if none */
    uint32_t shape;       /* schema_table.shape */
    char *name;
    struct slice form;    /* malloc'ed: its definition */
    enum schema_status status;
    int64_t since_us;     /* monotonic: when it got this status */
    /* NULL if none is under way. A DELETING object without one is deleted because its keyspace is; its
     * own record does not say so. */
    struct change_under_way *change;
    bool old_keys;    /* its record has version 1 (record.h) */
    bool awaited;     /* a client of this server waits for the end of the change, or until it is freed */
    bool freeing;     /* DELETED: a thread is freeing its data */
    int64_t free_us;  /* DELETED: its data are not freed before, by the machine's time; 0 for at once */
    uint32_t restored_from; /* a history; 0 if it was not restored since the server was started */
    int64_t restored_at_us;
    uint32_t history;   /* that has begun; 0 if none */
    uint32_t n_objects; /* of a keyspace: objects in it */
    uint32_t index;     /* in objects.all */
    bool touched;       /* changed since the current snapshot was made: in objects.touched */
    /* references to the table in the current snapshot and in the one that is being built */
    const struct schema_table *shown, *next_shown;
    uint64_t sums[2], next_sums[2]; /* its part of the schema's version, in the same two snapshots */
    struct catalog_object *id_next, *name_next, *busy_next, *busy_prev, *next_touched;
};

/* The drop has ended: clients no longer see the object; its data is still to be freed. */
static inline bool object_is_gone(const struct catalog_object *x) { return x->status == SCHEMA_DELETED; }

enum { FIRST_STORAGE_ID = 16 };

/* The record of the version of all records of objects (C3). */
#define OBJECTS_VERSION_KEY "catalog/version"

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
    struct catalog_listener *listeners; /* changed only while nothing is delivered */
};

/* The current snapshot: publish.c. */
struct published {
    pthread_mutex_t lock;
    struct snapshot *current;
    atomic_uint_fast64_t generation;
    bool shares_nothing;     /* the next snapshot shares nothing with the previous one */
    bool system_altered; /* a system keyspace has changed since the current snapshot was made */
};

struct objects {
    struct eng *eng;
    struct clock *clock;
    enum tally_mode mode;
    bool has_control;     /* the keyspace system_control exists */
    bool lists_own;       /* lists name Tally's own keyspaces in cassandra mode, too */
    const char *region;   /* this server's */
    pthread_mutex_t lock;
    pthread_cond_t moved; /* objects_moved was called */
    struct ticker worker; /* ends the changes under way (ddl/worker.c) */
    uint32_t n_kinds;     /* in the order of dependency */
    const struct object_kind **kinds;
    uint32_t n_all, n_buckets; /* room for n_buckets objects */
    struct catalog_object **all, **by_id, **by_name;
    struct catalog_object *busy;    /* objects that are not ACTIVE; the worker visits only these */
    struct catalog_object *touched; /* objects that differ from the current snapshot */
    uint64_t sums[2];      /* of all objects */
    uint32_t next_id;
    uint64_t version;   /* of the records that the objects were read from or written to; 0 if none */
    atomic_bool stale;  /* the records may differ from the objects, and are to be read again. Any thread sets it */
    atomic_bool noticed;/* another server has changed a record, of an object or not. Any thread sets it */
    bool overtaken;     /* the last write of records failed because another server has changed them */
    uint32_t type_depth;              /* nesting of the user types being decoded */
    uint32_t counts[SCHEMA_STATUSES]; /* objects by status */
    uint32_t n_set_aside;             /* records that could not be read at the start */
    uint32_t n_system;                /* the server's own keyspaces */
    struct space **system;
    struct published published;
    struct notices notices;
};

void objects_init(struct objects *o);
/* Frees the objects, the system keyspaces and the snapshot. */
void objects_fini(struct objects *o);

/* Wakes the worker and the threads that wait for moved: a status has changed, an object was freed, or
 * something is due. */
void objects_moved(struct objects *o);

/* ---- object.c; the lock is held ---- */

struct catalog_object *object_add(struct objects *o, const struct object_kind *kind, uint32_t id, uint32_t keyspace_id,
                        const char *name, struct err *e) MUST_CHECK;
void object_remove(struct objects *o, struct catalog_object *x);
void object_free(struct catalog_object *x);
struct catalog_object *object_by_id(struct objects *o, uint32_t id);
/* One that is not DELETING. keyspace_id 0: find a keyspace. */
struct catalog_object *object_find(struct objects *o, const struct object_kind *kind, uint32_t keyspace_id,
                                   const char *name);
/* One that is DELETING and not gone yet. */
struct catalog_object *object_find_deleting(struct objects *o, const struct object_kind *kind, uint32_t keyspace_id,
                                  const char *name);
/* The one setter: asserts that the move is legal, stamps the time, moves the counters. */
void object_set_status(struct objects *o, struct catalog_object *x, enum schema_status to);
/* Sets the status of a record that was read, or the status from before a change that could not
 * be recorded. */
void object_restore_status(struct objects *o, struct catalog_object *x, enum schema_status to);
/* The context to decode the object's forms with: names, and a lookup of user types by their
 * current definition. Valid as long as the object and its keyspace. An object that is being
 * deleted may use types that no longer exist; those stay bare names. */
struct form_context object_context(struct objects *o, const struct catalog_object *x);
/* The current definition, in the arena. */
void *object_decode(const struct catalog_object *x, struct arena *a, struct err *e) MUST_CHECK;
/* Reads all objects. A record that cannot be read is set aside: it stays in the engine
 * unchanged, the log names it, and the object is not served. */
int objects_load(struct objects *o, struct err *e) MUST_CHECK;
/* Reads the version of the records (C3). Any thread; the lock need not be held. */
int objects_stored_version(const struct objects *o, uint64_t *version, struct err *e) MUST_CHECK;
/* Whether no server has changed a record since they were read (C3). False also when the store does
 * not answer. */
bool objects_are_current(struct objects *o, struct err *e) MUST_CHECK;
/* I1. An id is given out once: the counter's record is advanced only while it is as it was read,
 * whichever server on the store advances it. */
int objects_next_id(struct objects *o, uint32_t *id, struct err *e) MUST_CHECK;
/* Reserves n consecutive ids. */
int objects_next_ids(struct objects *o, uint32_t n, uint32_t *first, struct err *e) MUST_CHECK;
/* Replaces the form by a copy of the bytes. */
int form_set(struct slice *form, struct slice bytes, struct err *e) MUST_CHECK;
/* Begins a change: x gets the status, and a change that is held. Returns 0, or -1 with e set. */
int object_begin_change(struct objects *o, struct catalog_object *x, enum schema_status to, struct err *e) MUST_CHECK;
/* Frees the change under way, if there is one. */
void object_free_change(struct catalog_object *x);
/* Makes the change fail with these words when it is due; NULL if it succeeds. */
void change_fail_with(struct change_under_way *c, const char *words);
/* True if a statement is under way on the object. */
bool object_is_changing(const struct catalog_object *x);
/* True if an object is the object of a live definition in the keyspace: neither dropped nor being
 * dropped. */
static inline bool object_lives_in(const struct catalog_object *x, uint32_t keyspace_id) {
    return x->keyspace_id == keyspace_id && x->status != SCHEMA_DELETING && !object_is_gone(x);
}

/* ---- publish.c: the record and the snapshot ---- */

/* A batch of named records to be written together, all or none. */
struct meta_batch {
    struct arena arena; /* of the bytes */
    uint32_t n, cap;
    struct eng_meta_change *changes;
};

void meta_batch_init(struct meta_batch *b);
void meta_batch_fini(struct meta_batch *b);
/* Copies key and value. */
int meta_batch_put(struct meta_batch *b, struct slice key, struct slice value, struct err *e) MUST_CHECK;
int meta_batch_delete(struct meta_batch *b, struct slice key, struct err *e) MUST_CHECK;

/* Writes records of objects and what belongs to them, all or none; durable when it returns (C3).
 * ERR_OVERLOADED, and overtaken is set: another server has changed the schema since the objects were
 * read. */
int objects_write(struct objects *o, uint32_t n, const struct eng_meta_change *changes, struct err *e) MUST_CHECK;
/* Durable when it returns. Checks R1 (record.h) before it writes the record. */
int object_save(struct objects *o, const struct catalog_object *x, struct err *e) MUST_CHECK;
/* The change that writes the object's record, to be passed to object_save_with of another one.
 * object_record_fini frees it, also after a failure. */
struct object_record {
    uint8_t key[RECORD_KEY_SIZE];
    struct buf value;
    struct eng_meta_change change;
};
int object_record(struct objects *o, const struct catalog_object *x, struct object_record *out,
                  struct err *e) MUST_CHECK;
void object_record_fini(struct object_record *r);
/* Writes the record together with other changes: all or none. */
int object_save_with(struct objects *o, const struct catalog_object *x, uint32_t n, const struct eng_meta_change *more,
                    struct err *e) MUST_CHECK;
int object_erase(struct objects *o, const struct catalog_object *x, struct err *e) MUST_CHECK;
/* Marks the object as changed for clients: the next snapshot decodes it again. */
void object_touch(struct objects *o, struct catalog_object *x);
int show_keyspace(struct snapshot *s, struct catalog_object *x, struct err *e) MUST_CHECK;
int show_table(struct snapshot *s, struct catalog_object *x, struct err *e) MUST_CHECK;
int show_type(struct snapshot *s, struct catalog_object *x, struct err *e) MUST_CHECK;
/* Builds a snapshot with the present state of the touched objects, and makes it the current one. */
int objects_publish(struct objects *o, struct err *e) MUST_CHECK;

/* ---- kind_keyspace.c: the Regions of a keyspace, from its definition ---- */

/* True while Regions are being added to the keyspace. */
bool regions_are_added(const struct catalog_object *ks);
/* True if the change under way of the keyspace adds Regions to it. */
bool regions_begin(const struct catalog_object *ks);
/* Fills in the Regions of a keyspace's definition. */
int regions_show(const struct catalog_object *x, struct schema_keyspace *ks, struct arena *a, struct err *e) MUST_CHECK;

/* ---- notice.c: notices to listeners; the lock is held, except for notices_deliver ---- */

void notices_init(struct notices *q);
void notices_fini(struct notices *q);
/* Allocates n notices in advance, so that queueing them cannot fail. */
int notices_reserve(struct objects *o, uint32_t n, struct err *e) MUST_CHECK;
/* Queues a reserved notice. Returns its number for notices_deliver. */
uint64_t notice_queue(struct objects *o, const struct schema_change *change);
/* Returns when the notices up to that one are delivered, by this thread or by others. Takes the
 * lock. */
void notices_deliver(struct objects *o, uint64_t upto);
/* True if a notice of the object is queued or being delivered. The object itself may be gone
 * already. */
bool notices_name_object(const struct objects *o, uint32_t object);
/* True if a queued notice frees the name; name NULL: the keyspace's name. */
bool notices_free_name(const struct objects *o, const char *keyspace, const char *name);
/* Waits until no queued notice frees the name; releases the lock meanwhile. */
void notices_await_name(struct objects *o, const char *keyspace, const char *name);
/* Queues a reserved notice about the object. Returns its number, as notice_queue. */
uint64_t object_notify(struct objects *o, enum schema_change_kind kind, const struct catalog_object *x);
void object_describe(struct objects *o, enum schema_change_kind kind, const struct catalog_object *x,
                     struct schema_change *out);
