#include "tests/bench/workload.h"

#include <stdio.h>

#include "tools/client/wire.h"

enum { PAGE_SIZE = 5000 /* as the drivers ask for */ };

const struct workload_row workload_rows[WORKLOADS] = {
#define WORKLOAD(id, name_, request_, fills_, config_) \
    {.name = name_, .request = request_, .fills = fills_, .config = config_},
#include "tests/bench/workload.def"
#undef WORKLOAD
};

#define BENCH_TABLE(name) \
    "CREATE TABLE IF NOT EXISTS bench." name \
    " (pk int, ck int, c1 text, c2 text, c3 text, c4 text, c5 text, PRIMARY KEY (pk, ck))"

const char *const workload_schema[] = {
    "CREATE KEYSPACE IF NOT EXISTS bench WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    BENCH_TABLE("rows"),
    BENCH_TABLE("merged"),
    BENCH_TABLE("folded"),
    BENCH_TABLE("gaps"),
    BENCH_TABLE("deleted"),
    BENCH_TABLE("large"),
    "CREATE TABLE IF NOT EXISTS bench.wide (pk int, ck int, c1 text, PRIMARY KEY (pk, ck))",
    "CREATE TABLE IF NOT EXISTS bench.counters (pk int PRIMARY KEY, n counter)",
    "CREATE TABLE IF NOT EXISTS bench.filled (name text PRIMARY KEY)", /* what was written to the end */
    NULL,
};

static const struct {
    const char *text;
    int64_t rows;
} statements[STATEMENTS] = {
#define STATEMENT(id, rows_, text_) {.text = text_, .rows = rows_},
#include "tests/bench/statement.def"
#undef STATEMENT
};

const char *statement_text(enum statement s) { return statements[s].text; }
int64_t statement_rows(enum statement s) { return statements[s].rows; }
bool statement_is_prepared(enum statement s) { return s != ST_TEXT_READ && s != ST_TEXT_INSERT; }

/* ---- one request ---- */

static void put_int(struct buf *b, uint32_t v) {
    buf_u32(b, 4);
    buf_u32(b, v);
}

static void put_text(struct buf *b, uint32_t pk, uint32_t ck, unsigned column) {
    char text[LOAD_VALUE_BYTES + 1];
    snprintf(text, sizeof(text), "%08x-%08x-%02x", pk, ck, column);
    buf_u32(b, LOAD_VALUE_BYTES);
    buf_put(b, text, LOAD_VALUE_BYTES);
}

/* Header of an EXECUTE with so many values to come, which are written in place; reads ask for a page. */
static size_t begin(struct buf *b, uint16_t stream, const uint8_t id[16], uint16_t n_values, bool read) {
    size_t at = wire_begin(b, WORKLOAD_VERSION, stream, NP_EXECUTE);
    buf_u16(b, 16);
    buf_put(b, id, 16);
    buf_u16(b, WIRE_LOCAL_QUORUM);
    buf_u8(b, (uint8_t)((n_values ? 0x01 : 0) | 0x02 | (read ? 0x04 : 0))); /* values, skip metadata, page size */
    if (n_values) buf_u16(b, n_values);
    return at;
}

static void end(struct buf *b, size_t at, bool read) {
    if (read) buf_u32(b, PAGE_SIZE);
    wire_end(b, at);
}

/* By its values: of the whole row, one column of a row, the row's key, or the partition's. */
static void put_values(struct buf *b, uint32_t pk, uint32_t ck, unsigned columns) {
    put_int(b, pk);
    put_int(b, ck);
    for (unsigned i = 0; i < columns; i++) put_text(b, pk, ck, i);
}

static void put_whole(struct buf *b, uint16_t stream, const uint8_t id[16], uint32_t pk, uint32_t ck,
                      unsigned columns) {
    size_t at = begin(b, stream, id, (uint16_t)(2 + columns), false);
    put_values(b, pk, ck, columns);
    end(b, at, false);
}

static void put_column(struct buf *b, uint16_t stream, const uint8_t id[16], uint32_t pk, uint32_t ck, unsigned salt) {
    size_t at = begin(b, stream, id, 3, false);
    put_text(b, pk, ck, salt);
    put_int(b, pk);
    put_int(b, ck);
    end(b, at, false);
}

static void put_row_key(struct buf *b, uint16_t stream, const uint8_t id[16], uint32_t pk, uint32_t ck, bool read) {
    size_t at = begin(b, stream, id, 2, read);
    put_int(b, pk);
    put_int(b, ck);
    end(b, at, read);
}

static void put_partition(struct buf *b, uint16_t stream, const uint8_t id[16], uint32_t pk, bool read) {
    size_t at = begin(b, stream, id, 1, read);
    put_int(b, pk);
    end(b, at, read);
}

static void put_text_query(struct buf *b, uint16_t stream, enum statement s, uint32_t pk) {
    char text[512];
    snprintf(text, sizeof(text), s == ST_TEXT_READ ? statements[ST_TEXT_READ].text : statements[ST_TEXT_INSERT].text,
             pk);
    const struct wire_params p = {.consistency = WIRE_LOCAL_QUORUM};
    wire_query(b, WORKLOAD_VERSION, stream, slice_str(text), &p);
}

enum statement workload_pick(enum statement request, uint64_t random) {
    if (request != MIX_READ_INSERT) return request;
    return random >> 60 < 3 ? ST_INSERT : ST_READ;
}

void workload_put(struct buf *out, uint16_t stream, enum statement s, const uint8_t id[16], uint64_t random,
                  uint32_t large) {
    uint32_t point = (uint32_t)(random % LOAD_POINTS), slice = (uint32_t)(LOAD_POINTS + random % LOAD_SLICES);
    unsigned salt = (unsigned)(random >> 40 & 0xFF);
    switch (s) {
    case ST_READ:
    case ST_READ_MERGED: put_row_key(out, stream, id, point, 0, true); break;
    case ST_READ_LARGE: put_row_key(out, stream, id, (uint32_t)(random % large), 0, true); break;
    case ST_INSERT: put_whole(out, stream, id, point, 0, LOAD_VALUES); break;
    case ST_SLICE:
    case ST_SLICE_GAPS: put_partition(out, stream, id, slice, true); break;
    case ST_PAGE: put_partition(out, stream, id, (uint32_t)(random % LOAD_WIDE), true); break;
    case ST_UPDATE:
    case ST_IF_EXISTS: put_column(out, stream, id, point, 0, salt); break;
    case ST_FOLD: put_column(out, stream, id, (uint32_t)(random % LOAD_FOLDED), 0, salt); break;
    case ST_DELETE: put_row_key(out, stream, id, point, 0, false); break;
    case ST_COUNTER: put_partition(out, stream, id, (uint32_t)(random % LOAD_COUNTERS), false); break;
    case ST_SCAN: end(out, begin(out, stream, id, 0, true), true); break;
    case ST_TEXT_READ:
    case ST_TEXT_INSERT: put_text_query(out, stream, s, point); break;
    default: break; /* those that only fill */
    }
}

/* ---- rows that must be there before ---- */

enum { SLICED = LOAD_SLICES * LOAD_SLICE_ROWS, UPDATES_EACH = 3 };

static uint64_t rows_size(unsigned fill, uint32_t large) {
    switch (fill) {
    case FILL_ROWS: return LOAD_POINTS + SLICED;
    case FILL_WIDE: return LOAD_WIDE * LOAD_PAGE_ROWS;
    case FILL_MERGED: return LOAD_POINTS * (1 + UPDATES_EACH);
    case FILL_GAPS: return SLICED + SLICED / 10 * 9;
    case FILL_LARGE: return (large + LOAD_LARGE_BATCH - 1) / LOAD_LARGE_BATCH;
    default: return 0;
    }
}

uint64_t fill_size(unsigned fills, uint32_t large) {
    uint64_t n = 0;
    for (unsigned f = 1; f < FILLS_END; f <<= 1) n += fills & f ? rows_size(f, large) : 0;
    return n;
}

/* The nth row of those that are sliced. */
static void sliced(uint64_t n, uint32_t *pk, uint32_t *ck) {
    *pk = (uint32_t)(LOAD_POINTS + n / LOAD_SLICE_ROWS);
    *ck = (uint32_t)(n % LOAD_SLICE_ROWS);
}

static enum statement put_rows(struct buf *b, uint16_t stream, uint64_t n, const uint8_t ids[][16]) {
    uint32_t pk = (uint32_t)n, ck = 0;
    if (n >= LOAD_POINTS) sliced(n - LOAD_POINTS, &pk, &ck);
    put_whole(b, stream, ids[ST_INSERT], pk, ck, LOAD_VALUES);
    return ST_INSERT;
}

static enum statement put_wide(struct buf *b, uint16_t stream, uint64_t n, const uint8_t ids[][16]) {
    put_whole(b, stream, ids[ST_WIDE_INSERT], (uint32_t)(n / LOAD_PAGE_ROWS), (uint32_t)(n % LOAD_PAGE_ROWS), 1);
    return ST_WIDE_INSERT;
}

static enum statement put_merged(struct buf *b, uint16_t stream, uint64_t n, const uint8_t ids[][16]) {
    uint32_t pk = (uint32_t)(n % LOAD_POINTS);
    enum statement s = n < LOAD_POINTS ? ST_MERGED_INSERT : ST_UPDATE;
    if (s == ST_UPDATE) put_column(b, stream, ids[s], pk, 0, (unsigned)(n / LOAD_POINTS));
    else put_whole(b, stream, ids[s], pk, 0, LOAD_VALUES);
    return s;
}

/* All rows, then of each ten all but the first are deleted. */
static enum statement put_gaps(struct buf *b, uint16_t stream, uint64_t n, const uint8_t ids[][16]) {
    uint32_t pk, ck;
    enum statement s = n < SLICED ? ST_GAPS_INSERT : ST_GAPS_DELETE;
    if (s == ST_GAPS_DELETE) n = (n - SLICED) / 9 * 10 + (n - SLICED) % 9 + 1;
    sliced(n, &pk, &ck);
    if (s == ST_GAPS_INSERT) put_whole(b, stream, ids[s], pk, ck, LOAD_VALUES);
    else put_row_key(b, stream, ids[s], pk, ck, false);
    return s;
}

/* A batch of rows, each in a partition of its own: a tenth of what they would cost one by one. */
static void put_large(struct buf *b, uint16_t stream, uint64_t n, const uint8_t id[16], uint32_t large) {
    enum { UNLOGGED = 1, PER_ROW = 2 * 8 + LOAD_VALUES * (4 + LOAD_VALUE_BYTES) };
    struct wire_batch_item items[LOAD_LARGE_BATCH];
    const struct wire_params p = {.consistency = WIRE_LOCAL_QUORUM};
    struct buf values;
    uint16_t rows = 0;
    buf_init(&values, 0);
    if (!buf_reserve(&values, LOAD_LARGE_BATCH * PER_ROW)) return;
    for (uint64_t pk = n * LOAD_LARGE_BATCH; pk < large && rows < LOAD_LARGE_BATCH; pk++, rows++) {
        size_t at = values.n;
        put_values(&values, (uint32_t)pk, 0, LOAD_VALUES);
        items[rows] = (struct wire_batch_item){.id = slice_of(id, 16),
                                               .n_values = 2 + LOAD_VALUES,
                                               .values = slice_of(values.p + at, values.n - at)};
    }
    wire_batch(b, WORKLOAD_VERSION, stream, UNLOGGED, items, rows, &p);
    buf_fini(&values);
}

enum statement fill_put(struct buf *out, uint16_t stream, unsigned fill, uint64_t n, const uint8_t ids[][16],
                        uint32_t large) {
    switch (fill) {
    case FILL_ROWS: return put_rows(out, stream, n, ids);
    case FILL_WIDE: return put_wide(out, stream, n, ids);
    case FILL_MERGED: return put_merged(out, stream, n, ids);
    case FILL_GAPS: return put_gaps(out, stream, n, ids);
    default: put_large(out, stream, n, ids[ST_LARGE_INSERT], large); return ST_LARGE_INSERT;
    }
}
