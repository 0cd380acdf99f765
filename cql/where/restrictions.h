/* WHERE: compiled once against a table, evaluated per execution into the partitions, rows and
 * slices it names.
 *
 * Life: a statement's compile calls where_compile, which sorts the relations into the partition
 * key, the clustering key, the token and the rest (filters), refuses what Cassandra refuses, and
 * keeps the plan in the statement's arena. Each run evaluates the plan's keys; results live in the
 * request's arena. A plan is immutable: many threads may use it at a time.
 */
#pragma once

#include "cql/row/ring.h"
#include "cql/row/row_key.h"
#include "cql/row/row_view.h"
#include "cql/expr/term.h"

enum where_purpose { WHERE_SELECT, WHERE_UPDATE, WHERE_DELETE };

struct where_options {
    enum where_purpose purpose;
    bool allow_filtering; /* SELECT */
    /* SELECT: reads only static and partition key columns; UPDATE, DELETE: only static ones */
    bool only_statics;
    bool whole_rows;      /* DELETE without columns: the clustering key may be a prefix or a slice */
    bool conditional;     /* UPDATE, DELETE ... IF */
    bool virtual_table;   /* SELECT: any restriction may be a filter */
};

enum where_partitions {
    WHERE_KEYS,   /* every partition key column = or IN */
    WHERE_TOKENS, /* a range of tokens, or the ring */
};
enum where_rows {
    WHERE_ALL_ROWS, /* no restriction of clustering columns that can seek */
    /* every clustering column = or IN: whole keys (the one empty key without such columns) */
    WHERE_ROW_KEYS,
    WHERE_SLICES,   /* a prefix or a range */
};

enum where_step_kind { STEP_EQ, STEP_IN, STEP_RANGE, STEP_CONTAINS, STEP_CONTAINS_KEY, STEP_ELEMENT };

struct where_bound {
    struct term *term; /* NULL means open */
    bool inclusive;
    bool tuple; /* the term gives a tuple of n */
    uint32_t n; /* columns it covers: those of a tuple relation, or 1 */
};

/* The merged relations on one column, or on the columns of a tuple relation. */
struct where_step {
    enum where_step_kind kind;
    bool tuple; /* terms give a tuple of one value per column */
    uint32_t n_columns;
    const struct schema_column **columns;
    struct term *term;    /* EQ, CONTAINS, CONTAINS_KEY, and the value of ELEMENT */
    struct term *element; /* key of a map */
    uint32_t n_values;    /* IN (a, b) */
    struct term **values;
    struct term *list; /* IN ? : a list */
    struct where_bound from, to;
    struct where_step *next; /* another restriction of the same column (CONTAINS) */
};

struct where_plan {
    const struct schema_table *table;
    enum where_partitions partitions;
    enum where_rows rows;
    bool partition_in, clustering_in; /* IN somewhere: more than one key is possible */
    /* each key column is restricted by = to one value, and the token is not: where_row evaluates it */
    bool one_row;
    bool keyless;                     /* no relation on the partition key or its token */
    bool has_token;                   /* WHERE_TOKENS with TOKEN(...) restricted */
    bool needs_filtering;             /* refused without ALLOW FILTERING, after all other checks */
    bool filters_rows;                /* a filter uses a clustering or regular column */
    uint32_t n_filters;
    struct where_step **filters;
    /* inside restrictions*.c */
    struct where_step **partition_steps; /* WHERE_KEYS: one per partition key column */
    uint32_t n_clustering_steps;         /* those that seek: = and IN, then at most one range */
    struct where_step **clustering_steps;
    struct where_step *token; /* NULL if none */
    enum partitioner_id partitioner; /* of its bounds */
    uint32_t n_pk_binds; /* partition key columns restricted by = to a bare bind marker: all of them, or 0 */
    uint16_t *pk_binds;  /* prepared_info.pk_indexes */
};

/* NULL and ERR_INVALID in Cassandra's words. */
struct where_plan *where_compile(struct compile *c, const struct schema_table *t, const struct ast_where *where,
                                 const struct where_options *o) MUST_CHECK;

/* Returns -1 with the error for a query that needs ALLOW FILTERING. */
int where_refuse_filtering(struct compile *c);

/* WHERE_KEYS: the values of the partition keys, in rows; none with IN (). where_parts checks
 * whether they can be keys; a read of no rows does not call it. */
struct where_keys {
    uint32_t n;
    struct value *values;
};
int where_key_values(const struct where_plan *w, struct evaluation *ev, struct where_keys *out) MUST_CHECK;
/* The partitions of keys, each once, in the order of the IN lists or, sorted, of their values. */
int where_parts(const struct where_plan *w, struct evaluation *ev, const struct where_keys *keys, bool sorted,
                struct eng_part **parts, uint32_t *n) MUST_CHECK;
/* one_row: the one result of where_parts and where_row_keys or where_subqueries, without their
 * lists. partition_first: the partition key is checked before the clustering key, as when
 * where_parts is called before the others; else after it. */
int where_row(const struct where_plan *w, struct evaluation *ev, bool partition_first, struct eng_part *part,
              struct row_key *key) MUST_CHECK;
/* WHERE_TOKENS. Returns 1 for a range, 0 if it is empty, or -1 on error. */
int where_tokens(const struct where_plan *w, struct evaluation *ev, struct ring_range *out) MUST_CHECK;
/* WHERE_ROW_KEYS: whole keys in table order, each once. */
int where_row_keys(const struct where_plan *w, struct evaluation *ev, struct row_key **keys, uint32_t *n) MUST_CHECK;
/* Keyspaces splits a key with IN into queries, in each of which every column has one value. */
struct where_subquery {
    bool is_row; /* key is a whole clustering key */
    struct row_key key;
    uint32_t n_slices; /* else: in table order, not overlapping; 0 if no row can match */
    struct eng_slice *slices;
    bool has_bound; /* the range excludes its upper bound: */
    struct eng_slice bound; /* the rows that match it */
};
/* WHERE_ROW_KEYS, WHERE_SLICES: in the order of the IN lists, each once. */
int where_subqueries(const struct where_plan *w, struct evaluation *ev, struct where_subquery **out,
                     uint32_t *n) MUST_CHECK;
/* Any plan: in table order, not overlapping. WHERE_ALL_ROWS yields one slice of everything. n is 0 if no
 * row can match. */
int where_slices(const struct where_plan *w, struct evaluation *ev, struct eng_slice **slices, uint32_t *n) MUST_CHECK;

/* Filters with the values of one execution; for a plan whose n_filters is not 0. */
struct where_filters;
struct where_filters *where_filters_bind(const struct where_plan *w, struct evaluation *ev) MUST_CHECK;
/* Whether the row passes. The view must hold the columns of where_columns. */
bool where_filters_match(const struct where_filters *f, const struct value *row);
/* Whether a collection has a key, a value, or a key with this value; NULL means any. */
bool where_collection_has(const struct cql_type *t, struct value collection, const struct value *key,
                          const struct value *value);
/* Marks the columns that the filters use, by ordinal. */
void where_columns(const struct where_plan *w, bool *wanted);
