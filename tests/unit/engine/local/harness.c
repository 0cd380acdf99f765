#include "tests/unit/engine/local/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/murmur3.h"
#include "engine/table.h"

static int64_t read_clock(struct clock *c) { return ((struct test_clock *)c)->seconds * 1000000; }

void open_engine(struct world *w, size_t bytes) {
    struct eng_options o = {.data_dir = w->rocks ? w->path : NULL,
                            .durability = ENG_PERIODIC,
                            .clock = &w->clock.clock,
                            .memtable_bytes = 1 << 20,
                            .block_cache_bytes = 1 << 20,
                            .row_cache_bytes = bytes};
    w->eng = eng_open(&o, &w->e);
    if (!w->eng) fail_msg("%s", w->e.text);
    eng_table_set(w->eng, TABLE, GC_GRACE);
    w->batch = eng_batch_new(w->eng);
}

struct world *world_new(bool rocks, size_t bytes) {
    struct world *w = calloc(1, sizeof(*w));
    w->rocks = rocks;
    w->ts = 1000;
    w->seed = 88172645463325252u;
    w->clock = (struct test_clock){.clock = {.wall_us = read_clock, .mono_us = read_clock}, .seconds = 1000};
    strcpy(w->path, "/tmp/tally-cache-XXXXXX");
    if (rocks) assert_non_null(mkdtemp(w->path));
    arena_init(&w->arena, 4096, 0);
    buf_init(&w->text, 0);
    open_engine(w, bytes);
    return w;
}

int setup_memory(void **state) { return *state = world_new(false, LARGE), 0; }
int setup_rocksdb(void **state) { return *state = world_new(true, LARGE), 0; }
int setup_small(void **state) { return *state = world_new(true, SMALL), 0; }

int teardown(void **state) {
    struct world *w = *state;
    char command[96];
    arena_fini(&w->arena);
    buf_fini(&w->text);
    eng_batch_free(w->batch);
    eng_close(w->eng);
    snprintf(command, sizeof(command), "rm -rf %s", w->path);
    if (w->rocks && system(command)) return -1;
    free(w);
    return 0;
}

struct eng_part part_of(uint32_t table, const char *key) {
    return (struct eng_part){.table = table, .token = murmur3_token(slice_str(key)), .key = slice_str(key)};
}

void add_cell(struct eng_batch *b, const struct eng_part *part, enum eng_row_kind kind, const char *ck,
              struct eng_cell cell) {
    struct eng_row row;
    struct err e = {0};
    eng_row_init(&row, kind, slice_str(ck));
    row.cells = &cell;
    row.n_cells = 1;
    assert_int_equal(eng_batch_row(b, part, &row, NULL, &e), 0);
}

void commit(struct world *w) {
    uint64_t seq;
    if (eng_batch_commit(w->batch, &seq, &w->e)) fail_msg("%s", w->e.text);
}

void delete_row_at(struct world *w, const char *ck, int64_t ts) {
    struct eng_part part = part_of(TABLE, "p");
    struct eng_row row;
    eng_row_init(&row, ENG_ROW, slice_str(ck));
    row.del_ts = ts;
    row.del_at = w->clock.seconds;
    assert_int_equal(eng_batch_row(w->batch, &part, &row, NULL, &w->e), 0);
    commit(w);
}
