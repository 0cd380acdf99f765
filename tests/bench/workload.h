/* What the load sends: the workloads (workload.def), their statements (statement.def), the rows
 * that must be there before. */
#pragma once

#include "base/buf.h"

enum { LOAD_POINTS = 100000, LOAD_SLICES = 1000, LOAD_SLICE_ROWS = 100, LOAD_VALUES = 5, LOAD_VALUE_BYTES = 20 };
enum { LOAD_WIDE = 4, LOAD_PAGE_ROWS = 5000, LOAD_FOLDED = 1000, LOAD_COUNTERS = 10000 };
/* Prepared ids when there is no PREPARE: the first byte tells a ceiling server which statement it is. */
enum { LOAD_ID_READ = 'r', LOAD_ID_INSERT = 'i', LOAD_ID_SLICE = 's', LOAD_ID_MERGED = 'm', LOAD_ID_UPDATE = 'u' };

enum statement {
#define STATEMENT(id, rows, text) ST_##id,
#include "tests/bench/statement.def"
#undef STATEMENT
    STATEMENTS,
    MIX_READ_INSERT = STATEMENTS, /* 3 of 16 insert */
};

enum { FILL_ROWS = 1, FILL_WIDE = 2, FILL_MERGED = 4, FILL_GAPS = 8, FILL_LARGE = 16, FILLS_END = 32 };
enum {
    CEILING = 1,
    FSYNC = 2,
    LOOPS4 = 4,
    FEW = 8,
    BESIDE_SCANS = 16,
    PAIRED = 32,
    UNMETERED = 64,
    WRITTEN = 128,
    LARGE = 256,
    HUGE = 512,
    TLS = 1024,
    EIGHT = 2048,
    UNCACHED = 4096,
    HOT = 8192,
    BESIDE_PAGE = 16384
};

enum workload {
#define WORKLOAD(id, name, request, fills, config) LOAD_##id,
#include "tests/bench/workload.def"
#undef WORKLOAD
    WORKLOADS
};

struct workload_row {
    const char *name;
    enum statement request;
    unsigned fills, config;
};
extern const struct workload_row workload_rows[WORKLOADS];

extern const char *const workload_schema[]; /* DDL, in order; NULL at the end */
const char *statement_text(enum statement s);
/* Rows that a response must have; -1: any. */
int64_t statement_rows(enum statement s);
bool statement_is_prepared(enum statement s);

enum { WORKLOAD_VERSION = 4 /* of the protocol */ };
/* How large the table is that is read at random, and that FILL_LARGE writes. */
enum { LOAD_LARGE_SHARE = 12 /* of HUGE, one LARGE */, LOAD_LARGE_BATCH = 30 };

/* One request onto out. id: of the statement, when prepared; random decides the keys and, of a mix,
 * the statement, which is what workload_pick returns. */
enum statement workload_pick(enum statement request, uint64_t random);
void workload_put(struct buf *out, uint16_t stream, enum statement s, const uint8_t id[16], uint64_t random,
                  uint32_t large);

/* Requests that fill: how many, and the nth of one FILL_... */
/* large: rows of FILL_LARGE. */
uint64_t fill_size(unsigned fills, uint32_t large);
enum statement fill_put(struct buf *out, uint16_t stream, unsigned fill, uint64_t n, const uint8_t ids[][16],
                        uint32_t large);
