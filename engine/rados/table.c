#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "engine/rados/pieces.h"

/* Called for a shard after the shards that it was split into. Returns 0, or a negative error number. */
typedef int (*shard_fn)(void *arg, const struct shard *sh, const struct shard_head *head);

/* Visits the halves of a shard first. begun: also those that an unfinished split has made so far. Then the rows
 * of the whole may be in the halves, too. */
static int each_shard(struct rados *s, const struct shard_id *id, bool begun, shard_fn fn, void *arg) {
    struct arena a;
    struct shard_head head;
    struct shard *sh = shard_map_get(&s->shards, id);
    if (!sh) return -ENOMEM;
    arena_init(&a, 1 << 10, 0);
    int rc = head_read(s, sh, false, &a, &head);
    bool has_halves = rc == 0 && id->depth < SHARD_DEPTH_MAX &&
                      (head.state == SHARD_SPLIT || (begun && head.state != SHARD_OPEN));
    for (unsigned i = 0; rc == 0 && has_halves && i < 2; i++) {
        struct shard_id half = shard_half(id, i);
        rc = each_shard(s, &half, begun, fn, arg);
    }
    if (rc == 0) rc = fn(arg, sh, &head);
    arena_fini(&a);
    return rc == -ENOENT ? 0 : rc;
}

static int remove_object(void *arg, const char *name) {
    struct rados *s = arg;
    int rc = pool_remove(&s->pool, name);
    return rc == -ENOENT ? 0 : rc;
}

static int remove_shard(void *arg, const struct shard *sh, const struct shard_head *head) {
    int rc = head->has_pieces ? pieces_each(arg, sh, remove_object, arg) : 0;
    return rc < 0 ? rc : remove_object(arg, sh->name);
}

/* Reads the table from the name of a shard's or a piece's object. Returns -1 for any other name. */
static int table_of(const char *name, uint32_t *table) {
    struct shard_id id;
    uint64_t piece, number;
    if (shard_name_read(name, &id) < 0) return piece_name_read(name, table, &piece, &number);
    *table = id.table;
    return 0;
}

struct orphans {
    struct rados *s;
    uint32_t table;
};

static int remove_orphan(void *arg, const char *name) {
    const struct orphans *o = arg;
    uint32_t table;
    return table_of(name, &table) == 0 && table == o->table ? remove_object(o->s, name) : 0;
}

int table_drop(struct rados *s, uint32_t table, struct err *e) {
    struct shard_id root = {.table = table};
    struct arena a;
    struct shard_head head;
    int rc = -ENOMEM;
    pthread_mutex_lock(&s->drop_lock);
    struct shard *sh = shard_map_get(&s->shards, &root);
    if (sh) {
        arena_init(&a, 1 << 10, 0);
        rc = head_note_drop(s, table);
        if (rc == 0) rc = head_read(s, sh, false, &a, &head);
        arena_fini(&a);
        /* Without a root there may be halves that a late split has made, and pieces. */
        if (rc == -ENOENT) rc = pool_each_object(&s->pool, remove_orphan, &(struct orphans){.s = s, .table = table});
        else if (rc == 0) rc = each_shard(s, &root, true, remove_shard, s);
        shard_map_forget(&s->shards, table);
    }
    if (rc < 0) rc = sh ? pool_error(e, rc, POOL_WRITES, sh->name) : err_nomem(e);
    pthread_mutex_unlock(&s->drop_lock);
    return rc;
}

void table_forget(struct rados *s, uint32_t table) {
    pthread_mutex_lock(&s->drop_lock);
    shard_map_evict(&s->shards, table);
    pthread_mutex_unlock(&s->drop_lock);
}

struct size {
    struct rados *s;
    uint64_t keys, bytes;
};

static int add_piece(void *arg, const char *name) {
    struct size *size = arg;
    struct arena a;
    struct fetched f = {0};
    arena_init(&a, 1 << 10, 0);
    int rc = fetch_object(size->s, name, NULL, 0, &a, &f);
    if (rc == 0) {
        struct shard_counter sum = shard_sum(&f.head);
        size->keys += sum.keys;
        size->bytes += sum.bytes;
    }
    arena_fini(&a);
    return rc == -ENOENT ? 0 : rc;
}

static int add_shard(void *arg, const struct shard *sh, const struct shard_head *head) {
    struct size *size = arg;
    if (head->state != SHARD_OPEN && head->state != SHARD_FROZEN) return 0;
    struct shard_counter sum = shard_sum(head);
    size->keys += sum.keys;
    size->bytes += sum.bytes;
    return head->has_pieces ? pieces_each(size->s, sh, add_piece, size) : 0;
}

int table_size(struct rados *s, uint32_t table, uint64_t *keys, uint64_t *bytes, struct err *e) {
    struct size size = {.s = s};
    int rc = each_shard(s, &(struct shard_id){.table = table}, false, add_shard, &size);
    *keys = size.keys;
    *bytes = size.bytes;
    return rc < 0 ? pool_error(e, rc, POOL_READS, "of a table") : 0;
}

struct tables {
    uint32_t *ids; /* one for each object, except that the same id does not follow itself */
    size_t n, cap;
};

static int note_table(void *arg, const char *name) {
    struct tables *t = arg;
    uint32_t table;
    if (table_of(name, &table) < 0) return 0;
    if (t->n && t->ids[t->n - 1] == table) return 0;
    if (array_room(&t->ids, t->n, &t->cap, sizeof(t->ids[0])) < 0) return -ENOMEM;
    t->ids[t->n++] = table;
    return 0;
}

int table_each(struct rados *s, eng_stored_fn fn, void *arg, struct err *e) {
    struct tables t = {0};
    int rc = pool_each_object(&s->pool, note_table, &t);
    if (rc < 0) rc = pool_error(e, rc, POOL_READS, "names");
    if (t.n) qsort(t.ids, t.n, sizeof(t.ids[0]), array_u32_order);
    for (size_t i = 0; rc == 0 && i < t.n; i++)
        if (!i || t.ids[i] != t.ids[i - 1]) rc = fn(arg, t.ids[i], e);
    free(t.ids);
    return rc;
}
