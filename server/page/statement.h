/* The statements that the page runs: a SELECT of a user, with its rows and its charge; the price of
 * a write, which is planned and never applied; and the page's own reads of system tables. All run
 * with the permissions of the role that signed in.
 *
 * They are charged to no table and count against no limit, so that the page does not change what it
 * shows. A statement has at most STATEMENT_SECONDS, STATEMENT_ROWS rows a page and
 * STATEMENT_ANSWER bytes. */
#pragma once

#include "cql/execute.h"
#include "metering/explanation.h"

enum {
    STATEMENT_SECONDS = 10,
    STATEMENT_ROWS = 1000,
    STATEMENT_PRICED_ROWS = 5000, /* of a page whose rows are not shown: as drivers and tally explain read */
    STATEMENT_ANSWER = 4 << 20,
    STATEMENT_TEXT = 64 << 10
};

struct statement_options {
    struct cql_db *db;
    struct clock *clock;
};

struct page_statement {
    struct slice text;
    const char *role; /* NULL if the server has no roles */
    bool runs;        /* one page with its rows. false: the price of all pages; INSERT, UPDATE, DELETE, BATCH, too */
    bool eventual;    /* a read at LOCAL_ONE */
    uint32_t rows;    /* of a page; 0 for the most: STATEMENT_ROWS, or STATEMENT_PRICED_ROWS for a price */
    const char *state; /* the paging state of an earlier answer, in hexadecimal; NULL for the first page */
};

/* Appends the answer, an object of JSON: docs/page.md describes it. Returns -1 with err set if
 * it is refused. May take STATEMENT_SECONDS; on a thread that may block. */
int page_statement_run(const struct statement_options *o, const struct page_statement *s, struct buf *out,
                       struct err *e) MUST_CHECK;
/* Appends the member "reasons": the rules of a charge, a bit set of enum rule_id. */
void page_put_rules(struct buf *out, uint64_t rules);
/* Bytes of a hexadecimal text. Returns -1 if it is none, or it is longer than max. */
int page_statement_state(const char *hex, size_t max, struct buf *out) MUST_CHECK;
