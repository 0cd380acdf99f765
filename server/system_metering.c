#include "server/system_metering.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "keyspaces/quota.h"
#include "keyspaces/report.h"
#include "metering/charge.h"

/* ---- tables, query_classes and recovery ---- */

/* The figures of a table, copied while the ledger's lock is held. */
struct account {
    uint32_t object;
    char keyspace[STATS_NAME], name[STATS_NAME];
    struct figures total, last_minute;
    struct stats_second last_second;
};

struct accounts {
    size_t n, cap;
    struct account *list; /* by object */
};

static int copy_account(void *arg, const struct table_stats *t, uint32_t second) {
    struct accounts *a = arg;
    if (array_room(&a->list, a->n, &a->cap, sizeof(*a->list))) return -1;
    const struct stats_second *s = stats_second(t, second - 1);
    const struct stats_minute *m = stats_minute(t, second / 60 - 1);
    struct account *to = &a->list[a->n++];
    *to = (struct account){.object = t->object, .total = t->total};
    memcpy(to->keyspace, t->keyspace, sizeof(to->keyspace));
    memcpy(to->name, t->name, sizeof(to->name));
    if (s) to->last_second = *s;
    if (m) to->last_minute = m->cell.f;
    return 0;
}

static int by_object(const void *key, const void *element) {
    uint32_t a = *(const uint32_t *)key, b = ((const struct account *)element)->object;
    return (a > b) - (a < b);
}

typedef int (*table_fn)(struct row_out *ro, const struct schema_table *t, const struct account *a);

/* Calls fn for each table of users, by name, with the ledger's figures of it, or zeros. */
static int each_table(struct row_out *ro, table_fn fn) {
    struct accounts all = {0};
    int rc = 0;
    if (ledger_tables(metering_of(ro->table)->ledger, copy_account, &all)) rc = err_nomem(ro->ctx->err);
    for (uint32_t i = 0; !rc && i < ro->ctx->schema->n_spaces; i++) {
        const struct schema_space *space = ro->ctx->schema->spaces[i];
        if (space->keyspace->is_system || !row_out_wants(ro, 0, space->keyspace->name)) continue;
        struct schema_table_cursor c = schema_tables_begin(&space->tables);
        for (const struct schema_table *t; !rc && (t = schema_tables_next(&c));) {
            const struct account none = {.object = t->object};
            const struct account *a =
                all.n ? bsearch(&t->object, all.list, all.n, sizeof(*all.list), by_object) : NULL;
            rc = fn(ro, t, a ? a : &none);
        }
    }
    free(all.list);
    return rc;
}

static uint64_t sum_of(const struct figures *f, enum operation_figure figure) {
    uint64_t sum = 0;
    for (int o = 0; o < OPERATIONS; o++) sum += f->of[o][figure];
    return sum;
}

static uint64_t sum_classes(const struct figures *f, enum figure first) {
    uint64_t sum = 0;
    for (int class = QUERY_POINT; class <= QUERY_TABLE_SCAN; class++) sum += f->n[first + class];
    return sum;
}

static int emit_table(struct row_out *ro, const struct schema_table *t, const struct account *a) {
    const struct figures *f = &a->total;
    row_names(ro, t);
    row_count(ro, "bytes_read", f->n[FIGURE_BYTES_READ]);
    row_count(ro, "condition_failed", f->n[FIGURE_CONDITION_FAILED]);
    row_count(ro, "entities", f->n[FIGURE_ENTITIES]);
    row_count(ro, "entities_last_minute", a->last_minute.n[FIGURE_ENTITIES]);
    row_count(ro, "entities_last_second", a->last_second.entities);
    enum order_pattern pattern = ledger_pattern(metering_of(ro->table)->ledger, t->object);
    row_text(ro, "pattern", pattern == ORDER_NONE ? NULL : order_pattern_name(pattern));
    row_count(ro, "read_throttles", sum_of(f, OF_READ_THROTTLES));
    row_double(ro, "read_units", (double)f->n[FIGURE_READ_UNITS] / 2);
    row_double(ro, "read_units_last_minute", (double)a->last_minute.n[FIGURE_READ_UNITS] / 2);
    row_double(ro, "read_units_last_second", (double)a->last_second.read_units / 2);
    row_count(ro, "requests", sum_of(f, OF_REQUESTS));
    row_count(ro, "rows_read", sum_classes(f, FIGURE_POINT_SCANNED));
    row_count(ro, "rows_returned", sum_classes(f, FIGURE_POINT_RETURNED));
    row_double(ro, "static_write_units", (double)f->n[FIGURE_STATIC_WRITE_UNITS]);
    row_count(ro, "throttles_last_minute",
              sum_of(&a->last_minute, OF_READ_THROTTLES) + sum_of(&a->last_minute, OF_WRITE_THROTTLES));
    row_count(ro, "throttles_last_second", a->last_second.throttles);
    row_count(ro, "ttl_deletes", f->n[FIGURE_TTL_DELETES]);
    row_count(ro, "write_throttles", sum_of(f, OF_WRITE_THROTTLES));
    row_double(ro, "write_units", (double)f->n[FIGURE_WRITE_UNITS]);
    row_double(ro, "write_units_last_minute", (double)a->last_minute.n[FIGURE_WRITE_UNITS]);
    row_double(ro, "write_units_last_second", (double)a->last_second.write_units);
    return row_out_emit(ro);
}

YIELDS_METERING(tables) { return each_table(ro, emit_table); }

static int emit_classes(struct row_out *ro, const struct schema_table *t, const struct account *a) {
    static const enum query_class by_name[] = {QUERY_PARTITION_RANGE, QUERY_POINT, QUERY_ROW_RANGE, QUERY_TABLE_SCAN};
    for (size_t i = 0; i < ARRAY_LEN(by_name); i++) {
        enum query_class class = by_name[i];
        uint64_t reads = a->total.n[FIGURE_POINT_READS + class], scanned = a->total.n[FIGURE_POINT_SCANNED + class];
        uint64_t returned = a->total.n[FIGURE_POINT_RETURNED + class];
        if (!reads) continue;
        row_names(ro, t);
        row_text(ro, "query_class", query_class_name(class));
        if (scanned) row_double(ro, "density", (double)returned / (double)scanned);
        row_count(ro, "reads", reads);
        row_count(ro, "rows_read", scanned);
        row_count(ro, "rows_returned", returned);
        if (row_out_emit(ro)) return -1;
    }
    return 0;
}

YIELDS_METERING(query_classes) { return each_table(ro, emit_classes); }

struct recovery_rows {
    struct row_out *ro;
    struct catalog *catalog;
    int number;
};

static int emit_history(void *arg, const struct history_report *h) {
    struct recovery_rows *r = arg;
    struct row_out *ro = r->ro;
    row_text_copy(ro, "keyspace_name", h->keyspace);
    row_text_copy(ro, "table_name", h->name);
    row_int(ro, "history", ++r->number);
    row_count(ro, "bytes", h->bytes);
    if (h->begun) row_long(ro, "earliest_restorable_timestamp", h->earliest_us / 1000);
    if (h->gone_us != INT64_MAX)
        row_long(ro, "restorable_until_time", (h->gone_us + catalog_recovery_window_us(r->catalog)) / 1000);
    return row_out_emit(ro);
}

YIELDS_METERING(recovery) {
    const struct system_metering *m = ro->table->virt->owner;
    struct recovery_rows r = {.ro = ro, .catalog = m->catalog};
    return catalog_each_history(r.catalog, emit_history, &r);
}

/* ---- storage ---- */

YIELDS_METERING(storage) {
    struct cql_db *db = metering_of(ro->table)->db;
    for (uint32_t i = 0; i < ro->ctx->schema->n_spaces; i++) {
        const struct schema_space *space = ro->ctx->schema->spaces[i];
        if (space->keyspace->is_system || !row_out_wants(ro, 0, space->keyspace->name)) continue;
        struct schema_table_cursor c = schema_tables_begin(&space->tables);
        for (const struct schema_table *t; (t = schema_tables_next(&c));) {
            struct table_size size;
            if (!row_out_wants(ro, 1, t->name)) continue;
            if (cql_table_billable_bytes(db, ro->ctx->schema, t, &ro->ctx->stop_check, &size, ro->ctx->err)) return -1;
            row_names(ro, t);
            row_count(ro, "billable_bytes", size.bytes);
            row_count(ro, "rows", size.rows);
            row_count(ro, "static_rows", size.static_rows);
            if (row_out_emit(ro)) return -1;
        }
    }
    return 0;
}

/* ---- partitions, statements, connections and roles: the subjects with the highest charges ---- */

/* Writes a load, which the ledger keeps in halves of read units. */
static void row_load(struct row_out *ro, const char *column, uint64_t halves) {
    row_double(ro, column, (double)halves / 2);
}

static void row_window_load(struct row_out *ro, const char *column, const struct usage_window *w) {
    row_load(ro, column, usage_load(w->n[USAGE_READ_HALVES], w->n[USAGE_WRITE_UNITS]));
}

/* Writes three columns: the figure's total, and its value in the last whole minute and second. */
static void row_figure(struct row_out *ro, const char *name, const struct usage *u, enum usage_figure f) {
    char column[64];
    row_count(ro, name, usage_all(u, f));
    snprintf(column, sizeof(column), "%s_last_minute", name);
    row_count(ro, column, u->last_minute.n[f]);
    snprintf(column, sizeof(column), "%s_last_second", name);
    row_count(ro, column, u->last_second.n[f]);
}

static void row_units(struct row_out *ro, const char *name, const struct usage *u, enum usage_figure f, double unit) {
    char column[64];
    row_double(ro, name, unit * (double)usage_all(u, f));
    snprintf(column, sizeof(column), "%s_last_minute", name);
    row_double(ro, column, unit * u->last_minute.n[f]);
    snprintf(column, sizeof(column), "%s_last_second", name);
    row_double(ro, column, unit * u->last_second.n[f]);
}

/* Writes the columns that all four tables have. */
static void row_use(struct row_out *ro, const struct usage *u) {
    row_figure(ro, "entities", u, USAGE_ENTITIES);
    row_units(ro, "read_units", u, USAGE_READ_HALVES, 0.5);
    row_figure(ro, "throttles", u, USAGE_THROTTLES);
    row_units(ro, "write_units", u, USAGE_WRITE_UNITS, 1);
}

static int by_partition(const void *a, const void *b) {
    const struct ledger_partition *x = a, *y = b;
    int c = strcmp(x->keyspace, y->keyspace);
    if (!c) c = strcmp(x->table, y->table);
    return c ? c : (x->p.token > y->p.token) - (x->p.token < y->p.token);
}

YIELDS_METERING(partitions) {
    size_t n;
    struct ledger_partition *all = ledger_partitions(metering_of(ro->table)->ledger, &n);
    int rc = all ? 0 : err_nomem(ro->ctx->err);
    if (all) qsort(all, n, sizeof(*all), by_partition);
    for (size_t i = 0; !rc && i < n; i++) {
        const struct ledger_partition *p = &all[i];
        if (!*p->keyspace || !row_out_wants(ro, 0, p->keyspace)) continue;
        row_text(ro, "keyspace_name", p->keyspace);
        row_text(ro, "table_name", p->table);
        row_long(ro, "token", p->p.token);
        row_use(ro, &p->p.usage);
        row_load(ro, "load", p->kept.load);
        row_load(ro, "load_error", p->kept.error);
        row_window_load(ro, "load_last_minute", &p->p.usage.last_minute);
        row_window_load(ro, "load_last_second", &p->p.usage.last_second);
        size_t n_key = p->p.key_n < sizeof(p->p.key) ? p->p.key_n : sizeof(p->p.key);
        row_bytes(ro, "partition_key", slice_of(p->p.key, n_key));
        row_text(ro, "pattern", p->pattern == ORDER_NONE ? NULL : order_pattern_name(p->pattern));
        row_double(ro, "share", p->share);
        rc = row_out_emit(ro);
    }
    free(all);
    return rc;
}

YIELDS_METERING(statements) {
    size_t n;
    struct ledger_statement *all = ledger_statements(metering_of(ro->table)->ledger, &n);
    int rc = all ? 0 : err_nomem(ro->ctx->err);
    for (size_t i = 0; !rc && i < n; i++) {
        const struct ledger_statement *s = &all[i];
        row_count(ro, "statement_id", s->kept.key);
        row_use(ro, &s->s.usage);
        row_figure(ro, "executions", &s->s.usage, USAGE_REQUESTS);
        row_text(ro, "keyspace_name", s->keyspace);
        row_load(ro, "load", s->kept.load);
        row_load(ro, "load_error", s->kept.error);
        if (s->s.rows_read) row_text(ro, "query_class", query_class_name(s->s.class));
        row_count(ro, "rows_read", s->s.rows_read);
        row_count(ro, "rows_returned", s->s.rows_returned);
        row_text(ro, "statement", s->text);
        row_text(ro, "table_name", s->table);
        rc = row_out_emit(ro);
    }
    free(all);
    return rc;
}

YIELDS_METERING(connections) {
    size_t n;
    struct ledger_connection *all = ledger_connections(metering_of(ro->table)->ledger, &n);
    int rc = all ? 0 : err_nomem(ro->ctx->err);
    for (size_t i = 0; !rc && i < n; i++) {
        const struct ledger_connection *c = &all[i];
        row_count(ro, "connection_id", c->id);
        row_text(ro, "address", c->address);
        row_long(ro, "opened_at", c->opened_us / 1000);
        row_text(ro, "role", c->role);
        row_figure(ro, "statements", &c->usage, USAGE_REQUESTS);
        row_use(ro, &c->usage);
        rc = row_out_emit(ro);
    }
    if (all) ledger_connections_free(all, n);
    return rc;
}

YIELDS_METERING(roles) {
    struct roles *all = ledger_roles(metering_of(ro->table)->ledger);
    int rc = all ? 0 : err_nomem(ro->ctx->err);
    for (size_t i = 0; !rc && i < all->n; i++) {
        const struct ledger_role *r = &all->list[i];
        row_text(ro, "role", r->name);
        row_count(ro, "connections", r->connections);
        row_figure(ro, "statements", &r->usage, USAGE_REQUESTS);
        row_use(ro, &r->usage);
        rc = row_out_emit(ro);
    }
    free(all);
    return rc;
}

/* ---- limits, throttles and capacity ---- */

YIELDS_METERING(limits) {
    const struct limiter_options *o = admission_options(metering_of(ro->table)->admission);
    int rc = 0;
    for (int i = 0; !rc && i < LIMITS; i++) {
        const struct limit_info *info = limit_info((enum limit_id)i);
        row_text(ro, "name", info->name);
        row_text(ro, "confidence", info->confidence);
        row_text(ro, "source", info->source);
        row_text(ro, "unit", info->unit);
        row_text(ro, "what", info->what);
        if (info->value) row_long(ro, "default_value", info->value);
        if (o->values.of[i]) row_long(ro, "value", o->values.of[i]);
        rc = row_out_emit(ro);
    }
    return rc;
}

/* The limiter's tables, copied while its lock is held. */
struct copies {
    size_t n, cap;
    struct limit_table *list;
};

static int copy_table(void *arg, const struct limit_table *t) {
    struct copies *c = arg;
    if (array_room(&c->list, c->n, &c->cap, sizeof(*c->list))) return -1;
    c->list[c->n++] = *t;
    return 0;
}

static int by_name(const void *a, const void *b) {
    const struct limit_table *x = a, *y = b;
    int c = strcmp(x->keyspace, y->keyspace);
    return c ? c : strcmp(x->table, y->table);
}

static int copy_tables(const struct virtual_context *ctx, const struct schema_table *table, struct copies *out) {
    *out = (struct copies){0};
    if (admission_tables(metering_of(table)->admission, copy_table, out)) {
        free(out->list);
        return err_nomem(ctx->err);
    }
    if (out->n) qsort(out->list, out->n, sizeof(*out->list), by_name);
    return 0;
}

YIELDS_METERING(throttles) {
    struct copies all;
    if (copy_tables(ro->ctx, ro->table, &all)) return -1;
    int rc = 0;
    for (int i = 0; !rc && i < LIMITS; i++)
        for (size_t k = 0; !rc && k < all.n; k++) {
            enum limit_id limit = (enum limit_id)i;
            const struct limit_table *t = &all.list[k];
            const struct limit_counts *c = &t->counts[limit];
            if (!c->last_us) continue;
            row_text(ro, "limit_name", limit_info(limit)->name);
            row_text(ro, "keyspace_name", t->keyspace);
            row_text(ro, "table_name", t->table);
            row_long(ro, "last_at", c->last_us / 1000);
            row_long(ro, "last_rate", c->last_rate);
            if (c->last_retry_us) row_long(ro, "last_retry_ms", (c->last_retry_us + 999) / 1000);
            row_count(ro, "refused", c->refused);
            row_count(ro, "shadowed", c->shadowed);
            rc = row_out_emit(ro);
        }
    free(all.list);
    return rc;
}

YIELDS_METERING(capacity) {
    struct copies all;
    if (copy_tables(ro->ctx, ro->table, &all)) return -1;
    int rc = 0;
    const struct limiter_options *o = admission_options(metering_of(ro->table)->admission);
    for (size_t k = 0; !rc && k < all.n; k++) {
        const struct limit_table *t = &all.list[k];
        if (!t->object) continue;
        row_text(ro, "keyspace_name", t->keyspace);
        row_text(ro, "table_name", t->table);
        row_bool(ro, "auto_scaled", t->read.scaled || t->write.scaled);
        row_bool(ro, "auto_scaling", t->read.scaling.enabled || t->write.scaling.enabled);
        row_text(ro, "capacity_mode", t->read.provisioned ? "PROVISIONED" : "PAY_PER_REQUEST");
        row_text(ro, "limits", limit_mode_name(t->mode));
        int64_t read = capacity_rate(&t->read, o->values.of[LIMIT_TABLE_READ]);
        int64_t write = capacity_rate(&t->write, o->values.of[LIMIT_TABLE_WRITE]);
        row_long(ro, "read_capacity", read);
        row_long(ro, "write_capacity", write);
        if (!t->read.provisioned) {
            int64_t least_read = t->read.begins / 2, least_write = t->write.begins / 2;
            row_long(ro, "read_previous_peak", t->read.peak > least_read ? t->read.peak : least_read);
            row_long(ro, "write_previous_peak", t->write.peak > least_write ? t->write.peak : least_write);
        }
        row_long(ro, "warm_read", t->read.warm ? t->read.warm : read);
        row_long(ro, "warm_write", t->write.warm ? t->write.warm : write);
        rc = row_out_emit(ro);
    }
    free(all.list);
    return rc;
}

/* ---- rules, refusals, quotas and compatibility ---- */

YIELDS_METERING(rules) {
    for (unsigned id = 0; id < RULES; id++) {
        const struct rule *rule = rule_of(id);
        row_text(ro, "id", rule->name);
        row_text(ro, "title", rule->title);
        row_text(ro, "text", rule->text);
        row_text(ro, "source", rule->source);
        row_text(ro, "confidence", rule->confidence);
        if (row_out_emit(ro)) return -1;
    }
    return 0;
}

static const char *source_of(struct row_out *ro, const char *page, const char *address) {
    return arena_printf(ro->ctx->arena, "%s, %s", page, address);
}

YIELDS_METERING(refusals) {
    for (int id = 0; id < REFUSALS; id++) {
        const struct refusal r = refusal_of((enum refusal_id)id);
        row_text(ro, "id", r.name);
        row_text(ro, "checks", r.checks);
        row_int(ro, "code", (int32_t)r.code);
        row_text(ro, "words", r.words);
        row_text(ro, "instead", r.instead);
        row_text(ro, "source", source_of(ro, r.page, r.address));
        row_text(ro, "confidence", r.confidence);
        row_text(ro, "since", r.since);
        if (row_out_emit(ro)) return -1;
    }
    return 0;
}

YIELDS_METERING(quotas) {
    for (unsigned i = 0; i < n_quotas; i++) {
        const struct quota q = quota_of(i);
        row_text(ro, "name", q.name);
        row_long(ro, "value", q.value);
        row_text(ro, "what", q.what);
        row_text(ro, "source", source_of(ro, q.page, q.address));
        if (row_out_emit(ro)) return -1;
    }
    return 0;
}

/* Copies the texts, which are valid during this call only. */
static int put_use(void *arg, const struct compat_use *u) {
    struct row_out *ro = arg;
    const struct refusal r = refusal_of(u->id);
    row_text(ro, "rule", r.name);
    row_text_copy(ro, "keyspace_name", u->keyspace);
    row_text_copy(ro, "table_name", u->table);
    row_text_copy(ro, "statement", u->statement);
    row_text(ro, "checks", r.checks);
    row_text(ro, "instead", r.instead);
    row_long(ro, "first_seen", u->first_us / 1000);
    row_long(ro, "last_seen", u->last_us / 1000);
    row_count(ro, "uses", u->uses);
    row_text_copy(ro, "words", u->words);
    return row_out_emit(ro);
}

YIELDS_METERING(compatibility) {
    struct compat_report *report = metering_of(ro->table)->report;
    return report ? compat_report_each(report, put_use, ro) : 0;
}

/* ---- the keyspace ---- */

void system_metering_tables(struct system_metering *m, struct virtual_table tables[METERING_TABLES]) {
#define METERING_TABLE(name_, comment_, columns_) \
    tables[METERING_##name_] = (struct virtual_table){.keyspace = "system_metering", \
                                                      .name = #name_, \
                                                      .comment = comment_, \
                                                      .columns = columns_, \
                                                      .virt = {.owner = m, .yield = yield_##name_}};
#include "server/system_metering.def"
#undef METERING_TABLE
    /* These two count stored rows, which may take long. */
    tables[METERING_storage].virt.blocks = tables[METERING_metrics].virt.blocks = true;
}

void system_metering_ttl_delete(void *arg, const struct schema_table *t, uint64_t units) {
    struct system_metering *m = arg;
    ledger_ttl_delete(m->ledger, clock_wall_us(m->clock), t->object, t->keyspace->name, t->name, units);
}

/* ---- tables that are dropped ---- */

struct gone {
    const struct schema *schema;
    size_t n, cap;
    uint32_t *objects;
};

static int collect_gone(void *arg, const struct table_stats *t, uint32_t second) {
    struct gone *g = arg;
    const struct schema_table *now = schema_table_any(g->schema, t->keyspace, t->name);
    (void)second;
    if (!t->object || (now && now->object == t->object && now->status != SCHEMA_DELETING)) return 0;
    if (array_room(&g->objects, g->n, &g->cap, sizeof(*g->objects))) return -1;
    g->objects[g->n++] = t->object;
    return 0;
}

/* Removes dropped tables from the ledger. When there is no memory for the list, the rest is
 * removed after the next change. */
static void drop_gone(struct system_metering *m) {
    struct gone g = {.schema = catalog_schema(m->catalog)};
    (void)ledger_own_tables(m->ledger, collect_gone, &g);
    schema_unref(g.schema);
    for (size_t i = 0; i < g.n; i++) ledger_drop(m->ledger, g.objects[i]);
    free(g.objects);
}

static void on_change(void *arg, const struct schema_change *change) {
    if (change->kind == CHANGE_DROPPED || change->kind == CHANGE_GONE) drop_gone(arg);
}

void system_metering_watch(struct system_metering *m, struct catalog *c) {
    m->catalog = c;
    drop_gone(m);
    m->listener = (struct catalog_listener){.changed = on_change, .arg = m};
    catalog_on_change(c, &m->listener);
}

void system_metering_unwatch(struct system_metering *m) { catalog_off_change(m->catalog, &m->listener); }
