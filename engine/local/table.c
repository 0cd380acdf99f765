#include "engine/local/local.h"

#include <assert.h>

void local_table_init(void *table) {
    struct local_table *t = table;
    atomic_init(&t->as_of, INT64_MAX);
    engi_changed_all(t);
}

void engi_table_change_begin(struct local_table *t) {
    if (t) atomic_fetch_add(&t->generation, ((uint64_t)1 << 32) + 1);
}

void engi_table_change_end(struct local_table *t) {
    if (!t) return;
    uint64_t before = atomic_fetch_add(&t->generation, ((uint64_t)1 << 32) - 1);
    assert(engi_table_is_changing(before));
}

/* Nothing that this engine has written or read says anything of the table any more: every bucket
 * may hold deletions, every row may have more columns. */
void engi_table_forget(struct local_table *t) {
    for (int i = 0; i < ENGI_MARK_WORDS; i++) {
        atomic_store(&t->marks.set[i], UINT64_MAX);
        atomic_store(&t->marks.touched[i], UINT64_MAX);
    }
    atomic_store(&t->columns, UINT32_MAX);
}

void engi_changed_all(struct local_table *t) {
    for (uint32_t i = 0; i < ENGI_BUCKETS / 64; i++) atomic_store(&t->changed[i], ~(uint64_t)0);
}

/* ---- changed buckets: in a store with several writers, all ---- */

bool eng_changed_take(struct eng *eng, uint32_t table, uint16_t bucket) {
    struct local *own = local_if(eng);
    if (!own) return true;
    struct engi_section section = engi_enter(&eng->epoch);
    struct local_table *t = local_table(own, table);
    uint64_t bit = 1ull << (bucket % 64);
    bool changed = !t || atomic_fetch_and(&t->changed[bucket / 64], ~bit) & bit;
    engi_leave(&eng->epoch, section);
    return changed;
}

void eng_changed_put(struct eng *eng, uint32_t table, uint16_t bucket) {
    struct local *own = local_if(eng);
    if (!own) return;
    struct engi_section section = engi_enter(&eng->epoch);
    engi_changed(local_table(own, table), bucket);
    engi_leave(&eng->epoch, section);
}
