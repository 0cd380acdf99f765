/* system_metering.limits, throttles and capacity: the limiter's limits, its refusals, and the
 * capacity of tables. */
#include <stdlib.h>

#include "base/array.h"
#include "server/system_metering.h"

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

/* ---- tables, copied while the limiter's lock is held, by name ---- */

struct copies {
    size_t n, cap;
    struct limit_table *list;
};

static int take(void *arg, const struct limit_table *t) {
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
    if (admission_tables(metering_of(table)->admission, take, out)) {
        free(out->list);
        return err_nomem(ctx->err);
    }
    if (out->n) qsort(out->list, out->n, sizeof(*out->list), by_name);
    return 0;
}

/* ---- throttles ---- */

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

/* ---- capacity ---- */

static int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }

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
        row_long(ro, "read_capacity", capacity_rate(&t->read, o->values.of[LIMIT_TABLE_READ]));
        row_long(ro, "write_capacity", capacity_rate(&t->write, o->values.of[LIMIT_TABLE_WRITE]));
        if (!t->read.provisioned) {
            row_long(ro, "read_previous_peak", greater(t->read.peak, t->read.begins / 2));
            row_long(ro, "write_previous_peak", greater(t->write.peak, t->write.begins / 2));
        }
        row_long(ro, "warm_read",
                 t->read.warm ? t->read.warm : capacity_rate(&t->read, o->values.of[LIMIT_TABLE_READ]));
        row_long(ro, "warm_write",
                 t->write.warm ? t->write.warm : capacity_rate(&t->write, o->values.of[LIMIT_TABLE_WRITE]));
        rc = row_out_emit(ro);
    }
    free(all.list);
    return rc;
}
