/* System tables. Each is one row of system_table.def: its columns and a function that yields its
 * rows from memory.
 *
 * A SELECT on a system table runs through the ordinary path; only the source of rows differs. A
 * yielded row has one value per column in the table's column order. The caller applies the
 * restrictions; it may pass the partition key that it wants, so that a large table (traces) need
 * not yield everything.
 *
 * A table that has a write function also takes INSERT, UPDATE and DELETE of single rows. They are
 * compiled, permitted and checked as on any table, and answered after the write function has
 * returned. Its error becomes the error of the statement. Conditions, USING and operations on parts
 * of a value are refused before the call; the statements of a batch are passed one by one.
 */
#pragma once

#include "base/stop_check.h"
#include "system_schema/objects/schema.h"

/* Is it one of the keyspaces whose tables Cassandra computes? DESCRIBE and system_virtual_schema show
 * them as such. */
bool keyspace_is_virtual(const struct schema_keyspace *ks);

/* Partitioners that an account of Amazon Keyspaces may have. A connection keeps the one that was in
 * force when it was opened. PARTITIONER_DEFAULT has the tokens of PARTITIONER_RANDOM. */
enum partitioner_id { PARTITIONER_MURMUR3, PARTITIONER_RANDOM, PARTITIONER_DEFAULT, PARTITIONERS };
/* The class. */
const char *partitioner_name(enum partitioner_id p);

/* A statement that a client prepared. A layer above the catalogue keeps them; the catalogue sees
 * only these fields. */
struct virtual_prepared {
    struct slice id;
    const char *keyspace, *query; /* keyspace: the session's, or NULL */
};
typedef int (*virtual_prepared_fn)(void *arg, const struct virtual_prepared *p);

/* The inputs of a yielding function. */
struct virtual_context {
    const struct schema *schema;
    struct arena *arena;     /* the request's; values may live there */
    const struct value *key; /* partition key values of the wanted rows (n_partition_key of them); NULL for all */
    const struct value *after; /* primary key: rows up to it may be skipped; NULL if all are wanted */
    const char *local_address; /* the connection's, numeric, and its port */
    uint16_t local_port;
    uint8_t protocol_version;
    enum partitioner_id partitioner; /* the session's */
    const char *traces_of; /* the role whose requests' traces are shown; NULL means those of all */
    /* Calls take for every prepared statement with an id above after (16 bytes; NULL means for
     * all), by id, until take returns -1; NULL if there are none. */
    int (*each_prepared)(void *prepared, const uint8_t *after, virtual_prepared_fn take, void *arg);
    void (*unlist_prepared)(void *prepared, const struct slice *id); /* leaves out one, or (NULL) all, from then on */
    void *prepared;
    struct stop_check stop_check;
    struct err *err;
};

/* Receives one row. values: n_columns of the table. Returns 0 to continue, or -1 to stop, because err
 * is set or no more rows are wanted. */
typedef int (*virtual_row_fn)(void *arg, const struct value *values);

/* One row that a statement writes, by ordinal of the table's columns. Key columns have values;
 * in other columns null deletes a value and unset leaves it. */
struct virtual_change {
    /* DELETE removes a row; a DELETE of columns comes as an UPDATE. DELETE_PARTITION (clustering
     * columns unset) and TRUNCATE (no values) come only to tables with erased set. */
    enum { VIRTUAL_INSERT, VIRTUAL_UPDATE, VIRTUAL_DELETE, VIRTUAL_DELETE_PARTITION, VIRTUAL_TRUNCATE } kind;
    const struct value *values;
};

struct row_out; /* row_out.h */
struct schema_virtual {
    /* Emits the rows (row_out.h). 0, or -1 when an emit said so or ctx->err is set. */
    int (*yield)(struct row_out *ro);
    /* 0, or -1 with ctx->err and nothing changed. Runs on a thread that may block. NULL if the
     * table is read-only. */
    int (*write)(const struct virtual_context *ctx, const struct schema_table *table,
                 const struct virtual_change *change);
    bool erased; /* write also takes DELETE of partitions and TRUNCATE */
    bool blocks; /* its functions wait for the disk, or for DDL: not for an event loop */
    /* V1. Rows of an ordered table are yielded by ascending primary key, so that a full page ends
     *     the function. For other tables each page yields all rows and sorts them. */
    bool ordered;
    void *owner; /* the owner of the data, for the functions */
};

/* A system table of a layer above this one, in its own keyspace. Passed to catalog_open; must
 * outlive the catalogue. */
struct virtual_table {
    const char *keyspace, *name, *comment;
    const char *columns; /* as in system_table.def */
    int64_t gc_grace;    /* seconds */
    struct schema_virtual virt;
};
