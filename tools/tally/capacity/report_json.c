#include <stdio.h>

#include "tools/tally/capacity/report.h"

static void put_key(struct buf *out, const char *key, const char **comma) {
    buf_printf(out, "%s\"%s\":", *comma, key);
    *comma = ",";
}

/* null: unknown */
static void put_amount(struct buf *out, const char *key, double n, const char **comma) {
    put_key(out, key, comma);
    if (n < 0) buf_put_str(out, "null");
    else buf_printf(out, "%.10g", n);
}

static void put_text(struct buf *out, const char *key, const char *text, const char **comma) {
    put_key(out, key, comma);
    if (text) buf_json_str(out, slice_str(text));
    else buf_put_str(out, "null");
}

static void put_time(struct buf *out, const char *key, uint32_t second, const char **comma) {
    char text[16];
    snprintf(text, sizeof(text), "%02u:%02u:%02u", second / 3600 % 24, second / 60 % 60, second % 60);
    put_text(out, key, text, comma);
}

static void put_spread(struct buf *out, const char *key, const struct spread *s, const char **comma) {
    const char *inner = "";
    put_key(out, key, comma);
    buf_put_str(out, "{");
    put_amount(out, "p50", s->p50, &inner), put_amount(out, "p99", s->p99, &inner),
        put_amount(out, "max", s->most, &inner), put_amount(out, "mean", s->mean, &inner);
    buf_put_str(out, "}");
}

/* ---- statements ---- */

static void put_model(struct buf *out, const struct measured *s, enum size_model model, const char **comma) {
    const char *inner = "";
    put_key(out, size_model_name(model), comma);
    buf_put_str(out, "{");
    put_spread(out, "row_bytes", &s->of[model].row_bytes, &inner),
        put_spread(out, "static_bytes", &s->of[model].static_bytes, &inner);
    put_spread(out, "read_units", &s->of[model].read_units, &inner),
        put_spread(out, "write_units", &s->of[model].write_units, &inner);
    put_key(out, "rules", &inner);
    buf_put_str(out, "[");
    bool first = true;
    for (unsigned id = 0; id < RULES; id++) {
        if (!(s->of[model].rules >> id & 1)) continue;
        buf_printf(out, "%s\"%s\"", first ? "" : ",", rule_of(id)->name);
        first = false;
    }
    buf_put_str(out, "]}");
}

static void put_statement(struct buf *out, const struct measured *s) {
    const struct workload_statement *st = s->statement;
    const char *comma = "";
    char table[160] = "";
    if (s->table) snprintf(table, sizeof(table), "%s.%s", s->table->keyspace->name, s->table->name);
    buf_put_str(out, "{");
    put_text(out, "name", st->name, &comma), put_text(out, "cql", st->text, &comma),
        put_text(out, "table", s->table ? table : NULL, &comma);
    put_text(out, "refused", s->refused, &comma), put_text(out, "unknown", s->unknown, &comma);
    put_amount(out, "rate_mean", curve_mean(&st->rate), &comma),
        put_amount(out, "rate_max", curve_most(&st->rate), &comma);
    if (!s->unknown) {
        put_text(out, "query_class", !st->observed && s->kind == STMT_SELECT ? query_class_name(s->query_class) : NULL,
                 &comma);
        put_amount(out, "observed", st->observed ? st->observed->n : 0, &comma);
        put_amount(out, "samples", s->samples, &comma), put_amount(out, "pages", s->pages, &comma),
            put_amount(out, "entities", s->entities, &comma);
        put_amount(out, "ttl_deletes", s->ttl_deletes, &comma), put_amount(out, "stretched", s->stretched, &comma);
        for (int i = 0; i < MODELS; i++) put_model(out, s, (enum size_model)i, &comma);
    }
    buf_put_str(out, "}");
}

/* ---- tables ---- */

static void put_use(struct buf *out, const char *key, const struct day_use *u, const char **comma) {
    const char *inner = "";
    put_key(out, key, comma);
    buf_put_str(out, "{");
    put_amount(out, "units_a_day", u->total, &inner), put_amount(out, "peak_second", u->peak_second, &inner),
        put_time(out, "peak_second_at", u->peak_second_at, &inner);
    put_amount(out, "peak_minute", u->peak_minute, &inner), put_time(out, "peak_minute_at", u->peak_minute_at, &inner);
    put_amount(out, "on_demand_refused", u->on_demand_refused, &inner),
        put_amount(out, "new_on_demand_refused", u->new_table_refused, &inner);
    put_amount(out, "provisioned_units", u->total > 0 && !u->needed ? -1 : (double)u->needed, &inner);
    put_amount(out, "scaled_target_percent", u->scaling.target_percent, &inner),
        put_amount(out, "scaled_minimum", (double)u->scaling.minimum, &inner);
    put_amount(out, "scaled_maximum", (double)u->scaling.maximum, &inner),
        put_amount(out, "scaled_unit_hours", u->scaled_unit_hours, &inner);
    put_amount(out, "scaled_refused", u->scaled_refused, &inner);
    put_key(out, "scaled_by_hour", &inner);
    for (int i = 0; i < DAY_MINUTES; i += 60) buf_printf(out, "%s%d", i ? "," : "[", u->scaled[i]);
    buf_put_str(out, "]}");
}

static void put_partition(struct buf *out, const struct day *d, const struct workload_partition *p) {
    const char *comma = "";
    struct err ignored = {0};
    struct buf key;
    buf_init(&key, 0);
    if (p->key) buf_put_str(&key, p->key);
    else if (measure_key(d->keyed, p->rank, &key, &ignored)) buf_clear(&key, SIZE_MAX);
    buf_put_str(out, "{");
    put_key(out, "key", &comma);
    buf_json_str(out, buf_slice(&key));
    put_amount(out, "read_units", p->read_units, &comma), put_amount(out, "write_units", p->write_units, &comma),
        put_amount(out, "entities", p->entities, &comma);
    buf_printf(out, ",\"above_read_limit\":%s,\"above_write_limit\":%s,\"above_entities\":%s}",
               p->over_reads ? "true" : "false", p->over_writes ? "true" : "false",
               p->over_entities ? "true" : "false");
    buf_fini(&key);
}

static void put_table(struct buf *out, const struct report *r, uint32_t i) {
    const struct measured_table *t = &r->m->tables[i];
    const struct day *d = &r->days[i];
    const char *comma = "", *inner = "";
    char name[160];
    snprintf(name, sizeof(name), "%s.%s", t->table->keyspace->name, t->table->name);
    buf_put_str(out, "{");
    put_text(out, "table", name, &comma), put_text(out, "unknown", t->unknown, &comma);
    put_key(out, "complete", &comma);
    buf_put_str(out, bill_lacks_use(r->m, t->table) ? "false" : "true");
    put_amount(out, "rows", t->rows ? (double)t->rows : -1, &comma),
        put_amount(out, "partitions", t->partitions ? (double)t->partitions : -1, &comma);
    put_key(out, "storage_bytes", &comma);
    buf_put_str(out, "{");
    for (int k = 0; k < MODELS; k++) put_amount(out, size_model_name((enum size_model)k), t->stored_bytes[k], &inner);
    buf_put_str(out, "}");
    put_use(out, "reads", &d->reads, &comma), put_use(out, "writes", &d->writes, &comma);
    put_amount(out, "ttl_deletes_a_day", d->ttl_deletes, &comma);
    put_amount(out, "partitions_above_a_limit", d->n_partitions ? (double)d->n_over : -1, &comma);
    put_time(out, "busiest_at", d->busiest_at, &comma);
    put_key(out, "busiest_partitions", &comma);
    buf_put_str(out, "[");
    for (uint32_t k = 0; k < d->n_shown; k++) {
        if (k) buf_put_str(out, ",");
        put_partition(out, d, &d->shown[k]);
    }
    buf_put_str(out, "]}");
}

/* ---- costs ---- */

static void put_cost(struct buf *out, const struct report *r, const struct price_region *region) {
    static const char *const modes[BILL_MODES] = {"on_demand", "provisioned", "auto_scaling"};
    struct bill b;
    const char *comma = "";
    bill_of(r->m, r->days, region, &b);
    buf_put_str(out, "{");
    put_text(out, "region", region->name, &comma);
    put_amount(out, "storage", b.storage, &comma), put_amount(out, "recovery", b.pitr, &comma),
        put_amount(out, "ttl_deletes", b.ttl, &comma);
    for (int i = 0; i < BILL_MODES; i++) {
        const char *inner = "";
        put_key(out, modes[i], &comma);
        buf_put_str(out, "{");
        put_amount(out, "reads", b.read[i], &inner), put_amount(out, "writes", b.write[i], &inner),
            put_amount(out, "total", b.total[i], &inner);
        buf_put_str(out, "}");
    }
    put_amount(out, "read_break_even_percent", b.read_break_even, &comma),
        put_amount(out, "write_break_even_percent", b.write_break_even, &comma);
    buf_put_str(out, "}");
}

bool report_is_no(const struct report *r) {
    if (r->m->refusals) return true;
    for (uint32_t i = 0; i < r->m->n_statements; i++)
        if (r->m->statements[i].refused) return true;
    for (uint32_t i = 0; i < r->m->n_tables; i++) {
        const struct day *d = &r->days[i];
        if (d->n_over || (d->reads.total > 0 && !d->reads.needed) || (d->writes.total > 0 && !d->writes.needed))
            return true;
    }
    return false;
}

void report_json(const struct report *r, struct buf *out) {
    const char *comma = ",", *first = "";
    buf_printf(out, "{\"ok\":%s", report_is_no(r) ? "false" : "true");
    put_text(out, "size_model", size_model_name(r->m->o.model), &comma);
    buf_put_str(out, ",\"prices\":{");
    put_text(out, "file", r->prices->path, &first), put_text(out, "date", r->prices->date, &first),
        put_amount(out, "age_days", (double)r->age_days, &first);
    buf_put_str(out, "},\"refused\":[");
    for (const struct measured_refusal *f = r->m->refusals; f; f = f->next) {
        first = "";
        buf_put_str(out, f == r->m->refusals ? "{" : ",{");
        put_text(out, "file", r->schema, &first), put_amount(out, "line", f->line, &first),
            put_text(out, "words", f->words, &first), put_text(out, "statement", f->text, &first);
        buf_put_str(out, "}");
    }
    buf_put_str(out, "],\"statements\":[");
    for (uint32_t i = 0; i < r->m->n_statements; i++) {
        if (i) buf_put_str(out, ",");
        put_statement(out, &r->m->statements[i]);
    }
    buf_put_str(out, "],\"tables\":[");
    for (uint32_t i = 0; i < r->m->n_tables; i++) {
        if (i) buf_put_str(out, ",");
        put_table(out, r, i);
    }
    buf_put_str(out, "],\"costs\":[");
    for (uint32_t i = 0; i < r->n_regions; i++) {
        if (i) buf_put_str(out, ",");
        put_cost(out, r, r->regions[i]);
    }
    buf_put_str(out, "],\"notes\":[");
    for (const struct note *n = r->notes; n; n = n->next) {
        if (n != r->notes) buf_put_str(out, ",");
        buf_json_str(out, slice_str(n->text));
    }
    buf_put_str(out, "]}");
}
