#include <stdio.h>

#include "base/json.h"
#include "tools/tally/capacity/report.h"

static void put_time(struct buf *out, const char *name, uint32_t second) {
    json_member(out, name);
    buf_printf(out, "\"%02u:%02u:%02u\"", second / 3600 % 24, second / 60 % 60, second % 60);
}

static void put_table_name(struct buf *out, const struct schema_table *t) {
    char name[160];
    if (t) snprintf(name, sizeof(name), "%s.%s", t->keyspace->name, t->name);
    json_text(out, "table", t ? name : NULL);
}

static void put_statement(struct buf *out, const struct measured *s) {
    const struct workload_statement *st = s->statement;
    const struct json_amount rates[] = {{"rate_mean", curve_mean(&st->rate)}, {"rate_max", curve_most(&st->rate)}};
    json_open(out, NULL, '{');
    json_text(out, "name", st->name);
    json_text(out, "cql", st->text);
    put_table_name(out, s->table);
    json_text(out, "refused", s->refused);
    json_text(out, "unknown", s->unknown);
    json_amounts(out, rates, ARRAY_LEN(rates));
    if (!s->unknown) {
        const struct json_amount amounts[] = {{"observed", st->observed ? st->observed->n : 0}, {"samples", s->samples},
                                              {"pages", s->pages}, {"entities", s->entities},
                                              {"ttl_deletes", s->ttl_deletes}, {"stretched", s->stretched}};
        bool is_read = !st->observed && s->kind == STMT_SELECT;
        json_text(out, "query_class", is_read ? query_class_name(s->query_class) : NULL);
        json_amounts(out, amounts, ARRAY_LEN(amounts));
        for (int i = 0; i < MODELS; i++) {
            const struct { const char *name; const struct spread *of;
            } spreads[] = {{"row_bytes", &s->of[i].row_bytes}, {"static_bytes", &s->of[i].static_bytes},
                           {"read_units", &s->of[i].read_units}, {"write_units", &s->of[i].write_units}};
            json_open(out, size_model_name((enum size_model)i), '{');
            for (size_t k = 0; k < ARRAY_LEN(spreads); k++) {
                const struct spread *of = spreads[k].of;
                const struct json_amount points[] = {{"p50", of->p50}, {"p99", of->p99}, {"max", of->most},
                                                     {"mean", of->mean}};
                json_open(out, spreads[k].name, '{');
                json_amounts(out, points, ARRAY_LEN(points));
                buf_u8(out, '}');
            }
            json_open(out, "rules", '[');
            for (unsigned id = 0; id < RULES; id++)
                if (s->of[i].rules >> id & 1) json_text(out, NULL, rule_of(id)->name);
            buf_put_str(out, "]}");
        }
    }
    buf_u8(out, '}');
}

static void put_use(struct buf *out, const char *name, const struct day_use *u) {
    const struct json_amount amounts[] = {{"units_a_day", u->total},
                                          {"peak_second", u->peak_second},
                                          {"peak_minute", u->peak_minute},
                                          {"on_demand_refused", u->on_demand_refused},
                                          {"new_on_demand_refused", u->new_table_refused},
                                          {"provisioned_units", u->total > 0 && !u->needed ? -1 : (double)u->needed},
                                          {"provisioned_units_70_percent",
                                           u->total > 0 && !u->usual ? -1 : (double)u->usual},
                                          {"scaled_target_percent", u->scaling.target_percent},
                                          {"scaled_minimum", (double)u->scaling.minimum},
                                          {"scaled_maximum", (double)u->scaling.maximum},
                                          {"scaled_unit_hours", u->scaled_unit_hours},
                                          {"scaled_refused", u->scaled_refused}};
    json_open(out, name, '{');
    json_amounts(out, amounts, ARRAY_LEN(amounts));
    put_time(out, "peak_second_at", u->peak_second_at);
    put_time(out, "peak_minute_at", u->peak_minute_at);
    json_open(out, "scaled_by_hour", '[');
    for (int i = 0; i < DAY_MINUTES; i += 60) json_count(out, NULL, (uint64_t)u->scaled[i]);
    buf_put_str(out, "]}");
}

static void put_partition(struct buf *out, const struct day *d, const struct workload_partition *p) {
    const struct json_amount amounts[] = {{"read_units", p->read_units}, {"write_units", p->write_units},
                                          {"entities", p->entities}};
    struct err ignored = {0};
    struct buf key;
    buf_init(&key, 0);
    if (p->key) buf_put_str(&key, p->key);
    else if (measure_key(d->keyed, p->rank, &key, &ignored)) buf_clear(&key, SIZE_MAX);
    json_open(out, NULL, '{');
    json_slice(out, "key", buf_slice(&key));
    json_amounts(out, amounts, ARRAY_LEN(amounts));
    json_flag(out, "above_read_limit", p->over_reads);
    json_flag(out, "above_write_limit", p->over_writes);
    json_flag(out, "above_entities", p->over_entities);
    buf_u8(out, '}');
    buf_fini(&key);
}

static void put_bill(struct buf *out, const struct bill *b) {
    static const char *const modes[BILL_MODES] = {"on_demand", "provisioned", "provisioned_70_percent",
                                                 "auto_scaling"};
    const struct json_amount amounts[] = {{"storage", b->storage}, {"recovery", b->pitr}, {"ttl_deletes", b->ttl}};
    json_amounts(out, amounts, ARRAY_LEN(amounts));
    for (int i = 0; i < BILL_MODES; i++) {
        const struct json_amount of[] = {{"reads", b->read[i]}, {"writes", b->write[i]}, {"total", b->total[i]}};
        json_open(out, modes[i], '{');
        json_amounts(out, of, ARRAY_LEN(of));
        buf_u8(out, '}');
    }
}

static void put_cost(struct buf *out, const struct report_costs *c, const struct price_region *region) {
    struct bill b;
    bill_of(&c->m, c->days, region, &b);
    const struct json_amount even[] = {{"read_break_even_percent", b.read_break_even},
                                       {"write_break_even_percent", b.write_break_even}};
    json_open(out, NULL, '{');
    json_text(out, "region", region->name);
    put_bill(out, &b);
    json_amounts(out, even, ARRAY_LEN(even));
    buf_u8(out, '}');
}

const struct schema_keyspace *report_spread(const struct report *r, uint32_t i) {
    const struct schema_keyspace *ks = r->m->tables[i].table->keyspace;
    for (uint32_t k = 0; k < i; k++)
        if (r->m->tables[k].table->keyspace == ks) return NULL;
    return schema_regions(ks) > 1 ? ks : NULL;
}

static void put_keyspace_cost(struct buf *out, const struct report *r, const struct report_costs *c,
                              const struct schema_keyspace *ks) {
    struct bill b;
    bill_of_keyspace(&c->m, c->days, r->prices, ks, &b);
    json_open(out, NULL, '{');
    json_text(out, "keyspace", ks->name);
    json_open(out, "regions", '[');
    for (uint32_t i = 0; i < ks->n_regions; i++) json_text(out, NULL, ks->regions[i].name);
    buf_u8(out, ']');
    put_bill(out, &b);
    buf_u8(out, '}');
}

static void put_costs(struct buf *out, const struct report *r, enum size_model model) {
    const struct report_costs c = report_costs_of(r, model);
    json_open(out, "costs", '[');
    for (uint32_t i = 0; i < r->n_regions; i++) put_cost(out, &c, r->regions[i]);
    buf_u8(out, ']');
    json_open(out, "keyspace_costs", '[');
    for (uint32_t i = 0; i < r->m->n_tables; i++)
        if (report_spread(r, i)) put_keyspace_cost(out, r, &c, report_spread(r, i));
    buf_u8(out, ']');
}

struct report_costs report_costs_of(const struct report *r, enum size_model model) {
    struct report_costs c = {.m = *r->m, .days = model == r->m->o.model ? r->days : r->other_days};
    c.m.o.model = model;
    return c;
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
    json_open(out, NULL, '{');
    json_flag(out, "ok", !report_is_no(r));
    json_text(out, "size_model", size_model_name(r->m->o.model));
    json_open(out, "prices", '{');
    json_text(out, "file", r->prices->path);
    json_text(out, "date", r->prices->date);
    json_amount(out, "age_days", (double)r->age_days);
    buf_u8(out, '}');
    json_open(out, "refused", '[');
    for (const struct measured_refusal *f = r->m->refusals; f; f = f->next) {
        json_open(out, NULL, '{');
        json_text(out, "file", r->schema);
        json_count(out, "line", f->line);
        json_text(out, "words", f->words);
        json_text(out, "statement", f->text);
        buf_u8(out, '}');
    }
    buf_u8(out, ']');
    json_open(out, "statements", '[');
    for (uint32_t i = 0; i < r->m->n_statements; i++) put_statement(out, &r->m->statements[i]);
    buf_u8(out, ']');
    json_open(out, "tables", '[');
    for (uint32_t i = 0; i < r->m->n_tables; i++) {
        const struct measured_table *t = &r->m->tables[i];
        const struct day *d = &r->days[i];
        const struct json_amount counts[] = {{"rows", t->rows ? (double)t->rows : -1},
                                             {"partitions", t->partitions ? (double)t->partitions : -1},
                                             {"ttl_deletes_a_day", d->ttl_deletes},
                                             {"partitions_above_a_limit", d->n_partitions ? (double)d->n_over : -1}};
        json_open(out, NULL, '{');
        put_table_name(out, t->table);
        json_text(out, "unknown", t->unknown);
        json_flag(out, "complete", !bill_lacks_use(r->m, t->table));
        json_amounts(out, counts, ARRAY_LEN(counts));
        json_open(out, "storage_bytes", '{');
        for (int k = 0; k < MODELS; k++)
            json_amount(out, size_model_name((enum size_model)k), t->stored_bytes[k]);
        buf_u8(out, '}');
        if (t->steady_rows > 0) {
            json_open(out, "steady_state", '{');
            json_amount(out, "rows", t->steady_rows);
            for (int k = 0; k < MODELS; k++) json_amount(out, size_model_name((enum size_model)k), t->steady_bytes[k]);
            buf_u8(out, '}');
        }
        struct table_capacity set;
        schema_capacity(t->table, &set);
        json_open(out, "settings", '{');
        json_text(out, "capacity_mode", set.provisioned ? "PROVISIONED" : "PAY_PER_REQUEST");
        json_amount(out, "read_capacity_units", set.provisioned ? (double)set.units[READ_CAPACITY] : -1);
        json_amount(out, "write_capacity_units", set.provisioned ? (double)set.units[WRITE_CAPACITY] : -1);
        buf_u8(out, '}');
        put_use(out, "reads", &d->reads);
        put_use(out, "writes", &d->writes);
        put_time(out, "busiest_at", d->busiest_at);
        json_open(out, "busiest_partitions", '[');
        for (uint32_t k = 0; k < d->n_shown; k++) put_partition(out, d, &d->shown[k]);
        buf_put_str(out, "]}");
    }
    buf_u8(out, ']');
    put_costs(out, r, r->m->o.model);
    json_open(out, "costs_by_other_model", '{');
    json_text(out, "size_model", size_model_name(1 - r->m->o.model));
    put_costs(out, r, 1 - r->m->o.model);
    buf_u8(out, '}');
    json_open(out, "notes", '[');
    for (const struct note *n = r->m->w->notes; n; n = n->next) json_text(out, NULL, n->text);
    buf_put_str(out, "]}");
}
