#include "twin.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "engine/rados/librados.h"

struct pair {
    struct slice key, value; /* each of its own memory */
};

struct object {
    char name[64];
    struct pair *pairs; /* by key */
    size_t n, cap;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all objects */
static struct object **objects;
static size_t n_objects, objects_cap;

static twin_answer_fn answer_fn;
static void *answer_arg;

void twin_answer(twin_answer_fn fn, void *arg) {
    answer_fn = fn;
    answer_arg = arg;
}

static int answer(const char *object) { return answer_fn ? answer_fn(answer_arg, object) : 0; }

/* ---- objects ---- */

static struct slice copy_of(struct slice s) {
    uint8_t *p = malloc(s.n + 1);
    if (!p) abort();
    if (s.n) memcpy(p, s.p, s.n);
    p[s.n] = 0;
    return slice_of(p, s.n);
}

static void pair_free(struct pair *p) {
    free((void *)p->key.p);
    free((void *)p->value.p);
}

static struct object *find(const char *name) {
    for (size_t i = 0; i < n_objects; i++)
        if (strcmp(objects[i]->name, name) == 0) return objects[i];
    return NULL;
}

static struct object *make(const char *name) {
    struct object *o = calloc(1, sizeof(*o));
    if (!o || array_room(&objects, n_objects, &objects_cap, sizeof(o)) < 0) abort();
    snprintf(o->name, sizeof(o->name), "%s", name);
    return objects[n_objects++] = o;
}

/* The first pair that is not in front of the key. */
static size_t position(const struct object *o, struct slice key) {
    size_t i = 0;
    while (i < o->n && slice_cmp(o->pairs[i].key, key) < 0) i++;
    return i;
}

static struct slice value_in(const struct object *o, struct slice key) {
    size_t i = position(o, key);
    return i < o->n && slice_eq(o->pairs[i].key, key) ? o->pairs[i].value : slice_of("", 0);
}

static void drop_pair(struct object *o, struct slice key) {
    size_t i = position(o, key);
    if (i == o->n || !slice_eq(o->pairs[i].key, key)) return;
    pair_free(&o->pairs[i]);
    memmove(&o->pairs[i], &o->pairs[i + 1], (--o->n - i) * sizeof(o->pairs[0]));
}

static void set_pair(struct object *o, struct slice key, struct slice value) {
    drop_pair(o, key);
    size_t i = position(o, key);
    if (array_room(&o->pairs, o->n, &o->cap, sizeof(o->pairs[0])) < 0) abort();
    memmove(&o->pairs[i + 1], &o->pairs[i], (o->n++ - i) * sizeof(o->pairs[0]));
    o->pairs[i] = (struct pair){.key = copy_of(key), .value = copy_of(value)};
}

static void clear(struct object *o) {
    for (size_t i = 0; i < o->n; i++) pair_free(&o->pairs[i]);
    o->n = 0;
}

static void object_free(struct object *o) {
    clear(o);
    free(o->pairs);
    free(o);
}

void twin_clear(void) {
    while (n_objects) object_free(objects[--n_objects]);
    free(objects);
    objects = NULL;
    objects_cap = 0;
}

void twin_set(const char *name, struct slice key, struct slice value) {
    struct object *o = find(name);
    set_pair(o ? o : make(name), key, value);
}

/* ---- writes ---- */

struct write {
    bool creates, exclusive, clears;
    struct object compares, sets, removes; /* their pairs */
};

static void *write_new(void) { return calloc(1, sizeof(struct write)); }
static void write_free(void *op) {
    struct write *w = op;
    clear(&w->compares), free(w->compares.pairs);
    clear(&w->sets), free(w->sets.pairs);
    clear(&w->removes), free(w->removes.pairs);
    free(w);
}
static void write_create(void *op, int exclusive, const char *category) {
    (void)category;
    ((struct write *)op)->creates = true;
    ((struct write *)op)->exclusive = exclusive == LIBRADOS_EXCLUSIVE;
}
static void write_compare(void *op, const char *key, uint8_t comparison, const char *value, size_t key_n,
                          size_t value_n, int *rc) {
    (void)comparison, (void)rc;
    set_pair(&((struct write *)op)->compares, slice_of(key, key_n), slice_of(value, value_n));
}
static void write_set(void *op, char const *const *keys, char const *const *values, const size_t *key_n,
                      const size_t *value_n, size_t n) {
    for (size_t i = 0; i < n; i++)
        set_pair(&((struct write *)op)->sets, slice_of(keys[i], key_n[i]), slice_of(values[i], value_n[i]));
}
static void write_remove(void *op, char const *const *keys, const size_t *key_n, size_t n) {
    for (size_t i = 0; i < n; i++)
        set_pair(&((struct write *)op)->removes, slice_of(keys[i], key_n[i]), slice_of("", 0));
}
static void write_clear(void *op) { ((struct write *)op)->clears = true; }

static int apply(const struct write *w, const char *name) {
    struct object *o = find(name);
    if (o && w->creates && w->exclusive) return -EEXIST;
    if (!o && !w->creates) return -ENOENT;
    for (size_t i = 0; i < w->compares.n; i++) {
        const struct pair *c = &w->compares.pairs[i];
        if (!slice_eq(o ? value_in(o, c->key) : slice_of("", 0), c->value)) return -ECANCELED;
    }
    if (!o) o = make(name);
    if (w->clears) clear(o);
    for (size_t i = 0; i < w->removes.n; i++) drop_pair(o, w->removes.pairs[i].key);
    for (size_t i = 0; i < w->sets.n; i++) set_pair(o, w->sets.pairs[i].key, w->sets.pairs[i].value);
    return 0;
}

static int write_run(void *op, void *io, const char *name, time_t *mtime, int flags) {
    int rc = answer(name);
    (void)io, (void)mtime, (void)flags;
    if (rc < 0) return rc;
    pthread_mutex_lock(&lock);
    rc = apply(op, name);
    pthread_mutex_unlock(&lock);
    return rc;
}

/* ---- reads ---- */

struct part {
    struct slice start, prefix;
    uint64_t max;
    struct object found; /* its pairs are what is returned */
    size_t at;
    unsigned char *more;
    int *rc;
    struct part *next;
};
struct reading {
    struct part *parts;
};

static void *read_new(void) { return calloc(1, sizeof(struct reading)); }
static void read_free(void *op) { free(op); } /* omap_get_end frees the parts */
static void read_add(void *op, const char *start, const char *prefix, uint64_t max, void **iter, unsigned char *more,
                     int *rc) {
    struct part *p = calloc(1, sizeof(*p));
    if (!p) abort();
    *p = (struct part){.start = copy_of(slice_str(start)), .prefix = copy_of(slice_str(prefix)), .max = max,
                       .more = more, .rc = rc, .next = ((struct reading *)op)->parts};
    *iter = ((struct reading *)op)->parts = p;
}

static bool begins_with(struct slice s, struct slice prefix) {
    return s.n >= prefix.n && memcmp(s.p, prefix.p, prefix.n) == 0;
}

static void read_part(const struct object *o, struct part *p) {
    size_t i = position(o, p->start), first = position(o, p->prefix);
    if (i < o->n && slice_eq(o->pairs[i].key, p->start)) i++;
    for (i = first > i ? first : i; i < o->n && begins_with(o->pairs[i].key, p->prefix) && p->found.n < p->max; i++)
        set_pair(&p->found, o->pairs[i].key, o->pairs[i].value);
    *p->more = i < o->n && begins_with(o->pairs[i].key, p->prefix);
    *p->rc = 0;
}

static int read_run(void *op, void *io, const char *name, int flags) {
    int rc = answer(name);
    (void)io, (void)flags;
    if (rc < 0) return rc;
    pthread_mutex_lock(&lock);
    const struct object *o = find(name);
    for (struct part *p = ((struct reading *)op)->parts; o && p; p = p->next) read_part(o, p);
    pthread_mutex_unlock(&lock);
    return o ? 0 : -ENOENT;
}

static int part_next(void *iter, char **key, char **value, size_t *key_n, size_t *value_n) {
    struct part *p = iter;
    *key = *value = NULL;
    *key_n = *value_n = 0;
    if (p->at == p->found.n) return 0;
    const struct pair *pair = &p->found.pairs[p->at++];
    *key = (char *)pair->key.p, *key_n = pair->key.n;
    *value = (char *)pair->value.p, *value_n = pair->value.n;
    return 0;
}

static void part_free(void *iter) {
    struct part *p = iter;
    free((void *)p->start.p);
    free((void *)p->prefix.p);
    clear(&p->found);
    free(p->found.pairs);
    free(p);
}

/* ---- the rest ---- */

struct completion {
    void (*done)(void *completion, void *arg);
    void *arg;
    void *op; /* a copy of the write, which runs when its result is waited for */
    char object[64];
    int rc;
};
static int completion_new(void *arg, void (*done)(void *completion, void *arg), void **completion) {
    struct completion *c = calloc(1, sizeof(*c));
    if (!c) abort();
    *c = (struct completion){.done = done, .arg = arg};
    *completion = c;
    return 0;
}
static int write_start(void *op, void *io, void *completion, const char *name, time_t *mtime, int flags) {
    struct completion *c = completion;
    struct write *from = op, *copy = write_new();
    (void)io, (void)mtime, (void)flags;
    if (!copy) abort();
    *copy = *from; /* the caller frees its own, which is empty now */
    *from = (struct write){0};
    c->op = copy;
    snprintf(c->object, sizeof(c->object), "%s", name);
    return 0;
}
static int completion_wait(void *completion) {
    struct completion *c = completion;
    c->rc = write_run(c->op, NULL, c->object, NULL, 0);
    write_free(c->op);
    return 0;
}
static int completion_result(void *completion) { return ((struct completion *)completion)->rc; }

static int remove_object(void *io, const char *name) {
    size_t i = 0;
    (void)io;
    pthread_mutex_lock(&lock);
    while (i < n_objects && strcmp(objects[i]->name, name) != 0) i++;
    bool found = i < n_objects;
    if (found) {
        object_free(objects[i]);
        memmove(&objects[i], &objects[i + 1], (--n_objects - i) * sizeof(objects[0]));
    }
    pthread_mutex_unlock(&lock);
    return found ? 0 : -ENOENT;
}

struct listing {
    size_t at;
    char name[64];
};
static int list_open(void *io, void **list) {
    (void)io;
    return (*list = calloc(1, sizeof(struct listing))) ? 0 : -ENOMEM;
}
static int list_next(void *list, const char **name, const char **key, const char **space) {
    struct listing *l = list;
    (void)key, (void)space;
    pthread_mutex_lock(&lock);
    bool more = l->at < n_objects;
    if (more) memcpy(l->name, objects[l->at++]->name, sizeof(l->name));
    pthread_mutex_unlock(&lock);
    *name = l->name;
    return more ? 0 : -ENOENT;
}

static int create(void **cluster, const char *user) { return (void)user, *cluster = NULL, 0; }
static int conf_read_file(void *cluster, const char *path) { return (void)cluster, (void)path, 0; }
static int conf_set(void *cluster, const char *name, const char *value) {
    return (void)cluster, (void)name, (void)value, 0;
}
static int ioctx_create(void *cluster, const char *pool, void **io) {
    return (void)cluster, (void)pool, *io = NULL, 0;
}
static int succeed(void *handle) { return (void)handle, 0; }
static void end(void *handle) { (void)handle; }
static int unwatch(void *io, uint64_t cookie) { return (void)io, (void)cookie, 0; }
static int notify(void *io, const char *object, void *completion, const char *data, int n, uint64_t timeout_ms,
                  char **reply, size_t *reply_n) {
    const struct completion *c = completion;
    (void)io, (void)object, (void)data, (void)n, (void)timeout_ms, (void)reply, (void)reply_n;
    if (c->done) c->done(completion, c->arg);
    return 0;
}

const struct librados *librados_load(struct err *e) {
    static const struct librados twin = {
        .create = create, .conf_read_file = conf_read_file, .conf_set = conf_set, .connect = succeed, .shutdown = end,
        .ioctx_create = ioctx_create, .ioctx_destroy = end,
        .create_write_op = write_new, .release_write_op = write_free, .write_op_create = write_create,
        .write_op_omap_cmp2 = write_compare, .write_op_omap_set2 = write_set, .write_op_omap_rm_keys2 = write_remove,
        .write_op_omap_clear = write_clear, .write_op_operate = write_run, .aio_write_op_operate = write_start,
        .create_read_op = read_new, .release_read_op = read_free, .read_op_omap_get_vals2 = read_add,
        .read_op_operate = read_run, .omap_get_next2 = part_next, .omap_get_end = part_free,
        .aio_create_completion2 = completion_new, .aio_wait_for_complete = completion_wait,
        .aio_get_return_value = completion_result, .aio_release = free, .remove = remove_object,
        .nobjects_list_open = list_open, .nobjects_list_next = list_next, .nobjects_list_close = free,
        .unwatch2 = unwatch, .watch_flush = succeed, .aio_notify = notify};
    (void)e;
    return &twin;
}
