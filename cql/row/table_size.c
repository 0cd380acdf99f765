#include "cql/row/table_size.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "cql/row/row_size.h"
#include "cql/row/row_view.h"
#include "engine/table.h"
#include "metering/size/size.h"

/* SCAN_ROWS: a scan ends with the bucket after this many rows, because an open scan keeps data that is deleted
 * meanwhile. LISTS: tables are listed by the last digits of their object, so that the time to find one does not grow
  * with their number. */
enum { CHUNK = 4096, PART_ROWS = 512, PART_BYTES = 1 << 20, SCAN_ROWS = 65536, LISTS = 1024 };

struct table_entry {
    struct table_entry *next;
    uint32_t object, shape, storage;
    bool has_ttl, has_timestamps; /* they change the size of a row, and not the shape */
    char keyspace[64], name[224];
    uint32_t users; /* under the lock of the lists */
    int64_t last_us; /* likewise: when it was last counted; 0 if never */
    uint64_t last_bytes; /* its size then */
    pthread_mutex_t lock; /* protects the fields below */
    bool counted[ENG_BUCKETS];
    struct table_size sums[ENG_BUCKETS];
};

/* Adds up the rows of a table. */
struct count {
    const struct schema_table *table;
    struct arena arena, values; /* of the layout; of the view */
    struct row_view view;
    struct row_sizer sizer;
    struct size_sum rows, statics; /* of the current bucket */
    uint64_t scanned;              /* rows of the buckets before it */
};

struct table_sizes {
    struct eng *eng;
    struct op_cost rules;
    pthread_mutex_t lock;     /* of the lists */
    struct table_entry *entries[LISTS];
    pthread_mutex_t ttl_lock; /* protects the fields below */
    struct catalog *catalog;  /* NULL if TTL deletes are not reported */
    schema_ttl_delete_fn ttl_delete;
    void *ttl_arg;
    const struct schema *schema; /* contains the table of the last expired row; referenced */
    struct count expired;        /* of that table; its table is NULL if there is none */
};

/* ---- counting ---- */

static int count_init(struct count *c, const struct op_cost *rules, const struct schema_table *t, struct err *e) {
    *c = (struct count){.table = t};
    arena_init(&c->arena, CHUNK, 0);
    arena_init(&c->values, CHUNK, 0);
    const struct row_view_layout *layout = row_view_layout_of_cells(t, &c->arena);
    if (!layout) return err_nomem(e);
    if (row_view_init(&c->view, layout, 1, &c->values, e)) return -1;
    row_sizer_init(&c->sizer, &c->view, rules);
    return 0;
}

static void count_fini(struct count *c) {
    arena_fini(&c->values);
    arena_fini(&c->arena);
}

static int add_partition(struct count *c, const struct eng_item *item, struct err *e) {
    if (row_view_partition(&c->view, item->part.key, item->has_static ? &item->statics : NULL, e)) return -1;
    row_sizer_partition(&c->sizer);
    if (item->has_static) row_size_add_static(&c->statics, &c->view);
    row_size_add_markers(&c->rows, &c->sizer, item->n_markers);
    return 0;
}

static int add_row(struct count *c, const struct eng_row *row, struct err *e) {
    if (row_view_row(&c->view, row, e)) return -1;
    row_size_add(&c->rows, &c->sizer);
    return 0;
}

/* The bucket at position i in the order of tokens. */
static uint16_t bucket_at(uint32_t i) { return (uint16_t)(i ^ ENG_BUCKETS / 2); }

/* Stores the current bucket's sum in the bucket at position *at, and zeros in those that follow before position end. */
static void put_sums(struct count *c, struct table_entry *x, enum size_model model, uint32_t *at, uint32_t end) {
    for (; *at < end; ++*at) {
        x->sums[bucket_at(*at)] = (struct table_size){.rows = c->rows.rows,
                                                      .static_rows = c->statics.rows,
                                                      .bytes = size_storage_bytes(model, &c->rows) + c->statics.bytes};
        x->counted[bucket_at(*at)] = true;
        c->scanned += c->rows.rows;
        c->rows = c->statics = (struct size_sum){0};
    }
}

/* Counts the buckets from position *at to end in one scan, so that an empty table costs one scan. It stops between two
 * buckets after SCAN_ROWS rows; *at is then the first position that was not counted. The caller may cancel after each
 * part, also among rows of which only deletions remain. Everything that is stored counts: nothing has expired yet. */
static int count_buckets(const struct table_sizes *s, struct table_entry *x, const struct schema_table *t,
                         uint32_t *at, uint32_t end, const struct stop_check *stop_check, struct err *e) {
    enum size_model model = s->rules.size_model;
    struct eng_scan_spec spec = {.table = t->storage,
                                 .token_from = eng_bucket_from(bucket_at(*at)),
                                 .token_to = eng_bucket_to(bucket_at(end - 1)),
                                 .statics = true,
                                 .rows = true,
                                 .deletions = schema_has_client_timestamps(t),
                                 .now = ENG_NEVER_EXPIRES};
    struct count c;
    struct eng_item item;
    int rc = count_init(&c, &s->rules, t, e);
    struct eng_scan *scan = rc ? NULL : eng_scan_open(s->eng, ENG_TIER_ANY, &spec, NULL, e);
    rc = scan ? ENG_PAUSED : -1;
    while (rc == ENG_PAUSED) {
        eng_scan_allow(scan, PART_ROWS, PART_BYTES);
        while ((rc = eng_scan_next(scan, &item, e)) == 1) {
            if (item.kind == ENG_ITEM_PARTITION)
                put_sums(&c, x, model, at, (uint32_t)((uint64_t)item.part.token >> 56) ^ ENG_BUCKETS / 2);
            if (item.kind == ENG_ITEM_PARTITION && c.scanned >= SCAN_ROWS) break;
            if (item.kind == ENG_ITEM_PARTITION ? add_partition(&c, &item, e) : add_row(&c, item.row, e)) {
                rc = -1;
                break;
            }
        }
        if (rc == ENG_PAUSED && stop_check->check && stop_check->check(stop_check->arg)) rc = -1;
    }
    if (rc == 0) put_sums(&c, x, model, at, end);
    if (scan) eng_scan_close(scan);
    count_fini(&c);
    return rc < 0 ? -1 : 0;
}

static int refresh(struct table_sizes *s, struct table_entry *x, const struct schema_table *t,
                   const struct stop_check *stop_check, struct err *e) {
    for (uint32_t i = 0; i < ENG_BUCKETS; i++)
        if (eng_changed_take(s->eng, t->storage, bucket_at(i))) x->counted[bucket_at(i)] = false;
    for (uint32_t i = 0; i < ENG_BUCKETS;) {
        uint32_t end = i;
        while (end < ENG_BUCKETS && !x->counted[bucket_at(end)]) end++;
        if (end == i) i++;
        else if (count_buckets(s, x, t, &i, end, stop_check, e)) return -1;
    }
    return 0;
}

/* ---- the tables ---- */

/* The table's entry, locked. Returns NULL if memory is exhausted. */
static struct table_entry *lock_entry(struct table_sizes *s, const struct schema *schema,
                                      const struct schema_table *t) {
    pthread_mutex_lock(&s->lock);
    struct table_entry **list = &s->entries[t->object % LISTS], *x = *list;
    while (x && x->object != t->object) x = x->next;
    if (!x) {
        for (struct table_entry **at = list; *at;) { /* forget tables that are gone */
            struct table_entry *old = *at;
            const struct schema_table *now = schema_table_any(schema, old->keyspace, old->name);
            if (old->users || (now && now->object == old->object)) {
                at = &old->next;
                continue;
            }
            *at = old->next;
            pthread_mutex_destroy(&old->lock);
            free(old);
        }
        x = calloc(1, sizeof(*x));
        if (x) {
            x->object = t->object;
            snprintf(x->keyspace, sizeof(x->keyspace), "%s", t->keyspace->name);
            snprintf(x->name, sizeof(x->name), "%s", t->name);
            pthread_mutex_init(&x->lock, NULL);
            x->next = *list;
            *list = x;
        }
    }
    if (x) x->users++;
    pthread_mutex_unlock(&s->lock);
    if (x) pthread_mutex_lock(&x->lock);
    return x;
}

int table_billable_bytes(struct table_sizes *s, const struct schema *schema, const struct schema_table *t,
                         int64_t now_us, const struct stop_check *stop_check, struct table_size *out,
                         struct err *e) {
    *out = (struct table_size){0};
    if (t->virt) return 0;
    struct table_entry *x = lock_entry(s, schema, t);
    if (!x) return err_nomem(e);
    bool ttl = schema_has_ttl(t), timestamps = schema_has_client_timestamps(t);
    bool same = x->shape == t->shape && x->storage == t->storage && x->has_ttl == ttl &&
                x->has_timestamps == timestamps;
    if (!same) memset(x->counted, 0, sizeof(x->counted)); /* the definition has changed: count all buckets again */
    x->shape = t->shape;
    x->storage = t->storage;
    x->has_ttl = ttl;
    x->has_timestamps = timestamps;
    int rc = refresh(s, x, t, stop_check, e);
    for (uint32_t i = 0; i < ENG_BUCKETS; i++) {
        out->rows += x->sums[i].rows;
        out->static_rows += x->sums[i].static_rows;
        out->bytes += x->sums[i].bytes;
    }
    pthread_mutex_unlock(&x->lock);
    pthread_mutex_lock(&s->lock);
    x->users--;
    if (!rc && now_us >= x->last_us) {
        x->last_us = now_us;
        x->last_bytes = out->bytes;
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

int64_t table_billable_last(struct table_sizes *s, const struct schema_table *t, uint64_t *bytes) {
    int64_t at_us = 0;
    *bytes = 0;
    pthread_mutex_lock(&s->lock);
    for (const struct table_entry *x = s->entries[t->object % LISTS]; x; x = x->next) {
        if (x->object != t->object) continue;
        at_us = x->last_us;
        *bytes = x->last_bytes;
        break;
    }
    pthread_mutex_unlock(&s->lock);
    return at_us;
}

/* ---- TTL deletes ---- */

static void forget_expired(struct table_sizes *s) {
    if (s->expired.table) count_fini(&s->expired);
    s->expired.table = NULL;
}

/* The count for rows of the table. Mostly the row before was of the same table, whose count is used again. */
static struct count *count_expired(struct table_sizes *s, uint32_t storage, struct err *e) {
    if (!s->schema || s->schema->generation != catalog_generation(s->catalog)) {
        forget_expired(s);
        if (s->schema) schema_unref(s->schema);
        s->schema = catalog_schema(s->catalog);
    }
    if (s->expired.table && s->expired.table->storage == storage) return &s->expired;
    forget_expired(s);
    for (uint32_t i = 0; i < s->schema->n_spaces; i++) {
        struct schema_table_cursor at = schema_tables_begin(&s->schema->spaces[i]->tables);
        for (const struct schema_table *t; (t = schema_tables_next(&at));) {
            if (t->storage != storage || t->virt) continue;
            if (!count_init(&s->expired, &s->rules, t, e)) return &s->expired;
            forget_expired(s);
            return NULL;
        }
    }
    return NULL;
}

static void on_expiry(void *arg, const struct eng_expiry *x) {
    struct table_sizes *s = arg;
    struct err e = {0};
    struct eng_row row = x->row;
    bool is_static = row.kind == ENG_STATIC;
    pthread_mutex_lock(&s->ttl_lock);
    struct count *c = s->catalog ? count_expired(s, x->part.table, &e) : NULL;
    if (c && eng_row_resolve(&row, ENG_NO_TS, ENG_NEVER_EXPIRES, NULL)) {
        const struct eng_item item = {.part = x->part, .has_static = is_static, .statics = row};
        c->rows = c->statics = (struct size_sum){0};
        if (!add_partition(c, &item, &e) && (is_static || !add_row(c, &row, &e))) {
            uint64_t units = size_write_steps(c->rows.bytes + c->statics.bytes);
            if (units) s->ttl_delete(s->ttl_arg, c->table, units);
        }
    }
    pthread_mutex_unlock(&s->ttl_lock);
}

void table_sizes_watch(struct table_sizes *s, struct catalog *c, schema_ttl_delete_fn fn, void *arg) {
    pthread_mutex_lock(&s->ttl_lock);
    s->ttl_delete = fn;
    s->ttl_arg = arg;
    s->catalog = c;
    pthread_mutex_unlock(&s->ttl_lock);
    eng_on_expiry(s->eng, on_expiry, s);
}

void table_sizes_unwatch(struct table_sizes *s) {
    eng_on_expiry(s->eng, NULL, NULL);
    pthread_mutex_lock(&s->ttl_lock);
    forget_expired(s);
    if (s->schema) schema_unref(s->schema);
    s->schema = NULL;
    s->catalog = NULL;
    pthread_mutex_unlock(&s->ttl_lock);
}

/* ---- life ---- */

struct table_sizes *table_sizes_new(struct eng *eng, const struct op_cost *rules, struct err *e) {
    struct table_sizes *s = calloc(1, sizeof(*s));
    if (!s) return err_nomem(e), NULL;
    s->eng = eng;
    s->rules = *rules;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->ttl_lock, NULL);
    return s;
}

void table_sizes_free(struct table_sizes *s) {
    if (!s) return;
    for (uint32_t i = 0; i < LISTS; i++)
        for (struct table_entry *x = s->entries[i], *next; x; x = next) {
            next = x->next;
            pthread_mutex_destroy(&x->lock);
            free(x);
        }
    pthread_mutex_destroy(&s->ttl_lock);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
