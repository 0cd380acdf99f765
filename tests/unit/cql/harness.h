/* Runs CQL text on a database in memory, for unit tests: a catalogue without DDL delay, a memory
 * store, a clock that stands still until it is moved. Rows come back as one line of text: columns
 * joined by ",", rows by ";", null as "null". */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cql/cql.h"

struct access_control;


struct harness_clock {
    struct clock clock;
    _Atomic int64_t now_us; /* the catalogue reads it on a thread of its own */
};

struct harness {
    enum tally_mode mode;
    const char *data_dir; /* NULL: rows are in memory */
    struct harness_clock clock;
    struct eng *eng;
    struct catalog *catalog;
    struct cql_db *db;
    struct cql_session session;
    struct eng_batch *batch;
    struct arena arena; /* of the newest request */
    struct err err;
    struct op_cost cost;
    struct row_sink sink;
    uint32_t most_rows;         /* of the newest request, in one batch */
    const struct result_meta *meta;
    struct buf rows;       /* text of the newest result */
    uint32_t n_rows;
    struct cql_result result;
    struct buf paging;     /* paging state of the newest result; empty: no further page */
    uint32_t n_warnings;
    uint64_t commit_seq;
    enum cql_work_class work_class; /* of the last request */
    int64_t deadline_us;            /* of all requests; 0: none */
    uint32_t n_parts;      /* that the newest request ran in */
    /* for the next requests */
    int32_t page_size;
    uint16_t consistency;
    enum write_size write_size;
    uint32_t cancel_after; /* parts: nobody waits for the answer from there on; 0: somebody always does */
    size_t arena_limit;    /* bytes that a request may take; 0: no limit */
    bool on_loop;          /* run as on a loop, where nothing may block: the outcome may be CQL_OFFLOAD */
    bool resume;           /* go on where the newest page ended */
};

void harness_open(struct harness *h, enum tally_mode mode);
void harness_close(struct harness *h);
/* A new one, for a cmocka test's state: keyspace k is in use, and the tables' statements (NULL at the end) have run. */
struct harness *harness_new(enum tally_mode mode, const char *const *tables);
/* The teardown that closes it. */
int harness_teardown(void **state);
/* The same data behind a new database that asks these; NULL: all is allowed. */
void harness_ask(struct harness *h, const struct cql_admission *admission, struct access_control *access);
/* On a store with these options; durability and clock are the harness's. */
void harness_open_on(struct harness *h, enum tally_mode mode, const struct eng_options *store, int64_t now_us);
/* With a store on disk, and a clock that says now_us. */
void harness_open_in(struct harness *h, enum tally_mode mode, const char *data_dir, int64_t now_us);
/* Closes the database and opens it again, while the clock goes to now_us. */
void harness_restart(struct harness *h, int64_t now_us);
/* And with so small a cache that most of what was in memory before must be read from the table files. */
void harness_restart_cold(struct harness *h, int64_t now_us, size_t block_cache_bytes);

/* Runs one statement; values for its markers, or none. */
enum cql_outcome harness_run(struct harness *h, const char *cql, uint32_t n_values, const struct value *values);
/* Any request: fills in all but its kind, text and values, commits what it wrote, drops its references. */
enum cql_outcome harness_request(struct harness *h, const struct cql_request *q);
enum cql_outcome harness_execute(struct harness *h, const uint8_t *id, uint32_t n_values, const struct value *values);
/* The id of the prepared statement; fails the test when it cannot be prepared. */
void harness_prepare(struct harness *h, const char *cql, uint8_t id[16]);
/* Must succeed. The rows' text. */
const char *harness_query(struct harness *h, const char *cql);
/* Must fail. The error's text. */
const char *harness_error(struct harness *h, const char *cql);

#define assert_rows(h, cql, expected) assert_string_equal(harness_query((h), (cql)), (expected))
#define assert_error(h, cql, expected) assert_string_equal(harness_error((h), (cql)), (expected))
#define run_ok(h, cql) ((void)harness_query((h), (cql)))
