#include "engine/front/table.h"

#include <assert.h>
#include <stdlib.h>

#include "engine/front/lock_order.h"
#include "engine/rows/purge.h"

/* Nothing is dropped before the catalogue has set this. */
static const int64_t gc_grace_unknown = INT64_MAX / 4;

enum { FREED_BITS = 1 << 18 }; /* ids of one block */
_Static_assert(UINT64_C(1) * FREED_BITS * ENGI_FREED_BLOCKS == UINT64_C(1) << 32, "every id has its bit");

/* No view that began before the table was freed is left, and no batch holds a pin. */
static void free_table(struct engi_retired *r) {
    struct engi_table *t = (struct engi_table *)r;
    struct store *store = t->eng ? &t->eng->store : NULL;
    if (store && store->ops && store->ops->forget) store->ops->forget(store, t->id);
    free(atomic_load(&t->dropped));
    free(t);
}

/* ---- finding ---- */

static _Atomic(struct engi_table *) *place_of(struct eng *eng, uint32_t id) {
    return &eng->tables.places[id % ENGI_TABLE_PLACES];
}

static struct engi_table *find(struct eng *eng, uint32_t id) {
    struct engi_table *t = atomic_load_explicit(place_of(eng, id), memory_order_acquire);
    while (t && t->id != id) t = atomic_load_explicit(&t->next, memory_order_acquire);
    return t;
}

static bool was_freed(const struct engi_tables *all, uint32_t id) {
    const uint64_t *block = all->freed[id / FREED_BITS];
    return block && block[id % FREED_BITS / 64] >> (id % 64) & 1;
}

/* With the lock. Returns NULL if freed, or memory is exhausted. */
static struct engi_table *find_or_make(struct eng *eng, uint32_t id) {
    const struct store_ops *store = eng->store.ops;
    struct engi_table *t = find(eng, id);
    if (t || was_freed(&eng->tables, id)) return t;
    if (!(t = calloc(1, store->table_bytes ? store->table_bytes : sizeof(*t)))) return NULL;
    t->retired.free = free_table;
    t->id = id;
    atomic_init(&t->gc_grace, gc_grace_unknown);
    if (store->table_init) store->table_init(t);
    _Atomic(struct engi_table *) *place = place_of(eng, id);
    atomic_init(&t->next, atomic_load(place));
    atomic_store_explicit(place, t, memory_order_release);
    atomic_fetch_add(&eng->tables.n, 1);
    return t;
}

struct engi_table *engi_table(struct eng *eng, uint32_t id) {
    struct engi_table *t = find(eng, id);
    if (LIKELY(t != NULL)) return t;
    engi_mutex_lock(&eng->tables.lock, ENGI_RANK_LEAF);
    t = find_or_make(eng, id);
    engi_mutex_unlock(&eng->tables.lock, ENGI_RANK_LEAF);
    return t;
}

bool engi_table_was_freed(struct eng *eng, uint32_t id) {
    engi_mutex_lock(&eng->tables.lock, ENGI_RANK_LEAF);
    bool freed = was_freed(&eng->tables, id);
    engi_mutex_unlock(&eng->tables.lock, ENGI_RANK_LEAF);
    return freed;
}

uint32_t *engi_table_ids(struct eng *eng, uint32_t *n) {
    engi_mutex_lock(&eng->tables.lock, ENGI_RANK_LEAF);
    uint32_t *ids = malloc((atomic_load(&eng->tables.n) + 1) * sizeof(*ids));
    *n = 0;
    for (uint32_t i = 0; ids && i < ENGI_TABLE_PLACES; i++)
        for (const struct engi_table *t = atomic_load(&eng->tables.places[i]); t; t = atomic_load(&t->next))
            ids[(*n)++] = t->id;
    engi_mutex_unlock(&eng->tables.lock, ENGI_RANK_LEAF);
    return ids;
}

/* ---- pins ---- */

struct engi_table *engi_table_pin(struct eng *eng, uint32_t id, struct err *e) {
    engi_mutex_lock(&eng->tables.lock, ENGI_RANK_LEAF);
    struct engi_table *t = find_or_make(eng, id);
    bool gone = t ? engi_is_closed(t) : was_freed(&eng->tables, id);
    if (t && !gone) atomic_fetch_add(&t->pins, 1);
    engi_mutex_unlock(&eng->tables.lock, ENGI_RANK_LEAF);
    if (t && !gone) return t;
    if (gone)
        err_set(e, ERR_SERVER,
                "The table was dropped or truncated while the statement was under way; nothing of it was written");
    else err_nomem(e);
    return NULL;
}

/* With the lock. */
static void unlink_table(struct eng *eng, struct engi_table *t) {
    _Atomic(struct engi_table *) *at = place_of(eng, t->id);
    while (atomic_load(at) != t) at = &atomic_load(at)->next;
    atomic_store_explicit(at, atomic_load(&t->next), memory_order_release); /* a reader at t finds the rest */
    atomic_fetch_sub(&eng->tables.n, 1);
}

static void retire_table(struct eng *eng, struct engi_table *t) {
    t->eng = eng;
    engi_retire(&eng->epoch, &t->retired);
}

void engi_table_unpin(struct eng *eng, struct engi_table *t) {
    engi_mutex_lock(&eng->tables.lock, ENGI_RANK_LEAF);
    assert(engi_is_pinned(t));
    bool goes = atomic_fetch_sub(&t->pins, 1) == 1 && t->forgotten;
    if (goes) unlink_table(eng, t);
    engi_mutex_unlock(&eng->tables.lock, ENGI_RANK_LEAF);
    if (goes) retire_table(eng, t);
}

/* ---- freeing ---- */

/* Closes a table: its id gives no pin any more. 0, or -1: no memory. *out: NULL if it was freed
 * before. */
static int close_table(struct eng *eng, uint32_t id, struct engi_table **out, struct err *e) {
    struct engi_tables *all = &eng->tables;
    uint64_t **block = &all->freed[id / FREED_BITS];
    engi_mutex_lock(&all->lock, ENGI_RANK_LEAF);
    *out = find_or_make(eng, id);
    if (!*block) *block = calloc(FREED_BITS / 64, sizeof(**block));
    bool closed = *block && (*out || was_freed(all, id));
    if (closed) (*block)[id % FREED_BITS / 64] |= 1ull << (id % 64);
    if (closed && *out) atomic_store(&(*out)->closed, true);
    engi_mutex_unlock(&all->lock, ENGI_RANK_LEAF);
    return closed ? 0 : err_nomem(e);
}

int engi_table_clear(struct eng *eng, uint32_t id, struct err *e) {
    if (eng->store.ops->drop(&eng->store, id, e)) return -1;
    engi_commit_next_seq(eng);
    return 0;
}

int eng_table_drop(struct eng *eng, uint32_t table, struct err *e) {
    struct engi_table *t;
    if (close_table(eng, table, &t, e)) return -1;
    if (t && engi_is_pinned(t)) return ENG_BUSY;
    if (engi_table_clear(eng, table, e)) return -1;
    if (!t) return 0;
    engi_mutex_lock(&eng->tables.lock, ENGI_RANK_LEAF);
    assert(!engi_is_pinned(t)); /* invariant 8 */
    unlink_table(eng, t);
    engi_mutex_unlock(&eng->tables.lock, ENGI_RANK_LEAF);
    retire_table(eng, t);
    return 0;
}

void eng_table_forget(struct eng *eng, uint32_t table) {
    struct engi_table *t;
    struct err no_memory = {0}; /* then the table stays */
    if (close_table(eng, table, &t, &no_memory) || !t) return;
    engi_mutex_lock(&eng->tables.lock, ENGI_RANK_LEAF);
    bool goes = !engi_is_pinned(t) && !t->forgotten;
    t->forgotten = true;
    if (goes) unlink_table(eng, t);
    engi_mutex_unlock(&eng->tables.lock, ENGI_RANK_LEAF);
    if (goes) retire_table(eng, t);
}

/* Removes all tables. Their memory is freed when the sections that may still use it are closed. */
void engi_tables_forget(struct eng *eng) {
    struct engi_tables *all = &eng->tables;
    struct engi_table *gone = NULL;
    engi_mutex_lock(&all->lock, ENGI_RANK_LEAF);
    for (uint32_t i = 0; i < ENGI_TABLE_PLACES; i++)
        for (struct engi_table *t; (t = atomic_load(&all->places[i]));) {
            assert(!engi_is_pinned(t));
            unlink_table(eng, t);
            t->retired.next = gone ? &gone->retired : NULL;
            gone = t;
        }
    for (uint32_t i = 0; i < ENGI_FREED_BLOCKS; i++) {
        free(all->freed[i]);
        all->freed[i] = NULL;
    }
    engi_mutex_unlock(&all->lock, ENGI_RANK_LEAF);
    for (struct engi_table *t = gone, *next; t; t = next) {
        next = (struct engi_table *)t->retired.next;
        engi_retire(&eng->epoch, &t->retired);
    }
}

int eng_each_stored(struct eng *eng, eng_stored_fn fn, void *arg, struct err *e) {
    return eng->store.ops->each_stored(&eng->store, fn, arg, e);
}

/* ---- settings of a table ---- */

void eng_table_set(struct eng *eng, uint32_t table, int64_t gc_grace_seconds) {
    struct engi_section section = engi_enter(&eng->epoch);
    struct engi_table *t = engi_table(eng, table);
    if (t) atomic_store(&t->gc_grace, gc_grace_seconds);
    engi_leave(&eng->epoch, section);
}

/* ---- dropped columns ---- */

/* The list of a table. A replaced list is freed when no reader can hold it any more. */
struct engi_dropped_list {
    struct engi_retired retired;
    struct engi_dropped list;
    struct eng_dropped items[];
};

static void free_list(struct engi_retired *r) { free(r); }

const struct engi_dropped *engi_dropped_of(const struct engi_table *t) {
    const struct engi_dropped_list *d = t ? atomic_load_explicit(&t->dropped, memory_order_acquire) : NULL;
    return UNLIKELY(d != NULL) ? &d->list : NULL;
}

/* The catalogue's lock lets one thread at a time call this. */
int eng_table_set_dropped(struct eng *eng, uint32_t table, uint32_t n, const struct eng_dropped *items, struct err *e) {
    struct engi_section section = engi_enter(&eng->epoch);
    struct engi_table *t = engi_table(eng, table);
    struct engi_dropped_list *now = t ? atomic_load(&t->dropped) : NULL, *d = NULL;
    bool same = t && (now ? now->list.n : 0) == n;
    for (uint32_t i = 0; i < n && same; i++)
        same = now->items[i].column == items[i].column && now->items[i].ts == items[i].ts &&
               now->items[i].gone == items[i].gone;
    if (t && !same && (d = malloc(sizeof(*d) + n * sizeof(*items)))) {
        *d = (struct engi_dropped_list){.retired.free = free_list, .list = {.n = n, .items = d->items}};
        for (uint32_t i = 0; i < n; i++) d->items[i] = items[i];
        atomic_store(&t->dropped, d);
        if (now) engi_retire(&eng->epoch, &now->retired);
    }
    engi_leave(&eng->epoch, section);
    return same || d ? 0 : err_nomem(e);
}
