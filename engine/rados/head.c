#include <errno.h>

#include "engine/rados/head.h"

static int read_once(struct rados *s, const struct shard *sh, struct arena *a, struct shard_head *head) {
    struct omap_read r = {.pool = &s->pool};
    struct omap_pairs pairs = {0};
    omap_read_add(&r, "", SHARD_HEAD_PREFIX, OMAP_READ_MAX);
    int rc = omap_read_run(&r, sh->name);
    if (rc == 0 && omap_read_take(&r, 0, a, &pairs) < 0) rc = -ENOMEM;
    omap_read_fini(&r);
    if (rc == 0 && shard_head_read(&pairs, a, head) < 0) rc = -EBADMSG;
    omap_pairs_fini(&pairs);
    return rc;
}

static int make_root(struct rados *s, const struct shard *sh) {
    struct omap_write w = {.creates = true, .exclusive = true};
    omap_write_set(&w, shard_state_key, shard_state_value(SHARD_OPEN));
    int rc = omap_write_run(&w, &s->pool, sh->name);
    omap_write_fini(&w);
    return rc == -EEXIST ? 0 : rc;
}

int head_read(struct rados *s, const struct shard *sh, bool creates, struct arena *a, struct shard_head *head) {
    int rc = read_once(s, sh, a, head);
    if (rc != -ENOENT || !creates || sh->id.depth) return rc;
    if ((rc = make_root(s, sh)) < 0) return rc;
    return read_once(s, sh, a, head);
}
