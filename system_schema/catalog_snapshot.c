#include <stdlib.h>

#include "base/murmur3.h"
#include "system_schema/catalog_state.h"

static bool is_visible(const struct entry *x) { return !x->gone && x->form.n > 0; }

static int by_table_name(const void *a, const void *b) {
    return strcmp((*(const struct schema_table *const *)a)->name, (*(const struct schema_table *const *)b)->name);
}

static int by_keyspace_name(const void *a, const void *b) {
    return strcmp((*(const struct schema_keyspace *const *)a)->name, (*(const struct schema_keyspace *const *)b)->name);
}

static struct schema_table *make_table(struct snapshot *s, const struct schema_keyspace *ks, const struct entry *x, struct err *e) {
    const struct object_place at = {.keyspace = ks->name, .name = x->name};
    struct schema_table *t = x->kind->decode(x->form, &at, &s->arena, e);
    if (!t) return NULL;
    t->keyspace = ks;
    t->object = x->id;
    t->shape = x->shape;
    t->storage = x->storage;
    t->status = x->status;
    return t;
}

/* A table that is being deleted is shown until its name is taken again. */
static void hide_reused(const struct schema_table **deleting, uint32_t *n, const struct schema_table *const *tables, uint32_t n_tables) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *n; i++) {
        bool reused = false;
        for (uint32_t j = 0; j < n_tables && !reused; j++) reused = strcmp(tables[j]->name, deleting[i]->name) == 0;
        for (uint32_t j = 0; j < kept && !reused; j++) reused = strcmp(deleting[j]->name, deleting[i]->name) == 0;
        if (!reused) deleting[kept++] = deleting[i];
    }
    *n = kept;
}

static int fill_keyspace(struct catalog *c, struct snapshot *s, uint32_t id, struct schema_keyspace *ks, struct err *e) {
    uint32_t n = 0, live = 0, dying = 0;
    for (uint32_t i = 0; i < c->n_entries; i++) n += c->entries[i]->kind == &table_kind && c->entries[i]->keyspace_id == id;
    const struct schema_table **tables = ARENA_ARRAY(&s->arena, n + 1, const struct schema_table *);
    const struct schema_table **deleting = ARENA_ARRAY(&s->arena, n + 1, const struct schema_table *);
    if (!tables || !deleting) return err_nomem(e);
    for (uint32_t i = 0; i < c->n_entries; i++) {
        const struct entry *x = c->entries[i];
        if (x->kind != &table_kind || x->keyspace_id != id || !is_visible(x)) continue;
        struct schema_table *t = make_table(s, ks, x, e);
        if (!t) return -1;
        if (x->status == SCHEMA_DELETING) deleting[dying++] = t;
        else tables[live++] = t;
    }
    qsort(tables, live, sizeof *tables, by_table_name);
    qsort(deleting, dying, sizeof *deleting, by_table_name);
    hide_reused(deleting, &dying, tables, live);
    ks->n_tables = live;
    ks->tables = tables;
    ks->n_deleting = dying;
    ks->deleting = deleting;
    return 0;
}

static int fill(struct catalog *c, struct snapshot *s, struct err *e) {
    const struct schema_keyspace **list = ARENA_ARRAY(&s->arena, c->n_entries + c->n_system + 1, const struct schema_keyspace *);
    if (!list) return err_nomem(e);
    uint32_t n = 0;
    for (; n < c->n_system; n++) list[n] = c->system[n];
    for (uint32_t i = 0; i < c->n_entries; i++) {
        const struct entry *x = c->entries[i];
        if (x->kind != &keyspace_kind || !is_visible(x) || x->status == SCHEMA_DELETING) continue;
        const struct object_place at = {.keyspace = x->name, .name = x->name};
        struct schema_keyspace *ks = x->kind->decode(x->form, &at, &s->arena, e);
        if (!ks) return -1;
        ks->status = x->status;
        if (fill_keyspace(c, s, x->id, ks, e)) return -1;
        list[n++] = ks;
    }
    qsort(list, n, sizeof *list, by_keyspace_name);
    s->schema.n_keyspaces = n;
    s->schema.keyspaces = list;
    return 0;
}

/* Of what clients see of the schema, whatever the order of entries, so that a restart does not change it; a name-based UUID
 * (version 3), as Cassandra's. */
static int version_of(struct catalog *c, uint8_t version[16], struct err *e) {
    uint64_t sums[2] = {0};
    struct buf b;
    buf_init(&b, 0);
    for (uint32_t i = 0; i < c->n_entries; i++) {
        const struct entry *x = c->entries[i];
        if (!is_visible(x) || x->status == SCHEMA_CREATING || x->status == SCHEMA_DELETING) continue;
        buf_clear(&b, 1 << 16);
        buf_u32(&b, x->id);
        buf_put_str(&b, x->name);
        buf_put_slice(&b, x->form);
        sums[0] += murmur3_hash(buf_slice(&b));
        buf_u8(&b, 1);
        sums[1] += murmur3_hash(buf_slice(&b));
    }
    store_u64(version, sums[0]);
    store_u64(version + 8, sums[1]);
    version[6] = (uint8_t)((version[6] & 0x0f) | 0x30);
    version[8] = (uint8_t)((version[8] & 0x3f) | 0x80);
    int rc = buf_failed(&b) ? err_nomem(e) : 0;
    buf_fini(&b);
    return rc;
}

int catalog_publish(struct catalog *c, struct err *e) {
    struct snapshot *s = snapshot_new();
    if (!s) return err_nomem(e);
    if (version_of(c, s->schema.version, e) || fill(c, s, e)) {
        schema_unref(&s->schema);
        return -1;
    }
    s->schema.cassandra_mode = c->mode == MODE_CASSANDRA;
    s->schema.generation = atomic_load(&c->generation) + 1;
    pthread_mutex_lock(&c->current_lock);
    struct snapshot *old = c->current;
    c->current = s;
    atomic_store(&c->generation, s->schema.generation);
    pthread_mutex_unlock(&c->current_lock);
    if (old) schema_unref(&old->schema);
    return 0;
}

const struct schema *catalog_schema(struct catalog *c) {
    pthread_mutex_lock(&c->current_lock);
    const struct schema *s = &c->current->schema;
    schema_ref(s);
    pthread_mutex_unlock(&c->current_lock);
    return s;
}

uint64_t catalog_generation(const struct catalog *c) { return atomic_load_explicit(&c->generation, memory_order_acquire); }
