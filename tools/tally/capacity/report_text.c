#include <math.h>
#include <stdio.h>

#include "tools/tally/capacity/report.h"
#include "tools/tally/table.h"

struct figure {
    char text[48];
};

static struct figure amount(double n) {
    struct figure f;
    if (n < 0) snprintf(f.text, sizeof(f.text), "unknown");
    else if (n >= 100 || n == (double)(uint64_t)n) snprintf(f.text, sizeof(f.text), "%.0f", n);
    else snprintf(f.text, sizeof(f.text), n < 1 ? "%.2g" : "%.1f", n);
    return f;
}

static struct figure dollars(double n) {
    struct figure f;
    snprintf(f.text, sizeof(f.text), n < 0 ? "unknown" : "%.2f", n);
    return f;
}

static struct figure three(const struct spread *s) {
    struct figure f;
    snprintf(f.text, sizeof(f.text), "%.12s / %.12s / %.12s", amount(s->p50).text, amount(s->p99).text,
             amount(s->most).text);
    return f;
}

static struct figure bytes(double n) {
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
    struct figure f;
    size_t u = 0;
    if (n < 0) return amount(n);
    for (; n >= 1000 && u + 1 < ARRAY_LEN(units); u++) n /= 1000;
    snprintf(f.text, sizeof(f.text), u ? "%.2f %s" : "%.0f %s", n, units[u]);
    return f;
}

static struct figure time_of(uint32_t second) {
    struct figure f;
    snprintf(f.text, sizeof(f.text), "%02u:%02u:%02u", second / 3600 % 24, second / 60 % 60, second % 60);
    return f;
}

/* ---- statements ---- */

static void put_statement(const struct report *r, const struct measured *s, struct buf *out) {
    const struct workload_statement *st = s->statement;
    buf_printf(out, "\n%s\n    %s\n", st->name, st->text);
    if (st->has_rate)
        buf_printf(out, "    %s a second on average, %s at most", amount(curve_mean(&st->rate)).text,
                   amount(curve_most(&st->rate)).text);
    if (s->unknown) {
        buf_printf(out, "\n    unknown: %s\n", s->unknown);
        return;
    }
    if (st->observed) buf_printf(out, ", seen %u times\n", st->observed->n);
    else
        buf_printf(out, ", %s, priced %u times\n", s->kind == STMT_SELECT ? query_class_name(s->query_class) : "write",
                   s->samples);
    if (s->refused) buf_printf(out, "    REFUSED by Amazon Keyspaces: %s\n", s->refused);
    static const struct table_column columns[] = {{"    p50 / p99 / max", false},
                                                  {"bytes of rows", true},
                                                  {"of static data", true},
                                                  {"read units", true},
                                                  {"write units", true}};
    struct table t;
    table_init(&t, columns, ARRAY_LEN(columns));
    for (int i = 0; i < MODELS; i++)
        table_row(&t, "    %s%s\t%s\t%s\t%s\t%s", size_model_name((enum size_model)i),
                  i == (int)r->m->o.model ? " *" : "",
                  three(&s->of[i].row_bytes).text, three(&s->of[i].static_bytes).text, three(&s->of[i].read_units).text,
                  three(&s->of[i].write_units).text);
    table_put(&t, out);
    table_fini(&t);
    if (!st->observed) {
        buf_printf(out, "    rules, %s:", size_model_name(r->m->o.model));
        const char *comma = " ";
        for (unsigned id = 0; id < RULES; id++) {
            if (!(s->of[r->m->o.model].rules >> id & 1)) continue;
            buf_printf(out, "%s%s", comma, rule_of(id)->name);
            comma = ", ";
        }
        buf_put_str(out, "\n");
    }
    if (s->stretched > 1)
        buf_printf(out, "    a part of the table was scanned: bytes and units are that times %s\n",
                   amount(s->stretched).text);
    if (s->ttl_deletes > 0) buf_printf(out, "    TTL deletes of each: %s\n", amount(s->ttl_deletes).text);
}

/* ---- tables ---- */

enum { WIDTH = 72, HEIGHT = 6, EIGHTHS = 8 };

/* Plots the values of the seconds of a day, and the limit of each minute. */
static void plot_day(struct buf *out, const double *seconds, const int32_t *minutes) {
    static const char *const blocks[EIGHTHS + 1] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double used[WIDTH], most[WIDTH], top = 0;
    /* Averages the day over WIDTH columns. */
    for (uint32_t c = 0; c < WIDTH; c++) {
        double sum = 0;
        for (uint32_t i = 0; i < DAY_S / WIDTH; i++) sum += seconds[c * (DAY_S / WIDTH) + i];
        used[c] = sum / (DAY_S / WIDTH);
        most[c] = 0;
        for (uint32_t i = 0; i < DAY_MINUTES / WIDTH; i++)
            most[c] += (double)minutes[c * (DAY_MINUTES / WIDTH) + i] / (DAY_MINUTES / WIDTH);
        top = fmax(top, fmax(used[c], most[c]));
    }
    if (top <= 0) return;
    buf_put_str(out, "  units a second, - capacity\n");
    for (int row = HEIGHT - 1; row >= 0; row--) {
        buf_printf(out, "  %9.*f |", top < 10, top * (row + 1) / HEIGHT);
        for (uint32_t c = 0; c < WIDTH; c++) {
            int here = (int)(used[c] / top * HEIGHT * EIGHTHS) - row * EIGHTHS;
            bool line = (int)(most[c] / top * HEIGHT - 1e-9) == row;
            buf_put_str(out, line && here < EIGHTHS ? "-" : blocks[here < 0 ? 0 : here > EIGHTHS ? EIGHTHS : here]);
        }
        buf_put_str(out, "\n");
    }
    buf_printf(out, "  %9s  0        3        6        9        12       15       18       21       24 h\n", "");
}

/* The table's present settings, and whether the load fits them. */
static void put_settings(const struct schema_table *t, bool reads, const struct day_use *u, struct buf *out) {
    struct table_capacity set;
    schema_capacity(t, &set);
    if (!set.provisioned) {
        buf_printf(out, "    now set to    on demand%s\n", u->on_demand_refused > 0 ? ": LESS than the load" : "");
        return;
    }
    int64_t units = set.units[reads ? READ_CAPACITY : WRITE_CAPACITY];
    bool scales = !t->settings.scaling[reads ? READ_CAPACITY : WRITE_CAPACITY].autoscaling_disabled;
    buf_printf(out, "    now set to    %lld units%s%s\n", (long long)units, scales ? ", with auto scaling" : "",
               !scales && (!u->needed || units < u->needed) ? ": LESS than the load needs" : "");
}

static void put_use(const struct schema_table *t, const struct day_use *u, bool reads, bool plots, struct buf *out) {
    if (u->total <= 0) return;
    buf_printf(out, "  %s\n", reads ? "reads" : "writes");
    put_settings(t, reads, u, out);
    buf_printf(out, "    peak second   %s units at %s; peak minute %s units a second at %s; %s a day\n",
               amount(u->peak_second).text, time_of(u->peak_second_at).text, amount(u->peak_minute).text,
               time_of(u->peak_minute_at).text, amount(u->total).text);
    buf_printf(out, "    on demand     %s units of a day refused; a new table would refuse %s\n",
               amount(u->on_demand_refused).text, amount(u->new_table_refused).text);
    if (u->needed) {
        buf_printf(out, "    provisioned   %lld units are needed, of which %.1f %% are used on average\n",
                   (long long)u->needed, 100 * u->total / ((double)u->needed * DAY_S));
        if (u->usual)
            buf_printf(out, "    at %d %%       %lld units, if the busiest minute is to use %d %% of them\n",
                       DAY_USUAL_PERCENT, (long long)u->usual, DAY_USUAL_PERCENT);
        buf_printf(out, "    auto scaling  target %.0f %%, %lld to %lld units: %s unit-hours a day, %s units refused\n",
                   u->scaling.target_percent, (long long)u->scaling.minimum, (long long)u->scaling.maximum,
                   amount(u->scaled_unit_hours).text, amount(u->scaled_refused).text);
    } else {
        buf_printf(out, "    provisioned   NOT ENOUGH: the quota of a table is %lld units a second\n",
                   (long long)limit_info(reads ? LIMIT_TABLE_READ : LIMIT_TABLE_WRITE)->value);
    }
    if (plots) plot_day(out, u->seconds, u->scaled);
}

static void put_partitions(const struct day *d, struct buf *out) {
    enum { FINE_SHOWN = 3 };
    if (!d->n_partitions) return;
    buf_printf(out, "  partitions %s%s: %llu of %llu are above a limit\n",
               d->observed ? "in their busiest second" : "at ", d->observed ? "" : time_of(d->busiest_at).text,
               (unsigned long long)d->n_over, (unsigned long long)d->n_partitions);
    for (uint32_t i = 0; i < d->n_shown && (i < FINE_SHOWN || i < d->n_over); i++) {
        const struct workload_partition *p = &d->shown[i];
        struct err ignored = {0};
        buf_put_str(out, "    ");
        if (p->key) buf_put_str(out, p->key);
        else if (measure_key(d->keyed, p->rank, out, &ignored))
            buf_printf(out, "number %llu", (unsigned long long)p->rank);
        buf_printf(out, ": %s read units, %s write units, %s entities a second", amount(p->read_units).text,
                   amount(p->write_units).text, amount(p->entities).text);
        if (p->over_reads)
            buf_printf(out, "; ABOVE %lld read units", (long long)limit_info(LIMIT_PARTITION_READ)->value);
        if (p->over_writes)
            buf_printf(out, "; ABOVE %lld write units", (long long)limit_info(LIMIT_PARTITION_WRITE)->value);
        if (p->over_entities)
            buf_printf(out, "; ABOVE %lld entities", (long long)limit_info(LIMIT_ENTITIES_PARTITION)->value);
        buf_put_str(out, "\n");
    }
}

/* ---- costs ---- */

static void put_bill(struct table *t, const char *name, const struct bill *b) {
    struct figure of[BILL_MODES];
    for (int k = 0; k < BILL_MODES; k++)
        of[k] = dollars(b->read[k] < 0 || b->write[k] < 0 ? -1 : b->read[k] + b->write[k]);
    table_row(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", name, of[BILL_ON_DEMAND].text,
              of[BILL_PROVISIONED].text, of[BILL_USUAL].text, of[BILL_SCALED].text, dollars(b->storage).text,
              dollars(b->pitr).text, dollars(b->ttl).text, dollars(b->total[BILL_ON_DEMAND]).text,
              dollars(b->total[BILL_PROVISIONED]).text, dollars(b->total[BILL_USUAL]).text,
              dollars(b->total[BILL_SCALED]).text);
}

static void put_costs(const struct report *r, enum size_model model, struct buf *out) {
    static const struct table_column columns[] = {{"Region", false},
                                                  {"on demand", true},
                                                  {"provisioned", true},
                                                  {"at 70 %", true},
                                                  {"auto scaling", true},
                                                  {"storage", true},
                                                  {"recovery", true},
                                                  {"TTL deletes", true},
                                                  {"on demand in all", true},
                                                  {"provisioned in all", true},
                                                  {"at 70 % in all", true},
                                                  {"auto scaling in all", true}};
    struct table t;
    const struct report_costs c = report_costs_of(r, model);
    buf_printf(out, "\ncosts of a month in US dollars by the size model %s, at the prices of %s (%s, %lld days old)\n",
               size_model_name(model), r->prices->date, r->prices->path, (long long)r->age_days);
    table_init(&t, columns, ARRAY_LEN(columns));
    struct bill b;
    for (uint32_t i = 0; i < r->n_regions; i++) {
        bill_of(&c.m, c.days, r->regions[i], &b);
        put_bill(&t, r->regions[i]->name, &b);
    }
    bool spread = false;
    for (uint32_t i = 0; i < r->m->n_tables; i++) {
        const struct schema_keyspace *ks = report_spread(r, i);
        char name[128];
        if (!ks) continue;
        spread = true;
        snprintf(name, sizeof(name), "%s in its %u Regions", ks->name, ks->n_regions);
        bill_of_keyspace(&c.m, c.days, r->prices, ks, &b);
        put_bill(&t, name, &b);
    }
    table_put(&t, out);
    table_fini(&t);
    if (spread)
        buf_put_str(out, "each Region takes every write and stores every row of a keyspace in several Regions; its row "
                         "adds these up, and the reads of one Region\n");
    if (!r->n_regions || model != r->m->o.model) return;
    bill_of(&c.m, c.days, r->regions[0], &b);
    buf_printf(out,
               "break-even in %s: provisioned units are cheaper than on demand when more than %s %% of the read units "
               "and %s %% of the write units are used\n",
               r->regions[0]->name, amount(b.read_break_even).text, amount(b.write_break_even).text);
}

/* Names the statements of the table that have no figures. */
static void put_unknown(const struct report *r, const struct schema_table *t, struct buf *out) {
    enum { NAMED = 10 };
    uint32_t n = 0;
    buf_put_str(out, "  some of its statements have no figures: what follows is less than it takes\n");
    for (uint32_t i = 0; i < r->m->n_statements; i++) {
        const struct measured *s = &r->m->statements[i];
        if (!s->unknown || (s->table && s->table != t)) continue;
        if (n++ < NAMED) buf_printf(out, "    %.100s: %s\n", s->statement->name, s->unknown);
    }
    if (n > NAMED) buf_printf(out, "    and %u more\n", n - NAMED);
}

void report_text(const struct report *r, struct buf *out) {
    buf_printf(out, "units and costs by the size model %s (*)\n", size_model_name(r->m->o.model));
    if (r->m->refusals) buf_put_str(out, "\nAmazon Keyspaces would refuse\n");
    for (const struct measured_refusal *f = r->m->refusals; f; f = f->next)
        buf_printf(out, "  %s:%u: %s\n      %s\n", r->schema, f->line, f->words, f->text);
    for (uint32_t i = 0; i < r->m->n_statements; i++) put_statement(r, &r->m->statements[i], out);
    for (uint32_t i = 0; i < r->m->n_tables; i++) {
        const struct measured_table *t = &r->m->tables[i];
        const struct day *d = &r->days[i];
        buf_printf(out, "\n%s.%s\n", t->table->keyspace->name, t->table->name);
        if (schema_regions(t->table->keyspace) > 1)
            buf_printf(out, "  what follows is what each of its %u Regions needs\n",
                       schema_regions(t->table->keyspace));
        if (t->rows)
            buf_printf(out, "  %llu rows in %s partitions\n", (unsigned long long)t->rows,
                       amount(t->partitions ? (double)t->partitions : -1).text);
        buf_printf(out, "  storage: %s documented-2022, %s current%s%s\n",
                   bytes(t->stored_bytes[SIZE_DOCUMENTED_2022]).text, bytes(t->stored_bytes[SIZE_CURRENT]).text,
                   t->unknown ? ": " : "", t->unknown ? t->unknown : "");
        if (t->steady_rows > 0)
            buf_printf(out, "  kept by time to live in the long run: %s rows, %s documented-2022, %s current\n",
                       amount(t->steady_rows).text, bytes(t->steady_bytes[SIZE_DOCUMENTED_2022]).text,
                       bytes(t->steady_bytes[SIZE_CURRENT]).text);
        if (bill_lacks_use(r->m, t->table)) put_unknown(r, t->table, out);
        put_use(t->table, &d->reads, true, r->plots, out);
        put_use(t->table, &d->writes, false, r->plots, out);
        if (d->ttl_deletes != 0) buf_printf(out, "  TTL deletes: %s a day\n", amount(d->ttl_deletes).text);
        put_partitions(d, out);
    }
    put_costs(r, r->m->o.model, out);
    put_costs(r, 1 - r->m->o.model, out);
    if (r->m->w->notes) buf_put_str(out, "\ntaken for granted\n");
    for (const struct note *n = r->m->w->notes; n; n = n->next) buf_printf(out, "  %s\n", n->text);
}
