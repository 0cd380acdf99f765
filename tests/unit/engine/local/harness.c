#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/table.h"
#include "tests/unit/engine/local/harness.h"

void open_engine(struct world *w, size_t bytes) {
    w->options.row_cache_bytes = bytes;
    world_open(w);
    eng_table_set(w->eng, TABLE, GC_GRACE);
}

struct world *cached_world_new(const char *store, size_t bytes) {
    struct world *w = world_new(store, 1000, &(struct eng_options){.durability = ENG_PERIODIC,
                                                                   .memtable_bytes = 1 << 20,
                                                                   .block_cache_bytes = 1 << 20,
                                                                   .row_cache_bytes = bytes});
    eng_table_set(w->eng, TABLE, GC_GRACE);
    return w;
}

int setup_memory(void **state) { return *state = cached_world_new("memory", LARGE), 0; }
int setup_rocksdb(void **state) { return *state = cached_world_new("local", LARGE), 0; }
int setup_small(void **state) { return *state = cached_world_new("local", SMALL), 0; }

void delete_row_at(struct world *w, const char *ck, int64_t ts) {
    add_row_deletion(w, TABLE, "p", ck, ts);
    commit(w);
}
