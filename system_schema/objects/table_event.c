#include "system_schema/objects/table_event.h"

static const char prefix[] = "history/";
static const char *const names[] = {
    [HISTORY_CREATE] = "CREATE", [HISTORY_ALTER] = "ALTER", [HISTORY_DROP] = "DROP", [HISTORY_RESTORE] = "RESTORE"};
enum { VALUE_VERSION = 1, MOMENT = 8 };

static void put_name(struct buf *key, const char *keyspace, const char *table) {
    buf_put_str(key, prefix);
    buf_put_str(key, keyspace);
    buf_u8(key, 0);
    if (!table) return;
    buf_put_str(key, table);
    buf_u8(key, 0);
}

/* ---- writing ---- */

/* The keys of the events of one table name, oldest first. */
struct known {
    struct meta_batch *batch;
    uint32_t n;
    struct slice keys[HISTORY_EVENTS_MAX];
};

static int note_key(void *arg, struct slice key, struct slice value, struct err *e) {
    struct known *k = arg;
    (void)value;
    if (k->n == HISTORY_EVENTS_MAX) { /* drop the oldest */
        if (meta_batch_delete(k->batch, k->keys[0], e)) return -1;
        memmove(k->keys, k->keys + 1, (HISTORY_EVENTS_MAX - 1) * sizeof *k->keys);
        k->n--;
    }
    k->keys[k->n] = arena_dup(&k->batch->arena, key);
    return k->keys[k->n++].p ? 0 : err_nomem(e);
}

static int put_event(struct objects *o, struct meta_batch *b, struct slice name, const struct schema_table *t,
                     enum history_event event, struct err *e) {
    struct known known = {.batch = b};
    struct buf key, value;
    int64_t at = clock_wall_us(o->clock) / 1000;
    if (eng_meta_scan(o->eng, name, note_key, &known, e)) return -1;
    if (known.n) { /* each event has a distinct moment */
        const struct slice last = known.keys[known.n - 1];
        int64_t newest = (int64_t)load_u64(last.p + last.n - MOMENT);
        if (at <= newest) at = newest + 1;
    }
    if (known.n == HISTORY_EVENTS_MAX && meta_batch_delete(b, known.keys[0], e)) return -1;
    buf_init(&key, 0);
    buf_init(&value, 0);
    buf_put_slice(&key, name);
    buf_u64(&key, (uint64_t)at);
    buf_u8(&value, VALUE_VERSION);
    buf_u8(&value, (uint8_t)event);
    buf_u64(&value, (uint64_t)t->created_ms);
    form_put_settings(&value, &t->settings);
    int rc = buf_failed(&key) || buf_failed(&value) ? err_nomem(e)
                                                    : meta_batch_put(b, buf_slice(&key), buf_slice(&value), e);
    buf_fini(&key);
    buf_fini(&value);
    return rc;
}

static int add_event(struct objects *o, struct meta_batch *b, const struct catalog_object *x, enum history_event event,
                     struct err *e) {
    const struct form_context at = object_context(o, x);
    struct arena a;
    struct buf name;
    arena_init(&a, 16 * 1024, 0);
    buf_init(&name, 0);
    put_name(&name, at.keyspace, at.name);
    const struct schema_table *t = object_decode(x, &a, e);
    int rc = !t ? -1 : buf_failed(&name) ? err_nomem(e) : put_event(o, b, buf_slice(&name), t, event, e);
    buf_fini(&name);
    arena_fini(&a);
    return rc;
}

static int add_events(struct objects *o, struct meta_batch *b, const struct catalog_object *x, enum schema_status from,
                      struct err *e) {
    static const struct { enum schema_status from; enum history_event event; } ends[] = {
        {SCHEMA_CREATING, HISTORY_CREATE},
        {SCHEMA_UPDATING, HISTORY_ALTER},
        {SCHEMA_DELETING, HISTORY_DROP},
        {SCHEMA_RESTORING, HISTORY_RESTORE},
    };
    for (size_t i = 0; i < ARRAY_LEN(ends) && x->kind == &table_kind && !(x->change && x->change->failure); i++)
        if (from == ends[i].from) return add_event(o, b, x, ends[i].event, e);
    bool dropped = x->kind == &keyspace_kind && object_is_gone(x);
    for (uint32_t i = 0; i < o->n_all && dropped; i++) {
        const struct catalog_object *t = o->all[i];
        if (t->kind != &table_kind || t->keyspace_id != x->id || object_is_gone(t)) continue;
        if (add_event(o, b, t, HISTORY_DROP, e)) return -1;
    }
    return 0;
}

int history_save(struct objects *o, const struct catalog_object *x, enum schema_status from, struct err *e) {
    struct meta_batch b;
    meta_batch_init(&b);
    int rc = add_events(o, &b, x, from, e);
    if (rc == 0) rc = object_save_with(o, x, b.n, b.changes, e);
    meta_batch_fini(&b);
    return rc;
}

/* ---- reading ---- */

static bool decode(struct slice key, struct slice value, struct arena *a, struct history_row *out, struct err *e) {
    struct rd rd = rd_of(value);
    uint8_t version = rd_u8(&rd), event = rd_u8(&rd);
    out->created_ms = (int64_t)rd_u64(&rd);
    form_get_settings(&rd, a, &out->settings, e);
    if (rd.bad || rd_left(&rd) || version != VALUE_VERSION || event >= ARRAY_LEN(names)) return false;
    out->event = names[event];
    size_t skip = sizeof prefix - 1;
    if (key.n < skip + MOMENT + 2) return false;
    struct slice rest = slice_of(key.p + skip, key.n - skip - MOMENT);
    const uint8_t *first = memchr(rest.p, 0, rest.n);
    const uint8_t *second = first ? memchr(first + 1, 0, rest.n - (size_t)(first + 1 - rest.p)) : NULL;
    if (!second || second + 1 != rest.p + rest.n) return false;
    out->keyspace = arena_strdup(a, (const char *)rest.p);
    out->table = arena_strdup(a, (const char *)first + 1);
    out->at_ms = (int64_t)load_u64(key.p + key.n - MOMENT);
    return out->keyspace && out->table;
}

struct each {
    struct arena *arena;
    history_fn fn;
    void *arg;
};

static int each_event(void *arg, struct slice key, struct slice value, struct err *e) {
    const struct each *x = arg;
    struct history_row row = {0};
    if (decode(key, value, x->arena, &row, e)) return x->fn(x->arg, &row);
    return e->set ? -1 : 0; /* skip a damaged event */
}

int history_each(struct objects *o, const char *keyspace, struct arena *a, history_fn fn, void *arg, struct err *e) {
    struct each each = {a, fn, arg};
    struct buf from;
    buf_init(&from, 0);
    if (keyspace) put_name(&from, keyspace, NULL);
    else buf_put_str(&from, prefix);
    int rc = buf_failed(&from) ? err_nomem(e) : eng_meta_scan(o->eng, buf_slice(&from), each_event, &each, e);
    buf_fini(&from);
    return rc;
}

/* ---- events of a saved state ---- */

struct take_over {
    struct meta_batch *batch;
    bool in; /* false: delete */
};

static int take_event(void *arg, struct slice key, struct slice value, struct err *e) {
    const struct take_over *t = arg;
    return t->in ? meta_batch_put(t->batch, key, value, e) : meta_batch_delete(t->batch, key, e);
}

int history_take_over(struct objects *o, struct eng *from, const char *keyspace, struct meta_batch *b, struct err *e) {
    struct take_over out = {b, false}, in = {b, true};
    struct buf name;
    buf_init(&name, 0);
    put_name(&name, keyspace, NULL);
    int rc = buf_failed(&name) ? err_nomem(e) : eng_meta_scan(o->eng, buf_slice(&name), take_event, &out, e);
    if (rc == 0) rc = eng_meta_scan(from, buf_slice(&name), take_event, &in, e);
    buf_fini(&name);
    return rc;
}

/* ---- events that are too old ---- */

struct prune {
    int64_t before_ms;
    struct meta_batch batch; /* deletions of old names, followed by those of the present name */
    struct slice name;
    uint32_t first; /* index of that name's first key */
    bool goes;      /* its newest event so far is an old drop */
};

static void settle_name(struct prune *p) {
    if (!p->goes) p->batch.n = p->first;
    p->first = p->batch.n;
}

static int mark(void *arg, struct slice key, struct slice value, struct err *e) {
    struct prune *p = arg;
    if (key.n < MOMENT || value.n < 2) return 0;
    struct slice name = slice_of(key.p, key.n - MOMENT);
    if (!slice_eq(name, p->name)) {
        settle_name(p);
        p->name = arena_dup(&p->batch.arena, name);
        if (!p->name.p) return err_nomem(e);
    }
    p->goes = value.p[1] == HISTORY_DROP && (int64_t)load_u64(key.p + key.n - MOMENT) < p->before_ms;
    return meta_batch_delete(&p->batch, key, e);
}

int history_prune(struct objects *o, struct err *e) {
    struct prune p = {.before_ms = clock_wall_us(o->clock) / 1000 - (int64_t)HISTORY_DAYS * 86400000};
    meta_batch_init(&p.batch);
    int rc = eng_meta_scan(o->eng, slice_str(prefix), mark, &p, e);
    settle_name(&p);
    if (rc == 0 && p.batch.n) rc = eng_meta_write(o->eng, p.batch.n, p.batch.changes, e);
    meta_batch_fini(&p.batch);
    return rc;
}
