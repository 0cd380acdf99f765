/* The store of tests and of servers without a data folder: a skip list under one lock.
 *
 * Merges are done when they are written. An iterator copies the key and value it stands on, so it needs no snapshot to be
 * safe; unlike RocksDB's it sees what is written while it moves.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/fault.h"
#include "engine/kv.h"

enum { LEVELS = 16 };

struct node {
    struct slice key;
    struct buf value;
    struct node *prev; /* on the lowest level; the head is a node without a key */
    struct node *next[];
};

struct memory {
    struct kv kv;
    struct kv_options o;
    pthread_mutex_t lock;
    struct node *head;
    uint64_t random;
};

enum op { OP_PUT, OP_MERGE, OP_DELETE, OP_DELETE_RANGE };

/* Records [u8 op][u32 n][key][u32 n][value]. */
struct memory_batch {
    struct kv_batch batch;
    struct buf ops;
};

struct memory_iter {
    struct kv_iter it;
    struct memory *m;
    struct slice lower, upper;
    struct buf key, value, sought;
};

static const struct kv_ops memory_ops;

/* ---- the list ---- */

/* The first node with a key >= key, or NULL; before (may be NULL) gets the last node < key of each level. */
static struct node *find(struct memory *m, struct slice key, struct node **before) {
    struct node *n = m->head;
    for (int level = LEVELS - 1; level >= 0; level--) {
        while (n->next[level] && slice_cmp(n->next[level]->key, key) < 0) n = n->next[level];
        if (before) before[level] = n;
    }
    return n->next[0];
}

static struct node *node_new(struct slice key, int levels) {
    struct node *n = calloc(1, sizeof(*n) + (size_t)levels * sizeof(n->next[0]) + key.n);
    if (!n) return NULL;
    uint8_t *p = (uint8_t *)&n->next[levels];
    if (key.n) memcpy(p, key.p, key.n);
    n->key = slice_of(p, key.n);
    buf_init(&n->value, 0);
    return n;
}

static void node_free(struct node *n) {
    buf_fini(&n->value);
    free(n);
}

static struct node *insert(struct memory *m, struct slice key) {
    struct node *before[LEVELS], *n = find(m, key, before);
    if (n && slice_eq(n->key, key)) return n;
    m->random ^= m->random << 13, m->random ^= m->random >> 7, m->random ^= m->random << 17;
    int levels = 1;
    for (uint64_t bits = m->random; (bits & 3) == 0 && levels < LEVELS; bits >>= 2) levels++;
    if (!(n = node_new(key, levels))) return NULL;
    for (int i = 0; i < levels; i++) {
        n->next[i] = before[i]->next[i];
        before[i]->next[i] = n;
    }
    n->prev = before[0];
    if (n->next[0]) n->next[0]->prev = n;
    return n;
}

static void unlink_node(struct node *n, struct node **before) {
    for (int i = 0; i < LEVELS; i++)
        if (before[i]->next[i] == n) before[i]->next[i] = n->next[i];
    if (n->next[0]) n->next[0]->prev = n->prev;
    node_free(n);
}

/* Removes [from, to). */
static void erase(struct memory *m, struct slice from, struct slice to) {
    struct node *before[LEVELS], *n = find(m, from, before);
    while (n && slice_cmp(n->key, to) < 0) {
        struct node *next = n->next[0];
        unlink_node(n, before);
        n = next;
    }
}

static void erase_one(struct memory *m, struct slice key) {
    struct node *before[LEVELS], *n = find(m, key, before);
    if (n && slice_eq(n->key, key)) unlink_node(n, before);
}

/* ---- batches ---- */

static struct kv_batch *batch_new(struct kv *kv) {
    struct memory_batch *b = calloc(1, sizeof(*b));
    if (!b) return NULL;
    b->batch.ops = kv->ops;
    buf_init(&b->ops, 0);
    return &b->batch;
}

static void batch_free(struct kv_batch *batch) {
    struct memory_batch *b = (struct memory_batch *)batch;
    buf_fini(&b->ops);
    free(b);
}

static int record(struct kv_batch *batch, enum op op, struct slice key, struct slice value) {
    struct memory_batch *b = (struct memory_batch *)batch;
    buf_u8(&b->ops, (uint8_t)op);
    buf_u32(&b->ops, (uint32_t)key.n);
    buf_put_slice(&b->ops, key);
    buf_u32(&b->ops, (uint32_t)value.n);
    buf_put_slice(&b->ops, value);
    return buf_failed(&b->ops) ? -1 : 0;
}

static int batch_put(struct kv_batch *b, struct slice key, struct slice value) { return record(b, OP_PUT, key, value); }
static int batch_merge(struct kv_batch *b, struct slice key, struct slice operand) { return record(b, OP_MERGE, key, operand); }
static int batch_delete(struct kv_batch *b, struct slice key) { return record(b, OP_DELETE, key, slice_of("", 0)); }
static int batch_delete_range(struct kv_batch *b, struct slice from, struct slice to) {
    return record(b, OP_DELETE_RANGE, from, to);
}

static void batch_clear(struct kv_batch *batch) {
    struct memory_batch *b = (struct memory_batch *)batch;
    buf_clear(&b->ops, 1 << 20);
}

static int apply_value(struct memory *m, enum op op, struct slice key, struct slice value, struct err *e) {
    struct node *n = insert(m, key);
    if (!n) return err_nomem(e);
    struct buf out;
    buf_init(&out, 0);
    bool fresh = op == OP_PUT || n->value.n == 0;
    if (fresh) buf_put_slice(&out, value);
    bool damaged = !fresh && m->o.merge(m->o.arg, buf_slice(&n->value), value, &out) && !buf_failed(&out);
    if (damaged || buf_failed(&out)) {
        buf_fini(&out);
        if (!n->value.n) erase_one(m, key); /* it was made for this value */
        return damaged ? err_set(e, ERR_SERVER, "a stored row is damaged") : err_nomem(e);
    }
    buf_fini(&n->value);
    n->value = out;
    return 0;
}

static int write_batch(struct kv *kv, struct kv_batch *batch, bool patience, struct err *e) {
    struct memory *m = (struct memory *)kv;
    (void)patience;
    if (fault_hit(FAULT_KV_BUSY)) return KV_BUSY;
    if (fault_hit(FAULT_KV_WRITE)) return err_set(e, ERR_SERVER, "the store cannot be written: injected fault");
    struct rd r = rd_of(buf_slice(&((struct memory_batch *)batch)->ops));
    int rc = 0;
    pthread_mutex_lock(&m->lock);
    while (rd_left(&r) && !rc) {
        enum op op = rd_u8(&r);
        struct slice key = rd_bytes(&r, rd_u32(&r)), value = rd_bytes(&r, rd_u32(&r));
        if (op == OP_DELETE) erase_one(m, key);
        else if (op == OP_DELETE_RANGE) erase(m, key, value);
        else rc = apply_value(m, op, key, value, e);
    }
    pthread_mutex_unlock(&m->lock);
    return rc;
}

/* ---- reads ---- */

static int get(struct kv *kv, enum kv_tier tier, struct slice key, struct kv_value *value, struct err *e) {
    struct memory *m = (struct memory *)kv;
    (void)tier;
    if (fault_hit(FAULT_KV_READ)) return err_set(e, ERR_SERVER, "the store cannot be read: injected fault");
    int rc = 0;
    pthread_mutex_lock(&m->lock);
    struct node *n = find(m, key, NULL);
    if (n && slice_eq(n->key, key)) {
        value->handle = malloc(n->value.n + 1);
        rc = value->handle ? 1 : err_nomem(e);
        if (rc == 1 && n->value.n) memcpy(value->handle, n->value.p, n->value.n);
        value->bytes = slice_of(value->handle, n->value.n);
    }
    pthread_mutex_unlock(&m->lock);
    return rc;
}

static void release(struct kv *kv, struct kv_value *value) {
    (void)kv;
    free(value->handle);
}

static struct kv_iter *iter_new(struct kv *kv, const struct kv_iter_spec *spec, struct err *e) {
    struct memory_iter *it = calloc(1, sizeof(*it));
    if (!it) return err_nomem(e), NULL;
    *it = (struct memory_iter){.it.ops = kv->ops, .m = (struct memory *)kv, .lower = spec->lower, .upper = spec->upper};
    buf_init(&it->key, 0);
    buf_init(&it->value, 0);
    buf_init(&it->sought, 0);
    return &it->it;
}

static struct node *target(struct memory_iter *it, enum kv_move move, struct slice key) {
    struct node *n;
    bool back = move == KV_SEEK_BACK;
    if (move == KV_SEEK && it->lower.p && slice_cmp(key, it->lower) < 0) key = it->lower;
    if (back && it->upper.p && slice_cmp(key, it->upper) >= 0) key = it->upper;
    n = find(it->m, key, NULL);
    bool exact = n && slice_eq(n->key, key);
    if (move == KV_NEXT && exact) return n->next[0];
    bool inside = !it->upper.p || slice_cmp(key, it->upper) < 0;
    if (move == KV_PREV || (back && !(exact && inside))) {
        if (n) return n->prev;
        for (n = it->m->head; n->next[0];) n = n->next[0];
    }
    return n;
}

static int iter_move(struct kv_iter *iter, enum kv_move move, struct slice key, struct err *e) {
    struct memory_iter *it = (struct memory_iter *)iter;
    if (fault_hit(FAULT_KV_READ)) return err_set(e, ERR_SERVER, "the store cannot be read: injected fault");
    buf_clear(&it->sought, 4096);
    buf_put_slice(&it->sought, move == KV_SEEK || move == KV_SEEK_BACK ? key : buf_slice(&it->key));
    pthread_mutex_lock(&it->m->lock);
    struct node *n = target(it, move, buf_slice(&it->sought));
    bool on = n && n != it->m->head && (!it->lower.p || slice_cmp(n->key, it->lower) >= 0) &&
              (!it->upper.p || slice_cmp(n->key, it->upper) < 0);
    if (on) {
        buf_clear(&it->key, 4096);
        buf_clear(&it->value, 65536);
        buf_put_slice(&it->key, n->key);
        buf_put_slice(&it->value, buf_slice(&n->value));
    }
    pthread_mutex_unlock(&it->m->lock);
    if (buf_failed(&it->key) || buf_failed(&it->value) || buf_failed(&it->sought)) return err_nomem(e);
    iter->key = buf_slice(&it->key);
    iter->value = buf_slice(&it->value);
    return on;
}

static void iter_free(struct kv_iter *iter) {
    struct memory_iter *it = (struct memory_iter *)iter;
    buf_fini(&it->key);
    buf_fini(&it->value);
    buf_fini(&it->sought);
    free(it);
}

/* ---- the whole store ---- */

static int sync_log(struct kv *kv, bool to_disk, struct err *e) {
    (void)kv, (void)to_disk;
    return fault_hit(FAULT_KV_SYNC) ? err_set(e, ERR_SERVER, "the log cannot be synced: injected fault") : 0;
}

static bool has_room(struct kv *kv) {
    (void)kv;
    return true;
}

static bool ailing(struct kv *kv, char *why, size_t size) {
    (void)kv, (void)why, (void)size;
    return false;
}

static int heal(struct kv *kv, struct err *e) { return sync_log(kv, true, e); }

static void settle(struct kv *kv) { (void)kv; }

static int drop_range(struct kv *kv, struct slice from, struct slice to, struct err *e) {
    struct memory *m = (struct memory *)kv;
    (void)e;
    pthread_mutex_lock(&m->lock);
    erase(m, from, to);
    pthread_mutex_unlock(&m->lock);
    return 0;
}

static int compact(struct kv *kv, struct err *e) {
    struct memory *m = (struct memory *)kv;
    int rc = 0;
    pthread_mutex_lock(&m->lock);
    for (struct node *n = m->head->next[0], *next; n && !rc; n = next) {
        next = n->next[0];
        struct buf out;
        buf_init(&out, 0);
        enum kv_verdict v = m->o.filter ? m->o.filter(m->o.arg, n->key, buf_slice(&n->value), &out) : KV_KEEP;
        if (v == KV_CHANGE && buf_failed(&out)) rc = err_nomem(e);
        if (v == KV_CHANGE && !rc) {
            buf_fini(&n->value);
            n->value = out;
        } else {
            buf_fini(&out);
        }
        if (v == KV_REMOVE) erase_one(m, n->key);
    }
    pthread_mutex_unlock(&m->lock);
    return rc;
}

static void close_store(struct kv *kv) {
    struct memory *m = (struct memory *)kv;
    for (struct node *n = m->head, *next; n; n = next) {
        next = n->next[0];
        node_free(n);
    }
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static const struct kv_ops memory_ops = {
    .close = close_store, .get = get, .release = release, .iter_new = iter_new, .iter_move = iter_move, .iter_free = iter_free,
    .batch_new = batch_new, .batch_free = batch_free, .batch_put = batch_put, .batch_merge = batch_merge,
    .batch_delete = batch_delete, .batch_delete_range = batch_delete_range, .batch_clear = batch_clear, .write = write_batch, .has_room = has_room, .ailing = ailing,
    .sync = sync_log, .heal = heal, .settle = settle, .drop_range = drop_range, .compact = compact,
};

struct kv *kv_memory_open(const struct kv_options *o, struct err *e) {
    struct memory *m = calloc(1, sizeof(*m));
    if (!m || !(m->head = node_new(slice_of("", 0), LEVELS))) {
        free(m);
        err_nomem(e);
        return NULL;
    }
    m->kv.ops = &memory_ops;
    m->o = *o;
    m->random = 0x9e3779b97f4a7c15;
    pthread_mutex_init(&m->lock, NULL);
    return &m->kv;
}
