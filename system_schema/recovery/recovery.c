#include "system_schema/recovery/recovery.h"

#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/history.h"
#include "engine/named.h"
#include "engine/table.h"

enum { RECORD_VERSION = 2, RECORD_WITHOUT_LINEAGE = 1, KEY_MAX = 16 };

static int64_t now_us(const struct recovery *r) { return clock_wall_us(r->objects->clock); }

int recovery_init(struct recovery *r, struct objects *o, int64_t window_s, struct err *e) {
    *r = (struct recovery){.objects = o, .window_us = (window_s ? window_s : RECOVERY_WINDOW_S) * 1000000};
    ticker_init(&r->worker, recovery_work, r);
    r->saved = saved_keyspaces_new(r);
    return r->saved ? 0 : err_nomem(e);
}

void recovery_fini(struct recovery *r) {
    if (r->saved) saved_keyspaces_free(r->saved);
    recovery_free(r);
    strays_reset(&r->strays);
    ticker_fini(&r->worker);
}

/* ---- records ---- */

static struct slice record_name(const char *prefix, uint32_t id, uint8_t key[KEY_MAX]) {
    size_t n = strlen(prefix);
    memcpy(key, prefix, n);
    store_u32(key + n, id);
    return slice_of(key, n + 4);
}

static void encode(const struct history *h, struct buf *b) {
    buf_u8(b, RECORD_VERSION);
    buf_u8(b, h->begun && !h->unwanted);
    buf_u32(b, h->table);
    buf_u64(b, (uint64_t)h->gone_us);
    buf_u32(b, h->lineage);
    form_put_text(b, h->keyspace);
    form_put_text(b, h->name);
    buf_uvarint(b, h->n_versions);
    for (uint32_t i = 0; i < h->n_versions; i++) {
        buf_u64(b, (uint64_t)h->versions[i].from_us);
        buf_uvarint(b, h->versions[i].form.n);
        buf_put_slice(b, h->versions[i].form);
    }
}

/* Records of this room are written without a condition: only a store with one writer has histories,
 * because point-in-time recovery is refused on a remote one. */
int recovery_record(struct recovery *r, const struct history *h, struct err *e) {
    uint8_t key[KEY_MAX];
    struct buf b;
    buf_init(&b, 0);
    encode(h, &b);
    int rc = buf_failed(&b) ? err_nomem(e)
                            : eng_meta_put(r->objects->eng, record_name("recovery/", h->id, key), buf_slice(&b), e);
    buf_fini(&b);
    return rc;
}

static void save_or_say(struct recovery *r, const struct history *h) {
    struct err e = {0};
    if (recovery_record(r, h, &e))
        log_error("the history of %s.%s is not recorded as it is: %s", h->keyspace, h->name, e.text);
}

/* ---- in memory ---- */

static void history_free(struct history *h) {
    for (uint32_t i = 0; i < h->n_versions; i++) free((void *)h->versions[i].form.p);
    free(h->versions);
    free(h->keyspace);
    free(h->name);
    free(h);
}

void recovery_free(struct recovery *r) {
    for (struct history *h = r->histories, *next; h; h = next) {
        next = h->next;
        history_free(h);
    }
    r->histories = NULL;
}

static struct history *history_new(struct recovery *r, uint32_t id, const char *keyspace, const char *name,
                                   struct err *e) {
    struct history *h = calloc(1, sizeof *h);
    if (h)
        *h = (struct history){
            .id = id, .gone_us = INT64_MAX, .keyspace = strdup(keyspace), .name = strdup(name),
            .next = r->histories};
    if (h && h->keyspace && h->name) return r->histories = h;
    if (h) history_free(h);
    return err_null(err_nomem(e));
}

static int add_version(struct history *h, int64_t from_us, struct slice form, struct err *e) {
    struct history_version *all = realloc(h->versions, (h->n_versions + 1) * sizeof *all);
    if (!all) return err_nomem(e);
    h->versions = all;
    all[h->n_versions] = (struct history_version){.from_us = from_us};
    if (form_set(&all[h->n_versions].form, form, e)) return -1;
    h->n_versions++;
    return 0;
}

static struct history *of_table(struct recovery *r, uint32_t table) {
    struct history *h = r->histories;
    while (h && (h->table != table || h->unwanted)) h = h->next;
    return h;
}

/* True if the history is of the lineage and can be restored from. */
static bool is_of(const struct history *h, uint32_t lineage) {
    return h->lineage == lineage && h->begun && !h->unwanted;
}

int64_t recovery_moment(struct recovery *r, const struct history *h) {
    return eng_history_moment(r->objects->eng, h->id, h->n_versions ? h->versions[h->n_versions - 1].from_us : 0);
}

int64_t recovery_earliest(struct recovery *r, const struct history *of) {
    int64_t since = INT64_MAX, window = now_us(r) - r->window_us;
    for (const struct history *h = r->histories; h; h = h->next) {
        int64_t own = is_of(h, of->lineage) ? eng_history_since(r->objects->eng, h->id) : INT64_MAX;
        if (own < since) since = own;
    }
    return since > window ? since : window;
}

struct history *recovery_at(struct recovery *r, struct history *newest, int64_t at_us) {
    struct history *best = newest;
    for (struct history *h = r->histories; h; h = h->next) {
        if (!is_of(h, newest->lineage)) continue;
        int64_t since = eng_history_since(r->objects->eng, h->id);
        int64_t best_since = eng_history_since(r->objects->eng, best->id);
        bool closer = best_since > at_us ? since < best_since : since <= at_us && since > best_since;
        if (closer) best = h;
    }
    return best;
}

struct slice recovery_form(const struct history *h, int64_t at_us) {
    uint32_t i = 0;
    while (i + 1 < h->n_versions && h->versions[i + 1].from_us <= at_us) i++;
    return h->versions[i].form;
}

struct history *recovery_find(struct recovery *r, const char *keyspace, const char *name) {
    struct objects *o = r->objects;
    struct history *last = NULL;
    const struct catalog_object *ks = object_find(o, &keyspace_kind, 0, keyspace), *x = NULL;
    if (ks && !(x = object_find(o, &table_kind, ks->id, name))) x = object_find_deleting(o, &table_kind, ks->id, name);
    struct history *own = x ? of_table(r, x->id) : NULL;
    if (x) return own && own->begun ? own : NULL;
    for (struct history *h = r->histories; h; h = h->next) {
        bool named = strcmp(h->keyspace, keyspace) == 0 && strcmp(h->name, name) == 0;
        bool there = h->begun && !h->unwanted && !h->table && h->gone_us >= recovery_earliest(r, h);
        if (there && named && (!last || h->gone_us > last->gone_us)) last = h;
    }
    return last;
}

/* ---- following the tables ---- */

struct wishes {
    bool wanted;
    int64_t gc_grace;
};

static struct wishes wishes_of(const struct objects *o, const struct catalog_object *x) {
    struct wishes w = {0};
    struct arena a;
    struct err e = {0};
    arena_init(&a, 16 * 1024, 0);
    const struct schema_table *t = object_decode(x, &a, &e);
    if (t) w = (struct wishes){t->settings.point_in_time_recovery, schema_gc_grace(t, o->mode)};
    arena_fini(&a);
    return w;
}

static void begin(struct recovery *r, struct catalog_object *x, bool fresh) {
    struct objects *o = r->objects;
    struct err e = {0};
    uint32_t id;
    struct history *h =
        objects_next_id(o, &id, &e) ? NULL : history_new(r, id, object_context(o, x).keyspace, x->name, &e);
    if (h) h->table = h->lineage = x->id;
    if (h && fresh && recovery_record(r, h, &e) == 0 && eng_history_begin(o->eng, x->storage, id, false, 0, &e) == 0 &&
        add_version(h, eng_history_since(o->eng, id), x->form, &e) == 0) {
        assert(eng_history_since(o->eng, id) != INT64_MAX); /* W1 */
        h->begun = true;
        x->history = id;
        save_or_say(r, h);
    }
    if (e.set) log_warn("the history of %s has not begun yet: %s", x->name, e.text);
    ticker_wake(&r->worker);
}

/* Gives up all histories of the table's lineage, also those before a TRUNCATE. */
static void give_up(struct recovery *r, struct catalog_object *x) {
    eng_history_end(r->objects->eng, x->storage);
    x->history = 0;
    for (struct history *h = r->histories; h; h = h->next) {
        if (h->lineage != x->id || h->unwanted) continue;
        h->unwanted = true;
        h->table = 0;
        save_or_say(r, h);
    }
    ticker_wake(&r->worker);
}

static void follow_table(struct recovery *r, struct catalog_object *x, bool fresh) {
    struct objects *o = r->objects;
    struct history *h = of_table(r, x->id);
    if (x->restored_from && x->status != SCHEMA_RESTORING) { /* the restore has ended: erase its plan */
        uint8_t key[KEY_MAX];
        struct err e = {0};
        if (eng_meta_delete(o->eng, record_name("restore/", x->id, key), &e))
            log_warn("the plan of a restore remains: %s", e.text);
    }
    if (object_is_gone(x) && h && !h->begun) {
        give_up(r, x);
    } else if (object_is_gone(x) && h) {
        eng_history_end(o->eng, x->storage);
        h->gone_us = recovery_moment(r, h);
        h->table = 0;
        save_or_say(r, h);
    }
    if (x->status != SCHEMA_ACTIVE) return;
    struct wishes w = wishes_of(o, x);
    if (h) eng_table_set(o->eng, h->id, w.gc_grace);
    if (!w.wanted && h) give_up(r, x);
    else if (w.wanted && !h) begin(r, x, fresh);
    else if (w.wanted && h->begun && !slice_eq(h->versions[h->n_versions - 1].form, x->form)) {
        struct err e = {0};
        if (add_version(h, recovery_moment(r, h), x->form, &e))
            log_error("the history of %s does not have its new definition: %s", x->name, e.text);
        else save_or_say(r, h);
    }
    if (w.wanted && (h = of_table(r, x->id))) eng_table_set(o->eng, h->id, w.gc_grace);
}

void recovery_follow(struct recovery *r, struct catalog_object *x, bool fresh) {
    if (x->kind == &table_kind) follow_table(r, x, fresh);
    for (uint32_t i = 0; x->kind == &keyspace_kind && object_is_gone(x) && i < r->objects->n_all; i++) {
        struct catalog_object *y = r->objects->all[i];
        if (y->kind == &table_kind && y->keyspace_id == x->id) follow_table(r, y, false);
    }
}

/* ---- a new storage id for the rows ---- */

static int add_record(struct recovery_turn *turn, const struct history *h, struct err *e) {
    struct buf *b = &turn->records[turn->n];
    encode(h, b);
    turn->changes[turn->n] = (struct eng_meta_change){.key = record_name("recovery/", h->id, turn->keys[turn->n]),
                                                      .value = buf_slice(b)};
    turn->n++;
    return buf_failed(b) ? err_nomem(e) : 0;
}

int recovery_turn_begin(struct recovery *r, struct catalog_object *x, uint32_t storage, struct recovery_turn *turn,
                        struct err *e) {
    *turn = (struct recovery_turn){.old = of_table(r, x->id)};
    for (int i = 0; i < 2; i++) buf_init(&turn->records[i], 0);
    if (!turn->old) return 0;
    bool begun = turn->old->begun;
    if (!begun) give_up(r, x); /* its rows are about to be freed */
    if (!begun) turn->old = NULL;
    /* The history for the new storage id is recorded as unwanted, so that a restart frees it unless
     * the batch with the table's record follows. */
    struct objects *o = r->objects;
    uint32_t id;
    struct history *h =
        objects_next_id(o, &id, e) ? NULL : history_new(r, id, object_context(o, x).keyspace, x->name, e);
    if (!h) return -1;
    h->lineage = x->id;
    h->unwanted = true;
    int64_t after_us = turn->old ? recovery_moment(r, turn->old) : 0;
    if (recovery_record(r, h, e) || eng_history_begin(o->eng, storage, id, false, after_us, e) ||
        add_version(h, eng_history_since(o->eng, id), x->form, e))
        return -1;
    eng_table_set(o->eng, id, wishes_of(o, x).gc_grace);
    turn->fresh = h;
    int64_t at_us = eng_history_since(o->eng, id);
    assert(at_us != INT64_MAX); /* W1 */
    if (turn->old) {
        turn->old->table = 0;
        turn->old->gone_us = at_us;
    }
    turn->fresh->table = x->id;
    turn->fresh->gone_us = INT64_MAX;
    turn->fresh->begun = true;
    turn->fresh->unwanted = false;
    return (turn->old && add_record(turn, turn->old, e)) || add_record(turn, turn->fresh, e) ? -1 : 0;
}

void recovery_turn_end(struct recovery *r, struct catalog_object *x, uint32_t storage, struct recovery_turn *turn,
                       bool done) {
    for (int i = 0; i < 2; i++) buf_fini(&turn->records[i]);
    if (!turn->old && !turn->fresh) return;
    eng_history_end(r->objects->eng, storage);
    if (done) {
        x->history = turn->fresh->id;
    } else {
        if (turn->fresh) turn->fresh->unwanted = true, turn->fresh->begun = false, turn->fresh->table = 0;
        if (turn->old) turn->old->table = x->id, turn->old->gone_us = INT64_MAX;
    }
    ticker_wake(&r->worker);
}

int recovery_plan(struct recovery *r, struct catalog_object *x, const struct history *h, int64_t at_us, struct err *e) {
    uint8_t key[KEY_MAX], value[12];
    store_u32(value, h->id);
    store_u64(value + 4, (uint64_t)at_us);
    x->change->waits = true;
    x->restored_from = h->id;
    x->restored_at_us = at_us;
    return eng_meta_put(r->objects->eng, record_name("restore/", x->id, key), slice_of(value, sizeof value), e);
}

/* ---- for the recovery worker ---- */

int recovery_begun(struct recovery *r, struct history *h, struct catalog_object *x, struct err *e) {
    struct objects *o = r->objects;
    if (add_version(h, eng_history_since(o->eng, h->id), x->form, e)) return -1;
    assert(eng_history_since(o->eng, h->id) != INT64_MAX); /* W1 */
    h->begun = true;
    if (recovery_record(r, h, e) == 0) {
        x->history = h->id;
        object_touch(o, x);
        return objects_publish(o, e);
    }
    h->begun = false;
    free((void *)h->versions[--h->n_versions].form.p);
    return -1;
}

/* Frees the definitions that are older than the one in force at the floor. */
void recovery_rolled(struct recovery *r, struct history *h, int64_t floor_us) {
    uint32_t old = 0;
    while (old + 1 < h->n_versions && h->versions[old + 1].from_us <= floor_us) free((void *)h->versions[old++].form.p);
    if (!old) return;
    h->n_versions -= old;
    memmove(h->versions, h->versions + old, h->n_versions * sizeof *h->versions);
    save_or_say(r, h);
}

int recovery_erase(struct recovery *r, struct history *h, struct err *e) {
    uint8_t key[KEY_MAX];
    if (eng_meta_delete(r->objects->eng, record_name("recovery/", h->id, key), e)) return -1;
    struct history **at = &r->histories;
    while (*at != h) at = &(*at)->next;
    *at = h->next;
    history_free(h);
    return 0;
}

/* ---- the start ---- */

static int load_history(void *arg, struct slice key, struct slice value, struct err *e) {
    struct recovery *r = arg;
    struct rd rd = rd_of(value);
    struct arena a;
    arena_init(&a, 4096, 0);
    uint8_t version = rd_u8(&rd), begun = rd_u8(&rd);
    uint32_t table = rd_u32(&rd);
    int64_t gone_us = (int64_t)rd_u64(&rd);
    uint32_t id = key.n >= 4 ? load_u32(key.p + key.n - 4) : 0,
             lineage = version == RECORD_WITHOUT_LINEAGE ? 0 : rd_u32(&rd);
    const char *keyspace = form_get_text(&rd, &a, e), *name = form_get_text(&rd, &a, e);
    struct history *h = history_new(r, id, keyspace, name, e);
    int rc = h ? 0 : -1;
    for (uint64_t n = h ? rd_uvarint(&rd) : 0; n && !rd.bad && !rc; n--) {
        int64_t from_us = (int64_t)rd_u64(&rd);
        struct slice form = rd_bytes(&rd, rd_uvarint(&rd));
        if (!rd.bad) rc = add_version(h, from_us, form, e);
    }
    if (h) {
        h->table = table;
        h->lineage = lineage ? lineage : table ? table : id; /* ids are unique over tables and histories */
        h->gone_us = gone_us;
        h->begun = begun && h->n_versions && !rd.bad && version > 0 && version <= RECORD_VERSION;
        h->unwanted = !h->begun;
        if (begun && !h->begun)
            log_error("the record of the history of %s.%s is damaged: its tables cannot be restored from it", keyspace,
                      name);
    }
    arena_fini(&a);
    return rc;
}

static int load_plan(void *arg, struct slice key, struct slice value, struct err *e) {
    struct recovery *r = arg;
    struct catalog_object *x = key.n >= 4 ? object_by_id(r->objects, load_u32(key.p + key.n - 4)) : NULL;
    (void)e;
    if (!x || value.n != 12) return 0;
    x->restored_from = load_u32(value.p);
    x->restored_at_us = (int64_t)load_u64(value.p + 4);
    if (x->change) x->change->waits = x->status == SCHEMA_RESTORING;
    return 0;
}

/* ---- histories of a saved state ---- */

struct saved_histories {
    const char *keyspace;
    int (*fn)(void *arg, uint32_t id, struct err *e);
    void *arg;
    uint32_t (*id_of)(const void *arg, uint32_t id);
    const void *id_arg;
    struct meta_batch *batch;
};

/* True if the record is of a history of the keyspace that has begun. */
static bool is_kept(const struct saved_histories *s, struct slice value) {
    struct rd rd = rd_of(value);
    struct arena a;
    struct err e = {0};
    arena_init(&a, 1024, 0);
    uint8_t version = rd_u8(&rd), begun = rd_u8(&rd);
    rd_bytes(&rd, 4 + 8 + (version == RECORD_WITHOUT_LINEAGE ? 0 : 4));
    const char *keyspace = form_get_text(&rd, &a, &e);
    bool kept = !rd.bad && begun && keyspace && !strcmp(keyspace, s->keyspace);
    arena_fini(&a);
    return kept;
}

static int tell_saved(void *arg, struct slice key, struct slice value, struct err *e) {
    const struct saved_histories *s = arg;
    return key.n >= 4 && is_kept(s, value) ? s->fn(s->arg, load_u32(key.p + key.n - 4), e) : 0;
}

int recovery_each_saved(struct eng *state, const char *keyspace, int (*fn)(void *arg, uint32_t id, struct err *e),
                        void *arg, struct err *e) {
    struct saved_histories s = {.keyspace = keyspace, .fn = fn, .arg = arg};
    return eng_meta_scan(state, slice_str("recovery/"), tell_saved, &s, e);
}

static int take_history(void *arg, struct slice key, struct slice value, struct err *e) {
    const struct saved_histories *s = arg;
    uint8_t name[KEY_MAX];
    if (key.n < 4 || !is_kept(s, value)) return 0;
    return meta_batch_put(s->batch, record_name("recovery/", s->id_of(s->id_arg, load_u32(key.p + key.n - 4)), name),
                          value, e);
}

/* Only plans that name a history of the keyspace have an id in id_of; others are skipped. */
static int take_plan(void *arg, struct slice key, struct slice value, struct err *e) {
    const struct saved_histories *s = arg;
    uint8_t plan[12];
    uint32_t id = value.n == sizeof plan ? s->id_of(s->id_arg, load_u32(value.p)) : 0;
    if (!id) return 0;
    memcpy(plan, value.p, sizeof plan);
    store_u32(plan, id);
    return meta_batch_put(s->batch, key, slice_of(plan, sizeof plan), e);
}

int recovery_take_over(struct recovery *r, struct eng *state, const char *keyspace,
                       uint32_t (*id_of)(const void *arg, uint32_t id), const void *arg, struct meta_batch *b,
                       struct err *e) {
    struct saved_histories s = {.keyspace = keyspace, .id_of = id_of, .id_arg = arg, .batch = b};
    for (struct history *h = r->histories; h; h = h->next) {
        uint8_t key[KEY_MAX];
        struct buf value;
        bool unwanted = h->unwanted;
        if (strcmp(h->keyspace, keyspace) != 0) continue;
        buf_init(&value, 0);
        h->unwanted = true; /* it is recorded as not begun, so that it is freed */
        encode(h, &value);
        h->unwanted = unwanted;
        int rc = buf_failed(&value) ? err_nomem(e)
                                    : meta_batch_put(b, record_name("recovery/", h->id, key), buf_slice(&value), e);
        buf_fini(&value);
        if (rc) return -1;
    }
    for (uint32_t i = 0; i < r->objects->n_all; i++) {
        uint8_t key[KEY_MAX];
        const struct catalog_object *x = r->objects->all[i];
        bool planned = x->restored_from && !strcmp(object_context(r->objects, x).keyspace, keyspace);
        if (planned && meta_batch_delete(b, record_name("restore/", x->id, key), e)) return -1;
    }
    if (eng_meta_scan(state, slice_str("recovery/"), take_history, &s, e)) return -1;
    return eng_meta_scan(state, slice_str("restore/"), take_plan, &s, e);
}

int recovery_load(struct recovery *r, struct err *e) {
    struct objects *o = r->objects;
    if (eng_meta_scan(o->eng, slice_str("recovery/"), load_history, r, e)) return -1;
    if (eng_meta_scan(o->eng, slice_str("restore/"), load_plan, r, e)) return -1;
    for (struct history *h = r->histories; h; h = h->next) {
        if (h->unwanted) continue;
        /* The engine follows the history again (W1). If the table is gone and the record does not
         * say when, it counts as gone now. */
        struct catalog_object *x = h->table ? object_by_id(o, h->table) : NULL;
        bool there = x && x->kind == &table_kind && !object_is_gone(x);
        struct err why = {0};
        if (!there) h->table = 0;
        if (eng_history_follow(o->eng, there ? x->storage : 0, h->id, &why)) {
            log_error("the history of %s.%s cannot be used: %s", h->keyspace, h->name, why.text);
            h->unwanted = true;
            h->table = 0;
        } else {
            int64_t at_us = recovery_moment(r, h); /* later commits follow the newest definition */
            if (there) x->history = h->id;
            else if (h->gone_us == INT64_MAX) h->gone_us = at_us;
        }
    }
    for (uint32_t i = 0; i < o->n_all; i++) {
        struct catalog_object *x = o->all[i];
        if (x->status == SCHEMA_RESTORING && !x->restored_from)
            change_fail_with(x->change, "it is not known what it is restored from");
        if (x->kind == &table_kind && x->status == SCHEMA_ACTIVE) follow_table(r, x, false);
    }
    return 0;
}

/* ---- queries ---- */

int64_t catalog_recovery_window_us(const struct catalog *c) { return c->recovery->window_us; }

int64_t catalog_restorable_since(struct catalog *c, uint32_t history) {
    struct recovery *r = c->recovery;
    pthread_mutex_lock(&r->objects->lock);
    const struct history *h = r->histories;
    while (h && h->id != history) h = h->next;
    int64_t since = h ? recovery_earliest(r, h) : INT64_MAX;
    pthread_mutex_unlock(&r->objects->lock);
    return since;
}

struct listed {
    struct history_report report; /* names: in the arena */
    uint32_t id, lineage, number;
    bool restorable; /* tables of its lineage can be restored from it */
    bool unwanted;
};

static int by_lineage(const void *a, const void *b) {
    const struct listed *x = a, *y = b;
    return (x->lineage > y->lineage) - (x->lineage < y->lineage);
}

static int by_number(const void *a, const void *b) {
    const struct listed *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/* Copies the histories, so that neither the engine nor fn is called under the lock. Returns NULL if
 * memory is exhausted. */
static struct listed *list_histories(struct recovery *r, struct arena *a, uint32_t *n) {
    uint32_t room = 1;
    bool failed = false;
    *n = 0;
    pthread_mutex_lock(&r->objects->lock);
    for (const struct history *h = r->histories; h; h = h->next) room++;
    struct listed *all = ARENA_ARRAY(a, room, struct listed);
    for (const struct history *h = r->histories; all && h && !failed; h = h->next) {
        struct listed *x = &all[*n];
        *x = (struct listed){.report = {.keyspace = arena_strdup(a, h->keyspace), .name = arena_strdup(a, h->name),
                                        .begun = h->begun, .gone_us = h->gone_us},
                             .id = h->id, .lineage = h->lineage, .number = (*n)++,
                             .restorable = is_of(h, h->lineage), .unwanted = h->unwanted};
        failed = !x->report.keyspace || !x->report.name;
    }
    pthread_mutex_unlock(&r->objects->lock);
    return failed ? NULL : all;
}

/* Sets the first moment to which tables of each lineage can be restored, as recovery_earliest finds it. */
static void set_earliest(struct recovery *r, struct listed *all, uint32_t n) {
    int64_t window = now_us(r) - r->window_us;
    qsort(all, n, sizeof(*all), by_lineage);
    for (uint32_t i = 0, end; i < n; i = end) {
        int64_t since = INT64_MAX;
        for (end = i; end < n && all[end].lineage == all[i].lineage; end++) {
            int64_t own = all[end].restorable ? eng_history_since(r->objects->eng, all[end].id) : INT64_MAX;
            if (own < since) since = own;
        }
        for (uint32_t k = i; k < end; k++)
            all[k].report.earliest_us = !all[k].report.begun ? INT64_MAX : since > window ? since : window;
    }
    qsort(all, n, sizeof(*all), by_number);
}

int catalog_each_history(struct catalog *c, int (*fn)(void *arg, const struct history_report *h), void *arg) {
    struct recovery *r = c->recovery;
    struct arena a;
    uint32_t n;
    arena_init(&a, 16 * 1024, 0);
    struct listed *all = list_histories(r, &a, &n);
    int rc = all ? 0 : -1;
    if (all) set_earliest(r, all, n);
    for (uint32_t i = 0; i < n && !rc; i++) {
        if (all[i].unwanted) continue;
        all[i].report.bytes = eng_history_bytes(r->objects->eng, all[i].id);
        rc = fn(arg, &all[i].report);
    }
    arena_fini(&a);
    return rc;
}
