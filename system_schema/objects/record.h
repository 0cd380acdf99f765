/* A record of the catalogue: one object as the engine keeps it. Inside system_schema only; pure.
 *
 * The key is "catalog/", the kind's tag, "/" and the object's id (u32 big-endian). The value,
 * version 2 without progress, version 3 with it:
 *
 *   version u8 | status u8 | keyspace id u32 | storage id u32 | name | form | next [| progress u32]
 *   name, form and next, each: length uvarint | bytes
 *
 * next is the form that an UPDATING object will get, else empty. progress tells how far that change
 * is (ddl/region.c), and is never 0. Version 1 had no storage id; the object's id was used.
 *
 * R1. A record is written only if record_decode, and the kind's decode for its forms, read it back
 *     unchanged.
 */
#pragma once

#include "system_schema/objects/object_kind.h"

enum { RECORD_KEY_SIZE = 14 };

struct record {
    char tag;
    enum schema_status status;
    uint32_t id;          /* the object's, never reused */
    uint32_t keyspace_id; /* of the keyspace that it lives in; 0 if none */
    uint32_t storage;     /* where its rows are; for a table, struct eng_part.table */
    struct slice name, form, next;
    uint32_t progress; /* of the change under way; 0 if it has not begun, or has none */
    bool old_keys; /* version 1: its rows were written when the key form of tuples had no end */
};

void record_key(char tag, uint32_t id, uint8_t key[RECORD_KEY_SIZE]);
void record_encode(const struct record *r, struct buf *out);
/* The slices of out point into value. ERR_SERVER: damaged; out still holds what could be read of
 * its name and id. */
int record_decode(struct slice key, struct slice value, struct record *out, struct err *e) MUST_CHECK;
bool record_eq(const struct record *a, const struct record *b);
/* Encodes a record that will be written, and checks R1: the bytes decode to the same record.
 * ERR_SERVER. */
int record_write(const struct record *r, struct buf *out, struct err *e) MUST_CHECK;
/* Checks R1 for the forms of a record. at: where its definition lives. ERR_SERVER. */
int record_check_forms(const struct object_kind *kind, const struct form_context *at, const struct record *r,
                       struct err *e) MUST_CHECK;
