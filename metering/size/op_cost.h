/* The recorded work of a request. The engine and cql count into it, and metering computes the
 * charge from it once, at the end.
 *
 * The structure holds counts and sums, no prices and no rules, so neither cql nor the engine knows
 * how a unit is computed. One struct per request, owned by the request; the lists live in its
 * arena. Not thread-safe: a request is on one thread at a time.
 */
#pragma once

#include "base/arena.h"

struct cql_type;

/* How encoded sizes are computed (size.h). */
enum size_model { SIZE_DOCUMENTED_2022, SIZE_CURRENT };

/* The bytes of a write: those of its key and of the columns it writes, or those of the row as it
 * stands after the write (for a deletion: before it). */
enum write_size { WRITE_SIZE_WRITTEN, WRITE_SIZE_ROW };

/* Ordered from the narrowest to the widest; a request has the widest class of its parts. */
enum query_class { QUERY_POINT, QUERY_ROW_RANGE, QUERY_PARTITION_RANGE, QUERY_TABLE_SCAN };

/* The class by the guidance for partitions, likewise (metering/guidance.def). */
enum guidance_class {
    GUIDANCE_POINT,
    GUIDANCE_ROW_RANGE,
    GUIDANCE_PARTITION_SCAN,
    GUIDANCE_PARTITION_RANGE,
    GUIDANCE_TABLE_SCAN
};

/* Rows, or static rows, and their encoded bytes under the model (size.h). */
struct size_sum {
    uint64_t rows, bytes;
    uint64_t null_bytes;         /* of bytes: those of columns that a write sets to null */
    uint32_t n_columns, n_nulls; /* of a write: its columns without the keys; of those, the ones set to null */
    bool ttl, timestamps;        /* some of the bytes are those of a TTL, of client-side timestamps */
};

void size_sum_add(struct size_sum *to, const struct size_sum *from);

/* One item of a charge: a read or a write of a table, and its units in one Region. The code that
 * records the work sets the table and the partition, charge_compute sets the units. The limiter, the ledger, and
 * the reversal of a failed write read these items. */
struct charge_item {
    uint32_t object;              /* the table's, of the catalogue */
    bool one_partition;           /* token is that of the partition; else a range of tokens was read */
    bool condition_failed;
    const char *keyspace, *table; /* schema snapshot's */
    int64_t token;
    int64_t read_halves, write_units;
    int64_t static_units;         /* of write_units: those of static data */
    int64_t entities;
};

/* One read that is rounded to units on its own: a request, or one subquery of an IN. */
struct op_read {
    struct op_read *next;
    struct charge_item item;
    struct slice key;             /* of the partition, as struct eng_part has it */
    struct size_sum rows, statics; /* of the data processed, returned or not */
    /* of those rows, the ones that were not returned because they */
    uint64_t filtered;   /* did not match */
    uint64_t past_limit; /* came after LIMIT was reached, on the same page */
    uint64_t expired;    /* had expired and were still stored */
    uint64_t at_bound;   /* match the range's excluded upper bound */
    /* are markers of deletions alone, which a table with client-side timestamps keeps for some days */
    uint64_t markers;
};

enum op_write_kind { OP_INSERT, OP_UPDATE, OP_DELETE };

/* The rows of a write, after it, or for a deletion before it. rows is 0 if no row exists. */
struct op_image {
    enum op_image_known {
        IMAGE_UNKNOWN,    /* the columns that are not written were not read */
        IMAGE_AS_WRITTEN, /* row and statics of the op_write without nulls: all was written, or nothing */
        IMAGE_FOUND,
    } known;
    struct size_sum row, statics;   /* of the deletion of a range or a partition: of all rows together, */
    uint64_t row_steps;             /* each of which is rounded on its own (size_write_steps) */
};

/* One row write of a statement: the columns it wrote to the row and to the static row of the
 * partition. */
struct op_write {
    struct op_write *next;
    struct charge_item item;
    enum op_write_kind kind;
    bool has_row, has_static;
    bool many;                  /* the deletion of a range or a partition */
    struct size_sum row, statics;
    struct op_image image;
    bool conditional, applied;  /* LWT, and whether its condition held */
    bool reads_when_failed;     /* LWT: IF [NOT] EXISTS on a table with TTL and without client-side timestamps */
    /* LWT: the row was there; when not applied, row is the size of the row that was there */
    bool row_existed;
    struct slice key;           /* of the partition, as struct eng_part has it */
    const struct cql_type *const *key_types; /* of the n_key_types columns of the key; schema snapshot's */
    uint32_t n_key_types;
    bool left_out;              /* write_keep_half has taken it out of the list */
    uint16_t regions;           /* that the keyspace is in: each takes the write */
    /* of the one row that it writes, with the partition's its identity; p NULL: of none, or of more */
    struct slice row_key;
};

struct op_cost {
    struct arena *arena;
    enum size_model size_model;
    enum write_size write_size;
    bool unmetered;          /* rows that are read are not sized */
    uint32_t timestamp_size; /* bytes of the timestamp of a column of a table with client-side timestamps */
    /* filled by engine */
    uint64_t bytes_read;    /* keys and values, as the store has them, of the rows that were passed, dead ones too */
    uint64_t bytes_written; /* stored bytes */
    /* rows and static rows: those that a read is charged by, those that a write looked at to decide */
    uint64_t rows_read;
    uint64_t tombstones;    /* row, range and partition tombstones and expired cells passed */
    uint64_t partitions;    /* visited */
    /* filled by cql */
    uint64_t rows_returned;
    enum query_class query_class;
    enum guidance_class guidance_class;
    bool one_row_partitions; /* the table has no clustering columns */
    bool is_write, is_logged_batch, is_system; /* system: free */
    uint64_t empty_partitions; /* storage partitions that a full scan went through and found empty */
    struct op_read *reads, *reads_tail;
    struct op_write *writes, *writes_tail;
    const char *keyspace, *table; /* first table touched; of the schema snapshot */
    uint32_t object;              /* of that table, of the catalogue */
};

/* Appends an element; NULL when the arena is full. */
struct op_read *op_cost_read(struct op_cost *c) MUST_CHECK;
struct op_write *op_cost_write(struct op_cost *c, enum op_write_kind kind) MUST_CHECK;
/* Called at the end of a read: sets rows_read to the rows that the read is charged by, without
 * deleted ones. */
void op_cost_count_rows(struct op_cost *c);
void op_cost_class(struct op_cost *c, enum query_class class, enum guidance_class guidance); /* widens */
/* Entities of 1 KiB, as Azure Table Storage counts them: rows that were scanned, inserted, updated or
 * deleted, one for each started KiB. For one read only the sum of its rows' bytes is known:
 * rows count one each, or one for each started KiB of that sum if it is more. */
uint64_t op_read_entities(const struct op_read *r);
uint64_t op_write_entities(const struct op_write *w);
uint64_t op_cost_entities(const struct op_cost *c);
