#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/tally/capacity/observed.h"
#include "tools/tally/trace.h"

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
    const struct schema_table **tables; /* by name of a statement; NULL: not in the schema */
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
        bool made = !r->q.outcome && trace_is_definition(&t, r) && !trace_decode(r, &a, &q, &ignored);
        /* A statement without a keyspace uses the session's, so a USE precedes it. */
        if (made) {
            if (r->q.keyspace.n) {
                buf_put_str(out, "USE \"");
                buf_put_slice(out, r->q.keyspace);
                buf_put_str(out, "\";\n");
            }
            buf_put_slice(out, q.query);
            buf_put_str(out, "\n;\n");
        }
    }
    arena_fini(&a);
    trace_close(&t);
    if (buf_failed(out)) return err_nomem(e);
    if (out->n) return 0;
    return err_set(e, ERR_CONFIG,
                   "%s: it has no CREATE statements, for it begins behind them: give --schema, or --server", path);
}

/* ---- the tables of statements ---- */

/* The table of the request's statement; of a batch's first statement. NULL: none of the schema. */
static const struct schema_table *table_of(struct capturing *x, const struct cql_request *q) {
    const struct slice id = q->prepared_id.p ? q->prepared_id
                            : q->n_items     ? q->items[0].prepared_id
                                             : (struct slice){0};
    const struct capture_statement *s = id.p ? trace_statement(&x->t, id) : NULL;
    const struct slice text = s ? s->text : q->n_items ? q->items[0].query : q->query;
    struct err ignored = {0};
    struct cql_prepared *p = world_markers(x->m->base, text, &ignored);
    if (!p) return NULL;
    const struct prepared_info *info = cql_prepared_info(p);
    const struct result_column *c = info->binds.n ? info->binds.columns : info->result.n ? info->result.columns : NULL;
    const struct schema_table *t = c ? measure_table(x->m, c->keyspace, c->table) : NULL;
    cql_prepared_unref(p);
    return t;
}

/* ---- the partition of a request, found by running it ---- */

/* Whether the request used a single partition, so that its whole charge belongs to the
 * partition. */
static bool one_partition(const struct op_cost *c, int64_t *token, struct slice *key) {
    bool first = true;
    for (const struct op_read *r = c->reads; r; r = r->next) {
        if (!r->one_partition || (!first && r->token != *token)) return false;
        *token = r->token, *key = r->key, first = false;
    }
    for (const struct op_write *r = c->writes; r; r = r->next) {
        if (!first && r->token != *token) return false;
        *token = r->token, *key = r->key, first = false;
    }
    return !first;
}

static int visit(struct capturing *x, const struct trace_request *r, const struct cql_request *q,
                 const struct schema_table *t) {
    struct world_answer a;
    struct slice state, key = {0};
    bool throttled;
    struct err ignored = {0};
    int64_t token = 0;
    const struct world_call call = trace_call(r);
    if (trace_send(&x->t, x->world, r, &call, &a, &state, &throttled, &ignored) ||
        !one_partition(a.cost, &token, &key))
        return 0;
    struct visit v = {.table = t, .token = token, .second = r->q.began_us / 1000000,
                      .read_units = (double)r->q.read_halves / 2,
                      .write_units = (double)(r->q.write_halves + r->q.static_halves) / 2,
                      .entities = q->kind == REQUEST_BATCH ? q->n_items : r->q.rows_read,
                      .key = arena_dup(&x->w->arena, key)};
    if (v.write_units > 0 && q->kind != REQUEST_BATCH) v.entities = 1;
    if (!v.key.p) return err_nomem(x->e);
    if (x->n_visits == x->cap) {
        size_t cap = x->cap ? 2 * x->cap : 1024;
        struct visit *visits = realloc(x->visits, cap * sizeof(*visits));
        if (!visits) return err_nomem(x->e);
        x->visits = visits;
        x->cap = cap;
    }
    x->visits[x->n_visits++] = v;
    return 0;
}

/* ---- all requests ---- */

static bool counts(const struct capturing *x, const struct trace_request *r) {
    return !r->q.outcome && !trace_is_system(&x->t, r->name);
}

static int look_at(struct capturing *x, const struct trace_request *r) {
    struct cql_request q;
    struct err ignored = {0};
    arena_reset(&x->arena);
    if (trace_is_system(&x->t, r->name)) return 0;
    x->refused += r->q.outcome != 0;
    if (r->q.outcome || trace_decode(r, &x->arena, &q, &ignored) || q.kind == REQUEST_PREPARE) return 0;
    if (!x->tables[r->name]) x->tables[r->name] = table_of(x, &q);
    if (!x->tables[r->name]) return 0;
    int64_t second = r->q.began_us / 1000000;
    if (!x->first_s || second < x->first_s) x->first_s = second;
    if (second > x->last_s) x->last_s = second;
    return visit(x, r, &q, x->tables[r->name]);
}

/* Adds up the units of each second for each table. */
static int add_seconds(struct capturing *x) {
    uint32_t n = x->last_s - x->first_s + 1 < DAY_S ? (uint32_t)(x->last_s - x->first_s + 1) : DAY_S;
    for (size_t i = 0; i < x->t.n; i++) {
        const struct trace_request *r = &x->t.requests[i];
        const struct schema_table *t = x->tables[r->name];
        if (!counts(x, r) || !t) continue;
        struct workload_table *table = workload_table(x->w, t->keyspace->name, t->name);
        if (!table) return err_nomem(x->e);
        if (!table->second_reads) {
            table->second_reads = ARENA_ARRAY(&x->w->arena, n, double),
            table->second_writes = ARENA_ARRAY(&x->w->arena, n, double);
            table->seconds = n;
            table->begins = (uint32_t)(x->first_s % DAY_S);
            if (!table->second_reads || !table->second_writes) return err_nomem(x->e);
        }
        uint32_t second = (uint32_t)((r->q.began_us / 1000000 - x->first_s) % n);
        table->second_reads[second] += (double)r->q.read_halves / 2;
        table->second_writes[second] += (double)(r->q.write_halves + r->q.static_halves) / 2;
    }
    return 0;
}

static int add_statement(struct capturing *x, uint32_t name, const uint32_t *requests, uint32_t n) {
    enum { READS, WRITES, ROWS, STATICS, KINDS };
    struct arena *a = &x->w->arena;
    double *samples[KINDS], rate = (double)n / (double)(x->last_s - x->first_s + 1);
    struct workload_observed *o = observed_statement(x->w, x->t.names[name].text, x->path, name + 1, x->tables[name],
                                                     rate);
    if (!o) return err_nomem(x->e);
    for (int k = 0; k < KINDS; k++)
        if (!(samples[k] = ARENA_ARRAY(a, n, double))) return err_nomem(x->e);
    for (uint32_t i = 0; i < n; i++) {
        const struct capture_request *q = &x->t.requests[requests[i]].q;
        samples[READS][i] = (double)q->read_halves / 2;
        samples[WRITES][i] = (double)(q->write_halves + q->static_halves) / 2;
        samples[ROWS][i] = (double)q->row_bytes;
        samples[STATICS][i] = (double)q->static_bytes;
    }
    spread_of(samples[READS], n, a, &o->reads);
    spread_of(samples[WRITES], n, a, &o->writes);
    spread_of(samples[ROWS], n, a, &o->row_bytes);
    spread_of(samples[STATICS], n, a, &o->static_bytes);
    o->n = o->n_samples = n;
    o->read_samples = samples[READS];
    o->write_samples = samples[WRITES];
    return 0;
}

static int add_statements(struct capturing *x) {
    uint32_t *order = calloc(x->t.n + 1, sizeof(*order)), *ends = calloc(x->t.n_names + 1, sizeof(*ends));
    int rc = order && ends ? 0 : err_nomem(x->e);
    /* Sorts the requests that count by statement name; ends[name] is the end of the name's requests
     * in order. */
    if (!rc) {
        for (size_t i = 0; i < x->t.n; i++)
            if (counts(x, &x->t.requests[i])) ends[x->t.requests[i].name + 1]++;
        for (size_t name = 0; name < x->t.n_names; name++) ends[name + 1] += ends[name];
        for (size_t i = 0; i < x->t.n; i++)
            if (counts(x, &x->t.requests[i])) order[ends[x->t.requests[i].name]++] = (uint32_t)i;
    }
    for (uint32_t name = 0, from = 0; !rc && name < x->t.n_names; from = ends[name++])
        if (x->tables[name] && ends[name] > from) rc = add_statement(x, name, order + from, ends[name] - from);
    free(order);
    free(ends);
    return rc;
}

/* ---- partitions ---- */

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
            if (observed_load(&second) > observed_load(&most)) most = second;
        }
        if (observed_partition(x->w, first->table, most, first->key, x->e)) return -1;
    }
    return 0;
}

int observed_capture(const char *path, struct workload *w, const struct measure *m, struct note **notes,
                     struct err *e) {
    struct capturing x = {.path = path, .w = w, .m = m, .e = e};
    if (trace_open(&x.t, path, false, e)) return -1;
    arena_init(&x.arena, 16 << 10, 256 << 20);
    x.tables = calloc(x.t.n_names + 1, sizeof(*x.tables));
    int rc = x.tables ? 0 : err_nomem(e);
    if (!rc && x.t.header.hashed)
        rc = err_set(e, ERR_CONFIG,
                     "%s: its values are hashed, so that nothing says which partitions its requests are of", path);
    if (!rc && !(x.world = measure_world(m, m->o.model, false, e))) rc = -1;
    for (size_t i = 0; !rc && i < x.t.n; i++) rc = look_at(&x, &x.t.requests[i]);
    if (!rc && !x.n_visits && !x.first_s)
        rc = err_set(e, ERR_CONFIG, "%s: no request in it is of a table of the schema", path);
    if (!rc) rc = add_seconds(&x) || add_statements(&x) || add_partitions(&x) ? -1 : 0;
    if (!rc)
        rc = note_add(&w->arena, notes, e,
                      "%s: its %lld seconds are repeated over the day; %llu requests that were refused and %llu that "
                      "are missing are not in it; units are by %s, as they were charged",
                      path, (long long)(x.last_s - x.first_s + 1), (unsigned long long)x.refused,
                      (unsigned long long)x.t.dropped, size_model_name((enum size_model)x.t.header.size_model));
    if (x.world) world_free(x.world);
    free(x.visits);
    free(x.tables);
    arena_fini(&x.arena);
    trace_close(&x.t);
    return rc;
}
