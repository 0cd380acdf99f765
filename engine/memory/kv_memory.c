/* The store of tests and of servers without a data folder: a skip list of versioned values under
 * one lock.
 *
 * Merges are done when they are written. A write makes versions with the next sequence, all or none
 * of them; an iterator sees those up to the sequence it began at. Versions that no iterator can see
 * any more are freed with the next write of their key, or when snapshots end. Several handles may
 * share one store (kv_memory_share), and each is notified of the writes of the others.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/fault.h"
#include "engine/kv.h"

enum { LEVELS = 16, WATCHES_MAX = 16 };

struct version {
    struct version *older;
    uint64_t seq;
    bool deleted;
    struct buf value;
};

struct node {
    struct slice key;
    struct version *newest;
    struct node *prev; /* on the lowest level; the head is a node without a key */
    struct node *garbage_next;
    bool garbage; /* on the store's list of nodes with versions that only snapshots see */
    struct node *next[];
};

struct watch {
    const void *who; /* the handle */
    struct buf lower, upper;
    kv_notice_fn fn;
    void *arg;
};

struct content {
    pthread_mutex_t lock;
    unsigned refs;
    struct node *head;
    uint64_t random;
    uint64_t seq; /* of the newest write */
    struct kv_snapshot *snapshots;
    struct node *garbage;
    size_t n_garbage, sweep_at;
    struct watch watches[WATCHES_MAX];
    unsigned n_watches;
};

struct kv_snapshot {
    uint64_t seq;
    struct kv_snapshot *prev, *next;
};

struct memory {
    struct kv kv;
    struct kv_options o;
    struct content *s;
};

enum op { OP_PUT, OP_MERGE, OP_DELETE, OP_DELETE_RANGE, OP_EXPECT, OP_EXPECT_ABSENT };

/* Records [u8 op][u32 n][key][u32 n][value]. */
struct memory_batch {
    struct kv_batch batch;
    struct buf ops;
};

struct memory_iter {
    struct kv_iter it;
    struct content *s;
    struct kv_snapshot snapshot;
    enum eng_tier tier;
    struct slice lower, upper;
    struct buf key, value, sought;
};

static const struct kv_ops memory_ops;

static struct content *content_of(struct kv *kv) { return ((struct memory *)kv)->s; }

/* ---- the list ---- */

/* The first node with a key >= key, or NULL; before (may be NULL) gets the last node < key of each
 * level. */
static struct node *find(struct content *s, struct slice key, struct node **before) {
    struct node *n = s->head;
    for (int level = LEVELS - 1; level >= 0; level--) {
        while (n->next[level] && slice_cmp(n->next[level]->key, key) < 0) n = n->next[level];
        if (before) before[level] = n;
    }
    return n->next[0];
}

static struct node *find_exact(struct content *s, struct slice key) {
    struct node *n = find(s, key, NULL);
    return n && slice_eq(n->key, key) ? n : NULL;
}

static struct node *node_new(struct slice key, int levels) {
    struct node *n = calloc(1, sizeof(*n) + (size_t)levels * sizeof(n->next[0]) + key.n);
    if (!n) return NULL;
    uint8_t *p = (uint8_t *)&n->next[levels];
    if (key.n) memcpy(p, key.p, key.n);
    n->key = slice_of(p, key.n);
    return n;
}

static void versions_free(struct version *v) {
    for (struct version *older; v; v = older) {
        older = v->older;
        buf_fini(&v->value);
        free(v);
    }
}

static void node_free(struct node *n) {
    versions_free(n->newest);
    free(n);
}

static struct node *insert(struct content *s, struct slice key) {
    struct node *before[LEVELS], *n = find(s, key, before);
    if (n && slice_eq(n->key, key)) return n;
    s->random ^= s->random << 13, s->random ^= s->random >> 7, s->random ^= s->random << 17;
    int levels = 1;
    for (uint64_t bits = s->random; (bits & 3) == 0 && levels < LEVELS; bits >>= 2) levels++;
    if (!(n = node_new(key, levels))) return NULL;
    for (int i = 0; i < levels; i++) {
        n->next[i] = before[i]->next[i];
        before[i]->next[i] = n;
    }
    n->prev = before[0];
    if (n->next[0]) n->next[0]->prev = n;
    return n;
}

static void unlink_node(struct content *s, struct node *n) {
    struct node *before[LEVELS];
    find(s, n->key, before);
    for (int i = 0; i < LEVELS; i++)
        if (before[i]->next[i] == n) before[i]->next[i] = n->next[i];
    if (n->next[0]) n->next[0]->prev = n->prev;
    node_free(n);
}

/* ---- versions ---- */

/* The version of the key that a reader at seq sees; NULL: none. */
static const struct version *visible(const struct node *n, uint64_t seq) {
    const struct version *v = n->newest;
    while (v && v->seq > seq) v = v->older;
    return v && !v->deleted ? v : NULL;
}

static const struct version *current(const struct node *n) { return n ? visible(n, UINT64_MAX) : NULL; }

/* Takes over the value's memory, also on failure. */
static int set_version(struct node *n, uint64_t seq, bool deleted, struct buf *value, struct err *e) {
    struct version *v = n->newest && n->newest->seq == seq ? n->newest : calloc(1, sizeof(*v));
    if (!v) {
        buf_fini(value);
        return err_nomem(e);
    }
    buf_fini(&v->value);
    v->value = *value;
    v->deleted = deleted;
    if (v == n->newest) return 0;
    v->seq = seq;
    v->older = n->newest;
    n->newest = v;
    return 0;
}

static uint64_t oldest_snapshot(const struct content *s) {
    uint64_t seq = s->seq;
    for (const struct kv_snapshot *p = s->snapshots; p; p = p->next)
        if (p->seq < seq) seq = p->seq;
    return seq;
}

/* Frees the versions that no reader can see: those below the one that the oldest snapshot sees, and
 * the whole node if all snapshots see its deletion. */
static void trim(struct content *s, struct node *n, uint64_t oldest) {
    struct version *v = n->newest;
    while (v && v->seq > oldest) v = v->older;
    if (v) {
        versions_free(v->older);
        v->older = NULL;
    }
    bool gone = !n->newest || (n->newest->deleted && !n->newest->older && n->newest->seq <= oldest);
    if (n->garbage) return; /* the sweep comes to it */
    if (gone) {
        unlink_node(s, n);
    } else if (n->newest->older || n->newest->deleted) {
        n->garbage = true;
        n->garbage_next = s->garbage;
        s->garbage = n;
        s->n_garbage++;
    }
}

/* Trims all listed nodes when snapshots end; not every time, because many snapshots would each walk
 * the whole list. */
static void sweep(struct content *s) {
    enum { SWEEP_LEAST = 64 };
    if (!s->garbage || (s->snapshots && s->n_garbage < s->sweep_at)) return;
    struct node *n = s->garbage;
    uint64_t oldest = oldest_snapshot(s);
    s->garbage = NULL;
    s->n_garbage = 0;
    for (struct node *next; n; n = next) {
        next = n->garbage_next;
        n->garbage = false;
        trim(s, n, oldest);
    }
    s->sweep_at = s->n_garbage * 2 > SWEEP_LEAST ? s->n_garbage * 2 : SWEEP_LEAST;
}

static void snapshot_add(struct content *s, struct kv_snapshot *p, uint64_t seq) {
    *p = (struct kv_snapshot){.seq = seq, .next = s->snapshots};
    if (p->next) p->next->prev = p;
    s->snapshots = p;
}

static void snapshot_remove(struct content *s, struct kv_snapshot *p) {
    if (p->prev) p->prev->next = p->next;
    else s->snapshots = p->next;
    if (p->next) p->next->prev = p->prev;
    sweep(s);
}

static struct kv_snapshot *snapshot_new(struct kv *kv) {
    struct content *s = content_of(kv);
    struct kv_snapshot *p = malloc(sizeof(*p));
    if (!p) return NULL;
    pthread_mutex_lock(&s->lock);
    snapshot_add(s, p, s->seq);
    pthread_mutex_unlock(&s->lock);
    return p;
}

static void snapshot_free(struct kv *kv, struct kv_snapshot *p) {
    struct content *s = content_of(kv);
    pthread_mutex_lock(&s->lock);
    snapshot_remove(s, p);
    pthread_mutex_unlock(&s->lock);
    free(p);
}

/* ---- batches ---- */

static struct kv_batch *batch_new(struct kv *kv) {
    struct memory_batch *b = calloc(1, sizeof(*b));
    if (!b) return NULL;
    b->batch.ops = kv->ops;
    buf_init(&b->ops, 0);
    return &b->batch;
}

static void batch_free(struct kv_batch *b) {
    buf_fini(&((struct memory_batch *)b)->ops);
    free(b);
}

static int batch_op(struct kv_batch *b, enum op op, struct slice key, struct slice value) {
    struct buf *ops = &((struct memory_batch *)b)->ops;
    size_t start = ops->n;
    buf_u8(ops, (uint8_t)op);
    buf_u32(ops, (uint32_t)key.n);
    buf_put_slice(ops, key);
    buf_u32(ops, (uint32_t)value.n);
    buf_put_slice(ops, value);
    if (!buf_failed(ops)) return 0;
    ops->n = start;
    ops->failed = false;
    return -1;
}

static int batch_put(struct kv_batch *b, struct slice key, struct slice value) {
    return batch_op(b, OP_PUT, key, value);
}
static int batch_merge(struct kv_batch *b, struct slice key, struct slice operand) {
    return batch_op(b, OP_MERGE, key, operand);
}
static int batch_delete(struct kv_batch *b, struct slice key) { return batch_op(b, OP_DELETE, key, slice_of("", 0)); }
static int batch_delete_range(struct kv_batch *b, struct slice from, struct slice to) {
    return batch_op(b, OP_DELETE_RANGE, from, to);
}
static int batch_expect(struct kv_batch *b, struct slice key, const struct slice *value) {
    return value ? batch_op(b, OP_EXPECT, key, *value) : batch_op(b, OP_EXPECT_ABSENT, key, slice_of("", 0));
}

static void batch_clear(struct kv_batch *b) { buf_clear(&((struct memory_batch *)b)->ops, 1 << 20); }

struct op_record {
    enum op op;
    struct slice key, value; /* of a range: its ends */
};

static bool next_op(struct rd *r, struct op_record *o) {
    if (!rd_left(r)) return false;
    o->op = rd_u8(r);
    o->key = rd_bytes(r, rd_u32(r));
    o->value = rd_bytes(r, rd_u32(r));
    return true;
}

/* ---- writes; the lock is held ---- */

static int put_value(struct memory *m, const struct op_record *o, uint64_t seq, struct err *e) {
    struct node *n = insert(m->s, o->key);
    if (!n) return err_nomem(e);
    const struct version *before = o->op == OP_MERGE ? current(n) : NULL;
    struct buf out;
    buf_init(&out, 0);
    bool damaged = before && m->o.merge(m->o.arg, buf_slice(&before->value), o->value, &out);
    if (!before) buf_put_slice(&out, o->value);
    if (!damaged && !buf_failed(&out)) return set_version(n, seq, false, &out, e);
    buf_fini(&out);
    return damaged ? err_set(e, ERR_SERVER, "a stored row is damaged") : err_nomem(e);
}

static int delete_node(struct node *n, uint64_t seq, struct err *e) {
    struct buf none;
    buf_init(&none, 0);
    return current(n) ? set_version(n, seq, true, &none, e) : 0;
}

static int delete_range(struct content *s, struct slice from, struct slice to, uint64_t seq, struct err *e) {
    int rc = 0;
    for (struct node *n = find(s, from, NULL); n && !rc && slice_cmp(n->key, to) < 0; n = n->next[0])
        rc = delete_node(n, seq, e);
    return rc;
}

static bool holds(struct content *s, const struct op_record *o) {
    const struct version *v = current(find_exact(s, o->key));
    if (o->op == OP_EXPECT_ABSENT) return !v;
    return v && slice_eq(buf_slice(&v->value), o->value);
}

static bool conditions_hold(struct content *s, struct slice ops) {
    struct rd r = rd_of(ops);
    struct op_record o;
    while (next_op(&r, &o))
        if ((o.op == OP_EXPECT || o.op == OP_EXPECT_ABSENT) && !holds(s, &o)) return false;
    return true;
}

static int apply(struct memory *m, struct slice ops, uint64_t seq, struct err *e) {
    struct rd r = rd_of(ops);
    struct op_record o;
    int rc = 0;
    while (!rc && next_op(&r, &o)) {
        if (o.op == OP_PUT || o.op == OP_MERGE) rc = put_value(m, &o, seq, e);
        else if (o.op == OP_DELETE_RANGE) rc = delete_range(m->s, o.key, o.value, seq, e);
        else if (o.op == OP_DELETE && find_exact(m->s, o.key)) rc = delete_node(find_exact(m->s, o.key), seq, e);
    }
    return rc;
}

/* Removes the versions that a failed write has made with its sequence, or frees those that a
 * successful write has replaced. */
static void settle_node(struct content *s, struct node *n, uint64_t failed_seq, uint64_t oldest) {
    struct version *v = n->newest;
    if (v && v->seq == failed_seq) {
        n->newest = v->older;
        v->older = NULL;
        versions_free(v);
    }
    trim(s, n, oldest);
}

static void settle_range(struct content *s, struct slice from, struct slice to, uint64_t failed_seq) {
    uint64_t oldest = oldest_snapshot(s);
    for (struct node *n = find(s, from, NULL), *next; n && slice_cmp(n->key, to) < 0; n = next) {
        next = n->next[0];
        settle_node(s, n, failed_seq, oldest);
    }
}

static void settle_ops(struct content *s, struct slice ops, uint64_t failed_seq) {
    struct rd r = rd_of(ops);
    struct op_record o;
    uint64_t oldest = oldest_snapshot(s);
    while (next_op(&r, &o)) {
        struct node *n = o.op == OP_DELETE_RANGE ? NULL : find_exact(s, o.key);
        if (o.op == OP_DELETE_RANGE) settle_range(s, o.key, o.value, failed_seq);
        else if (n) settle_node(s, n, failed_seq, oldest);
    }
}

static bool touches(const struct watch *w, const struct op_record *o) {
    if (o->op == OP_EXPECT || o->op == OP_EXPECT_ABSENT) return false;
    struct slice last = o->op == OP_DELETE_RANGE ? o->value : o->key;
    return slice_cmp(o->key, buf_slice(&w->upper)) < 0 && slice_cmp(last, buf_slice(&w->lower)) >= 0;
}

static void notify(struct memory *m, struct slice ops) {
    for (unsigned i = 0; i < m->s->n_watches; i++) {
        const struct watch *w = &m->s->watches[i];
        struct rd r = rd_of(ops);
        struct op_record o;
        bool touched = false;
        while (w->who != m && !touched && next_op(&r, &o)) touched = touches(w, &o);
        if (touched) w->fn(w->arg);
    }
}

static int write_ops(struct memory *m, struct slice ops, struct err *e) {
    struct content *s = m->s;
    pthread_mutex_lock(&s->lock);
    int rc = conditions_hold(s, ops) ? apply(m, ops, s->seq + 1, e) : KV_CHANGED;
    if (rc == 0) s->seq++;
    if (rc != KV_CHANGED) settle_ops(s, ops, s->seq + 1); /* after a successful write no version has that sequence */
    if (rc == 0) notify(m, ops);
    pthread_mutex_unlock(&s->lock);
    return rc;
}

static int write_batch(struct kv *kv, struct kv_batch *batch, bool patience, struct err *e) {
    (void)patience;
    if (fault_hit(FAULT_KV_BUSY)) return KV_BUSY;
    if (fault_hit(FAULT_KV_WRITE)) return err_set(e, ERR_SERVER, "the store cannot be written: injected fault");
    return write_ops((struct memory *)kv, buf_slice(&((struct memory_batch *)batch)->ops), e);
}

/* ---- loads: a batch that is written at the end ---- */

struct memory_load {
    struct kv_load load;
    struct kv *kv;
    struct kv_batch *batch;
};

static struct kv_load *load_new(struct kv *kv, struct err *e) {
    struct memory_load *l = calloc(1, sizeof(*l));
    if (l && (l->batch = batch_new(kv))) {
        l->load.ops = kv->ops;
        l->kv = kv;
        return &l->load;
    }
    free(l);
    err_nomem(e);
    return NULL;
}

static int load_add(struct kv_load *load, struct slice key, struct slice value, struct err *e) {
    return batch_put(((struct memory_load *)load)->batch, key, value) ? err_nomem(e) : 0;
}

static int load_finish(struct kv_load *load, struct err *e) {
    struct memory_load *l = (struct memory_load *)load;
    return kv_write_patiently(l->kv, l->batch, e) ? -1 : 0;
}

static void load_free(struct kv_load *load) {
    batch_free(((struct memory_load *)load)->batch);
    free(load);
}

static int drop_range(struct kv *kv, struct slice from, struct slice to, struct err *e) {
    struct kv_batch *b = batch_new(kv);
    int rc = b && !batch_delete_range(b, from, to)
                 ? write_ops((struct memory *)kv, buf_slice(&((struct memory_batch *)b)->ops), e)
                 : err_nomem(e);
    if (b) batch_free(b);
    return rc;
}

static int save(struct kv *kv, const char *folder, struct err *e) {
    (void)kv, (void)folder;
    return err_set(e, ERR_INVALID, "States are saved in the data folder, and this server has none");
}

static void retire(struct kv *kv) { (void)kv; }

static uint32_t iterators(const struct kv *kv) {
    (void)kv;
    return 0;
}

static int backup(struct kv *kv, const char *folder, uint32_t keep, struct eng_backup *out, struct err *e) {
    (void)kv, (void)folder, (void)keep, (void)out;
    return err_set(e, ERR_CONFIG, "there is nothing to back up: this server keeps everything in memory");
}

static uint64_t bytes(struct kv *kv, struct slice from, struct slice to) {
    (void)kv, (void)from, (void)to;
    return 0; /* there are no files */
}

/* ---- reads ---- */

static int copy_value(const struct version *v, struct kv_value *value, struct err *e) {
    value->handle = malloc(v->value.n + 1);
    if (!value->handle) return err_nomem(e);
    if (v->value.n) memcpy(value->handle, v->value.p, v->value.n);
    value->bytes = slice_of(value->handle, v->value.n);
    return 1;
}

static int get(struct kv *kv, enum eng_tier tier, struct slice key, struct kv_value *value, struct err *e) {
    struct content *s = content_of(kv);
    if (fault_hit(FAULT_KV_READ)) return err_set(e, ERR_SERVER, "the store cannot be read: injected fault");
    if (kv_is_cold(tier)) return KV_INCOMPLETE;
    pthread_mutex_lock(&s->lock);
    const struct version *v = current(find_exact(s, key));
    int rc = v ? copy_value(v, value, e) : 0;
    pthread_mutex_unlock(&s->lock);
    return rc;
}

static void release(struct kv *kv, struct kv_value *value) {
    (void)kv;
    free(value->handle);
}

/* The node at which the move begins, visible or not. */
static struct node *target(struct memory_iter *it, enum kv_move move, struct slice key) {
    struct node *n;
    bool back = move == KV_SEEK_BACK;
    if (move == KV_SEEK && it->lower.p && slice_cmp(key, it->lower) < 0) key = it->lower;
    if (back && it->upper.p && slice_cmp(key, it->upper) >= 0) key = it->upper;
    n = find(it->s, key, NULL);
    bool exact = n && slice_eq(n->key, key);
    if (move == KV_NEXT && exact) return n->next[0];
    bool inside = !it->upper.p || slice_cmp(key, it->upper) < 0;
    if (move == KV_PREV || (back && !(exact && inside))) {
        if (n) return n->prev;
        for (n = it->s->head; n->next[0];) n = n->next[0];
    }
    return n;
}

static bool in_bounds(const struct memory_iter *it, const struct node *n) {
    return n && n != it->s->head && (!it->lower.p || slice_cmp(n->key, it->lower) >= 0) &&
           (!it->upper.p || slice_cmp(n->key, it->upper) < 0);
}

static bool stand_on(struct memory_iter *it, enum kv_move move, struct slice sought) {
    bool back = move == KV_PREV || move == KV_SEEK_BACK;
    const struct version *v = NULL;
    struct node *n = target(it, move, sought);
    while (in_bounds(it, n) && !(v = visible(n, it->snapshot.seq))) n = back ? n->prev : n->next[0];
    if (!v) return false;
    buf_clear(&it->key, 4096);
    buf_clear(&it->value, 65536);
    buf_put_slice(&it->key, n->key);
    buf_put_slice(&it->value, buf_slice(&v->value));
    return true;
}

static int iter_move(struct kv_iter *iter, enum kv_move move, struct slice key, struct err *e) {
    struct memory_iter *it = (struct memory_iter *)iter;
    if (fault_hit(FAULT_KV_READ)) return err_set(e, ERR_SERVER, "the store cannot be read: injected fault");
    if (kv_is_cold(it->tier)) return KV_INCOMPLETE;
    buf_clear(&it->sought, 4096);
    buf_put_slice(&it->sought, move == KV_SEEK || move == KV_SEEK_BACK ? key : buf_slice(&it->key));
    pthread_mutex_lock(&it->s->lock);
    bool on = stand_on(it, move, buf_slice(&it->sought));
    pthread_mutex_unlock(&it->s->lock);
    if (buf_failed(&it->key) || buf_failed(&it->value) || buf_failed(&it->sought)) return err_nomem(e);
    iter->key = buf_slice(&it->key);
    iter->value = buf_slice(&it->value);
    return kv_iter_lend(iter, on, e);
}

static void iter_free(struct kv_iter *iter) {
    struct memory_iter *it = (struct memory_iter *)iter;
    (void)kv_iter_lend(iter, 0, NULL);
    pthread_mutex_lock(&it->s->lock);
    snapshot_remove(it->s, &it->snapshot);
    pthread_mutex_unlock(&it->s->lock);
    buf_fini(&it->key);
    buf_fini(&it->value);
    buf_fini(&it->sought);
    free(it);
}

static const struct kv_iter_ops iter_ops = {.iter_move = iter_move, .iter_free = iter_free};

static struct kv_iter *iter_new(struct kv *kv, const struct kv_iter_spec *spec, struct err *e) {
    struct memory_iter *it = calloc(1, sizeof(*it));
    if (!it) return err_nomem(e), NULL;
    *it = (struct memory_iter){
        .it.ops = &iter_ops, .s = content_of(kv), .tier = spec->tier, .lower = spec->lower, .upper = spec->upper};
    buf_init(&it->key, 0);
    buf_init(&it->value, 0);
    buf_init(&it->sought, 0);
    pthread_mutex_lock(&it->s->lock);
    snapshot_add(it->s, &it->snapshot, spec->snapshot ? spec->snapshot->seq : it->s->seq);
    pthread_mutex_unlock(&it->s->lock);
    return &it->it;
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
static void synced(struct kv *kv) { (void)kv; }
static void tidy(struct kv *kv, uint64_t deleted) { (void)kv, (void)deleted; }

/* Applies the compaction filter to the node's value; the result becomes a version with the
 * sequence. */
static int filter_node(struct memory *m, struct node *n, uint64_t seq, struct err *e) {
    const struct version *v = current(n);
    struct buf out;
    buf_init(&out, 0);
    enum kv_verdict verdict = v ? m->o.filter(m->o.arg, n->key, buf_slice(&v->value), &out) : KV_KEEP;
    if (verdict == KV_CHANGE && !buf_failed(&out)) return set_version(n, seq, false, &out, e);
    bool failed = verdict == KV_CHANGE;
    buf_fini(&out);
    if (failed) return err_nomem(e);
    return verdict == KV_REMOVE ? delete_node(n, seq, e) : 0;
}

static int compact(struct kv *kv, struct err *e) {
    struct memory *m = (struct memory *)kv;
    struct content *s = m->s;
    int rc = 0;
    if (!m->o.filter) return 0;
    pthread_mutex_lock(&s->lock);
    for (struct node *n = s->head->next[0]; n && !rc; n = n->next[0]) rc = filter_node(m, n, s->seq + 1, e);
    if (rc == 0) s->seq++;
    uint64_t oldest = oldest_snapshot(s);
    for (struct node *n = s->head->next[0], *next; n; n = next) {
        next = n->next[0];
        settle_node(s, n, s->seq + 1, oldest);
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

int kv_memory_watch(struct kv *kv, struct slice lower, struct slice upper, kv_notice_fn fn, void *arg,
                    struct err *e) {
    struct content *s = content_of(kv);
    pthread_mutex_lock(&s->lock);
    struct watch *w = s->n_watches < WATCHES_MAX ? &s->watches[s->n_watches] : NULL;
    if (w) {
        *w = (struct watch){.who = kv, .fn = fn, .arg = arg};
        buf_init(&w->lower, 0);
        buf_init(&w->upper, 0);
        buf_put_slice(&w->lower, lower);
        buf_put_slice(&w->upper, upper);
        s->n_watches++;
    }
    pthread_mutex_unlock(&s->lock);
    return w ? 0 : err_set(e, ERR_SERVER, "the store has too many watchers");
}

static void watch_fini(struct watch *w) {
    buf_fini(&w->lower);
    buf_fini(&w->upper);
}

static void unwatch_all(struct content *s, const struct kv *kv) {
    unsigned kept = 0;
    for (unsigned i = 0; i < s->n_watches; i++) {
        if (s->watches[i].who == kv) watch_fini(&s->watches[i]);
        else s->watches[kept++] = s->watches[i];
    }
    s->n_watches = kept;
}

static void close_store(struct kv *kv) {
    struct content *s = content_of(kv);
    pthread_mutex_lock(&s->lock);
    unwatch_all(s, kv);
    bool last = --s->refs == 0;
    pthread_mutex_unlock(&s->lock);
    free(kv);
    if (!last) return;
    for (struct node *n = s->head, *next; n; n = next) {
        next = n->next[0];
        node_free(n);
    }
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static struct kv *handle_new(struct content *s, const struct kv_options *o, struct err *e) {
    struct memory *m = calloc(1, sizeof(*m));
    if (!m) return err_nomem(e), NULL;
    m->kv.ops = &memory_ops;
    m->o = *o;
    m->s = s;
    return &m->kv;
}

static struct kv *checkpoint(struct kv *kv, const struct kv_options *o, struct err *e) {
    struct content *s = content_of(kv);
    struct kv *copy = kv_memory_open(o, e);
    int rc = copy ? 0 : -1;
    pthread_mutex_lock(&s->lock);
    for (struct node *n = s->head->next[0]; n && !rc; n = n->next[0]) {
        const struct version *v = current(n);
        if (v)
            rc = put_value((struct memory *)copy,
                           &(struct op_record){.op = OP_PUT, .key = n->key, .value = buf_slice(&v->value)}, 0, e);
    }
    pthread_mutex_unlock(&s->lock);
    if (!rc) return copy;
    if (copy) close_store(copy);
    return NULL;
}

static const struct kv_ops memory_ops = {
    .close = close_store,
    .get = get,
    .release = release,
    .snapshot_new = snapshot_new,
    .snapshot_free = snapshot_free,
    .iter_new = iter_new,
    .batch_new = batch_new,
    .batch_free = batch_free,
    .batch_put = batch_put,
    .batch_merge = batch_merge,
    .batch_delete = batch_delete,
    .batch_delete_range = batch_delete_range,
    .batch_expect = batch_expect,
    .batch_clear = batch_clear,
    .write = write_batch,
    .has_room = has_room,
    .ailing = ailing,
    .sync = sync_log,
    .synced = synced,
    .heal = heal,
    .settle = settle,
    .tidy = tidy,
    .load_new = load_new,
    .load_add = load_add,
    .load_finish = load_finish,
    .load_free = load_free,
    .save = save,
    .retire = retire,
    .iterators = iterators,
    .backup = backup,
    .bytes = bytes,
    .drop_range = drop_range,
    .compact = compact,
    .checkpoint = checkpoint,
};

struct kv *kv_memory_open(const struct kv_options *o, struct err *e) {
    struct content *s = calloc(1, sizeof(*s));
    if (!s || !(s->head = node_new(slice_of("", 0), LEVELS))) {
        free(s);
        err_nomem(e);
        return NULL;
    }
    s->random = 0x9e3779b97f4a7c15;
    pthread_mutex_init(&s->lock, NULL);
    s->refs = 1;
    struct kv *kv = handle_new(s, o, e);
    if (kv) return kv;
    pthread_mutex_destroy(&s->lock);
    node_free(s->head);
    free(s);
    return NULL;
}

struct kv *kv_memory_share(struct kv *first, const struct kv_options *o, struct err *e) {
    struct content *s = content_of(first);
    struct kv *kv = handle_new(s, o, e);
    pthread_mutex_lock(&s->lock);
    if (kv) s->refs++;
    pthread_mutex_unlock(&s->lock);
    return kv;
}
