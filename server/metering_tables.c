/* system_metering.tables, query_classes and recovery: the ledger's figures of each table. */
#include <stdlib.h>

#include "base/array.h"
#include "metering/charge.h"
#include "server/system_metering.h"

/* ---- the ledger's figures, copied while its lock is held ---- */

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

static int take_account(void *arg, const struct table_stats *t, uint32_t second) {
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
    if (ledger_tables(metering_of(ro->table)->ledger, take_account, &all)) rc = err_nomem(ro->ctx->err);
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

/* ---- tables ---- */

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

/* ---- query classes ---- */

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

/* ---- recovery ---- */

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
