/* WHERE: compiled once against a table, evaluated per execution into the partitions, rows and
 * slices it names.
 *
 * Life: a statement's compile calls where_compile, which sorts the relations into the partition
 * key, the clustering key, the token and what is left (filters), refuses what Cassandra refuses,
 * and keeps the plan in the statement's arena. Each run asks the plan for keys; results live in the
 * request's arena. A plan is immutable: many threads may use it at a time.
 */
#pragma once

#include "cql/row/row_key.h"
#include "cql/row/row_view.h"
#include "cql/expr/term.h"

enum where_purpose { WHERE_SELECT, WHERE_UPDATE, WHERE_DELETE };

struct where_options {
    enum where_purpose purpose;
    bool allow_filtering; /* SELECT */
    /* SELECT: reads static and partition key columns only; UPDATE, DELETE: touches static columns only */
    bool only_statics;
    bool whole_rows;      /* DELETE without columns: the clustering key may be a prefix or a slice */
    bool conditional;     /* UPDATE, DELETE ... IF */
    bool virtual_table;   /* SELECT: any restriction may be a filter */
};

enum where_partitions {
    WHERE_KEYS,
    /* every partition key column = or IN */ WHERE_TOKENS /* a range of tokens, or the ring */
};
enum where_rows {
    WHERE_ALL_ROWS, /* nothing on clustering columns that can seek */
    /* every clustering column = or IN: whole keys (a table without clustering columns: the one empty key) */
    WHERE_ROW_KEYS,
    WHERE_SLICES,   /* a prefix or a range */
};

enum where_step_kind { STEP_EQ, STEP_IN, STEP_RANGE, STEP_CONTAINS, STEP_CONTAINS_KEY, STEP_ELEMENT };

struct where_bound {
    struct term *term; /* NULL: open */
    bool inclusive;
    bool tuple; /* the term gives a tuple of n */
    uint32_t n; /* columns it covers: those of a tuple relation, or 1 */
};

/* What the relations say of one column, or of the columns of a tuple relation. */
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
    /* each key column = a value of its own, and nothing on the token: where_row tells of the row */
    bool one_row;
    bool keyless;                     /* nothing on the partition key, nor on its token */
    bool has_token;                   /* WHERE_TOKENS with TOKEN(...) restricted */
    bool needs_filtering;             /* refused without ALLOW FILTERING, once all else is found right */
    bool filters_rows;                /* a filter looks at a clustering or regular column */
    uint32_t n_filters;
    struct where_step **filters;
    /* inside restrictions*.c */
    struct where_step **partition_steps; /* WHERE_KEYS: one per partition key column */
    uint32_t n_clustering_steps;         /* those that seek: = and IN, then at most one range */
    struct where_step **clustering_steps;
    struct where_step *token; /* NULL: none */
    uint32_t n_pk_binds; /* partition key columns restricted by = to a bare bind marker: all of them, or 0 */
    uint16_t *pk_binds;  /* prepared_info.pk_indexes */
};

/* NULL and ERR_INVALID in Cassandra's words. */
struct where_plan *where_compile(struct compile *c, const struct schema_table *t, const struct ast_where *where,
                                 const struct where_options *o) MUST_CHECK;

/* -1, with the words for a query that would have to filter. */
int where_refuse_filtering(struct compile *c);

/* WHERE_KEYS: the values of the partition keys, in rows; none with IN (). Whether they can be keys
 * is where_parts' to say, which a read of no rows does not ask. */
struct where_keys {
    uint32_t n;
    struct value *values;
};
int where_key_values(const struct where_plan *w, struct cql_request *r, struct where_keys *out) MUST_CHECK;
/* Their partitions, each once, in the order of the IN lists or, sorted, of their values. 0 / -1. */
int where_parts(const struct where_plan *w, struct cql_request *r, const struct where_keys *keys, bool sorted,
                struct eng_part **parts, uint32_t *n) MUST_CHECK;
/* one_row: what where_parts and where_row_keys or where_subqueries make of it, without their lists.
 * partition_first: what is wrong with the partition's key is told before the clustering key is
 * looked at, as where_parts in front of the others does; else after it. */
int where_row(const struct where_plan *w, struct cql_request *r, bool partition_first, struct eng_part *part,
              struct row_key *key) MUST_CHECK;
/* WHERE_TOKENS: both bounds inclusive. 1: a range, 0: it is empty, -1. */
int where_tokens(const struct where_plan *w, struct cql_request *r, int64_t *from, int64_t *to) MUST_CHECK;
/* WHERE_ROW_KEYS: whole keys in table order, each once. */
int where_row_keys(const struct where_plan *w, struct cql_request *r, struct row_key **keys, uint32_t *n) MUST_CHECK;
/* One of the queries that Keyspaces makes of a clustering key with IN: = and IN columns have one value each. */
struct where_subquery {
    bool is_row; /* key is a whole clustering key */
    struct row_key key;
    uint32_t n_slices; /* else: in table order, not overlapping; 0: no row can match */
    struct eng_slice *slices;
    bool has_bound; /* the range excludes its upper bound: */
    struct eng_slice bound; /* the rows that match it */
};
/* WHERE_ROW_KEYS, WHERE_SLICES: in the order of the IN lists, each once. */
int where_subqueries(const struct where_plan *w, struct cql_request *r, struct where_subquery **out,
                     uint32_t *n) MUST_CHECK;
/* Any plan: in table order, not overlapping. WHERE_ALL_ROWS gives one slice of everything; n 0: no row can match. */
int where_slices(const struct where_plan *w, struct cql_request *r, struct eng_slice **slices, uint32_t *n) MUST_CHECK;

/* Filters with their values of one execution; NULL when there are none is not an error: ask n_filters first. */
struct where_filters;
struct where_filters *where_filters_bind(const struct where_plan *w, struct cql_request *r) MUST_CHECK;
/* Does the row pass? The view must hold the columns of where_columns. */
bool where_filters_match(const struct where_filters *f, const struct row_view *v);
/* Marks the columns that the filters look at, by ordinal. */
void where_columns(const struct where_plan *w, bool *wanted);
