#include "server/admission.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/log.h"
#include "metering/guidance.h"
#include "metering/size/size.h"

struct admission {
    pthread_mutex_t lock;
    struct limiter *limiter;
    struct catalog *catalog;
    struct catalog_listener listener;
    struct clock *clock;
    struct ledger *ledger;
    struct catalog_scaling scaling;
};

static struct limit_time limit_time_of(const struct admission *a) {
    return (struct limit_time){.now_us = clock_mono_us(a->clock), .wall_us = clock_wall_us(a->clock)};
}

/* Locks the limiter and sets its time. The clocks are read before the lock is taken: the limiter
 * ignores a reading that is older than its time (T2). */
static void lock(struct admission *a) {
    const struct limit_time now = limit_time_of(a);
    pthread_mutex_lock(&a->lock);
    limiter_set_time(a->limiter, now);
}

/* ---- the capacity of tables ---- */

static int define(struct admission *a, const struct schema_table *t) {
    static const enum limit_id begins[] = {LIMIT_ON_DEMAND_READ, LIMIT_ON_DEMAND_WRITE};
    struct table_capacity k;
    struct capacity of[2];
    schema_capacity(t, &k);
    for (int i = READ_CAPACITY; i <= WRITE_CAPACITY; i++) {
        const struct scaling_settings *s = &t->settings.scaling[i];
        of[i] = (struct capacity){.provisioned = k.provisioned,
                                  .units = k.units[i],
                                  /* only what a new table does not have; warm throughput can only be raised */
                                  .warm = k.warm[i] > limit_info(begins[i])->value ? k.warm[i] : 0,
                                  .scaling = {.enabled = !s->autoscaling_disabled,
                                              .minimum = s->minimum_units,
                                              .maximum = s->maximum_units,
                                              .target_percent = s->target_value,
                                              .in_cooldown_s = s->scale_in_cooldown,
                                              .out_cooldown_s = s->scale_out_cooldown,
                                              .no_scale_in = s->disable_scale_in}};
    }
    return limiter_define(a->limiter, t->object, t->keyspace->name, t->name, &of[READ_CAPACITY], &of[WRITE_CAPACITY]);
}

/* Drops from the limiter the tables that the schema no longer has: a keyspace was dropped. */
static void drop_gone(struct admission *a, const struct schema *s) {
    const struct limit_table *l;
    for (uint32_t i = 1; (l = limiter_table(a->limiter, i));) {
        const struct schema_table *t = schema_table_any(s, l->keyspace, l->table);
        if (t && t->object == l->object && t->status != SCHEMA_DELETING) i++;
        else limiter_drop(a->limiter, l->object);
    }
}

static void on_change(void *arg, const struct schema_change *change) {
    struct admission *a = arg;
    const struct schema *s = catalog_schema(a->catalog);
    const struct schema_table *t = change->target == TARGET_TABLE ? schema_table_any(s, change->keyspace, change->name)
                                                                  : NULL;
    lock(a); /* from when on a changed capacity counts */
    bool goes = change->kind == CHANGE_DROPPED || change->kind == CHANGE_GONE;
    if (goes && change->target == TARGET_TABLE) limiter_drop(a->limiter, change->object);
    else if (goes && change->target == TARGET_KEYSPACE) drop_gone(a, s);
    else if (t) (void)define(a, t);
    pthread_mutex_unlock(&a->lock);
    schema_unref(s);
}

struct catalog_quota admission_quota(const struct limit_values *v) {
    return (struct catalog_quota){
        .table_units =
            {[READ_CAPACITY] = v->of[LIMIT_TABLE_READ], [WRITE_CAPACITY] = v->of[LIMIT_TABLE_WRITE]},
        .account_units =
            {[READ_CAPACITY] = v->of[LIMIT_ACCOUNT_READ], [WRITE_CAPACITY] = v->of[LIMIT_ACCOUNT_WRITE]},
        .types = v->of[LIMIT_TYPES],
        .type_depth = v->of[LIMIT_TYPE_DEPTH]};
}

static bool scaled_units(void *arg, uint32_t object, int64_t units[2]) {
    struct admission *a = arg;
    lock(a);
    const struct limit_table *t = limiter_table_of(a->limiter, object);
    bool scaled = t && t->read.provisioned && (t->read.scaled || t->write.scaled);
    if (scaled) {
        units[READ_CAPACITY] = capacity_rate(&t->read, INT64_MAX);
        units[WRITE_CAPACITY] = capacity_rate(&t->write, INT64_MAX);
    }
    pthread_mutex_unlock(&a->lock);
    return scaled;
}

/* ---- the items of a request ---- */

static int by_partition(const void *a, const void *b) {
    const struct charge_item *x = a, *y = b;
    if (x->object != y->object) return x->object < y->object ? -1 : 1;
    if (x->one_partition != y->one_partition) return x->one_partition - y->one_partition;
    return (x->token > y->token) - (x->token < y->token);
}

/* Sorts the items and merges those of one partition, as limiter.h requires. Returns how many remain. */
static uint32_t merge_items(struct charge_item *items, uint32_t n) {
    uint32_t merged = 0;
    qsort(items, n, sizeof(*items), by_partition);
    for (uint32_t i = 0; i < n; i++) {
        struct charge_item *last = merged ? &items[merged - 1] : NULL;
        if (!last || by_partition(last, &items[i])) {
            items[merged++] = items[i];
            continue;
        }
        last->read_halves += items[i].read_halves;
        last->write_units += items[i].write_units;
        last->entities += items[i].entities;
    }
    return merged;
}

/* ---- the group rules ---- */

static int by_row(const void *a, const void *b) {
    const struct slice *x = a, *y = b;
    return slice_cmp(*x, *y);
}

static int put_group(struct limit_request *ask, const struct cql_run *r, uint32_t n_writes, struct err *e) {
    const struct op_cost *c = r->cost;
    bool one_partition = r->answer.stmt_kind == STMT_BATCH && n_writes > 1 && ask->n_items == 1 && !c->reads;
    if (!one_partition) return 0;
    struct slice *rows = ARENA_ARRAY(r->arena, n_writes, struct slice);
    if (!rows) return err_nomem(e);
    uint32_t k = 0;
    for (const struct op_write *w = c->writes; w; w = w->next) {
        if (w->row_key.p) rows[k++] = w->row_key;
        if (w->has_row) ask->group_bytes += (int64_t)w->row.bytes;
        if (w->has_static) ask->group_bytes += (int64_t)w->statics.bytes;
    }
    qsort(rows, k, sizeof(*rows), by_row);
    ask->group_operations = n_writes;
    ask->group_same_row = 1;
    int64_t in_row = 1;
    for (uint32_t i = 1; i < k; i++) {
        in_row = slice_eq(rows[i], rows[i - 1]) ? in_row + 1 : 1;
        if (in_row > ask->group_same_row) ask->group_same_row = in_row;
    }
    return 0;
}

/* ---- the answer ---- */

/* The error of a write says 0 of 2 responses at LOCAL_QUORUM, as that of Amazon Keyspaces does. */
static int refuse(const struct cql_run *r, const struct limit_over *o, struct err *e) {
    bool write = r->cost->writes && !limit_is_of_reads(o->limit);
    struct buf why;
    buf_init(&why, 0);
    /* A batch that breaks a group rule can never succeed. Drivers retry after a timeout, and do not
     * retry after Invalid. */
    if (limit_is_group_rule(o->limit)) {
        limit_over_text(o, &why);
        return err_set_buf(e, ERR_INVALID, &why);
    }
    if (!stmt_is_data(r->answer.stmt_kind)) { /* USE, changes of the schema and of roles: no read or write timed out */
        limit_over_text(o, &why);
        return err_set_buf(e, ERR_OVERLOADED, &why);
    }
    buf_put_str(&why, "Operation timed out - received only 0 responses. ");
    limit_over_text(o, &why);
    int rc = err_set_buf(e, write ? ERR_WRITE_TIMEOUT : ERR_READ_TIMEOUT, &why);
    uint16_t consistency = write ? CL_LOCAL_QUORUM : r->in->params.consistency;
    bool one = consistency == CL_ONE || consistency == CL_LOCAL_ONE;
    e->detail = (struct err_detail){.consistency = consistency, .required = one ? 1 : 2};
    if (write) snprintf(e->detail.write_type, sizeof(e->detail.write_type), "%s", r->answer.write_type);
    return rc;
}

static int answer(struct cql_run *r, const struct limit_verdict *v, struct err *e) {
    if (LIKELY(v->over.limit == LIMITS && v->guidance.limit == LIMITS)) return 0;
    struct limit_verdict *copy = ARENA_NEW(r->arena, struct limit_verdict);
    if (!copy) return err_nomem(e);
    *copy = *v;
    if (!r->cost->is_write && r->cost->reads) copy->guidance.read = guidance_class_name(r->cost->guidance_class);
    r->answer.verdict = copy;
    if (v->over.limit != LIMITS && v->over.enforced) return refuse(r, &v->over, e);
    if (v->guidance.limit == LIMITS) return 0;
    if (v->guidance.enforced) return refuse(r, &copy->guidance, e);
    struct buf text;
    buf_init(&text, 0);
    limit_over_text(&copy->guidance, &text);
    int rc = cql_warn(r, "%.*s", SLICE_FMT(buf_slice(&text)));
    buf_fini(&text);
    return rc;
}

static bool is_limited(const struct limiter_options *o, const struct charge_item *item) {
    return limit_rules_find(&o->rules, item->keyspace, item->table, o->mode) != LIMITS_OFF;
}

static int admit(void *arg, struct cql_run *r, struct err *e) {
    struct admission *a = arg;
    const struct op_cost *c = r->cost;
    const struct limiter_options *o = limiter_options(a->limiter);
    if (r->in->kind == REQUEST_PREPARE) return 0;
    /* No limit applies to system_control: while the clock is frozen, nothing but a statement on it makes room again.
     * DESCRIBE and LIST read no table, so their cost has no keyspace. */
    if (c->is_system && c->keyspace && !strcmp(c->keyspace, "system_control")) return 0;
    const struct op_read *reads = c->is_system ? NULL : c->reads;
    const struct op_write *writes = c->is_system ? NULL : c->writes;
    uint32_t n_reads = 0, n_writes = 0, n = 0;
    bool limited = o->mode != LIMITS_OFF || o->guidance != GUIDANCE_OFF;
    for (const struct op_read *x = reads; x; x = x->next) {
        n_reads++;
        limited = limited || is_limited(o, &x->item);
    }
    for (const struct op_write *x = writes; x; x = x->next) {
        n_writes++;
        limited = limited || is_limited(o, &x->item);
    }
    if (!limited) return 0;
    struct limit_request ask = {.connection = r->session->limit, .statements = n_reads > 1 ? n_reads : 1};
    if (n_reads + n_writes == 1) {
        ask.items = reads ? &reads->item : &writes->item;
        ask.n_items = 1;
    } else if (n_reads + n_writes > 1) {
        struct charge_item *items = ARENA_ARRAY(r->arena, n_reads + n_writes, struct charge_item);
        if (!items) return err_nomem(e);
        for (const struct op_read *x = reads; x; x = x->next) items[n++] = x->item;
        for (const struct op_write *x = writes; x; x = x->next) items[n++] = x->item;
        ask.n_items = merge_items(items, n);
        ask.items = items;
    }
    struct limit_verdict v;
    if (o->guidance != GUIDANCE_OFF && put_group(&ask, r, n_writes, e)) return -1;
    lock(a);
    r->answer.admitted_us = limiter_wall_us(a->limiter);
    limiter_admit(a->limiter, &ask, &v);
    pthread_mutex_unlock(&a->lock);
    return answer(r, &v, e);
}

/* Before a read runs: refuses it when the table has no capacity left. A read's cost is known
 * only afterwards; a read that would then be refused would have used the server's time for
 * nothing. */
static int begin(void *arg, struct cql_run *r, const struct schema_table *t, struct err *e) {
    struct admission *a = arg;
    const struct limiter_options *o = limiter_options(a->limiter);
    struct limit_verdict v;
    if (limit_rules_find(&o->rules, t->keyspace->name, t->name, o->mode) != LIMITS_ENFORCE) return 0;
    lock(a);
    bool may = limiter_may_read(a->limiter, t->object, r->session->limit, &v);
    pthread_mutex_unlock(&a->lock);
    return may ? 0 : answer(r, &v, e);
}

void admission_reverse(void *arg, const struct ledger_posting *posting, struct limit_took took) {
    struct admission *a = arg;
    if (!posting->n) return;
    lock(a);
    limiter_reverse(a->limiter, &posting->first, took);
    for (uint32_t i = 0; i + 1 < posting->n; i++) limiter_reverse(a->limiter, &posting->others[i], took);
    pthread_mutex_unlock(&a->lock);
}

/* ---- the limiter's state in the ledger's file ---- */

struct restoring {
    struct admission *a;
    const struct schema *schema;
};

static int restore(void *arg, const struct table_stats *b, struct slice state) {
    const struct restoring *r = arg;
    const struct schema_table *t = b->object ? schema_table_any(r->schema, b->keyspace, b->name) : NULL;
    bool there = !b->object || (t && t->object == b->object && t->status != SCHEMA_DELETING);
    return there ? limiter_restore(r->a->limiter, b->object, state) : 0;
}

static void note(void *arg, const struct limit_table *t, struct slice state) {
    ledger_note_limits(arg, t->object, t->keyspace, t->table, state);
}

static void save(void *arg) {
    struct admission *a = arg;
    pthread_mutex_lock(&a->lock);
    if (limiter_save(a->limiter, note, a->ledger))
        log_warn("no memory to save the limiter's state; the next attempt is in a second");
    pthread_mutex_unlock(&a->lock);
}

/* ---- several servers ---- */

int admission_demands(void *arg, struct limit_demands *out) {
    struct admission *a = arg;
    lock(a);
    int rc = limiter_demands(a->limiter, out);
    pthread_mutex_unlock(&a->lock);
    return rc;
}

void admission_divide(void *arg, struct limit_demand *others, size_t n) {
    struct admission *a = arg;
    lock(a);
    limiter_divide(a->limiter, others, n);
    pthread_mutex_unlock(&a->lock);
}

/* ---- life ---- */

struct admission *admission_new(const struct limiter_options *o, struct catalog *c, struct clock *clock,
                                struct ledger *ledger, struct err *e) {
    struct admission *a = calloc(1, sizeof(*a));
    if (a) a->limiter = limiter_new(o);
    if (!a || !a->limiter) {
        free(a);
        return err_null(err_nomem(e));
    }
    a->catalog = c;
    a->clock = clock;
    a->ledger = ledger;
    pthread_mutex_init(&a->lock, NULL);
    limiter_set_time(a->limiter, limit_time_of(a));
    const struct schema *s = catalog_schema(c);
    int rc = ledger_limits(ledger, restore, &(struct restoring){.a = a, .schema = s});
    for (uint32_t i = 0; !rc && i < s->n_spaces; i++) {
        if (s->spaces[i]->keyspace->is_system) continue;
        struct schema_table_cursor tables = schema_tables_begin(&s->spaces[i]->tables);
        /* When there is no memory for a table, it stays unlimited until the schema changes
         * again. */
        for (const struct schema_table *t; (t = schema_tables_next(&tables));) (void)define(a, t);
    }
    schema_unref(s);
    a->listener = (struct catalog_listener){.changed = on_change, .arg = a};
    catalog_on_change(c, &a->listener);
    a->scaling = (struct catalog_scaling){scaled_units, a};
    catalog_set_scaling(c, &a->scaling);
    ledger_each_second(ledger, save, a);
    if (!rc) return a;
    admission_free(a);
    return err_null(err_nomem(e));
}

void admission_free(struct admission *a) {
    ledger_each_second(a->ledger, NULL, NULL);
    catalog_set_scaling(a->catalog, NULL);
    save(a);
    catalog_off_change(a->catalog, &a->listener);
    limiter_free(a->limiter);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

const struct limiter_options *admission_options(const struct admission *a) { return limiter_options(a->limiter); }

struct cql_admission admission_of(struct admission *a) {
    const struct limiter_options *o = admission_options(a);
    bool limits = o->mode != LIMITS_OFF || o->rules.n;
    if (!limits && o->guidance == GUIDANCE_OFF) return (struct cql_admission){0};
    return (struct cql_admission){.admit = admit, .begin = limits ? begin : NULL, .arg = a};
}

bool admission_table(struct admission *a, uint32_t object, struct limit_table *out) {
    lock(a);
    const struct limit_table *t = limiter_table_of(a->limiter, object);
    if (t) *out = *t;
    pthread_mutex_unlock(&a->lock);
    return t != NULL;
}

int admission_tables(struct admission *a, admission_table_fn fn, void *arg) {
    const struct limit_table *t;
    int rc = 0;
    lock(a);
    for (uint32_t i = 0; !rc && (t = limiter_table(a->limiter, i)); i++) rc = fn(arg, t);
    pthread_mutex_unlock(&a->lock);
    return rc;
}
