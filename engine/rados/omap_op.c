#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "engine/rados/omap_op.h"

/* ---- writes ---- */

static int pairs_add(struct omap_pairs *to, struct slice key, struct slice value) {
    if (array_room(&to->items, to->n, &to->cap, sizeof(to->items[0])) < 0) return -1;
    to->items[to->n++] = (struct omap_pair){.key = key, .value = value};
    return 0;
}

void omap_write_fini(struct omap_write *w) {
    omap_pairs_fini(&w->compares);
    omap_pairs_fini(&w->sets);
    omap_pairs_fini(&w->removes);
}

void omap_write_clear(struct omap_write *w) {
    w->compares.n = w->sets.n = w->removes.n = 0;
    w->clears = w->creates = w->exclusive = w->failed = false;
}

void omap_write_compare(struct omap_write *w, struct slice key, struct slice value) {
    if (pairs_add(&w->compares, key, value) < 0) w->failed = true;
}
void omap_write_set(struct omap_write *w, struct slice key, struct slice value) {
    assert(value.n); /* Q4 */
    if (pairs_add(&w->sets, key, value) < 0) w->failed = true;
}
void omap_write_remove(struct omap_write *w, struct slice key) {
    if (pairs_add(&w->removes, key, slice_of("", 0)) < 0) w->failed = true;
}

/* Pairs as the arrays that librados expects. */
struct columns {
    const char **keys, **values;
    size_t *key_n, *value_n;
};

static int columns_init(struct columns *c, const struct omap_pairs *p) {
    uint8_t *memory = malloc(p->n * 4 * sizeof(void *) + 1);
    if (!memory) return -1;
    _Static_assert(sizeof(size_t) == sizeof(void *), "one allocation for both");
    c->keys = (const char **)memory;
    c->values = c->keys + p->n;
    c->key_n = (size_t *)(c->values + p->n);
    c->value_n = c->key_n + p->n;
    for (size_t i = 0; i < p->n; i++) {
        c->keys[i] = (const char *)p->items[i].key.p;
        c->values[i] = (const char *)p->items[i].value.p;
        c->key_n[i] = p->items[i].key.n;
        c->value_n[i] = p->items[i].value.n;
    }
    return 0;
}

static int op_new(const struct omap_write *w, const struct librados *lib, void **out) {
    struct columns c;
    assert(w->failed || w->creates || w->sets.n || w->removes.n); /* Q1: none is empty */
    if (w->failed || !(*out = lib->create_write_op())) return -ENOMEM;
    if (w->creates) lib->write_op_create(*out, w->exclusive ? LIBRADOS_EXCLUSIVE : LIBRADOS_IDEMPOTENT, NULL);
    for (size_t i = 0; i < w->compares.n; i++) {
        const struct omap_pair *p = &w->compares.items[i];
        lib->write_op_omap_cmp2(*out, (const char *)p->key.p, LIBRADOS_EQ, (const char *)p->value.p, p->key.n,
                                p->value.n, NULL);
    }
    if (w->clears) lib->write_op_omap_clear(*out);
    /* librados copies the bytes of both. */
    if (w->removes.n) {
        if (columns_init(&c, &w->removes) < 0) goto release;
        lib->write_op_omap_rm_keys2(*out, c.keys, c.key_n, w->removes.n);
        free(c.keys);
    }
    if (w->sets.n) {
        if (columns_init(&c, &w->sets) < 0) goto release;
        lib->write_op_omap_set2(*out, c.keys, c.values, c.key_n, c.value_n, w->sets.n);
        free(c.keys);
    }
    return 0;
release:
    lib->release_write_op(*out);
    return -ENOMEM;
}

int omap_write_run(const struct omap_write *w, const struct pool *p, const char *object) {
    void *op;
    int rc = op_new(w, p->lib, &op);
    if (rc < 0) return rc;
    if ((rc = pool_enter(p->gate, object)) == 0) {
        int64_t began_us = pool_began(p->counts);
        rc = p->lib->write_op_operate(op, p->io, object, NULL, 0);
        pool_ended(p->counts, POOL_WRITES, began_us, rc);
        pool_leave(p->gate, object, rc);
    }
    p->lib->release_write_op(op);
    return rc;
}

int omap_write_start(const struct omap_write *w, const struct pool *p, const char *object,
                     struct omap_started *started) {
    void *op, *completion;
    int rc = op_new(w, p->lib, &op);
    if (rc < 0) return rc;
    if ((rc = pool_enter(p->gate, object)) < 0) goto release;
    if ((rc = p->lib->aio_create_completion2(NULL, NULL, &completion)) < 0) goto leave;
    rc = p->lib->aio_write_op_operate(op, p->io, completion, object, NULL, 0);
    if (rc == 0) {
        *started = (struct omap_started){
            .completion = completion, .object = object, .began_us = pool_began(p->counts)};
        goto release;
    }
    p->lib->aio_release(completion);
leave:
    pool_leave(p->gate, object, rc);
release:
    p->lib->release_write_op(op);
    return rc;
}

int omap_write_wait(const struct pool *p, const struct omap_started *started) {
    p->lib->aio_wait_for_complete(started->completion);
    int rc = p->lib->aio_get_return_value(started->completion);
    pool_ended(p->counts, POOL_WRITES, started->began_us, rc);
    pool_leave(p->gate, started->object, rc);
    p->lib->aio_release(started->completion);
    return rc;
}

/* ---- reads ---- */

/* Returns the index of a new part, or -1 if memory is exhausted. */
static int add_part(struct omap_read *r) {
    assert(r->n < OMAP_READ_PARTS);
    if (!r->op) r->op = r->pool->lib->create_read_op();
    return r->op ? (int)r->n++ : -1;
}

void omap_read_add(struct omap_read *r, const char *start_after, const char *prefix, uint64_t max) {
    int i = add_part(r);
    if (i < 0) return;
    r->pool->lib->read_op_omap_get_vals2(r->op, start_after, prefix, max < OMAP_READ_MAX ? max : OMAP_READ_MAX,
                                         &r->parts[i].iter, &r->parts[i].more, &r->parts[i].rc);
}

void omap_read_add_keys(struct omap_read *r, const char *start_after, uint64_t max) {
    int i = add_part(r);
    if (i < 0) return;
    r->parts[i].keys_only = true;
    r->pool->lib->read_op_omap_get_keys2(r->op, start_after, max < OMAP_READ_MAX ? max : OMAP_READ_MAX,
                                         &r->parts[i].iter, &r->parts[i].more, &r->parts[i].rc);
}

int omap_read_run(struct omap_read *r, const char *object) {
    int rc = r->op ? pool_enter(r->pool->gate, object) : -ENOMEM;
    if (rc < 0) return rc;
    int64_t began_us = pool_began(r->pool->counts);
    rc = r->pool->lib->read_op_operate(r->op, r->pool->io, object, 0);
    pool_ended(r->pool->counts, POOL_READS, began_us, rc);
    pool_leave(r->pool->gate, object, rc);
    r->ran = rc == 0;
    for (uint32_t i = 0; rc == 0 && i < r->n; i++) rc = r->parts[i].rc;
    return rc;
}

int omap_read_take(struct omap_read *r, uint32_t part, struct arena *a, struct omap_pairs *to) {
    char *key, *value;
    size_t key_n, value_n;
    assert(r->ran); /* Q2 */
    while (r->pool->lib->omap_get_next2(r->parts[part].iter, &key, &value, &key_n, &value_n) == 0 && key) {
        /* A key is the start of the next read, as a C string: one with a NUL byte would be read for ever. */
        if (!key_n || (!value_n && !r->parts[part].keys_only) || memchr(key, 0, key_n)) return -EBADMSG;
        struct slice k = arena_dup(a, slice_of(key, key_n)), v = slice_of("", 0);
        if (value_n) v = arena_dup(a, slice_of(value, value_n));
        if (!k.p || !v.p || pairs_add(to, k, v) < 0) return -ENOMEM;
    }
    return 0;
}

void omap_read_fini(struct omap_read *r) {
    /* librados makes the iterators when the parts are added; freeing them is all that is allowed
     * after a failed read. */
    for (uint32_t i = 0; i < r->n; i++) r->pool->lib->omap_get_end(r->parts[i].iter);
    if (r->op) r->pool->lib->release_read_op(r->op);
    *r = (struct omap_read){.pool = r->pool};
}
