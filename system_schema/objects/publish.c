/* How a change of an object becomes durable and then visible: its record, and the next snapshot, for
 * which the objects touched since the current one are decoded; everything else is shared. */
#include <assert.h>
#include <stdlib.h>

#include "base/murmur3.h"
#include "engine/named.h"
#include "system_schema/objects/objects.h"

/* ---- batches of changes of records ---- */

void meta_batch_init(struct meta_batch *b) {
    *b = (struct meta_batch){0};
    arena_init(&b->arena, 4096, 0);
}

void meta_batch_fini(struct meta_batch *b) {
    free(b->changes);
    arena_fini(&b->arena);
}

static int add(struct meta_batch *b, struct slice key, const struct slice *value, struct err *e) {
    if (b->n == b->cap) {
        uint32_t cap = b->cap ? b->cap * 2 : 8;
        struct eng_meta_change *all = realloc(b->changes, cap * sizeof *all);
        if (!all) return err_nomem(e);
        b->changes = all;
        b->cap = cap;
    }
    struct eng_meta_change *c = &b->changes[b->n];
    *c = (struct eng_meta_change){.key = arena_dup(&b->arena, key), .deleted = !value};
    if (value) c->value = arena_dup(&b->arena, *value);
    if (!c->key.p || (value && !c->value.p)) return err_nomem(e);
    b->n++;
    return 0;
}

int meta_batch_put(struct meta_batch *b, struct slice key, struct slice value, struct err *e) {
    return add(b, key, &value, e);
}
int meta_batch_delete(struct meta_batch *b, struct slice key, struct err *e) { return add(b, key, NULL, e); }

/* ---- the record ---- */

int objects_write(struct objects *o, uint32_t n, const struct eng_meta_change *changes, struct err *e) {
    uint8_t now[8], next[8];
    struct eng_meta_change *all = calloc(n + 1, sizeof *all);
    if (!all) return err_nomem(e);
    store_u64(now, o->version);
    store_u64(next, o->version + 1);
    const struct slice expected = slice_of(now, sizeof now);
    memcpy(all, changes, n * sizeof *all);
    all[n] = (struct eng_meta_change){.key = slice_str(OBJECTS_VERSION_KEY),
                                      .value = slice_of(next, sizeof next),
                                      .conditional = true,
                                      .expected = o->version ? &expected : NULL};
    int rc = eng_meta_write(o->eng, n + 1, all, e);
    o->overtaken = rc == ENG_CHANGED;
    free(all);
    if (rc == 0) {
        o->version++;
        return 0;
    }
    atomic_store(&o->stale, true); /* also after an error, because the write may have taken place */
    objects_moved(o);
    if (rc == ENG_CHANGED)
        err_set(e, ERR_OVERLOADED, "Another server has changed the schema at the same time; try again");
    return -1;
}

int object_save(struct objects *o, const struct catalog_object *x, struct err *e) {
    return object_save_with(o, x, 0, NULL, e);
}

int object_record(struct objects *o, const struct catalog_object *x, struct object_record *out, struct err *e) {
    const struct change_under_way *c = object_is_changing(x) ? x->change : NULL;
    const struct record r = {.tag = x->kind->tag,
                             .status = x->status,
                             .id = x->id,
                             .keyspace_id = x->keyspace_id,
                             .storage = x->storage,
                             .name = slice_str(x->name),
                             .form = x->form,
                             .next = c ? c->next : slice_of(NULL, 0),
                             .progress = c ? c->replicated : 0};
    const struct form_context at = object_context(o, x);
    record_key(r.tag, r.id, out->key);
    buf_init(&out->value, 0);
    int rc = record_write(&r, &out->value, e);
    if (!rc) rc = record_check_forms(x->kind, &at, &r, e);
    out->change = (struct eng_meta_change){.key = slice_of(out->key, sizeof out->key), .value = buf_slice(&out->value)};
    return rc;
}

void object_record_fini(struct object_record *r) { buf_fini(&r->value); }

int object_save_with(struct objects *o, const struct catalog_object *x, uint32_t n, const struct eng_meta_change *more,
                    struct err *e) {
    struct object_record r;
    int rc = object_record(o, x, &r, e);
    struct eng_meta_change *all = calloc(n + 1, sizeof *all);
    if (!all) rc = err_nomem(e);
    if (!rc) {
        all[0] = r.change;
        if (n) memcpy(all + 1, more, n * sizeof *all);
        rc = objects_write(o, n + 1, all, e);
    }
    free(all);
    object_record_fini(&r);
    return rc;
}

int object_erase(struct objects *o, const struct catalog_object *x, struct err *e) {
    uint8_t key[RECORD_KEY_SIZE];
    record_key(x->kind->tag, x->id, key);
    return objects_write(o, 1, &(struct eng_meta_change){.key = slice_of(key, sizeof key), .deleted = true}, e);
}

/* ---- one object in the snapshot that is being built ---- */

static bool is_visible(const struct catalog_object *x) { return !object_is_gone(x) && x->form.n > 0; }

void object_touch(struct objects *o, struct catalog_object *x) {
    if (x->touched) return;
    x->touched = true;
    x->next_touched = o->touched;
    o->touched = x;
}

/* Decodes the object's definition into a new owner with one reference. */
static void *decode_owned(const struct catalog_object *x, struct schema_owner **owner, struct err *e) {
    *owner = owner_new();
    if (!*owner) return err_null(err_nomem(e));
    void *definition = object_decode(x, &(*owner)->arena, e);
    if (!definition) owner_unref(*owner);
    return definition;
}

int show_keyspace(struct snapshot *s, struct catalog_object *x, struct err *e) {
    struct schema_owner *owner;
    if (!is_visible(x)) {
        snapshot_drop(s, x->id);
        return 0;
    }
    struct schema_keyspace *ks = decode_owned(x, &owner, e);
    if (!ks) return -1;
    ks->owner = owner;
    ks->status = x->status;
    if (regions_show(x, ks, &owner->arena, e)) {
        schema_keyspace_unref(ks);
        return -1;
    }
    struct space *space = space_new(x->id, ks, snapshot_space(s, x->id), e);
    schema_keyspace_unref(ks);
    if (!space) return -1;
    snapshot_put(s, space);
    return 0;
}

/* A table that is being deleted stays in the list "deleting" until its name is used again. */
static int edit_lists(struct schema_space *space, const struct catalog_object *x, const struct schema_table *now,
                      struct err *e) {
    const struct schema_table *old = x->shown, *live = x->status == SCHEMA_DELETING ? NULL : now;
    const struct schema_table *namesake = schema_tables_find(&space->deleting, x->name);
    if (tables_edit(&space->tables, old, live, e)) return -1;
    if (live) return namesake ? tables_edit(&space->deleting, namesake, NULL, e) : 0;
    if (!now || schema_tables_find(&space->tables, x->name))
        return old ? tables_edit(&space->deleting, old, NULL, e) : 0;
    return tables_edit(&space->deleting, namesake, now, e);
}

/* Does nothing if the keyspace is gone. */
int show_table(struct snapshot *s, struct catalog_object *x, struct err *e) {
    const struct space *of = snapshot_space(s, x->keyspace_id);
    struct schema_table *now = NULL;
    if (!of) return 0;
    if (is_visible(x)) {
        struct schema_owner *owner;
        now = decode_owned(x, &owner, e);
        if (!now) return -1;
        now->owner = owner;
        now->keyspace = owner->keyspace = of->space.keyspace;
        schema_keyspace_ref(now->keyspace);
        now->object = x->id;
        now->shape = x->shape;
        now->storage = x->storage;
        now->history = x->history;
        now->status = x->status;
    }
    x->next_shown = now;
    struct space *space = space_new(of->id, of->space.keyspace, of, e);
    if (!space) return -1;
    if (edit_lists(&space->space, x, now, e)) {
        space_unref(space);
        return -1;
    }
    snapshot_put(s, space);
    return 0;
}

int show_type(struct snapshot *s, struct catalog_object *x, struct err *e) {
    const struct space *of = snapshot_space(s, x->keyspace_id);
    struct schema_type *now = NULL;
    if (!of) return 0;
    if (is_visible(x)) {
        struct schema_owner *owner;
        now = decode_owned(x, &owner, e);
        if (!now) return -1;
        now->owner = owner;
        now->keyspace = owner->keyspace = of->space.keyspace;
        schema_keyspace_ref(now->keyspace);
        now->object = x->id;
        now->status = x->status;
    }
    struct space *space = space_new(of->id, of->space.keyspace, of, e);
    int rc = space ? space_edit_types(space, x->id, now, e) : -1;
    if (now) owner_unref(now->owner);
    if (rc == 0) snapshot_put(s, space);
    else if (space) space_unref(space);
    return rc;
}

/* ---- all ---- */

static int show(struct snapshot *s, struct catalog_object *x, struct err *e) {
    x->next_sums[0] = x->next_sums[1] = 0;
    if (schema_status_is_listed(x->status) && is_visible(x)) { /* sums of the part that clients see */
        struct buf b;
        buf_init(&b, 0);
        buf_u32(&b, x->id);
        buf_put_str(&b, x->name);
        buf_put_slice(&b, x->form);
        x->next_sums[0] = murmur3_hash(buf_slice(&b));
        buf_u8(&b, 1);
        x->next_sums[1] = murmur3_hash(buf_slice(&b));
        bool failed = buf_failed(&b);
        buf_fini(&b);
        if (failed) return err_nomem(e);
    }
    return x->kind->show ? x->kind->show(s, x, e) : 0;
}

static void settle_touched(struct objects *o, bool published) {
    for (struct catalog_object *x = o->touched; x; x = x->next_touched) {
        const struct schema_table *drop = published ? x->shown : x->next_shown;
        if (published) {
            x->shown = x->next_shown;
            memcpy(x->sums, x->next_sums, sizeof x->sums);
            x->touched = false;
        }
        x->next_shown = NULL;
        if (drop) schema_table_unref(drop);
    }
    if (published) o->touched = NULL;
}

int objects_publish(struct objects *o, struct err *e) {
    uint64_t sums[2] = {o->sums[0], o->sums[1]};
    uint32_t more = 0;
    for (const struct catalog_object *x = o->touched; x; x = x->next_touched) more += x->kind == &keyspace_kind;
    bool anew = !o->published.current || o->published.shares_nothing;
    struct snapshot *s = anew ? snapshot_new(NULL, more + o->n_system) : snapshot_new(o->published.current, more);
    if (!s) return err_nomem(e);
    for (uint32_t i = 0; (anew || o->published.system_altered) && i < o->n_system; i++) {
        atomic_fetch_add(&o->system[i]->refs, 1);
        snapshot_put(s, o->system[i]);
    }
    int rc = 0;
    for (int in_keyspace = 0; in_keyspace < 2; in_keyspace++) /* keyspaces first: tables are shown in them */
        for (struct catalog_object *x = o->touched; x && rc == 0; x = x->next_touched) {
            if (x->kind->in_keyspace != in_keyspace) continue;
            rc = show(s, x, e);
            for (int i = 0; i < 2; i++) sums[i] += x->next_sums[i] - x->sums[i];
        }
    if (rc) {
        schema_unref(&s->schema);
        settle_touched(o, false);
        return -1;
    }
    o->published.shares_nothing = o->published.system_altered = false;
    memcpy(o->sums, sums, sizeof sums);
    /* The sums do not depend on the order of objects, so that a restart does not change the
     * version. It is a name-based UUID (version 3), as in Cassandra. */
    uint8_t *version = s->schema.version;
    store_u64(version, sums[0]);
    store_u64(version + 8, sums[1]);
    version[6] = (uint8_t)((version[6] & 0x0f) | 0x30);
    version[8] = (uint8_t)((version[8] & 0x3f) | 0x80);
    s->schema.cassandra_mode = o->mode == MODE_CASSANDRA;
    s->schema.has_control = o->has_control;
    s->schema.generation = atomic_load(&o->published.generation) + 1;
    assert(pthread_mutex_trylock(&o->lock) != 0); /* C2 */
    pthread_mutex_lock(&o->published.lock);
    struct snapshot *old = o->published.current;
    o->published.current = s;
    atomic_store(&o->published.generation, s->schema.generation);
    pthread_mutex_unlock(&o->published.lock);
    settle_touched(o, true);
    if (old) schema_unref(&old->schema);
    return 0;
}

const struct schema *catalog_schema(struct catalog *c) {
    struct objects *o = c->objects;
    pthread_mutex_lock(&o->published.lock);
    const struct schema *s = &o->published.current->schema;
    schema_ref(s);
    pthread_mutex_unlock(&o->published.lock);
    return s;
}

uint64_t catalog_generation(const struct catalog *c) {
    return atomic_load_explicit(&c->objects->published.generation, memory_order_acquire);
}

void catalog_schema_version(struct catalog *c, uint8_t version[16]) {
    const struct schema *s = catalog_schema(c);
    memcpy(version, s->version, 16);
    schema_unref(s);
}
