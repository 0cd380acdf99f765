/* The kinds of objects, as a table of operations: the catalogue treats kinds differently only
 * through it. object_kind.def lists the kinds. A new kind is a file kind_<name>.c with its row of
 * operations, and a line in that list.
 *
 * An object's definition is a structure of the kind's own (schema_keyspace, schema_table). It is
 * kept, in memory and in the engine, as its form: bytes that encode writes and decode reads. Inside
 * system_schema only.
 */
#pragma once

#include "system_schema/objects/schema.h"
#include "system_schema/objects/schema_change.h"

/* The context in which a form is decoded: the object's name, its keyspace (a keyspace is its
 * own), and a lookup of the user types that it names. find NULL: user types stay names, that is
 * types without fields; such a definition encodes to the same form. */
struct form_context {
    const char *keyspace, *name;
    cql_udt_find_fn find;
    void *arg;
};

struct snapshot;
struct catalog_object;
struct object_kind;

/* Receives the name of an object of the same keyspace that a definition needs. */
typedef int (*object_need_fn)(void *arg, const struct object_kind *kind, const char *name);

struct object_kind {
    const char *word; /* "table", for errors and log lines */
    char tag;
    bool in_keyspace; /* lives in a keyspace, and is dropped with it */
    bool has_rows;    /* in the engine, under its storage id; freed with the object */
    enum schema_change_target target; /* the target in SCHEMA_CHANGE */
    /* Appends the definition's form to out. */
    void (*encode)(const void *definition, struct buf *out);
    /* Decodes a form into the arena. The name comes from the place; fields that the form does
     * not hold stay empty. NULL and ERR_SERVER: the form is damaged. */
    void *(*decode)(struct slice form, const struct form_context *at, struct arena *a, struct err *e);
    /* Checks the limits of a definition. ERR_INVALID, with a text for the client. */
    int (*check)(const void *definition, struct err *e);
    /* The kinds of objects that it may need, ending with NULL: kinds above it in object_kind.def,
     * or its own kind. NULL if none. */
    const struct object_kind *const *needs;
    /* Calls need for each object that the definition needs: those must exist when it is created,
     * and cannot be dropped before it. NULL if it needs none. */
    int (*depend)(const void *definition, object_need_fn need, void *arg);
    /* Puts the object's present state into the snapshot that is being built, or removes it. NULL if
     * the kind is not part of snapshots. */
    int (*show)(struct snapshot *s, struct catalog_object *x, struct err *e);
    /* True if its rows hold keys that this server writes in another form than servers before
     * record version 2 did. */
    bool (*has_old_keys)(const void *definition);
    /* True if statements compiled for one definition of an object are valid for the other. */
    bool (*same_shape)(const void *a, const void *b);
    /* True if the definition came from a form that spells a value otherwise than encode does. NULL
     * means never. */
    bool (*is_respelled)(const void *definition);
};

#define KIND(name) extern const struct object_kind name##_kind;
#include "system_schema/objects/object_kind.def"
#undef KIND

/* Limits of a definition. Every definition within them can be recorded and read again. */
enum {
    DEFINITION_COLUMNS_MAX = 32768, /* counted over the life of a table; a statement has at most 65,535 bind markers */
    DEFINITION_OPTIONS_MAX = 32768,
    DEFINITION_NAME_MAX = 65535, /* bytes of a column's name: [string] in the protocol */
};

/* ---- definition_form.c: the parts that the forms of all kinds share ---- */

void form_put_text(struct buf *out, const char *s);
/* A failed read sets rd->bad; e is set if memory is out. */
const char *form_get_text(struct rd *rd, struct arena *a, struct err *e);
void form_put_options(struct buf *out, uint32_t n, const struct schema_option *options);
const struct schema_option *form_get_options(struct rd *rd, struct arena *a, uint32_t *n, struct err *e);
/* Settings are stored as options: only what is given, by name (settings_texts). */
void form_put_settings(struct buf *out, const struct table_settings *s);
void form_get_settings(struct rd *rd, struct arena *a, struct table_settings *s, struct err *e);
/* Writes the type as CQL, in which user types are names. */
void form_put_type(struct buf *out, const struct cql_type *t);
/* NULL with an error: not a type, or at->find does not know a user type in it. NULL with
 * rd->bad: the form ended too early. */
const struct cql_type *form_get_type(struct rd *rd, const struct form_context *at, struct arena *a, struct err *e);
/* Calls need for each user type that a type names directly. */
int form_needs_types(const struct cql_type *t, object_need_fn need, void *arg);
/* Checks a definition and encodes it into out. Then decodes the form and encodes the result: a
 * definition that does not come back unchanged is refused, and so is never recorded. */
int definition_form(const struct object_kind *kind, const struct form_context *at, const void *definition,
                    struct buf *out, struct err *e) MUST_CHECK;
/* Checks that a form decodes to a definition within the limits that encodes to the same form. */
int form_check(const struct object_kind *kind, const struct form_context *at, struct slice form,
               struct err *e) MUST_CHECK;

/* ---- kind_table.c ---- */

/* The parts of a table definition. Key columns come first, in key order; the rest in any order. */
struct table_parts {
    const char *name;
    uint32_t n_columns, n_column_ids;
    struct schema_column *columns; /* sorted in place; become the table's */
    uint32_t n_dropped; /* by id */
    const struct schema_dropped *dropped;
    struct table_settings settings;
};

/* Sorts and numbers the columns and fills the fields that derive from columns.
 * Everything lives in the arena. */
int table_assemble(struct arena *a, const struct table_parts *parts, struct schema_table *out,
                   struct err *e) MUST_CHECK;
