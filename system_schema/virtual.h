/* System tables: each is one row of system_table.def: its columns and a function that yields its
 * rows from memory.
 *
 * A SELECT on one runs through the ordinary path; only the source of rows differs. A yielded row
 * has one value per column in the table's column order; the restrictions are applied by the caller,
 * which may pass the partition key it wants so that a large table (traces) need not yield
 * everything.
 *
 * A table that has a write function takes INSERT, UPDATE and DELETE of single rows, too: they are
 * compiled, permitted and checked as on any table, and the function has done what they ask when
 * they are answered. What it refuses is the statement's error. Conditions, USING and operations on
 * parts of a value are refused before it is called; the statements of a batch are handed over one
 * by one.
 */
#pragma once

#include "system_schema/schema.h"

struct catalog;

/* A statement that clients prepared. They are kept above the catalogue, which knows them only so. */
struct virtual_prepared {
    struct slice id;
    const char *keyspace, *query; /* keyspace: the session's, or NULL */
};
typedef int (*virtual_prepared_fn)(void *arg, const struct virtual_prepared *p);

/* Of a function that takes long: asked now and then whether to go on: 0, or -1 and the error that
 * the statement ends with. */
struct virtual_patience {
    int (*ask)(void *arg);
    void *arg;
};

/* What a yielding function may look at. */
struct virtual_context {
    struct catalog *catalog;
    const struct schema *schema;
    struct arena *arena;     /* of the request: values may live there */
    const struct value *key; /* partition key values the statement asks for (n_partition_key of them), or NULL: all */
    const struct value *after; /* primary key: rows up to it may be left out; NULL: all are wanted */
    const char *local_address; /* of the connection, numeric, and its port */
    uint16_t local_port;
    uint8_t protocol_version;
    /* Calls take for every prepared statement with an id above after (16 bytes; NULL: for all), by id,
     * until it says -1; NULL: there are none. */
    int (*each_prepared)(void *prepared, const uint8_t *after, virtual_prepared_fn take, void *arg);
    void *prepared;
    struct virtual_patience patience;
    struct err *err;
};

/* Takes one row; 0 to go on, -1 to stop: err is set, or no more rows are wanted. values: n_columns of
 * the table. */
typedef int (*virtual_row_fn)(void *arg, const struct value *values);

/* One row that a statement writes, by ordinal of the table's columns: those of the key are there;
 * of the others, null takes a value away and what the statement does not name is unset. */
struct virtual_change {
    /* DELETE: of the row; of columns it is an UPDATE. The last two only where they are taken
     * (erased): of the partition, whose clustering columns are unset; TRUNCATE, without values. */
    enum { VIRTUAL_INSERT, VIRTUAL_UPDATE, VIRTUAL_DELETE, VIRTUAL_DELETE_PARTITION, VIRTUAL_TRUNCATE } kind;
    const struct value *values;
};

struct schema_virtual {
    int (*yield)(const struct virtual_context *ctx, const struct schema_table *table, virtual_row_fn row, void *arg);
    /* 0, or -1 with ctx->err and nothing changed. On a thread that may block. NULL: clients may not write here. */
    int (*write)(const struct virtual_context *ctx, const struct schema_table *table,
                 const struct virtual_change *change);
    bool erased; /* takes DELETE of partitions and TRUNCATE, too */
    bool blocks; /* its functions wait for the disk, or for DDL: not on a loop */
    /* V1. Rows of an ordered table are yielded by ascending primary key, so that a full page ends the
     * function. Of other tables a page makes all rows and sorts them. */
    bool ordered;
    void *owner; /* whose the data is, for the function; NULL: the catalogue's */
};

/* A system table of a layer above this one, in a keyspace of its own: given to catalog_open, must
 * outlive the catalogue. */
struct virtual_table {
    const char *keyspace, *name, *comment;
    const char *columns; /* as in system_table.def */
    struct schema_virtual virt;
};
