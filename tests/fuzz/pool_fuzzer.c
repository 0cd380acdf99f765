/* A pool of a Ceph cluster in which anybody may have written anything: [u8 object][u8 n][key][u8 n][value]...
 * Readers, writers, the work in the background, membership, the ledger's shares and the verification go
 * through it. Each succeeds or fails; none takes for ever. A table that the input says nothing of is written
 * and read as if nothing were wrong. */
#include <assert.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/murmur3.h"
#include "engine/rados/batchlog.h"
#include "engine/rados/move.h"
#include "engine/rados/read.h"
#include "engine/rados/rados.h"
#include "engine/rows/key.h"
#include "engine/table.h"
#include "engine/verify.h"
#include "pool/server.h"
#include "pool/twin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TABLE = 16, INNOCENT = 17, SPLIT_KEYS = 4, OBJECTS_OF_ROWS = 8 };
static const char dropped_object[] = "dropped";
static const char *const objects[] = {
    "named", "batches", dropped_object,
    "rows.00000010.00.0000000000000000", "rows.00000010.01.0000000000000000", "rows.00000010.01.8000000000000000",
    "piece.00000010.0000000000000001.0", "piece.00000010.0000000000000001.1", "rows.00000010.64.ffffffffffffffff",
    "batches.00000001.00000001"};
static const struct eng_rados place = {.conf = "ceph.conf", .pool = "tally", .split_keys = SPLIT_KEYS};

/* A thread that waits for another server's split does not wait here. */
int nanosleep(const struct timespec *time, struct timespec *rest) { return (void)time, (void)rest, 0; }

/* Fills the pool. Returns whether no table was dropped. */
static bool fill(const uint8_t *data, size_t size) {
    struct rd in = rd_of(slice_of(data, size));
    bool none_dropped = true;
    twin_clear();
    while (rd_left(&in)) {
        const char *object = objects[rd_u8(&in) % ARRAY_LEN(objects)];
        struct slice key = rd_bytes(&in, rd_u8(&in)), value = rd_bytes(&in, rd_u8(&in));
        if (in.bad) break;
        twin_set(object, key, value);
        none_dropped = none_dropped && object != dropped_object;
    }
    return none_dropped;
}

static struct eng_part part_of(uint32_t table, const char *key) {
    return (struct eng_part){.table = table, .token = murmur3_token(slice_str(key)), .key = slice_str(key)};
}

/* ---- rows ---- */

static int write_rows(struct eng *eng, uint32_t table, int n, int64_t ts, struct err *e) {
    struct eng_part part = part_of(table, "k");
    struct eng_cell cell = {.column = 1, .ts = ts, .expiry = ENG_NO_EXPIRY, .value = slice_str("value")};
    struct eng_batch *b = eng_batch_new(eng);
    uint64_t seq;
    int rc = 0;
    assert(b);
    for (int i = 0; rc == 0 && i < n; i++) {
        char ck[2] = {(char)('a' + i)};
        struct op_cost cost = {0};
        struct eng_row row;
        eng_row_init(&row, ENG_ROW, slice_str(ck));
        row.live_ts = ts;
        row.cells = &cell;
        row.n_cells = 1;
        rc = eng_batch_row(b, &part, &row, &cost, e);
    }
    if (rc == 0) rc = eng_batch_commit(b, &seq, e);
    eng_batch_free(b);
    return rc;
}

/* Returns how many rows there are, or -1. */
static int count_rows(struct eng *eng, const struct eng_scan_spec *spec, struct err *e) {
    struct op_cost cost = {0};
    struct eng_item item = {0};
    struct eng_scan *scan = eng_scan_open(eng, ENG_TIER_ANY, spec, &cost, e);
    int rc = scan ? 1 : -1, n = 0;
    while (rc == 1 && (rc = eng_scan_next(scan, &item, e)) == 1) n += item.kind == ENG_ITEM_ROW;
    if (scan) eng_scan_close(scan);
    return rc < 0 ? -1 : n;
}

static void check_innocent(struct eng *eng, bool none_dropped) {
    struct eng_part part = part_of(INNOCENT, "k");
    const struct eng_scan_spec spec = {.table = INNOCENT, .part = &part, .rows = true, .now = 1};
    struct err e = {0};
    int written = write_rows(eng, INNOCENT, 3, 7, &e);
    assert(written == 0 || !none_dropped);
    if (written == 0 && none_dropped) assert(count_rows(eng, &spec, &e) == 3);
}

static void read_rows(struct eng *eng) {
    struct eng_part part = part_of(TABLE, "k");
    const struct eng_scan_spec all = {.table = TABLE, .token_from = INT64_MIN, .token_to = INT64_MAX, .rows = true,
                                      .statics = true, .deletions = true, .expired = true, .now = 1};
    struct eng_scan_spec one = all;
    struct err e = {0};
    struct arena a;
    struct eng_pair pair;
    struct op_cost cost = {0};
    one.part = &part;
    if (count_rows(eng, &all, &e) < 0) assert(e.text[0]);
    for (int reverse = 0; reverse < 2; reverse++) {
        one.reverse = reverse; /* only one partition is read in reverse (engine/store.h) */
        if (count_rows(eng, &one, &e) < 0) assert(e.text[0]);
    }
    arena_init(&a, 4096, 0);
    if (eng_pair_get(eng, ENG_TIER_ANY, &part, slice_str("a"), 1, &a, &pair, &cost, &e) < 0) assert(e.text[0]);
    arena_fini(&a);
}

static void change_rows(struct eng *eng) {
    struct eng_part part = part_of(TABLE, "k");
    const struct eng_part *parts[] = {&part};
    struct err e = {0};
    struct op_cost cost = {0};
    struct eng_batch *b = eng_batch_new(eng);
    bool written;
    uint64_t seq;
    if (write_rows(eng, TABLE, 2, 9, &e) == -1) assert(e.text[0]);
    eng_lock(eng, &part);
    if (eng_batch_delete_partition(b, &part, 5, 1, &cost, &e) ||
        eng_batch_commit_locked(b, parts, 1, &written, &seq, &e) == -1)
        assert(e.text[0]);
    eng_unlock(eng, &part);
    eng_batch_free(b);
}

/* What the store's threads do, now. */
static void work_behind(struct eng *eng) {
    struct rados *s = rados_of(store_of(eng));
    struct shard *root = shard_map_find(&s->shards, TABLE, 0);
    struct eng_part part = part_of(TABLE, "k");
    struct err e = {0};
    struct buf key;
    uint64_t keys, bytes;
    int64_t oldest;
    size_t n;
    buf_init(&key, 0);
    engi_key_row(&key, &part, ENG_ROW, slice_str("a"));
    if (batchlog_oldest(s, &oldest, &e) || batchlog_replay(s, 1, 0, &n, &e)) assert(e.text[0]);
    if (read_fold(s, buf_slice(&key), &e)) assert(e.text[0]);
    if (!root || move_relieve(s, root) < 0 || table_size(s, TABLE, &keys, &bytes, &e)) keys = 0;
    eng_table_set(eng, TABLE, 0);
    if (eng_reclaim(eng, &e)) assert(e.text[0]);
    buf_fini(&key);
}

/* ---- verification ---- */

static void note_fault(void *arg, const char *words) { (void)arg, assert(*words); }
static int take_record(void *arg, struct slice name, struct slice value, struct err *e) {
    return (void)arg, (void)name, (void)value, (void)e, 0;
}
static void begin_store(void *arg) { (void)arg; }
static bool has(void *arg, uint32_t id) { return (void)arg, id == INNOCENT; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct eng_options o = {.rados = &place, .clock = &clock_real};
    struct eng_verify v = {.found = note_fault, .named = take_record, .next_store = begin_store, .has = has};
    struct err e = {0};
    if (log_set_levels("error", &e)) abort();
    bool none_dropped = fill(data, size);
    if (eng_verify_rados(&v, &place, &e)) assert(e.text[0]);
    struct eng *eng = eng_open(&o, &e);
    assert(eng || e.text[0]);
    if (!eng) return 0;
    check_innocent(eng, none_dropped);
    read_rows(eng);
    change_rows(eng);
    work_behind(eng);
    read_rows(eng);
    server_run(eng);
    if (eng_table_drop(eng, TABLE, &e) == -1) assert(e.text[0]);
    check_innocent(eng, none_dropped);
    eng_close(eng);
    twin_clear();
    return 0;
}
