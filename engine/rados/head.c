#include <assert.h>
#include <errno.h>

#include "engine/rados/head.h"
#include "engine/rados/omap_key.h"

#define DROPPED "dropped"
enum { TABLE_DIGITS = 5 };

int head_note_drop(struct rados *s, uint32_t table) {
    struct omap_write w = {.creates = true};
    struct buf key;
    buf_init(&key, 0);
    omap_key_number(&key, table, TABLE_DIGITS);
    omap_write_set(&w, buf_slice(&key), slice_str("d"));
    int rc = buf_failed(&key) ? -ENOMEM : omap_write_run(&w, &s->pool, DROPPED);
    omap_write_fini(&w);
    buf_fini(&key);
    return rc;
}

int head_was_dropped(struct rados *s, uint32_t table, struct arena *a) {
    struct omap_read r = {.pool = &s->pool};
    struct omap_pairs found = {0};
    struct buf key;
    buf_init(&key, 0);
    omap_key_number(&key, table, TABLE_DIGITS);
    buf_u8(&key, 0);
    if (buf_failed(&key)) return -ENOMEM;
    omap_read_add(&r, "", (const char *)key.p, 1); /* all keys have as many digits */
    int rc = omap_read_run(&r, DROPPED);
    if (rc == 0) rc = omap_read_take(&r, 0, a, &found);
    if (rc == 0) rc = found.n > 0;
    omap_read_fini(&r);
    omap_pairs_fini(&found);
    buf_fini(&key);
    return rc == -ENOENT ? 0 : rc;
}

static int read_once(struct rados *s, const struct shard *sh, struct arena *a, struct shard_head *head) {
    struct omap_read r = {.pool = &s->pool};
    struct omap_pairs pairs = {0};
    omap_read_add(&r, "", SHARD_HEAD_PREFIX, OMAP_READ_MAX);
    int rc = omap_read_run(&r, sh->name);
    if (rc == 0) rc = omap_read_take(&r, 0, a, &pairs);
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
    if ((rc = head_was_dropped(s, sh->id.table, a)) != 0) return rc < 0 ? rc : -ENOENT;
    if ((rc = make_root(s, sh)) < 0) return rc;
    if ((rc = head_was_dropped(s, sh->id.table, a)) == 0) return read_once(s, sh, a, head);
    assert(!sh->id.depth); /* Q6: only a root is made, and removed again */
    if (rc > 0 && (rc = pool_remove(&s->pool, sh->name)) == 0) rc = -ENOENT;
    return rc;
}
