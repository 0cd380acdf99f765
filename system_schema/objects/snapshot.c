#include "system_schema/objects/snapshot.h"

#include <assert.h>
#include <stdlib.h>

/* ---- definitions ---- */

struct schema_owner *owner_new(void) {
    struct schema_owner *o = calloc(1, sizeof *o);
    if (!o) return NULL;
    atomic_init(&o->refs, 1);
    arena_init(&o->arena, 1024, 0);
    return o;
}

static void owner_ref(struct schema_owner *o) {
    if (o) atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
}

static bool drops_last(atomic_uint *refs) { return atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1; }

void owner_unref(struct schema_owner *o) {
    if (!o || !drops_last(&o->refs)) return;
    if (o->keyspace) schema_keyspace_unref(o->keyspace);
    arena_fini(&o->arena);
    free(o);
}

void schema_keyspace_ref(const struct schema_keyspace *ks) { owner_ref(ks->owner); }
void schema_keyspace_unref(const struct schema_keyspace *ks) { owner_unref(ks->owner); }
void schema_table_ref(const struct schema_table *t) { owner_ref(t->owner); }
void schema_table_unref(const struct schema_table *t) { owner_unref(t->owner); }

/* ---- lists of tables ---- */

static struct schema_chunk *chunk_new(const struct schema_table *const *tables, uint32_t n) {
    struct schema_chunk *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    atomic_init(&c->refs, 1);
    c->n = n;
    assert(n); /* S2 */
    for (uint32_t i = 0; i < n; i++) {
        assert(i == 0 || strcmp(tables[i - 1]->name, tables[i]->name) < 0); /* S2 */
        c->tables[i] = tables[i];
        schema_table_ref(tables[i]);
    }
    return c;
}

static void chunk_unref(struct schema_chunk *c) {
    if (!drops_last(&c->refs)) return;
    for (uint32_t i = 0; i < c->n; i++) schema_table_unref(c->tables[i]);
    free(c);
}

/* The index of the chunk that holds the name or would hold it. There must be at least one chunk. */
static uint32_t chunk_of(const struct schema_tables *t, const char *name) {
    uint32_t from = 0, to = t->n_chunks;
    while (to - from > 1) {
        uint32_t mid = from + (to - from) / 2;
        if (strcmp(t->chunks[mid]->tables[0]->name, name) <= 0) from = mid;
        else to = mid;
    }
    return from;
}

/* The index of the name in the chunk, or where it would be inserted. */
static uint32_t place_in(const struct schema_chunk *c, const char *name) {
    uint32_t from = 0, to = c->n;
    while (from < to) {
        uint32_t mid = from + (to - from) / 2;
        if (strcmp(c->tables[mid]->name, name) < 0) from = mid + 1;
        else to = mid;
    }
    return from;
}

const struct schema_table *schema_tables_find(const struct schema_tables *t, const char *name) {
    if (t->n_chunks == 0) return NULL;
    const struct schema_chunk *c = t->chunks[chunk_of(t, name)];
    uint32_t at = place_in(c, name);
    return at < c->n && strcmp(c->tables[at]->name, name) == 0 ? c->tables[at] : NULL;
}

struct schema_table_cursor schema_tables_from(const struct schema_tables *t, const char *name) {
    struct schema_table_cursor c = schema_tables_begin(t);
    if (t->n_chunks == 0) return c;
    c.chunk = chunk_of(t, name);
    c.at = place_in(t->chunks[c.chunk], name);
    if (c.at < t->chunks[c.chunk]->n) return c;
    return (struct schema_table_cursor){.tables = t, .chunk = c.chunk + 1};
}

const struct schema_table *schema_tables_next(struct schema_table_cursor *c) {
    if (c->chunk == c->tables->n_chunks) return NULL;
    const struct schema_chunk *chunk = c->tables->chunks[c->chunk];
    const struct schema_table *t = chunk->tables[c->at++];
    if (c->at == chunk->n) {
        c->chunk++;
        c->at = 0;
    }
    return t;
}

/* Replaces one chunk by n sorted tables (n may be 0). at == n_chunks: appends them. */
static int replace_chunk(struct schema_tables *t, uint32_t at, const struct schema_table *const *tables, uint32_t n,
                         struct err *e) {
    uint32_t pieces = n == 0 ? 0 : n <= CHUNK_TABLES ? 1 : 2, old = at < t->n_chunks;
    uint32_t first = pieces == 2 ? n / 2 : n, n_chunks = t->n_chunks - old + pieces;
    struct schema_chunk *made[2] = {NULL, NULL}, **chunks = malloc((n_chunks + 1) * sizeof(struct schema_chunk *));
    if (pieces > 0) made[0] = chunk_new(tables, first);
    if (pieces > 1) made[1] = chunk_new(tables + first, n - first);
    if (!chunks || (pieces > 0 && !made[0]) || (pieces > 1 && !made[1])) {
        for (int i = 0; i < 2; i++)
            if (made[i]) chunk_unref(made[i]);
        free(chunks);
        return err_nomem(e);
    }
    uint32_t m = 0;
    for (uint32_t i = 0; i < at; i++) chunks[m++] = t->chunks[i];
    for (uint32_t i = 0; i < pieces; i++) chunks[m++] = made[i];
    for (uint32_t i = at + old; i < t->n_chunks; i++) chunks[m++] = t->chunks[i];
    if (old) {
        t->n -= t->chunks[at]->n;
        chunk_unref(t->chunks[at]);
    }
    free(t->chunks);
    *t = (struct schema_tables){.n = t->n + n, .n_chunks = m, .chunks = chunks};
    return 0;
}

int tables_edit(struct schema_tables *t, const struct schema_table *out, const struct schema_table *in, struct err *e) {
    bool same_name = out && in && strcmp(out->name, in->name) == 0;
    if (out && !same_name && schema_tables_find(t, out->name) == out) {
        const struct schema_table *others[CHUNK_TABLES];
        uint32_t at = chunk_of(t, out->name), n = 0;
        const struct schema_chunk *c = t->chunks[at];
        for (uint32_t i = 0; i < c->n; i++)
            if (c->tables[i] != out) others[n++] = c->tables[i];
        if (replace_chunk(t, at, others, n, e)) return -1;
    }
    if (!in) return 0;
    const struct schema_table *all[CHUNK_TABLES + 1];
    uint32_t at = t->n_chunks ? chunk_of(t, in->name) : 0, n = 0;
    const struct schema_chunk *c = t->n_chunks ? t->chunks[at] : NULL;
    uint32_t place = c ? place_in(c, in->name) : 0;
    for (; n < place; n++) all[n] = c->tables[n];
    all[n++] = in;
    for (uint32_t i = place; c && i < c->n; i++)
        if (i > place || strcmp(c->tables[i]->name, in->name) != 0) all[n++] = c->tables[i];
    return replace_chunk(t, at, all, n, e);
}

int tables_copy(const struct schema_tables *from, struct schema_tables *to, struct err *e) {
    *to = (struct schema_tables){0};
    if (from->n_chunks == 0) return 0;
    to->chunks = malloc(from->n_chunks * sizeof(struct schema_chunk *));
    if (!to->chunks) return err_nomem(e);
    to->n = from->n;
    for (; to->n_chunks < from->n_chunks; to->n_chunks++) {
        to->chunks[to->n_chunks] = from->chunks[to->n_chunks];
        atomic_fetch_add_explicit(&to->chunks[to->n_chunks]->refs, 1, memory_order_relaxed);
    }
    return 0;
}

void tables_fini(struct schema_tables *t) {
    for (uint32_t i = 0; i < t->n_chunks; i++) chunk_unref(t->chunks[i]);
    free(t->chunks);
    *t = (struct schema_tables){0};
}

/* ---- types ---- */

static void type_list_unref(struct type_list *l) {
    if (!l || !drops_last(&l->refs)) return;
    for (uint32_t i = 0; i < l->n; i++) owner_unref(l->types[i]->owner);
    free(l);
}

static void set_types(struct space *s, struct type_list *l) {
    type_list_unref(s->types);
    s->types = l;
    s->space.n_types = l ? l->n : 0;
    s->space.types = l ? l->types : NULL;
}

/* Types are ordered by name; of two with one name, the one that is being deleted is last. */
int space_edit_types(struct space *s, uint32_t object, const struct schema_type *in, struct err *e) {
    uint32_t n = s->space.n_types;
    struct type_list *l = malloc(sizeof *l + (n + 1) * sizeof *l->types);
    if (!l) return err_nomem(e);
    atomic_init(&l->refs, 1);
    l->n = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct schema_type *t = s->space.types[i];
        if (t->object == object) continue;
        int order = in ? strcmp(in->type->name, t->type->name) : 1;
        if (order < 0 || (order == 0 && t->status == SCHEMA_DELETING)) {
            l->types[l->n++] = in;
            in = NULL;
        }
        l->types[l->n++] = t;
    }
    if (in) l->types[l->n++] = in;
    for (uint32_t i = 0; i < l->n; i++) owner_ref(l->types[i]->owner);
    set_types(s, l);
    return 0;
}

/* ---- spaces ---- */

struct space *space_new(uint32_t id, const struct schema_keyspace *ks, const struct space *like, struct err *e) {
    struct space *s = calloc(1, sizeof *s);
    if (!s) return err_null(err_nomem(e));
    atomic_init(&s->refs, 1);
    s->id = id;
    s->space.keyspace = ks;
    schema_keyspace_ref(ks);
    if (like && like->types) {
        atomic_fetch_add_explicit(&like->types->refs, 1, memory_order_relaxed);
        set_types(s, like->types);
    }
    if (!like || (!tables_copy(&like->space.tables, &s->space.tables, e) &&
                  !tables_copy(&like->space.deleting, &s->space.deleting, e)))
        return s;
    space_unref(s);
    return NULL;
}

void space_unref(struct space *s) {
    if (!drops_last(&s->refs)) return;
    tables_fini(&s->space.tables);
    tables_fini(&s->space.deleting);
    type_list_unref(s->types);
    schema_keyspace_unref(s->space.keyspace);
    free(s);
}

/* ---- snapshots ---- */

struct snapshot *snapshot_new(const struct snapshot *like, uint32_t more) {
    uint32_t n = like ? like->schema.n_spaces : 0;
    struct snapshot *s = calloc(1, sizeof *s);
    struct space **spaces = malloc((n + more + 1) * sizeof(struct space *));
    if (!s || !spaces) {
        free(spaces);
        free(s);
        return NULL;
    }
    if (like) s->schema = like->schema;
    for (uint32_t i = 0; i < n; i++) {
        spaces[i] = like->spaces[i];
        atomic_fetch_add_explicit(&spaces[i]->refs, 1, memory_order_relaxed);
    }
    atomic_init(&s->refs, 1);
    s->cap = n + more;
    s->spaces = spaces;
    s->schema.spaces = (const struct schema_space *const *)spaces;
    return s;
}

void schema_ref(const struct schema *s) {
    atomic_fetch_add_explicit(&((struct snapshot *)s)->refs, 1, memory_order_relaxed);
}

void schema_unref(const struct schema *schema) {
    struct snapshot *s = (struct snapshot *)schema;
    if (!s || !drops_last(&s->refs)) return;
    for (uint32_t i = 0; i < s->schema.n_spaces; i++) space_unref(s->spaces[i]);
    free(s->spaces);
    free(s);
}

static uint32_t index_of(const struct snapshot *s, uint32_t id) {
    uint32_t i = 0;
    while (i < s->schema.n_spaces && s->spaces[i]->id != id) i++;
    return i;
}

struct space *snapshot_space(const struct snapshot *s, uint32_t id) {
    uint32_t i = index_of(s, id);
    return i < s->schema.n_spaces ? s->spaces[i] : NULL;
}

void snapshot_put(struct snapshot *s, struct space *space) {
    const char *name = space->space.keyspace->name;
    uint32_t at = 0; /* a system keyspace has no id, and is found by its name */
    if (space->id) at = index_of(s, space->id);
    else
        while (at < s->schema.n_spaces && (s->spaces[at]->id || strcmp(s->spaces[at]->space.keyspace->name, name) != 0))
            at++;
    if (at < s->schema.n_spaces) {
        space_unref(s->spaces[at]);
        s->spaces[at] = space;
        return;
    }
    assert(s->schema.n_spaces < s->cap);
    for (; at > 0 && strcmp(s->spaces[at - 1]->space.keyspace->name, name) > 0; at--)
        s->spaces[at] = s->spaces[at - 1];
    s->spaces[at] = space;
    s->schema.n_spaces++;
}

void snapshot_drop(struct snapshot *s, uint32_t id) {
    uint32_t at = index_of(s, id);
    if (at == s->schema.n_spaces) return;
    space_unref(s->spaces[at]);
    for (; at + 1 < s->schema.n_spaces; at++) s->spaces[at] = s->spaces[at + 1];
    s->schema.n_spaces--;
}
