/* The pictures of the page as JSON: the overview, a table's figures over time, its heat maps with
 * their finding, and a partition. docs/page.md describes the answers.
 *
 * Bounds: VIEW_TABLES tables a page of the overview; a ring's slots of a map. Any thread. */
#pragma once

#include "cql/cql.h"
#include "metering/limits/limiter.h"
#include "server/page/history.h"

enum { VIEW_TABLES = 100, VIEW_STATEMENTS = 20 };

struct view_options {
    struct page_history *history;
    struct ledger *ledger;
    struct catalog *catalog;
    struct cql_db *db;
    struct clock *clock;
    const struct limiter_options *limits;
    bool (*limit_table)(void *arg, uint32_t object, struct limit_table *out);
    void *arg;
};

struct view_table { /* of a request */
    const char *keyspace, *table;
    unsigned ring;   /* below RINGS */
    uint32_t since;  /* the first slot that is wanted; 0 for all */
};

/* after: "keyspace.table" of the last table of the page before; NULL if the first page. find: tables with this text
 * in their names; NULL means all. */
void view_tables(const struct view_options *v, const char *after, const char *find, struct buf *out);
/* The three below answer false when there is no such table. */
bool view_history(const struct view_options *v, const struct view_table *q, struct buf *out);
bool view_map(const struct view_options *v, const struct view_table *q, bool by_partition, struct buf *out);
/* The statements of the table with the most load, heaviest first, at most VIEW_STATEMENTS. */
bool view_statements(const struct view_options *v, const struct view_table *q, struct buf *out);
/* The partitions that the ledger keeps of the table: that of the token, or, with a range from 0 to
 * 255, those in it. */
bool view_partitions(const struct view_options *v, const struct view_table *q, bool by_range, int64_t token,
                     uint32_t range, struct buf *out);
