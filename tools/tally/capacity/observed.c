#include "tools/tally/capacity/observed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- shared by servers and captures ---- */

/* Prints a serialised partition key as CQL. With several columns each value has a length before it
 * and a zero byte after it. */
static const char *key_text(struct arena *a, const struct schema_table *t, struct slice key) {
    struct buf out;
    struct rd r = rd_of(key);
    buf_init(&out, 0);
    for (uint32_t i = 0; i < t->n_partition_key; i++) {
        const struct schema_column *c = schema_partition_key(t, i);
        struct slice v = key;
        if (t->n_partition_key > 1) {
            v = rd_bytes(&r, rd_u16(&r));
            (void)rd_u8(&r);
        }
        buf_printf(&out, "%s%s = ", i ? " AND " : "", c->name);
        if (v.p) cql_value_print(c->type, v, &out);
    }
    struct slice copy = r.bad ? (struct slice){0} : arena_dup(a, buf_slice(&out));
    buf_fini(&out);
    return (const char *)copy.p;
}

double observed_load(const struct workload_partition *p) {
    return p->read_units / 3 + p->write_units + p->entities / 2;
}

int observed_partition(struct workload *w, const struct schema_table *t, struct workload_partition p, struct slice key,
                       struct err *e) {
    struct workload_table *table = workload_table(w, t->keyspace->name, t->name);
    if (!table) return err_nomem(e);
    if (day_judge_partition(t, &p, e)) return -1;
    table->n_keys++;
    table->n_over += p.over_reads || p.over_writes || p.over_entities;
    if (!table->parts && !(table->parts = ARENA_ARRAY(&w->arena, HOT_SHOWN, struct workload_partition)))
        return err_nomem(e);
    uint32_t at = table->n_parts;
    while (at && observed_load(&table->parts[at - 1]) < observed_load(&p)) at--;
    if (at == HOT_SHOWN) return 0;
    if (!(p.key = key_text(&w->arena, t, key))) return err_nomem(e);
    if (table->n_parts < HOT_SHOWN) table->n_parts++;
    memmove(table->parts + at + 1, table->parts + at, (table->n_parts - 1 - at) * sizeof(p));
    table->parts[at] = p;
    return 0;
}

struct workload_observed *observed_statement(struct workload *w, const char *text, const char *file, uint32_t line,
                                             const struct schema_table *t, double rate) {
    struct workload_statement *s = workload_add(w);
    struct workload_observed *o = ARENA_NEW(&w->arena, struct workload_observed);
    if (!s || !o) return NULL;
    s->name = s->text = arena_strdup(&w->arena, text);
    s->file = file;
    s->line = line;
    s->has_rate = true;
    s->rate = (struct curve){.n = 1, .points = {{.rate = rate}}};
    s->observed = o;
    o->table = t;
    if (rate <= 0) s->unknown = "it did not run in the server's last minute";
    return s->name ? o : NULL;
}

/* ---- a server ---- */

struct live {
    struct workload *w;
    const struct measure *m;
    struct err *e;
    uint32_t n;
};

static const struct schema_table *table_of(const struct live *l, struct client *c, const struct client_rows *row) {
    return measure_table(l->m, client_text(row, &c->arena, "keyspace_name"), client_text(row, &c->arena, "table_name"));
}

static int take_statement(void *arg, struct client *c, const struct client_rows *row) {
    struct live *l = arg;
    double n = client_double(row, "executions_last_minute");
    const struct schema_table *t = table_of(l, c, row);
    if (!t || t->keyspace->is_system) return 0;
    struct workload_observed *o = observed_statement(l->w, client_text(row, &c->arena, "statement"),
                                                     "system_metering.statements", ++l->n, t, n / 60);
    double *one = ARENA_ARRAY(&l->w->arena, 2, double);
    if (!o || !one) return err_nomem(l->e);
    if (n <= 0) return 0;
    one[0] = client_double(row, "read_units_last_minute") / n;
    one[1] = client_double(row, "write_units_last_minute") / n;
    o->row_bytes = o->static_bytes = (struct spread){-1, -1, -1, -1};
    o->reads = (struct spread){-1, -1, -1, one[0]};
    o->writes = (struct spread){-1, -1, -1, one[1]};
    o->read_samples = one;
    o->write_samples = one + 1;
    o->n_samples = 1;
    o->n = (uint32_t)n;
    return 0;
}

static double greater(double a, double b) { return a > b ? a : b; }

static int take_partition(void *arg, struct client *c, const struct client_rows *row) {
    struct live *l = arg;
    const struct schema_table *t = table_of(l, c, row);
    struct value key = client_value(row, "partition_key");
    if (!t || t->keyspace->is_system || key.n < 0) return 0;
    const struct workload_partition p = {.read_units = greater(client_double(row, "read_units_last_second"),
                                                               client_double(row, "read_units_last_minute") / 60),
                                         .write_units = greater(client_double(row, "write_units_last_second"),
                                                                client_double(row, "write_units_last_minute") / 60),
                                         .entities = greater((double)client_int(row, "entities_last_second"),
                                                             (double)client_int(row, "entities_last_minute") / 60)};
    return observed_partition(l->w, t, p, slice_of(key.p, (size_t)key.n), l->e);
}

static int take_storage(struct client *c, struct live *l, const struct schema_table *t) {
    char text[256];
    struct client_answer a;
    struct workload_table *table = workload_table(l->w, t->keyspace->name, t->name);
    if (!table) return err_nomem(l->e);
    snprintf(
        text, sizeof(text),
        "SELECT billable_bytes, rows FROM system_metering.storage WHERE keyspace_name = '%s' AND table_name = '%s'",
        t->keyspace->name, t->name);
    if (client_ask(c, text, &a, l->e)) return -1;
    if (!a.has_rows || !client_rows_next(&a.rows)) return 0;
    table->has_stored = true;
    table->stored_bytes = client_double(&a.rows, "billable_bytes");
    table->stored_rows = client_double(&a.rows, "rows");
    return 0;
}

int observed_server(struct client *c, struct workload *w, const struct measure *m, struct note **notes, struct err *e) {
    struct live l = {.w = w, .m = m, .e = e};
    if (note_add(&w->arena, notes, e,
                 "the server: statements and partitions are those of its last minute, taken for all of the day; units "
                 "and storage are by its own size model"))
        return -1;
    if (client_each(c, "SELECT * FROM system_metering.statements", take_statement, &l, e) ||
        client_each(c, "SELECT * FROM system_metering.partitions", take_partition, &l, e))
        return -1;
    for (uint32_t i = 0; i < m->schema->n_spaces; i++) {
        if (m->schema->spaces[i]->keyspace->is_system) continue;
        struct schema_table_cursor at = schema_tables_begin(&m->schema->spaces[i]->tables);
        for (const struct schema_table *t; (t = schema_tables_next(&at));)
            if (take_storage(c, &l, t)) return -1;
    }
    return 0;
}
