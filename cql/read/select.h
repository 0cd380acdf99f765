/* SELECT: compiled once into a plan (select.c), run as a chain of operators (select_run.c, read.h).
 * Inside of cql only. */
#pragma once

#include "cql/read/read.h"
#include "cql/request/statement.h"
#include "cql/where/restrictions.h"

/* Immutable, in the statement's arena. */
struct select_plan {
    const struct schema_table *table;
    const struct access_path *path;
    struct where_plan *where;
    const struct row_view_layout *layout;
    bool asks_times; /* selectors read timestamps or TTLs from the cells of rows: rows are read one by one */
    bool lays_out;   /* the engine lays out the values of rows, without cells */
    bool computes;   /* with values of rows: functions, JSON, conditions, aggregates */
    bool distinct;
    bool several_partitions; /* IN on the partition key */
    const bool *wanted; /* by column: whether selectors or filters read it */
    struct {
        uint32_t n;
        struct term **terms;
        const uint32_t *ordinals; /* by selector, when all are columns as they are; else NULL */
        bool consecutive;         /* ordinals are: a row's values from the first one on are its result */
        bool json;
        const char **json_names;  /* JSON: the selectors' names, quoted for JSON */
    } list; /* of selectors */
    struct {
        bool asked; /* selects or tests static columns: their size is charged */
        bool read;  /* static rows, for those columns or to find whether a partition has nothing else */
        bool only;  /* a partition with static values only yields a row */
    } statics;
    struct {
        bool given, reversed;
        uint32_t n; /* leading clustering columns that rows of several partitions are sorted by */
    } order;
    struct term *limit, *partition_limit;
    uint32_t n_aggregates;
    const struct term *const *aggregates;
    uint32_t n_latches;
    const struct term *subscripts; /* their keys are checked when the statement starts to run */
    const struct term *latches; /* computed from the first row of a group and kept with its values */
    bool grouped;
    struct {
        uint32_t n; /* leading primary key columns that GROUP BY names */
        const struct term *function; /* of the last of them, whose values make the groups; NULL for the column's own */
        const char *salt; /* the function as written */
        /* why the function cannot make groups, reported when the statement runs, as in Cassandra;
         * else NULL */
        const char *fault;
    } group;
    uint32_t salt; /* binds paging states to the statement (make_salt) */
};

/* The result values of a row when the select list is a range of columns in their order, which needs
 * no projection; NULL means project the row. */
static inline const struct value *select_result(const struct select_plan *p, const struct value *values) {
    return p->list.consecutive ? values + p->list.ordinals[0] : NULL;
}

/* Is a clustering column restricted by =? On a system table nothing is sought: every restriction is a filter. */
bool select_is_fixed(const struct select_plan *p, uint32_t position);
/* select_group.c: GROUP BY. */
int select_compile_group(struct compile *c, struct select_plan *p, const struct ast_select *ast) MUST_CHECK;
int select_compile(struct compile *c, const struct ast_stmt *stmt, struct cql_statement *out) MUST_CHECK;
extern const struct statement_ops select_ops;
