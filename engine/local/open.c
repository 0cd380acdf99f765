/* Opening and closing the local store. */
#include <stdlib.h>

#include "engine/local/cache.h"
#include "engine/local/history.h"
#include "engine/local/local.h"
#include "engine/local/table.h"
#include "engine/rows/key.h"

static int load_mark(void *arg, struct slice key, struct slice value, struct err *e) {
    (void)value, (void)e;
    struct local *own = arg;
    if (engi_horizon_load(&own->newest, key) || engi_horizon_load(&own->assigned, key)) return 0;
    struct local_table *t = key.n == ENGI_MARK_RECORD ? local_table(own, load_u32(key.p + 4)) : NULL;
    uint16_t place = t ? load_u16(key.p + 8) : 0;
    if (!t || place >= ENGI_MARKS * ENGI_BUCKETS) return 0;
    if (place == engi_mark_place(ENGI_MARK_OLD_ROWS, 0)) {
        for (uint16_t i = 0; i < ENGI_BUCKETS; i++)
            engi_mark_put(t->marks.set, engi_mark_place(ENGI_MARK_ROWS, i), true);
        return 0;
    }
    engi_mark_put(t->marks.set, place, true);
    engi_mark_put(t->marks.recorded, place, true);
    return 0;
}

int engi_load_marks(struct local *own, struct err *e) {
    struct engi_keys all;
    engi_keys_of(&all, 0, ENGI_TABLE_MARKS);
    return kv_scan(own->kv, NULL, all.from, all.to, load_mark, own, e);
}

int local_open(struct eng *eng, const struct eng_options *o, struct err *e) {
    struct local *own = calloc(1, sizeof(*own));
    if (!own) return err_nomem(e);
    if (engi_histories_init(&own->histories, e)) {
        free(own);
        return -1;
    }
    own->eng = eng;
    eng->store.own = own;
    eng->store.ops = &local_store_ops;
    pthread_rwlock_init(&own->whole, NULL);
    pthread_mutex_init(&own->named_lock, NULL);
    engi_guards_init(&own->guards);
    for (int i = 0; i < ENGI_COMMIT_LOCKS; i++) pthread_rwlock_init(&own->commit_locks.of[i].lock, NULL);
    engi_horizon_init(&own->newest, ENGI_HORIZON_NEWEST, ENGI_HORIZON_STEP);
    engi_horizon_init(&own->assigned, ENGI_HORIZON_CLOCK, ENGI_CLOCK_STEP);
    own->kv_options = (struct kv_options){.data_dir = o->data_dir,
                                          .damage = o->cut_damage ? KV_DAMAGE_CUT : KV_DAMAGE_REFUSE,
                                          .write_through = o->durability != ENG_FSYNC,
                                          .block_cache_bytes = o->block_cache_bytes,
                                          .memtable_bytes = o->memtable_bytes,
                                          .memtables = ENG_MEMTABLES,
                                          .background_jobs = o->background_jobs,
                                          .merge = eng_row_merge,
                                          .prefix_len = engi_prefix_len,
                                          .near_len = ENGI_KEY_NEAR};
    own->kv = kv_open(&own->kv_options, e);
    if (!own->kv) return -1;
    own->cache = engi_cache_new(o->row_cache_bytes); /* without memory for it, the store works without it */
    if (engi_load_marks(own, e)) return -1;
    if (own->assigned.opened != INT64_MIN)
        engi_write_clock_start(&eng->write_clock, own->assigned.opened, clock_wall_us(eng->clock));
    return 0;
}

void local_close(struct store *s) {
    struct local *own = local_of(s);
    if (own->retired) kv_close(own->retired);
    if (own->kv) kv_close(own->kv);
    pthread_rwlock_destroy(&own->whole);
    pthread_mutex_destroy(&own->named_lock);
    engi_guards_fini(&own->guards);
    for (int i = 0; i < ENGI_COMMIT_LOCKS; i++) pthread_rwlock_destroy(&own->commit_locks.of[i].lock);
    engi_histories_fini(&own->histories);
    engi_cache_free(own->cache);
    free(own);
}
