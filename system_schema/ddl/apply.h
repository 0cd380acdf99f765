/* A DDL statement on its way through the checks of its kind. Inside system_schema/ddl only. */
#pragma once

#include "keyspaces/compat.h"
#include "keyspaces/ddl_error.h"
#include "system_schema/ddl/ddl.h"

/* ---- apply.c: one DDL statement on its way ---- */

struct apply {
    struct ddl *ddl;
    struct objects *objects; /* ddl->objects */
    const struct catalog_change *change;
    struct compat compat; /* the statement's */
    struct arena arena; /* for definitions until they are encoded */
    struct catalog_object *subject;
    enum schema_change_kind kind;
    enum schema_status from; /* of the subject, when it is not new */
    uint64_t told; /* number of the statement's newest notice; 0 if none */
    uint32_t awaits; /* an object whose rows must be freed before the statement is answered; 0 if none */
    struct err *err;
};

/* Results of the functions that check and begin a statement; -1 with e set. */
enum { NOTHING_TO_DO, BEGUN };

/* True if another statement is under way on the object, or its status allows nothing but a drop.
 * apply_busy makes the error. */
bool apply_is_unfit(const struct catalog_object *x, bool to_drop);
/* Sets the error that another change of the object is under way; returns -1. */
int apply_busy(struct apply *a, const struct catalog_object *x);
/* The object that the statement alters, drops or truncates. NULL without an error: it does not exist
 * (IF EXISTS), or it is being dropped, and there is nothing to do. missing: the error's text, with
 * keyspace and name. */
struct catalog_object *apply_existing(struct apply *a, const struct object_kind *kind, enum ddl_error_id missing);
/* ddl_error in the words of the catalogue's mode. */
#define apply_error(a, ...) ddl_error((a)->err, (a)->objects->mode == MODE_CASSANDRA, __VA_ARGS__)
/* The keyspace of the change. NULL without an error: it does not exist and must_exist is false. */
struct catalog_object *apply_keyspace(struct apply *a, bool must_exist);
/* The definition as it is now, in the arena. */
void *apply_definition(struct apply *a, const struct catalog_object *x);
/* Checks that the objects that the definition needs exist and have no change under way. */
int apply_check_needs(struct apply *a, const struct object_kind *kind, const void *definition);
/* Creates the object in status CREATING and makes it the statement's subject. ks NULL: a keyspace.
 * BEGUN or -1. */
int apply_begin_create(struct apply *a, const struct object_kind *kind, const struct catalog_object *ks,
                       const void *definition);
/* Merges the settings of the change into the old ones; old NULL: those of a new table. */
int apply_merge_settings(struct apply *a, const struct table_settings *old, struct table_settings *out) MUST_CHECK;
/* Returns -1 if the name of the change is taken by a table, or by one that is being deleted. */
int apply_check_table_name(struct apply *a, const struct catalog_object *ks);
/* Creates a table of these parts; t holds its id and creation time. Completes and checks its
 * settings. */
int apply_begin_create_table(struct apply *a, const struct catalog_object *ks, struct table_parts *parts,
                             struct schema_table *t);
/* Returns -1 if there are already as many objects of the kind as Keyspaces allows. */
int apply_check_number(struct apply *a, const struct object_kind *kind, enum refusal_id rule, uint32_t most) MUST_CHECK;
int apply_begin_update(struct apply *a, struct catalog_object *x, const void *definition);
int apply_begin_drop(struct apply *a, struct catalog_object *x);

/* ---- capacity.c ---- */

/* Returns -1 if the table (x NULL: a new one; before: as it was, or NULL) would be provisioned
 * with more than a quota allows. */
int apply_check_capacity(struct apply *a, const struct catalog_object *x, const struct schema_table *t,
                         const struct schema_table *before);
/* For ALTER TABLE: records in the settings the times that later changes of capacity depend on.
 * Returns -1 if the change comes too early. */
int apply_note_capacity(struct apply *a, const struct schema_table *before, struct table_settings *s) MUST_CHECK;

/* ---- restore.c ---- */

int apply_restore_table(struct apply *a);

/* ---- column.c: columns that ALTER TABLE adds, drops and renames ---- */

/* The id for an added column. A dropped column of that name passes its id on; -1 if the new
 * definition is incompatible with it. */
int64_t apply_column_id(struct apply *a, const struct schema_table *t, const struct catalog_column *col,
                        struct table_parts *parts);
/* Sets the error that the name is taken by a column of the statement or of the table; returns
 * -1. */
/* On object parts holds the table's present columns. */
int apply_drop_columns(struct apply *a, const struct schema_table *t, struct table_parts *parts);
int apply_rename_columns(struct apply *a, const struct schema_table *t, struct table_parts *parts);

/* ---- truncate.c ---- */

int apply_truncate_table(struct apply *a);

/* ---- type.c: DDL of user types ---- */

int apply_create_type(struct apply *a);
int apply_alter_type(struct apply *a);
int apply_drop_type(struct apply *a);

/* ---- replication.c ---- */

/* Canonical replication of a keyspace ('class' first, fully qualified), in the arena; ERR_CONFIG,
 * ERR_INVALID in Cassandra's words. */
int replication_check(const struct ddl *d, const char *keyspace, uint32_t n, const struct schema_option *given,
                      struct arena *a, struct schema_keyspace *out, struct err *e) MUST_CHECK;

/* ---- system_keyspace.c ---- */

/* Where the system keyspace is listed; NULL if there is none of that name. */
struct space **system_space(const struct objects *o, const char *name);
/* Records and publishes the change; *out is the change to report to clients. Returns -1 with e set. */
int apply_alter_system_keyspace(struct apply *a, struct schema_change *out);
