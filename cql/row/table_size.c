#include "cql/row/table_size.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "cql/row/row_size.h"
#include "cql/row/row_view.h"
#include "metering/size/size.h"

/* SCAN_ROWS: a scan that has counted so many ends with the bucket, because it keeps what is deleted meanwhile.
 * LISTS: tables are listed by the last digits of their object, so that finding one does not grow with their number. */
enum { CHUNK = 4096, PART_ROWS = 512, PART_BYTES = 1 << 20, SCAN_ROWS = 65536, LISTS = 1024 };

/* One table. */
struct entry {
    struct entry *next;
    uint32_t object, shape, storage;
    bool has_ttl, has_timestamps; /* which change what a row takes, and not the shape */
    char keyspace[64], name[224];
    uint32_t users; /* under the list's lock */
    int64_t last_us; /* likewise: when it was last counted, 0: never; and what it was */
    uint64_t last_bytes;
    pthread_mutex_t lock; /* of what follows */
    bool counted[ENG_BUCKETS];
    struct table_size sums[ENG_BUCKETS];
};

struct table_sizes {
    struct eng *eng;
    struct op_cost rules;
    pthread_mutex_t lock;     /* of the lists */
    struct entry *entries[LISTS];
    pthread_mutex_t ttl_lock; /* of what follows */
    struct catalog *catalog;  /* NULL if TTL deletes are not reported */
    schema_ttl_delete_fn ttl_delete;
    void *ttl_arg;
    const struct schema *schema; /* in which table stands; referenced */
    const struct schema_table *table; /* that was looked for last */
};

/* ---- counting ---- */

/* A bucket of a table, or one row of it. */
struct count {
    const struct table_sizes *s;
    const struct schema_table *t;
    struct arena arena, values; /* of the layout; of the view */
    struct row_view view;
    struct row_sizer sizer;
    struct size_sum rows, statics; /* since the last put_sum */
    uint64_t scanned;              /* rows before */
};

static int count_init(struct count *c, const struct table_sizes *s, const struct schema_table *t, struct err *e) {
    *c = (struct count){.s = s, .t = t};
    arena_init(&c->arena, CHUNK, 0);
    arena_init(&c->values, CHUNK, 0);
    const struct row_view_layout *layout = row_view_layout_of_cells(t, &c->arena);
    if (!layout) return err_nomem(e);
    if (row_view_init(&c->view, layout, &c->values, e)) return -1;
    row_sizer_init(&c->sizer, &c->view, &s->rules);
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

/* Everything that was counted since the last call is in the bucket at position i. */
static void put_sum(struct count *c, struct entry *x, uint32_t i) {
    x->sums[bucket_at(i)] =
        (struct table_size){.rows = c->rows.rows,
                            .static_rows = c->statics.rows,
                            .bytes = size_storage_bytes(c->s->rules.size_model, &c->rows) + c->statics.bytes};
    x->counted[bucket_at(i)] = true;
    c->scanned += c->rows.rows;
    c->rows = c->statics = (struct size_sum){0};
}

/* Puts the buckets from *at on, before position end, as the scan leaves them. It stops between two buckets after
 * SCAN_ROWS rows. The caller may give up after each part, also among rows of which only deletions remain. */
static int add_items(struct count *c, struct entry *x, uint32_t *at, uint32_t end, struct eng_scan *scan,
                     const struct stop_check *stop_check, struct err *e) {
    struct eng_item item;
    int rc;
    for (;;) {
        eng_scan_allow(scan, PART_ROWS, PART_BYTES);
        while ((rc = eng_scan_next(scan, &item, e)) == 1) {
            if (item.kind == ENG_ITEM_PARTITION) {
                uint32_t to = (uint32_t)((uint64_t)item.part.token >> 56) ^ ENG_BUCKETS / 2;
                for (; *at < to; ++*at) put_sum(c, x, *at);
                if (c->scanned >= SCAN_ROWS) return 0;
            }
            if (item.kind == ENG_ITEM_PARTITION ? add_partition(c, &item, e) : add_row(c, item.row, e)) return -1;
        }
        if (rc == 0) break;
        if (rc != ENG_PAUSED) return -1;
        if (stop_check->check && stop_check->check(stop_check->arg)) return -1;
    }
    for (; *at < end; ++*at) put_sum(c, x, *at);
    return 0;
}

/* Counts the buckets from position *at to end in one scan, or some of them: an empty table costs one scan. *at is then
 * the first position that was not counted. Everything that is stored counts: nothing has expired yet. */
static int count_buckets(const struct table_sizes *s, struct entry *x, const struct schema_table *t, uint32_t *at,
                         uint32_t end, const struct stop_check *stop_check, struct err *e) {
    struct eng_scan_spec spec = {.table = t->storage,
                                 .token_from = eng_bucket_from(bucket_at(*at)),
                                 .token_to = eng_bucket_to(bucket_at(end - 1)),
                                 .statics = true,
                                 .rows = true,
                                 .deletions = schema_has_client_timestamps(t),
                                 .now = ENG_NEVER_EXPIRES};
    struct count c;
    int rc = count_init(&c, s, t, e);
    struct eng_scan *scan = rc ? NULL : eng_scan_open(s->eng, ENG_TIER_ANY, &spec, NULL, e);
    if (scan) rc = add_items(&c, x, at, end, scan, stop_check, e);
    if (scan) eng_scan_close(scan);
    count_fini(&c);
    return scan ? rc : -1;
}

static int refresh(struct table_sizes *s, struct entry *x, const struct schema_table *t,
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

static void entry_free(struct entry *x) {
    pthread_mutex_destroy(&x->lock);
    free(x);
}

/* The table's entry, locked. Returns NULL if memory is exhausted. */
static struct entry *take_entry(struct table_sizes *s, const struct schema *schema, const struct schema_table *t) {
    pthread_mutex_lock(&s->lock);
    struct entry **list = &s->entries[t->object % LISTS], *x = *list;
    while (x && x->object != t->object) x = x->next;
    if (!x) {
        for (struct entry **at = list; *at;) { /* forget tables that are gone */
            struct entry *old = *at;
            const struct schema_table *now = schema_table_any(schema, old->keyspace, old->name);
            if (old->users || (now && now->object == old->object)) {
                at = &old->next;
                continue;
            }
            *at = old->next;
            entry_free(old);
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
    struct entry *x = take_entry(s, schema, t);
    if (!x) return err_nomem(e);
    bool ttl = schema_has_ttl(t), timestamps = schema_has_client_timestamps(t);
    bool same = x->shape == t->shape && x->storage == t->storage && x->has_ttl == ttl &&
                x->has_timestamps == timestamps;
    if (!same) memset(x->counted, 0, sizeof(x->counted)); /* of another definition: count all buckets again */
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
    for (const struct entry *x = s->entries[t->object % LISTS]; x; x = x->next) {
        if (x->object != t->object) continue;
        at_us = x->last_us;
        *bytes = x->last_bytes;
        break;
    }
    pthread_mutex_unlock(&s->lock);
    return at_us;
}

/* ---- what TTL takes away ---- */

/* Expiries come table by table: the one before is mostly the one again. */
static const struct schema_table *find_table(struct table_sizes *s, uint32_t storage) {
    if (!s->schema || s->schema->generation != catalog_generation(s->catalog)) {
        if (s->schema) schema_unref(s->schema);
        s->schema = catalog_schema(s->catalog);
        s->table = NULL;
    }
    if (s->table && s->table->storage == storage) return s->table;
    s->table = NULL;
    for (uint32_t i = 0; i < s->schema->n_spaces && !s->table; i++) {
        struct schema_table_cursor at = schema_tables_begin(&s->schema->spaces[i]->tables);
        for (const struct schema_table *t; !s->table && (t = schema_tables_next(&at));)
            if (t->storage == storage && !t->virt) s->table = t;
    }
    return s->table;
}

static uint64_t units_of(const struct table_sizes *s, const struct schema_table *t, const struct eng_expiry *x) {
    struct err e = {0};
    struct count c;
    struct eng_row row = x->row;
    bool is_static = row.kind == ENG_STATIC;
    uint64_t bytes = 0;
    int rc = count_init(&c, s, t, &e);
    if (!rc && eng_row_resolve(&row, ENG_NO_TS, ENG_NEVER_EXPIRES, NULL)) {
        const struct eng_item item = {.part = x->part, .has_static = is_static, .statics = row};
        if (!add_partition(&c, &item, &e) && (is_static || !add_row(&c, &row, &e)))
            bytes = c.rows.bytes + c.statics.bytes;
    }
    count_fini(&c);
    return size_write_steps(bytes);
}

static void on_expiry(void *arg, const struct eng_expiry *x) {
    struct table_sizes *s = arg;
    pthread_mutex_lock(&s->ttl_lock);
    const struct schema_table *t = s->catalog ? find_table(s, x->part.table) : NULL;
    uint64_t units = t ? units_of(s, t, x) : 0;
    if (units) s->ttl_delete(s->ttl_arg, t, units);
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
    if (s->schema) schema_unref(s->schema);
    s->schema = NULL;
    s->table = NULL;
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
        for (struct entry *x; (x = s->entries[i]); entry_free(x)) s->entries[i] = x->next;
    pthread_mutex_destroy(&s->ttl_lock);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
