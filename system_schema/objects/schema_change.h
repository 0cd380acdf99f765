/* The current schema, and its changes as clients and the listeners of the catalogue receive them. */
#pragma once

#include "system_schema/objects/schema.h"

/* A change of the schema, as the protocol reports it to clients (SCHEMA_CHANGE result and event,
 * protocol v4 section 4.2.5.5). DROPPED is reported when the drop begins. GONE is not reported
 * to clients: it means that the object's name is free, because its drop has ended or because its
 * creation or restoration has failed. GONE of a keyspace covers everything in it. */
enum schema_change_kind { CHANGE_CREATED, CHANGE_UPDATED, CHANGE_DROPPED, CHANGE_GONE };
enum schema_change_target { TARGET_KEYSPACE, TARGET_TABLE, TARGET_TYPE, TARGET_FUNCTION, TARGET_AGGREGATE };
struct schema_change {
    enum schema_change_kind kind;
    enum schema_change_target target;
    uint32_t object; /* schema_table.object of a table; an equally unique id of any other object */
    char keyspace[64], name[224];
};

/* The catalogue calls a listener after a change became visible in catalog_schema: one change at
 * a time, in the order of the changes, without the catalogue's lock. A DDL statement is answered
 * after the listeners have returned from its own change. A new object gets a name only after the
 * listeners have returned from the GONE of that name. So a listener may wait for the disk, but
 * must neither run DDL nor add or remove listeners. It runs on the thread of a DDL statement, on
 * the catalogue's worker, or on the thread that called catalog_resume. */
struct catalog_listener {
    void (*changed)(void *arg, const struct schema_change *change);
    void *arg;
    struct catalog_listener *next; /* the catalogue's; registered later */
};

struct catalog;

/* The listener is the caller's, and stays valid until catalog_off_change. */
void catalog_on_change(struct catalog *c, struct catalog_listener *l);
/* After it returns the catalogue no longer calls the listener, which may not be registered. */
void catalog_off_change(struct catalog *c, struct catalog_listener *l);

/* A reference to the current snapshot; schema_unref it. Any thread. */
const struct schema *catalog_schema(struct catalog *c);
/* Generation of the current snapshot, by one atomic load: the holder of a snapshot compares it to
 * see whether the snapshot is still the current one. */
uint64_t catalog_generation(const struct catalog *c);
/* The version of the schema that clients see now. Any thread. */
void catalog_schema_version(struct catalog *c, uint8_t version[16]);
/* True if the object (schema_change.object) exists, in any status. False once its name is free. */
bool catalog_has_object(struct catalog *c, uint32_t object) MUST_CHECK;
/* Returns the number of objects that are being created, changed, deleted or restored. *age_us: the age of the
 * oldest of these changes, at most the time since the start; 0 if there is none. Any thread. */
uint32_t catalog_changes(struct catalog *c, int64_t *age_us) MUST_CHECK;
/* Sets *recorded to whether the records of the store contain the table (NULL: the keyspace) and it is
 * not gone. Unlike a snapshot they contain what other servers have changed until now. Waits for the
 * store. Returns 0, or -1 if the store cannot be read. */
int catalog_recorded(struct catalog *c, const char *keyspace, const char *table, bool *recorded,
                     struct err *e) MUST_CHECK;
