#include "tools/tally/capacity/observed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "tools/tally/trace.h"

/* ---- shared by servers and captures ---- */

/* The load by which partitions are ranked. */
static double load_of(const struct workload_partition *p) {
    return p->read_units / 3 + p->write_units + p->entities / 2;
}

/* Counts a partition by its busiest second, judges it by the limits, and keeps it if it is among
 * the busiest. key: serialised. */
static int add_partition(struct workload *w, const struct measure *m, const struct schema_table *t,
                         struct workload_partition p, struct slice key, struct err *e) {
    struct workload_table *table = workload_table(w, t->keyspace->name, t->name);
    if (!table) return err_nomem(e);
    if (day_judge_partition(t, m->o.guidance, &p, e)) return -1;
    table->n_keys++;
    table->n_over += p.over_reads || p.over_writes || p.over_entities;
    if (!table->parts && !(table->parts = ARENA_ARRAY(&w->arena, HOT_SHOWN, struct workload_partition)))
        return err_nomem(e);
    uint32_t at = table->n_parts;
    while (at && load_of(&table->parts[at - 1]) < load_of(&p)) at--;
    if (at == HOT_SHOWN) return 0;
    /* The key as CQL. With several columns each value has a length before it and a zero byte after
     * it. */
    struct rd r = rd_of(key);
    struct buf text;
    buf_init(&text, 0);
    for (uint32_t i = 0; i < t->n_partition_key; i++) {
        const struct schema_column *c = schema_partition_key(t, i);
        bool single = t->n_partition_key == 1;
        struct slice v = single ? key : rd_bytes(&r, rd_u16(&r));
        if (!single) (void)rd_u8(&r);
        buf_printf(&text, "%s%s = ", i ? " AND " : "", c->name);
        if (v.p) cql_value_print(c->type, v, &text);
    }
    p.key = r.bad ? NULL : (const char *)arena_dup(&w->arena, buf_slice(&text)).p;
    buf_fini(&text);
    if (!p.key) return err_nomem(e);
    if (table->n_parts < HOT_SHOWN) table->n_parts++;
    memmove(table->parts + at + 1, table->parts + at, (table->n_parts - 1 - at) * sizeof(p));
    table->parts[at] = p;
    return 0;
}

/* Adds a statement of the table with its executions a second. line: its number in the file. Returns
 * NULL if memory is exhausted. */
static struct workload_observed *add_statement(struct workload *w, const char *text, const char *file, uint32_t line,
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

static const struct schema_table *live_table(const struct live *l, struct client *c, const struct client_rows *row) {
    return measure_table(l->m, client_text(row, &c->arena, "keyspace_name"), client_text(row, &c->arena, "table_name"));
}

static int take_statement(void *arg, struct client *c, const struct client_rows *row) {
    struct live *l = arg;
    double n = client_double(row, "executions_last_minute");
    const struct schema_table *t = live_table(l, c, row);
    if (!t || t->keyspace->is_system) return 0;
    struct workload_observed *o = add_statement(l->w, client_text(row, &c->arena, "statement"),
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

static int take_partition(void *arg, struct client *c, const struct client_rows *row) {
    struct live *l = arg;
    const struct schema_table *t = live_table(l, c, row);
    struct value key = client_value(row, "partition_key");
    if (!t || t->keyspace->is_system || key.n < 0) return 0;
    const struct workload_partition p = {
        .read_units = fmax(client_double(row, "read_units_last_second"),
                           client_double(row, "read_units_last_minute") / 60),
        .write_units = fmax(client_double(row, "write_units_last_second"),
                            client_double(row, "write_units_last_minute") / 60),
        .entities = fmax((double)client_int(row, "entities_last_second"),
                         (double)client_int(row, "entities_last_minute") / 60)};
    return add_partition(l->w, l->m, t, p, value_slice(key), l->e);
}

int observed_server(struct client *c, struct workload *w, const struct measure *m, struct err *e) {
    struct live l = {.w = w, .m = m, .e = e};
    if (workload_note(w, e,
                      "the server: statements and partitions are those of its last minute, taken for all of the day; "
                      "units and storage are by its own size model"))
        return -1;
    if (client_each(c, "SELECT * FROM system_metering.statements", take_statement, &l, e) ||
        client_each(c, "SELECT * FROM system_metering.partitions", take_partition, &l, e))
        return -1;
    for (uint32_t i = 0; i < m->schema->n_spaces; i++) {
        if (m->schema->spaces[i]->keyspace->is_system) continue;
        struct schema_table_cursor at = schema_tables_begin(&m->schema->spaces[i]->tables);
        for (const struct schema_table *t; (t = schema_tables_next(&at));) {
            char text[256];
            struct client_answer a;
            struct workload_table *table = workload_table(w, t->keyspace->name, t->name);
            if (!table) return err_nomem(e);
            snprintf(text, sizeof(text),
                     "SELECT billable_bytes, rows FROM system_metering.storage WHERE keyspace_name = '%s' AND "
                     "table_name = '%s'",
                     t->keyspace->name, t->name);
            if (client_run(c, text, &a, e)) return -1;
            if (!a.has_rows || !client_rows_next(&a.rows)) continue;
            table->has_stored = true;
            table->stored_bytes = client_double(&a.rows, "billable_bytes");
            table->stored_rows = client_double(&a.rows, "rows");
        }
    }
    return 0;
}

/* ---- a capture ---- */

/* The use of one partition by one request. */
struct visit {
    const struct schema_table *table;
    int64_t token, second;
    double read_units, write_units, entities;
    struct slice key; /* in the arena */
};

struct capturing {
    const char *path;
    struct trace t;
    struct workload *w;
    const struct measure *m;
    struct world *world;
    const struct schema_table **tables; /* by name of a statement; NULL if not in the schema */
    struct arena arena;                 /* of a request */
    struct visit *visits;
    size_t n_visits, cap;
    uint64_t refused;
    int64_t first_s, last_s;
    struct err *e;
};

int observed_model(const char *path, enum size_model *out, struct err *e) {
    struct trace t;
    if (trace_open(&t, path, false, e)) return -1;
    *out = (enum size_model)t.header.size_model;
    trace_close(&t);
    return 0;
}

int observed_schema(const char *path, struct buf *out, struct err *e) {
    struct trace t;
    struct arena a;
    struct cql_request q;
    if (trace_open(&t, path, false, e)) return -1;
    arena_init(&a, 16 << 10, 256 << 20);
    for (size_t i = 0; i < t.n; i++) {
        const struct trace_request *r = &t.requests[i];
        struct err ignored = {0};
        arena_reset(&a);
        if (r->q.outcome || !trace_is_definition(&t, r) || trace_decode(r, &a, &q, &ignored)) continue;
        /* A statement without a keyspace uses the session's, so a USE precedes it. */
        if (r->q.keyspace.n) buf_printf(out, "USE \"%.*s\";\n", SLICE_FMT(r->q.keyspace));
        const struct capture_statement *s = q.prepared_id.p ? trace_statement(&t, q.prepared_id) : NULL;
        buf_put_slice(out, s ? s->text : q.query);
        buf_put_str(out, "\n;\n");
    }
    arena_fini(&a);
    trace_close(&t);
    if (buf_failed(out)) return err_nomem(e);
    if (out->n) return 0;
    return err_set(e, ERR_CONFIG,
                   "%s: it has no CREATE statements, because it begins after them: give --schema, or --server", path);
}

/* The table of the request's statement; of a batch's first statement. Returns NULL if it is none
 * of the schema. */
static const struct schema_table *captured_table(struct capturing *x, const struct trace_request *r,
                                                 const struct cql_request *q) {
    const struct slice id = q->prepared_id.p ? q->prepared_id
                            : q->n_items     ? q->items[0].prepared_id
                                             : (struct slice){0};
    const struct capture_statement *s = id.p ? trace_statement(&x->t, id) : NULL;
    struct err ignored = {0};
    const struct ast_stmt *tree =
        cql_parse(&x->arena, s ? s->text : q->n_items ? q->items[0].query : q->query, true, &ignored);
    if (tree && tree->kind == STMT_BATCH) tree = tree->batch.n ? tree->batch.stmts[0] : NULL;
    const struct ast_name *named = tree ? ast_table(tree) : NULL;
    const struct slice session = s ? s->keyspace : q->params.keyspace.p ? q->params.keyspace : r->q.keyspace;
    const char *keyspace =
        named && named->keyspace ? named->keyspace : arena_printf(&x->arena, "%.*s", SLICE_FMT(session));
    return named && keyspace ? measure_table(x->m, keyspace, named->name) : NULL;
}

/* Whether the request is among those that the estimate repeats. */
static bool counts(const struct capturing *x, const struct trace_request *r) {
    return !r->q.outcome && !trace_is_system(&x->t, r->name) && x->tables[r->name];
}

/* Whether the request used a single partition, so that its whole charge belongs to the
 * partition. */
static bool one_partition(const struct op_cost *c, int64_t *token, struct slice *key) {
    bool first = true;
    for (const struct op_read *r = c->reads; r; r = r->next) {
        if (!r->item.one_partition || (!first && r->item.token != *token)) return false;
        *token = r->item.token, *key = r->key, first = false;
    }
    for (const struct op_write *r = c->writes; r; r = r->next) {
        if (!first && r->item.token != *token) return false;
        *token = r->item.token, *key = r->key, first = false;
    }
    return !first;
}

/* The write units in each Region of the keyspace. The record has the bill: their sum, or the units of one
 * Region, as its mark says. */
static double writes_of(const struct trace_request *r, const struct schema_table *t) {
    double billed = (double)(r->q.write_halves + r->q.static_halves) / 2;
    return r->q.marks & CAPTURE_ONE_REGION ? billed : billed / schema_regions(t->keyspace);
}

/* Runs a request that counts, and notes its visit to a partition. */
static int look_at(struct capturing *x, const struct trace_request *r) {
    struct cql_request q;
    struct world_answer a;
    struct slice state, key = {0};
    bool throttled;
    int64_t token = 0, second = r->q.began_us / 1000000;
    struct err ignored = {0};
    arena_reset(&x->arena);
    if (trace_is_system(&x->t, r->name)) return 0;
    x->refused += r->q.outcome != 0;
    if (r->q.outcome || trace_decode(r, &x->arena, &q, &ignored) || q.kind == REQUEST_PREPARE) return 0;
    if (!x->tables[r->name]) x->tables[r->name] = captured_table(x, r, &q);
    if (!x->tables[r->name]) return 0;
    if (!x->first_s || second < x->first_s) x->first_s = second;
    if (second > x->last_s) x->last_s = second;
    const struct world_call call = trace_call(r);
    if (trace_send(&x->t, x->world, r, &call, &a, &state, &throttled, &ignored) ||
        !one_partition(a.cost, &token, &key))
        return 0;
    double kib = ceil((double)(r->q.row_bytes + r->q.static_bytes) / 1024); /* entities of a read (op_cost.h) */
    struct visit v = {.table = x->tables[r->name], .token = token, .second = second,
                      .read_units = (double)r->q.read_halves / 2,
                      .write_units = writes_of(r, x->tables[r->name]),
                      .entities = a.cost->writes ? (double)a.entities : fmax((double)r->q.rows_read, kib),
                      .key = arena_dup(&x->w->arena, key)};
    if (!v.key.p || array_room(&x->visits, x->n_visits, &x->cap, sizeof(v))) return err_nomem(x->e);
    x->visits[x->n_visits++] = v;
    return 0;
}

/* The figures of the requests of a statement. */
struct observed_figures {
    uint32_t n, filled;
    double *reads, *writes, *rows, *statics;
};

/* Adds up the units of each second for each table, and the figures of each statement. */
static int add_requests(struct capturing *x, struct observed_figures *by_name) {
    uint32_t seconds = x->last_s - x->first_s + 1 < DAY_S ? (uint32_t)(x->last_s - x->first_s + 1) : DAY_S;
    struct arena *a = &x->w->arena;
    const struct trace_request *end = x->t.requests + x->t.n;
    for (const struct trace_request *r = x->t.requests; r < end; r++) by_name[r->name].n += counts(x, r);
    for (const struct trace_request *r = x->t.requests; r < end; r++) {
        struct observed_figures *f = &by_name[r->name];
        const struct schema_table *t = x->tables[r->name];
        struct workload_table *table = counts(x, r) ? workload_table(x->w, t->keyspace->name, t->name) : NULL;
        if (!counts(x, r)) continue;
        if (!table) return err_nomem(x->e);
        if (!table->second_reads) {
            table->second_reads = ARENA_ARRAY(a, seconds, double);
            table->second_writes = ARENA_ARRAY(a, seconds, double);
            table->seconds = seconds;
            table->begins = (uint32_t)(x->first_s % DAY_S);
        }
        if (!f->reads) {
            f->reads = ARENA_ARRAY(a, f->n, double), f->writes = ARENA_ARRAY(a, f->n, double);
            f->rows = ARENA_ARRAY(a, f->n, double), f->statics = ARENA_ARRAY(a, f->n, double);
        }
        if (!table->second_reads || !table->second_writes || !f->reads || !f->writes || !f->rows || !f->statics)
            return err_nomem(x->e);
        uint32_t second = (uint32_t)((r->q.began_us / 1000000 - x->first_s) % seconds), i = f->filled++;
        table->second_reads[second] += f->reads[i] = (double)r->q.read_halves / 2;
        table->second_writes[second] += f->writes[i] = writes_of(r, t);
        f->rows[i] = (double)r->q.row_bytes;
        f->statics[i] = (double)r->q.static_bytes;
    }
    for (uint32_t name = 0; name < x->t.n_names; name++) {
        const struct observed_figures *f = &by_name[name];
        double rate = (double)f->n / (double)(x->last_s - x->first_s + 1);
        if (!f->n) continue;
        struct workload_observed *o = add_statement(x->w, x->t.names[name].text, x->path, name + 1, x->tables[name],
                                                    rate);
        if (!o) return err_nomem(x->e);
        spread_of(f->reads, f->n, a, &o->reads);
        spread_of(f->writes, f->n, a, &o->writes);
        spread_of(f->rows, f->n, a, &o->row_bytes);
        spread_of(f->statics, f->n, a, &o->static_bytes);
        o->n = o->n_samples = f->n;
        o->read_samples = f->reads;
        o->write_samples = f->writes;
    }
    return 0;
}

static bool same_partition(const struct visit *a, const struct visit *b) {
    return a->table == b->table && a->token == b->token;
}

static int by_partition(const void *a, const void *b) {
    const struct visit *x = a, *y = b;
    if (x->table != y->table) return x->table < y->table ? -1 : 1;
    if (x->token != y->token) return x->token < y->token ? -1 : 1;
    return (x->second > y->second) - (x->second < y->second);
}

/* Adds each partition with its busiest second. */
static int add_partitions(struct capturing *x) {
    const struct visit *v = x->visits, *end = v + x->n_visits;
    if (x->n_visits) qsort(x->visits, x->n_visits, sizeof(*x->visits), by_partition);
    while (v < end) {
        const struct visit *first = v;
        struct workload_partition most = {0};
        while (v < end && same_partition(v, first)) {
            struct workload_partition second = {0};
            for (int64_t at = v->second; v < end && same_partition(v, first) && v->second == at; v++) {
                second.read_units += v->read_units;
                second.write_units += v->write_units;
                second.entities += v->entities;
            }
            if (load_of(&second) > load_of(&most)) most = second;
        }
        if (add_partition(x->w, x->m, first->table, most, first->key, x->e)) return -1;
    }
    return 0;
}

int observed_capture(const char *path, struct workload *w, const struct measure *m, struct err *e) {
    struct capturing x = {.path = path, .w = w, .m = m, .e = e};
    if (trace_open(&x.t, path, false, e)) return -1;
    arena_init(&x.arena, 16 << 10, 256 << 20);
    x.tables = calloc(x.t.n_names + 1, sizeof(*x.tables));
    struct observed_figures *by_name = calloc(x.t.n_names + 1, sizeof(*by_name));
    int rc = x.tables && by_name ? 0 : err_nomem(e);
    if (!rc && x.t.header.hashed)
        rc = err_set(e, ERR_CONFIG,
                     "%s: its values are hashed, so the partitions of its requests are not known", path);
    if (!rc && !(x.world = measure_world(m, m->o.model, false, e))) rc = -1;
    for (size_t i = 0; !rc && i < x.t.n; i++) rc = look_at(&x, &x.t.requests[i]);
    if (!rc && !x.n_visits && !x.first_s)
        rc = err_set(e, ERR_CONFIG, "%s: no request in it uses a table of the schema", path);
    if (!rc) rc = add_requests(&x, by_name) || add_partitions(&x) ? -1 : 0;
    if (!rc)
        rc = workload_note(w, e,
                           "%s: its %lld seconds are repeated over the day; %llu requests that were refused and %llu "
                           "that are missing are not in it; units are by %s, as they were charged",
                           path, (long long)(x.last_s - x.first_s + 1), (unsigned long long)x.refused,
                           (unsigned long long)x.t.dropped, size_model_name((enum size_model)x.t.header.size_model));
    if (x.world) world_free(x.world);
    free(x.visits);
    free(x.tables);
    free(by_name);
    arena_fini(&x.arena);
    trace_close(&x.t);
    return rc;
}
