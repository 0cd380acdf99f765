/* What the catalogue does with an object depends on its kind only through this table of operations;
 * object_kind.def lists the kinds. A new kind is a file kind_<name>.c with its row of operations,
 * and its line there.
 *
 * An object's definition is a structure of the kind's own (schema_keyspace, schema_table). It is
 * kept, in memory and in the engine, as its form: bytes that encode writes and decode reads. Inside
 * system_schema only.
 */
#pragma once

#include "system_schema/catalog.h"

/* Where a definition is read: what it is called, the keyspace that it lives in (of a keyspace:
 * itself), and what the user types are that it names. find NULL: they stay names, types without
 * fields; such a definition encodes as the whole one does. */
struct object_place {
    const char *keyspace, *name;
    cql_udt_find_fn find;
    void *arg;
};

struct snapshot;
struct entry;
struct object_kind;

/* Takes the name of an object, of the same keyspace, that a definition needs. */
typedef int (*object_need_fn)(void *arg, const struct object_kind *kind, const char *name);

struct object_kind {
    const char *word; /* "table", as errors and log lines say it */
    char tag;
    bool in_keyspace; /* lives in a keyspace, and goes with it */
    bool has_rows;    /* in the engine, under its storage id; they go when it goes */
    enum schema_change_target target; /* what clients are told of it */
    /* The definition in its form. */
    void (*encode)(const void *definition, struct buf *out);
    /* The definition that a form holds, in the arena, with names and everything that the form does
     * not hold left empty but for the place. NULL and ERR_SERVER when the form is damaged. */
    void *(*decode)(struct slice form, const struct object_place *at, struct arena *a, struct err *e);
    /* The limits of a definition, in words for whoever asked for it: ERR_INVALID. */
    int (*check)(const void *definition, struct err *e);
    /* The kinds of which it may need objects, up to a NULL; they stand above it in object_kind.def,
     * or it is one of them. NULL: none. */
    const struct object_kind *const *needs;
    /* Tells what the definition needs: that is there when it is made, and is not dropped before it. NULL: nothing. */
    int (*depend)(const void *definition, object_need_fn need, void *arg);
    /* Puts the object as it is now into the snapshot that is being made, or takes it out. NULL:
     * readers are not shown it. */
    int (*show)(struct snapshot *s, struct entry *x, struct err *e);
    /* Are there keys in its rows that this server writes in another form than the one before it did? */
    bool (*has_old_keys)(const void *definition);
    /* Do statements that were compiled for one definition of an object hold for the other? */
    bool (*same_shape)(const void *a, const void *b);
};

#define KIND(name) extern const struct object_kind name##_kind;
#include "system_schema/object_kind.def"
#undef KIND

/* What a definition may hold; what is within these limits can be recorded and read again. */
enum {
    DEFINITION_COLUMNS_MAX = 32768, /* in the life of a table; a statement has at most 65,535 bind markers */
    DEFINITION_OPTIONS_MAX = 32768,
    DEFINITION_MASK_ARGUMENTS_MAX = 3,
    /* of the arguments of all masks of a table, with their types, as they are told */
    DEFINITION_MASK_BYTES_MAX = 65535,
    DEFINITION_NAME_MAX = 65535, /* bytes of a column's name: [string] of the protocol */
};

/* ---- definition_form.c: what the forms of all kinds are made of ---- */

void form_put_text(struct buf *out, const char *s);
/* Reads that fail make rd bad; e is set when memory is out. */
const char *form_get_text(struct rd *rd, struct arena *a, struct err *e);
void form_put_options(struct buf *out, uint32_t n, const struct schema_option *options);
const struct schema_option *form_get_options(struct rd *rd, struct arena *a, uint32_t *n, struct err *e);
/* As CQL, in which user types are names. */
void form_put_type(struct buf *out, const struct cql_type *t);
/* NULL and the error set: it is no type, or one of a user type that at->find does not know; rd is
 * bad when nothing could be read. */
const struct cql_type *form_get_type(struct rd *rd, const struct object_place *at, struct arena *a, struct err *e);
/* Tells of the user types that a type is made of, those within them not included. */
int form_needs_types(const struct cql_type *t, object_need_fn need, void *arg);
/* Encodes a definition after its check, reads it back and encodes that: what would not come back as
 * it is is refused here, and so never recorded. out is filled with the form. */
int definition_form(const struct object_kind *kind, const struct object_place *at, const void *definition,
                    struct buf *out, struct err *e) MUST_CHECK;
/* Does a form decode, and to a definition within the limits that encodes to the same form? */
int form_check(const struct object_kind *kind, const struct object_place *at, struct slice form,
               struct err *e) MUST_CHECK;
