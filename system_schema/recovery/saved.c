/* Puts one keyspace back from a saved state while everything else stays unchanged.
 *
 * Life: a state is saved for a keyspace (eng_state_save). A thread makes a spare: it copies each
 * table and each history of the keyspace from the state into the store, under new ids. Putting the
 * keyspace back writes one batch: its records, with the spare's ids as storage ids, and records
 * that free the old rows as those of dropped tables. The time for this depends on the number of
 * records, not of rows. Then the thread makes the next spare. A statement that puts the keyspace
 * back before its spare is ready waits for it.
 *
 *   record "spare/" id u32:  'r' (rows of a table) or 'h' (a history)       copied, and not in use; a restart frees it
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/copy.h"
#include "engine/history.h"
#include "engine/named.h"
#include "engine/state.h"
#include "engine/table.h"
#include "system_schema/objects/table_event.h"
#include "system_schema/recovery/recovery.h"

enum { SPARE_ROWS = 'r', SPARE_HISTORY = 'h', SPARE_KEY = 10 };

struct part {
    char what;
    uint32_t from, to; /* ids in the state and in the store */
};

struct spare {
    struct spare *next;
    char name[64], keyspace[ENG_STATE_OF_MAX]; /* of the state */
    struct eng *state; /* NULL if not opened yet */
    bool wanted, building, ready;
    uint32_t n, cap;
    struct part *parts;
};

struct saved_keyspaces {
    pthread_mutex_t lock; /* guards what follows; objects->lock is taken before it (C2) */
    pthread_cond_t moved;
    struct spare *first;
    struct recovery *recovery;
    _Atomic bool stop; /* set under the lock */
    bool has_thread;
    pthread_t thread;
};

struct saved_keyspaces *saved_keyspaces_new(struct recovery *r) {
    struct saved_keyspaces *all = calloc(1, sizeof *all);
    if (!all) return NULL;
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->moved, NULL);
    all->recovery = r;
    return all;
}

static void spare_free(struct spare *s) {
    if (s->state) eng_state_close(s->state);
    free(s->parts);
    free(s);
}

void saved_keyspaces_free(struct saved_keyspaces *all) {
    pthread_mutex_lock(&all->lock);
    all->stop = true;
    pthread_cond_broadcast(&all->moved);
    pthread_mutex_unlock(&all->lock);
    if (all->has_thread) pthread_join(all->thread, NULL);
    for (struct spare *s = all->first, *next; s; s = next) {
        next = s->next;
        spare_free(s);
    }
    pthread_cond_destroy(&all->moved);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

/* ---- a spare's data in the store ---- */

static struct slice spare_key(uint32_t id, uint8_t key[SPARE_KEY]) {
    memcpy(key, "spare/", 6);
    store_u32(key + 6, id);
    return slice_of(key, SPARE_KEY);
}

static int free_part(struct recovery *r, char what, uint32_t id, struct err *e) {
    struct objects *o = r->objects;
    uint8_t key[SPARE_KEY];
    int rc = what == SPARE_HISTORY ? eng_history_drop(o->eng, id, e) : eng_table_drop(o->eng, id, e);
    if (rc) return rc == ENG_BUSY ? err_set(e, ERR_OVERLOADED, "its rows are still written") : -1;
    return eng_meta_delete(o->eng, spare_key(id, key), e);
}

static void drop_parts(struct recovery *r, struct spare *s) {
    struct err e = {0};
    for (uint32_t i = 0; i < s->n; i++)
        if (free_part(r, s->parts[i].what, s->parts[i].to, &e))
            log_warn("the spare of a saved keyspace is freed at the next start: %s", e.text);
    s->n = 0;
    s->ready = false;
}

struct stray {
    struct recovery *r;
    struct meta_batch found;
};

static int find_stray(void *arg, struct slice key, struct slice value, struct err *e) {
    struct stray *x = arg;
    if (key.n != SPARE_KEY || value.n != 1) return 0;
    pthread_mutex_lock(&x->r->saved->lock);
    bool known = false;
    for (const struct spare *s = x->r->saved->first; s; s = s->next)
        for (uint32_t i = 0; i < s->n; i++) known = known || s->parts[i].to == load_u32(key.p + 6);
    pthread_mutex_unlock(&x->r->saved->lock);
    return known ? 0 : meta_batch_put(&x->found, key, value, e);
}

int saved_keyspaces_clean(struct recovery *r, struct err *e) {
    struct stray x = {.r = r};
    meta_batch_init(&x.found);
    int rc = eng_meta_scan(r->objects->eng, slice_str("spare/"), find_stray, &x, e);
    for (uint32_t i = 0; i < x.found.n && !rc; i++)
        rc = free_part(r, (char)x.found.changes[i].value.p[0], load_u32(x.found.changes[i].key.p + 6), e);
    meta_batch_fini(&x.found);
    return rc;
}

/* ---- the keyspace's records in the state ---- */

struct look {
    struct recovery *r;
    struct spare *spare;
    const struct object_kind *kind;
    uint32_t keyspace_id; /* 0 if not found yet */
    int (*each)(struct look *l, const struct record *r, struct err *e); /* or NULL */
    struct meta_batch *batch;
};

static int look_at(void *arg, struct slice key, struct slice value, struct err *e) {
    struct look *l = arg;
    struct record r;
    struct err why = {0};
    (void)e;
    /* an unreadable object was not served either */
    if (record_decode(key, value, &r, &why) || r.status == SCHEMA_DELETED) return 0;
    bool of = l->kind->in_keyspace ? r.keyspace_id == l->keyspace_id : slice_eq(r.name, slice_str(l->spare->keyspace));
    if (!of) return 0;
    if (!l->kind->in_keyspace) l->keyspace_id = r.id;
    return l->each ? l->each(l, &r, e) : 0;
}

/* Looks through keyspaces first: the objects in one are recognised by its id. */
static int look_through(struct look *l, struct err *e) {
    for (int in_keyspace = 0; in_keyspace < 2; in_keyspace++)
        for (uint32_t i = 0; i < l->r->objects->n_kinds; i++) {
            const char prefix[] = {'c', 'a', 't', 'a', 'l', 'o', 'g', '/', l->r->objects->kinds[i]->tag, '/', 0};
            l->kind = l->r->objects->kinds[i];
            if (l->kind->in_keyspace == in_keyspace && eng_meta_scan(l->spare->state, slice_str(prefix), look_at, l, e))
                return -1;
        }
    return l->keyspace_id
               ? 0
               : err_invalid(e, "The saved state '%s' holds no keyspace %s", l->spare->name, l->spare->keyspace);
}

static int add_part(struct spare *s, char what, uint32_t from, struct err *e) {
    if (s->n == s->cap) {
        uint32_t cap = s->cap ? s->cap * 2 : 8;
        struct part *parts = realloc(s->parts, cap * sizeof *parts);
        if (!parts) return err_nomem(e);
        s->parts = parts;
        s->cap = cap;
    }
    s->parts[s->n++] = (struct part){.what = what, .from = from};
    return 0;
}

static uint32_t part_of(const struct spare *s, char what, uint32_t from) {
    for (uint32_t i = 0; i < s->n; i++)
        if (s->parts[i].what == what && s->parts[i].from == from) return s->parts[i].to;
    return 0;
}

/* ---- making a spare; no lock is held ---- */

static int note_rows(struct look *l, const struct record *r, struct err *e) {
    return l->kind->has_rows ? add_part(l->spare, SPARE_ROWS, r->storage, e) : 0;
}

static int note_history(void *arg, uint32_t id, struct err *e) { return add_part(arg, SPARE_HISTORY, id, e); }

static int make_spare(struct recovery *r, struct spare *s, struct err *e) {
    struct objects *o = r->objects;
    struct look l = {.r = r, .spare = s, .each = note_rows};
    if (!s->state && !(s->state = eng_state_open(o->eng, s->name, e))) return -1;
    if (look_through(&l, e) || recovery_each_saved(s->state, s->keyspace, note_history, s, e)) return -1;
    uint32_t first;
    pthread_mutex_lock(&o->lock);
    pthread_mutex_lock(&r->saved->lock);
    int rc = objects_next_ids(o, s->n, &first, e);
    for (uint32_t i = 0; i < s->n && !rc; i++) s->parts[i].to = first + i;
    pthread_mutex_unlock(&r->saved->lock);
    pthread_mutex_unlock(&o->lock);
    /* The ids are recorded before their rows are copied, so that a restart frees them. */
    struct meta_batch b;
    meta_batch_init(&b);
    for (uint32_t i = 0; i < s->n && !rc; i++) {
        uint8_t key[SPARE_KEY];
        rc = meta_batch_put(&b, spare_key(s->parts[i].to, key), slice_of(&s->parts[i].what, 1), e);
    }
    if (!rc && b.n) rc = eng_meta_write(o->eng, b.n, b.changes, e);
    meta_batch_fini(&b);
    if (rc) return -1;
    for (uint32_t i = 0; i < s->n && !rc && !r->saved->stop; i++) {
        const struct part *p = &s->parts[i];
        rc = p->what == SPARE_ROWS ? eng_ingest(o->eng, p->to, s->state, p->from, e)
                                   : eng_history_ingest(o->eng, p->to, s->state, p->from, e);
    }
    if (!rc && !r->saved->stop) return 0;
    drop_parts(r, s);
    return -1;
}

/* The lock is held, and released meanwhile. */
static int build(struct saved_keyspaces *all, struct spare *s, struct err *e) {
    struct recovery *r = all->recovery;
    s->building = true;
    s->wanted = false;
    pthread_mutex_unlock(&all->lock);
    int rc = make_spare(r, s, e);
    pthread_mutex_lock(&all->lock);
    if (rc) s->n = 0;
    s->building = false;
    s->ready = rc == 0;
    pthread_cond_broadcast(&all->moved);
    return rc;
}

static void *work(void *arg) {
    struct saved_keyspaces *all = arg;
    pthread_mutex_lock(&all->lock);
    while (!all->stop) {
        struct err e = {0};
        struct spare *s = all->first;
        while (s && (!s->wanted || s->building || s->ready)) s = s->next;
        if (!s) pthread_cond_wait(&all->moved, &all->lock);
        else if (build(all, s, &e) && !all->stop)
            log_warn("there is no spare of the saved keyspace %s yet: %s", s->keyspace, e.text);
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

/* ---- spares of states ---- */

static struct spare *find_spare(const struct saved_keyspaces *all, const char *name) {
    struct spare *s = all->first;
    while (s && strcmp(s->name, name)) s = s->next;
    return s;
}

static struct spare *spare_of(struct recovery *r, const char *name, const char *keyspace, struct err *e) {
    struct spare *s = find_spare(r->saved, name);
    if (s) return s;
    s = calloc(1, sizeof *s);
    if (!s) return err_null(err_nomem(e));
    snprintf(s->name, sizeof s->name, "%s", name);
    snprintf(s->keyspace, sizeof s->keyspace, "%s", keyspace);
    s->next = r->saved->first;
    return r->saved->first = s;
}

void catalog_saved_prepare(struct catalog *c, const char *name, const char *keyspace) {
    struct recovery *r = c->recovery;
    struct saved_keyspaces *all = r->saved;
    struct err e = {0};
    pthread_mutex_lock(&all->lock);
    struct spare *s = spare_of(r, name, keyspace, &e);
    if (s) s->wanted = !s->ready;
    if (!all->has_thread && !all->stop) all->has_thread = pthread_create(&all->thread, NULL, work, all) == 0;
    pthread_cond_broadcast(&all->moved);
    pthread_mutex_unlock(&all->lock);
}

int catalog_saved_await(struct catalog *c, const char *name, const char *keyspace, struct err *e) {
    struct recovery *r = c->recovery;
    struct saved_keyspaces *all = r->saved;
    pthread_mutex_lock(&all->lock);
    struct spare *s = spare_of(r, name, keyspace, e);
    while (s && s->building) pthread_cond_wait(&all->moved, &all->lock);
    int rc = !s ? -1 : s->ready ? 0 : build(all, s, e);
    pthread_mutex_unlock(&all->lock);
    return rc;
}

void catalog_saved_forget(struct catalog *c, const char *name) {
    struct recovery *r = c->recovery;
    struct saved_keyspaces *all = r->saved;
    for (;;) {
        pthread_mutex_lock(&all->lock);
        struct spare *s = name ? find_spare(all, name) : all->first, **at = &all->first;
        if (s) s->wanted = false;
        while (s && s->building) pthread_cond_wait(&all->moved, &all->lock);
        while (s && *at && *at != s) at = &(*at)->next;
        if (s && *at) *at = s->next;
        pthread_mutex_unlock(&all->lock);
        if (!s) return;
        drop_parts(r, s);
        spare_free(s);
    }
}

/* ---- putting back; the catalogue's threads are suspended ---- */

/* Adds a record whose forms were checked when they were written (R1). */
static int add_record(struct meta_batch *b, const struct record *r, struct err *e) {
    uint8_t key[RECORD_KEY_SIZE];
    struct buf value;
    buf_init(&value, 0);
    record_key(r->tag, r->id, key);
    int rc = record_write(r, &value, e);
    if (!rc) rc = meta_batch_put(b, slice_of(key, sizeof key), buf_slice(&value), e);
    buf_fini(&value);
    return rc;
}

static bool is_of(struct recovery *r, const struct catalog_object *x, const char *keyspace) {
    return strcmp(object_context(r->objects, x).keyspace, keyspace) == 0;
}

static int take_out(struct recovery *r, const char *keyspace, uint32_t keyspace_id, struct meta_batch *b,
                    struct err *e) {
    uint32_t id, n = 0;
    for (uint32_t i = 0; i < r->objects->n_all; i++) {
        const struct catalog_object *x = r->objects->all[i];
        n += x->kind->has_rows && is_of(r, x, keyspace);
    }
    if (objects_next_ids(r->objects, n, &id, e)) return -1;
    for (uint32_t i = 0; i < r->objects->n_all; i++) {
        const struct catalog_object *x = r->objects->all[i];
        uint8_t key[RECORD_KEY_SIZE];
        if (!is_of(r, x, keyspace)) continue;
        record_key(x->kind->tag, x->id, key);
        if (meta_batch_delete(b, slice_of(key, sizeof key), e)) return -1;
        if (!x->kind->has_rows) continue;
        /* The rows are freed as those of a dropped object. */
        const struct record remains = {.tag = x->kind->tag,
                                       .status = SCHEMA_DELETED,
                                       .id = id++,
                                       .keyspace_id = keyspace_id,
                                       .storage = x->storage,
                                       .name = slice_str(x->name),
                                       .form = x->form};
        if (add_record(b, &remains, e)) return -1;
    }
    return 0;
}

static int put_saved(struct look *l, const struct record *r, struct err *e) {
    struct record moved = *r;
    if (l->kind->has_rows) moved.storage = part_of(l->spare, SPARE_ROWS, r->storage);
    return add_record(l->batch, &moved, e);
}

static uint32_t history_of(const void *arg, uint32_t id) { return part_of(arg, SPARE_HISTORY, id); }

int catalog_saved_put_back(struct catalog *c, const char *name, struct err *e) {
    struct recovery *r = c->recovery;
    struct objects *o = c->objects;
    struct meta_batch b;
    pthread_mutex_lock(&o->lock);
    pthread_mutex_lock(&r->saved->lock);
    struct spare *s = find_spare(r->saved, name);
    bool ready = s && s->ready;
    pthread_mutex_unlock(&r->saved->lock);
    meta_batch_init(&b);
    struct look l = {.r = r, .spare = s, .batch = &b};
    int rc = ready ? look_through(&l, e)
                   : err_set(e, ERR_OVERLOADED,
                             "The saved state '%s' has just been put back by somebody else; try again", name);
    if (!rc) rc = take_out(r, s->keyspace, l.keyspace_id, &b, e);
    l.each = put_saved;
    if (!rc) rc = look_through(&l, e);
    if (!rc) rc = history_take_over(o, s->state, s->keyspace, &b, e);
    if (!rc) rc = recovery_take_over(r, s->state, s->keyspace, history_of, s, &b, e);
    for (uint32_t i = 0; !rc && i < s->n; i++) {
        uint8_t key[SPARE_KEY];
        rc = meta_batch_delete(&b, spare_key(s->parts[i].to, key), e);
    }
    if (!rc) rc = objects_write(o, b.n, b.changes, e);
    if (!rc) {
        s->n = 0; /* the parts are tables now */
        s->ready = false;
    }
    meta_batch_fini(&b);
    pthread_mutex_unlock(&o->lock);
    return rc;
}
