/* Objects in memory, their ids, and how they are read at the start. */
#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/murmur3.h"
#include "engine/named.h"
#include "system_schema/objects/objects.h"

static const char counter_key[] = "catalog/next_id";

int form_set(struct slice *form, struct slice bytes, struct err *e) {
    uint8_t *copy = NULL;
    if (bytes.n) {
        copy = malloc(bytes.n);
        if (!copy) return err_nomem(e);
        memcpy(copy, bytes.p, bytes.n);
    }
    free((void *)form->p);
    *form = slice_of(copy, bytes.n);
    return 0;
}

void objects_init(struct objects *o) {
    pthread_mutex_init(&o->lock, NULL);
    pthread_mutex_init(&o->published.lock, NULL);
    pthread_cond_init(&o->moved, NULL);
    notices_init(&o->notices);
}

void objects_fini(struct objects *o) {
    if (o->published.current) schema_unref(&o->published.current->schema);
    for (uint32_t i = 0; i < o->n_all; i++) object_free(o->all[i]);
    free(o->all);
    free(o->by_id);
    free(o->by_name);
    for (uint32_t i = 0; i < o->n_system; i++) space_unref(o->system[i]);
    notices_fini(&o->notices);
    pthread_cond_destroy(&o->moved);
    pthread_mutex_destroy(&o->published.lock);
    pthread_mutex_destroy(&o->lock);
}

void objects_moved(struct objects *o) {
    pthread_cond_broadcast(&o->moved);
    ticker_wake(&o->worker);
}

/* ---- the indexes of objects ---- */

static uint32_t id_bucket(const struct objects *o, uint32_t id) {
    return id * 2654435761u & (o->n_buckets - 1);
}

static uint32_t name_bucket(const struct objects *o, uint32_t keyspace_id, const char *name) {
    return (uint32_t)(murmur3_hash(slice_str(name)) + keyspace_id * 2654435761u) & (o->n_buckets - 1);
}

static void index_put(struct objects *o, struct catalog_object *x) {
    struct catalog_object **id = &o->by_id[id_bucket(o, x->id)];
    struct catalog_object **name = &o->by_name[name_bucket(o, x->keyspace_id, x->name)];
    x->id_next = *id;
    *id = x;
    x->name_next = *name;
    *name = x;
}

/* Makes room for one more object. */
static int make_room(struct objects *o, struct err *e) {
    if (o->n_all < o->n_buckets) return 0;
    uint32_t n = o->n_buckets ? o->n_buckets * 2 : 64;
    struct catalog_object **entries = realloc(o->all, n * sizeof *entries);
    if (entries) o->all = entries;
    struct catalog_object **by_id = calloc(n, sizeof *by_id), **by_name = calloc(n, sizeof *by_name);
    if (!entries || !by_id || !by_name) {
        free(by_id);
        free(by_name);
        return err_nomem(e);
    }
    free(o->by_id);
    free(o->by_name);
    o->by_id = by_id;
    o->by_name = by_name;
    o->n_buckets = n;
    for (uint32_t i = 0; i < o->n_all; i++) index_put(o, o->all[i]);
    return 0;
}

/* ---- objects ---- */

/* Sets the status, counts it and touches the object. Keeps the busy list, which holds the objects
 * that are not ACTIVE. */
static void status_is(struct objects *o, struct catalog_object *x, enum schema_status to) {
    bool was_busy = x->busy_prev || o->busy == x, busy = to != SCHEMA_ACTIVE;
    x->status = to;
    o->counts[to]++;
    if (busy && !was_busy) {
        x->busy_next = o->busy;
        x->busy_prev = NULL;
        if (o->busy) o->busy->busy_prev = x;
        o->busy = x;
    } else if (!busy && was_busy) {
        *(x->busy_prev ? &x->busy_prev->busy_next : &o->busy) = x->busy_next;
        if (x->busy_next) x->busy_next->busy_prev = x->busy_prev;
        x->busy_prev = NULL;
    }
    object_touch(o, x);
}

void object_restore_status(struct objects *o, struct catalog_object *x, enum schema_status to) {
    assert(pthread_mutex_trylock(&o->lock) != 0); /* C1 */
    o->counts[x->status]--;
    status_is(o, x, to);
}

struct catalog_object *object_add(struct objects *o, const struct object_kind *kind, uint32_t id, uint32_t keyspace_id,
                        const char *name, struct err *e) {
    if (make_room(o, e)) return NULL;
    struct catalog_object *x = calloc(1, sizeof *x);
    struct change_under_way *change = calloc(1, sizeof *change);
    char *copy = strdup(name);
    if (!x || !change || !copy) {
        free(x);
        free(change);
        free(copy);
        return err_null(err_nomem(e));
    }
    change->due_us = INT64_MAX;
    *x = (struct catalog_object){.kind = kind,
                        .objects = o,
                        .id = id,
                        .storage = id,
                        .keyspace_id = keyspace_id,
                        .name = copy,
                        .change = change};
    x->since_us = clock_mono_us(o->clock);
    x->index = o->n_all;
    o->all[o->n_all++] = x;
    index_put(o, x);
    struct catalog_object *ks = keyspace_id ? object_by_id(o, keyspace_id) : NULL;
    if (ks) ks->n_objects++;
    status_is(o, x, SCHEMA_CREATING);
    return x;
}

void object_free(struct catalog_object *x) {
    if (x->shown) schema_table_unref(x->shown);
    object_free_change(x);
    free((void *)x->form.p);
    free(x->name);
    free(x);
}

void object_remove(struct objects *o, struct catalog_object *x) {
    assert(!x->shown);
    struct catalog_object *ks = x->keyspace_id ? object_by_id(o, x->keyspace_id) : NULL;
    if (ks) ks->n_objects--;
    struct catalog_object **id = &o->by_id[id_bucket(o, x->id)];
    struct catalog_object **name = &o->by_name[name_bucket(o, x->keyspace_id, x->name)];
    while (*id != x) id = &(*id)->id_next;
    *id = x->id_next;
    while (*name != x) name = &(*name)->name_next;
    *name = x->name_next;
    object_restore_status(o, x, SCHEMA_ACTIVE); /* takes it off the busy list */
    o->counts[SCHEMA_ACTIVE]--;
    struct catalog_object **touched = &o->touched;
    while (*touched && *touched != x) touched = &(*touched)->next_touched;
    if (*touched) *touched = x->next_touched;
    o->all[x->index] = o->all[--o->n_all];
    o->all[x->index]->index = x->index;
    object_free(x);
}

struct catalog_object *object_by_id(struct objects *o, uint32_t id) {
    struct catalog_object *x = o->n_buckets ? o->by_id[id_bucket(o, id)] : NULL;
    while (x && x->id != id) x = x->id_next;
    return x;
}

static struct catalog_object *find(struct objects *o, const struct object_kind *kind, uint32_t keyspace_id,
                                   const char *name, bool deleting) {
    struct catalog_object *x = o->n_buckets ? o->by_name[name_bucket(o, keyspace_id, name)] : NULL;
    for (; x; x = x->name_next) {
        if (x->kind != kind || x->keyspace_id != keyspace_id || object_is_gone(x) || strcmp(x->name, name) != 0)
            continue;
        if ((x->status == SCHEMA_DELETING) == deleting) return x;
    }
    return NULL;
}

struct catalog_object *object_find(struct objects *o, const struct object_kind *kind, uint32_t keyspace_id,
                                   const char *name) {
    return find(o, kind, keyspace_id, name, false);
}

struct catalog_object *object_find_deleting(struct objects *o, const struct object_kind *kind, uint32_t keyspace_id,
                                  const char *name) {
    return find(o, kind, keyspace_id, name, true);
}

void object_set_status(struct objects *o, struct catalog_object *x, enum schema_status to) {
    static const bool legal[SCHEMA_STATUSES][SCHEMA_STATUSES] = {
#define STATUS_MOVE(from, to) [SCHEMA_##from][SCHEMA_##to] = true,
#include "system_schema/objects/status_move.def"
#undef STATUS_MOVE
    };
    assert(legal[x->status][to]);
    object_restore_status(o, x, to);
    x->since_us = clock_mono_us(o->clock);
}

void *object_decode(const struct catalog_object *x, struct arena *a, struct err *e) {
    const struct form_context at = object_context(x->objects, x);
    return x->kind->decode(x->form, &at, a, e);
}

/* Decodes a user type. The limit on depth ends the recursion of a type that needs itself, which
 * no statement can create. */
static const struct cql_type *decode_type(struct objects *o, const struct catalog_object *x, struct arena *a,
                                          struct err *e) {
    if (o->type_depth == CQL_TYPE_DEPTH_MAX)
        return err_null(err_set(e, ERR_SERVER, "user types nest too deep at %s", x->name));
    o->type_depth++;
    const struct schema_type *t = object_decode(x, a, e);
    o->type_depth--;
    return t ? t->type : NULL;
}

static const struct cql_type *find_type(void *arg, struct arena *a, const char *keyspace, const char *name,
                                        struct err *e) {
    const struct catalog_object *ks = arg, *x = object_find(ks->objects, &type_kind, ks->id, name);
    (void)keyspace;
    return x ? decode_type(ks->objects, x, a, e) : NULL;
}

static const struct cql_type *find_type_or_name(void *arg, struct arena *a, const char *keyspace, const char *name,
                                                struct err *e) {
    const struct catalog_object *ks = arg, *x = object_find(ks->objects, &type_kind, ks->id, name);
    return x ? decode_type(ks->objects, x, a, e) : cql_udt_by_name(NULL, a, keyspace, name, e);
}

struct form_context object_context(struct objects *o, const struct catalog_object *x) {
    struct catalog_object *ks = x->kind->in_keyspace ? object_by_id(o, x->keyspace_id) : NULL;
    if (!ks) return (struct form_context){.keyspace = x->kind->in_keyspace ? "" : x->name, .name = x->name};
    bool deleting = x->status == SCHEMA_DELETING || object_is_gone(x);
    return (struct form_context){.keyspace = ks->name,
                                 .name = x->name,
                                 .find = deleting ? find_type_or_name : find_type,
                                 .arg = ks};
}

/* The record of the next id as it is stored. */
struct counter {
    bool stored;
    struct buf bytes;
    uint32_t next; /* 0 if none, or the record is damaged */
};

static int take_counter(void *arg, struct slice key, struct slice value, struct err *e) {
    struct counter *c = arg;
    (void)key;
    c->stored = true;
    c->bytes.n = 0;
    buf_put_slice(&c->bytes, value);
    if (value.n == 4) c->next = load_u32(value.p);
    return buf_failed(&c->bytes) ? err_nomem(e) : 0;
}

/* Advances the counter, provided that it is still as read. ENG_CHANGED: another server on the store
 * has advanced it. */
static int advance_counter(struct objects *o, uint32_t n, struct err *e) {
    struct counter c = {.stored = false};
    uint8_t value[4];
    buf_init(&c.bytes, 0);
    int rc = eng_meta_scan(o->eng, slice_str(counter_key), take_counter, &c, e);
    if (!rc && c.next > o->next_id) o->next_id = c.next; /* another server has given out the ids in between */
    if (!rc && n >= UINT32_MAX - o->next_id)
        rc = err_set(e, ERR_SERVER, "All %u ids of tables and other objects that this store can give have been given",
                     UINT32_MAX);
    if (!rc) {
        const struct slice expected = buf_slice(&c.bytes);
        store_u32(value, o->next_id + n);
        const struct eng_meta_change change = {.key = slice_str(counter_key),
                                               .value = slice_of(value, sizeof value),
                                               .conditional = true,
                                               .expected = c.stored ? &expected : NULL};
        rc = eng_meta_write(o->eng, 1, &change, e);
    }
    buf_fini(&c.bytes);
    return rc;
}

int objects_next_ids(struct objects *o, uint32_t n, uint32_t *first, struct err *e) {
    int rc;
    do rc = advance_counter(o, n, e);
    while (rc == ENG_CHANGED);
    if (rc) return -1;
    *first = o->next_id;
    o->next_id += n;
    return 0;
}

int objects_next_id(struct objects *o, uint32_t *id, struct err *e) { return objects_next_ids(o, 1, id, e); }

bool object_is_changing(const struct catalog_object *x) { return schema_status_verb(x->status); }

int object_begin_change(struct objects *o, struct catalog_object *x, enum schema_status to, struct err *e) {
    assert(!x->change);
    x->change = calloc(1, sizeof *x->change);
    if (!x->change) return err_nomem(e);
    x->change->due_us = INT64_MAX;
    object_set_status(o, x, to);
    return 0;
}

void object_free_change(struct catalog_object *x) {
    if (!x->change) return;
    free((void *)x->change->next.p);
    free(x->change->failure);
    free(x->change);
    x->change = NULL;
}

void change_fail_with(struct change_under_way *c, const char *words) {
    free(c->failure);
    c->failure = words ? strdup(words) : NULL;
}

/* ---- the start ---- */

struct load {
    struct objects *o;
    const struct object_kind *kind;
    uint32_t last_id; /* the greatest id seen, also in damaged records */
};

static void set_aside(struct objects *o, const struct object_kind *kind, uint32_t id, struct slice name,
                      const char *why) {
    o->n_set_aside++;
    log_error("catalog: the record of %s %.*s (catalog/%c/%u) is set aside, everything else is served: %s", kind->word,
              SLICE_FMT(name), kind->tag, id, why);
}

static int load_record(void *arg, struct slice key, struct slice value, struct err *e) {
    struct load *l = arg;
    struct record r;
    struct err why = {0};
    int rc = record_decode(key, value, &r, &why);
    if (r.id > l->last_id) l->last_id = r.id;
    if (r.storage > l->last_id) l->last_id = r.storage;
    if (rc) {
        set_aside(l->o, l->kind, r.id, r.name, why.text);
        return 0;
    }
    char *name = strndup((const char *)r.name.p, r.name.n);
    struct catalog_object *x = name ? object_add(l->o, l->kind, r.id, r.keyspace_id, name, e) : NULL;
    free(name);
    if (!x) return err_nomem(e);
    x->storage = r.storage;
    x->old_keys = r.old_keys;
    object_restore_status(l->o, x, r.status);
    x->change->replicated = r.progress;
    if (form_set(&x->form, r.form, e) || form_set(&x->change->next, r.next, e)) return -1;
    if (!object_is_changing(x)) object_free_change(x);
    return 0;
}

/* True if an older object has the same name. Both exist if one was set aside at a start and the
 * other was created then. */
static bool is_doubled(const struct objects *o, const struct catalog_object *x) {
    if (x->status == SCHEMA_DELETING || object_is_gone(x)) return false;
    for (const struct catalog_object *y = o->by_name[name_bucket(o, x->keyspace_id, x->name)]; y; y = y->name_next) {
        bool namesake = y->kind == x->kind && y->keyspace_id == x->keyspace_id && strcmp(y->name, x->name) == 0;
        if (namesake && y->status != SCHEMA_DELETING && !object_is_gone(y) && y->id < x->id) return true;
    }
    return false;
}

/* Checks the properties that the catalogue relies on in every object. */
static int check_object(struct objects *o, struct catalog_object *x, struct err *why) {
    const struct catalog_object *ks = x->kind->in_keyspace ? object_by_id(o, x->keyspace_id) : NULL;
    if (x->kind->in_keyspace && (!ks || ks->kind != &keyspace_kind))
        return err_set(why, ERR_SERVER, "its keyspace cannot be read");
    const struct form_context at = object_context(o, x);
    if (form_check(x->kind, &at, x->form, why)) return -1;
    if (!x->old_keys) return 0;
    struct arena a;
    arena_init(&a, 16 * 1024, 0);
    const void *definition = object_decode(x, &a, why);
    bool readable = definition && !x->kind->has_old_keys(definition);
    arena_fini(&a);
    if (readable) return 0;
    return err_set(why, ERR_SERVER,
                   "its keys hold tuples in a form that only older servers read; copy its rows with the older one");
}

/* Sets aside the objects of a kind that cannot be read, and then those with the name of an older
 * one. When one is set aside, others that need it may fail, too: all are checked again. */
static int check_objects(struct objects *o, const struct object_kind *kind, struct err *e) {
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = 0; i < o->n_all;) {
            struct catalog_object *x = o->all[i];
            struct err why = {0};
            if (x->kind == kind && check_object(o, x, &why)) {
                if (why.no_memory) return err_nomem(e);
                set_aside(o, kind, x->id, slice_str(x->name), why.text);
                object_remove(o, x);
                again = true;
                continue;
            }
            i++;
            const struct form_context at = object_context(o, x);
            struct slice next = x->change ? x->change->next : slice_of(NULL, 0);
            if (x->kind != kind || next.n == 0 || form_check(kind, &at, next, &why) == 0) continue;
            if (why.no_memory) return err_nomem(e);
            log_error("catalog: the change of %s %s.%s that was under way is given up: %s", kind->word, at.keyspace,
                      at.name, why.text);
            free((void *)next.p);
            x->change->next = slice_of(NULL, 0);
        }
    }
    for (uint32_t i = 0; i < o->n_all;) {
        struct catalog_object *x = o->all[i];
        if (x->kind == kind && is_doubled(o, x)) {
            set_aside(o, kind, x->id, slice_str(x->name), "another object has its name");
            object_remove(o, x);
        } else {
            i++;
        }
    }
    return 0;
}

static int load_counter(void *arg, struct slice key, struct slice value, struct err *e) {
    (void)key, (void)e;
    if (value.n == 4) *(uint32_t *)arg = load_u32(value.p);
    else log_error("catalog: the record of the next id is damaged: ids continue after the greatest in use");
    return 0;
}

static int load_version(void *arg, struct slice key, struct slice value, struct err *e) {
    (void)key;
    if (value.n != 8) return err_set(e, ERR_SERVER, "the record of the schema's version is damaged");
    *(uint64_t *)arg = load_u64(value.p);
    return 0;
}

int objects_stored_version(const struct objects *o, uint64_t *version, struct err *e) {
    *version = 0;
    return eng_meta_scan(o->eng, slice_str(OBJECTS_VERSION_KEY), load_version, version, e);
}

bool objects_are_current(struct objects *o, struct err *e) {
    uint64_t version;
    return objects_stored_version(o, &version, e) == 0 && version == o->version;
}

/* Reads the version first. If another server changes a record meanwhile, the next write of this one
 * fails, and the records are read again. */
int objects_load(struct objects *o, struct err *e) {
    o->next_id = FIRST_STORAGE_ID;
    if (objects_stored_version(o, &o->version, e)) return -1;
    struct load l = {.o = o, .last_id = FIRST_STORAGE_ID - 1};
    if (eng_meta_scan(o->eng, slice_str(counter_key), load_counter, &o->next_id, e)) return -1;
    for (uint32_t i = 0; i < o->n_kinds; i++) {
        const char prefix[] = {'c', 'a', 't', 'a', 'l', 'o', 'g', '/', o->kinds[i]->tag, '/', 0};
        l.kind = o->kinds[i];
        if (eng_meta_scan(o->eng, slice_str(prefix), load_record, &l, e)) return -1;
        if (check_objects(o, l.kind, e)) return -1;
    }
    if (o->next_id <= l.last_id) o->next_id = l.last_id + 1;
    return 0;
}

/* ---- lookups for other rooms ---- */

bool catalog_has_object(struct catalog *c, uint32_t object) {
    pthread_mutex_lock(&c->objects->lock);
    const struct catalog_object *x = object_by_id(c->objects, object);
    bool there = x && !object_is_gone(x);
    pthread_mutex_unlock(&c->objects->lock);
    return there;
}

struct lookup {
    const char *name;
    uint32_t keyspace_id, id; /* id: of the object; 0 if none was found */
};

static int look_up(void *arg, struct slice key, struct slice value, struct err *e) {
    struct lookup *l = arg;
    struct record r;
    struct err damaged = {0};
    (void)e;
    if (record_decode(key, value, &r, &damaged) || r.status == SCHEMA_DELETED) return 0;
    if (r.keyspace_id == l->keyspace_id && slice_is(r.name, l->name)) l->id = r.id;
    return 0;
}

/* Looks an object up in the records of the store, which another server may have changed since they were
 * read. Sets *id to 0 if there is none. */
static int find_record(struct objects *o, const struct object_kind *kind, uint32_t keyspace_id, const char *name,
                       uint32_t *id, struct err *e) {
    const char prefix[] = {'c', 'a', 't', 'a', 'l', 'o', 'g', '/', kind->tag, '/', 0};
    struct lookup l = {.name = name, .keyspace_id = keyspace_id};
    int rc = eng_meta_scan(o->eng, slice_str(prefix), look_up, &l, e);
    *id = l.id;
    return rc;
}

int catalog_recorded(struct catalog *c, const char *keyspace, const char *table, bool *recorded, struct err *e) {
    struct objects *o = c->objects;
    uint32_t id;
    int rc = find_record(o, &keyspace_kind, 0, keyspace, &id, e);
    if (rc == 0 && id && table) rc = find_record(o, &table_kind, id, table, &id, e);
    *recorded = rc == 0 && id;
    return rc;
}

uint32_t catalog_changes(struct catalog *c, int64_t *age_us) {
    struct objects *o = c->objects;
    uint32_t n = 0;
    pthread_mutex_lock(&o->lock);
    int64_t now_us = clock_mono_us(o->clock);
    *age_us = 0;
    for (const struct catalog_object *x = o->busy; x; x = x->busy_next) {
        if (!object_is_changing(x)) continue;
        n++;
        if (now_us - x->since_us > *age_us) *age_us = now_us - x->since_us;
    }
    pthread_mutex_unlock(&o->lock);
    return n;
}
