#include <stdlib.h>

#include "base/random.h"
#include "engine/rados/background.h"
#include "engine/rados/batchlog.h"
#include "engine/rados/open.h"

struct rados *rados_open(const struct rados_options *o, struct err *e) {
    struct rados *s = calloc(1, sizeof(*s));
    if (!s) return err_null(err_nomem(e));
    s->o = *o;
    pthread_mutex_init(&s->drop_lock, NULL);
    pthread_mutex_init(&s->log_lock, NULL);
    if (!s->o.split_keys) s->o.split_keys = RADOS_SPLIT_KEYS;
    if (!s->o.split_bytes) s->o.split_bytes = RADOS_SPLIT_BYTES;
    if (!s->o.max_keys) s->o.max_keys = RADOS_MAX_KEYS;
    if (!s->o.max_bytes) s->o.max_bytes = RADOS_MAX_BYTES;
    if (shard_map_init(&s->shards) < 0) {
        err_nomem(e);
        goto free_store;
    }
    while (!s->o.incarnation)
        if (random_bytes(&s->o.incarnation, sizeof(s->o.incarnation), e) < 0) goto fini_shards;
    if (pool_open(&s->pool, &s->o.pool, e) < 0) goto fini_shards;
    if (batchlog_open(s, e) < 0) goto close_pool;
    if (background_start(s, e) == 0) return s;
    batchlog_close(s);
close_pool:
    pool_close(&s->pool);
fini_shards:
    shard_map_fini(&s->shards);
free_store:
    pthread_mutex_destroy(&s->drop_lock);
    pthread_mutex_destroy(&s->log_lock);
    free(s);
    return NULL;
}

void rados_close(struct rados *s) {
    background_stop(s);
    batchlog_close(s);
    pool_close(&s->pool);
    shard_map_fini(&s->shards);
    pthread_mutex_destroy(&s->drop_lock);
    pthread_mutex_destroy(&s->log_lock);
    free(s);
}
