#include "tools/tally/world.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/tally/script.h"

enum { REQUEST_MAX = 64 << 20, PAGE = 5000 };

struct world {
    struct world_options o;
    struct eng *eng;
    struct catalog *catalog;
    struct cql_db *db;
    struct cql_session session;
    struct eng_batch *batch;
    struct arena arena;
    struct row_sink sink;
    struct op_cost cost;
    struct buf paging;
};

static int take_meta(struct row_sink *s, const struct result_meta *meta) { return (void)s, (void)meta, 0; }
static int take_row(struct row_sink *s, const struct value *values) { return (void)s, (void)values, 0; }
static void restart(struct row_sink *s) { (void)s; }
static size_t bytes_taken(const struct row_sink *s) { return (void)s, 0; }

struct world *world_new(const struct world_options *o, struct err *e) {
    static const struct node_info node = {"tally", "datacenter1", "rack1", "3.11.2", "3.4.4", "127.0.0.1", 9042};
    struct world *w = calloc(1, sizeof(*w));
    if (!w) {
        err_nomem(e);
        return NULL;
    }
    w->o = *o;
    arena_init(&w->arena, 16 << 10, REQUEST_MAX);
    buf_init(&w->paging, 0);
    w->sink = (struct row_sink){.begin = take_meta, .row = take_row, .restart = restart, .bytes = bytes_taken};
    const struct eng_options eo = {.durability = ENG_NONE, .clock = &clock_real};
    const struct catalog_options co = {.clock = &clock_real, .mode = MODE_KEYSPACES, .node = node};
    w->eng = eng_open(&eo, e);
    if (w->eng) {
        struct catalog_options with = co;
        with.eng = w->eng;
        w->catalog = catalog_open(&with, e);
    }
    if (w->catalog) {
        const struct cql_db_options dbo = {.eng = w->eng, .catalog = w->catalog, .clock = &clock_real, .mode = MODE_KEYSPACES, .size_model = o->size_model,
                                           .write_size = o->write_size, .timestamp_size = o->timestamp_size, .compat = {.mode = o->strict ? COMPAT_STRICT : COMPAT_OFF}};
        w->db = cql_db_new(&dbo, e);
    }
    if (w->db && (w->batch = eng_batch_new(w->eng))) return w;
    err_nomem(e);
    world_free(w);
    return NULL;
}

void world_free(struct world *w) {
    if (w->batch) eng_batch_free(w->batch);
    if (w->db) cql_db_free(w->db);
    if (w->catalog) catalog_close(w->catalog);
    if (w->eng) eng_close(w->eng);
    arena_fini(&w->arena);
    buf_fini(&w->paging);
    free(w);
}

/* ---- one request, as native_protocol/sequence.c has it ---- */

static bool is_eventual(uint16_t consistency) { return consistency == CL_ONE || consistency == CL_LOCAL_ONE; }

static enum cql_outcome run(struct world *w, struct cql_request *r, struct charge *charge) {
    enum cql_outcome outcome = cql_run(r);
    while (outcome == CQL_AGAIN) outcome = cql_run_more(r);
    if (outcome != CQL_DONE && outcome != CQL_COMMIT) return outcome;
    charge_compute(&w->cost, is_eventual(r->params.consistency) ? CHARGE_EVENTUAL : CHARGE_STRONG, charge);
    outcome = cql_apply(r, outcome);
    while (outcome == CQL_AGAIN) outcome = cql_run_more(r);
    return outcome;
}

static void add(struct world_answer *out, const struct op_cost *cost, const struct charge *c) {
    struct charge *all = &out->charge;
    all->read_units += c->read_units, all->write_units += c->write_units, all->static_write_units += c->static_write_units;
    all->total += c->total;
    all->row_bytes += c->row_bytes, all->static_bytes += c->static_bytes;
    all->rules |= c->rules;
    out->pages++;
    out->rows_read += cost->rows_read, out->rows_returned += cost->rows_returned;
    out->bytes_read += cost->bytes_read, out->partitions += cost->partitions;
    for (const struct op_read *r = cost->reads; r; r = r->next) out->filtered += r->filtered;
}

/* false: no further page, or e. */
static bool run_page(struct world *w, const struct world_request *q, struct world_answer *out, struct err *e) {
    struct cql_request r = {.kind = REQUEST_QUERY, .query = q->text, .db = w->db, .session = &w->session, .arena = &w->arena, .err = e, .cost = &w->cost,
                            .sink = &w->sink, .batch = w->batch, .now_us = clock_wall_us(&clock_real), .blocking = true, .stmt_kind = STMT_KINDS};
    struct charge charge = {0};
    arena_reset(&w->arena);
    w->cost = (struct op_cost){.arena = &w->arena, .size_model = w->o.size_model, .write_size = w->o.write_size, .timestamp_size = w->o.timestamp_size};
    r.params = (struct cql_params){.consistency = q->consistency, .serial_consistency = CL_LOCAL_SERIAL, .page_size = q->page_size ? q->page_size : PAGE};
    if (w->paging.n) r.params.paging_state = arena_dup(&w->arena, buf_slice(&w->paging));
    enum cql_outcome outcome = run(w, &r, &charge);
    buf_clear(&w->paging, SIZE_MAX);
    if (outcome != CQL_FAILED) {
        add(out, &w->cost, &charge);
        out->kind = r.stmt_kind;
        out->n_warnings = r.n_warnings;
        out->warnings = r.warnings;
        if (r.result.paging_state.p) buf_put_slice(&w->paging, r.result.paging_state);
    }
    cql_request_fini(&r);
    return w->paging.n > 0;
}

int world_run(struct world *w, const struct world_request *q, struct world_answer *out, struct err *e) {
    *out = (struct world_answer){.cost = &w->cost};
    err_clear(e);
    w->session.protocol_version = 4;
    buf_clear(&w->paging, SIZE_MAX);
    while (run_page(w, q, out, e)) continue;
    return e->set ? -1 : 0;
}

int world_load(struct world *w, const char *path, struct err *e) {
    struct script s;
    struct script_statement statement;
    struct world_answer ignored;
    struct err why;
    if (script_open(&s, path, e)) return -1;
    while (!e->set && script_next(&s, &statement)) {
        const struct world_request q = {.text = statement.text, .consistency = CL_LOCAL_QUORUM};
        if (world_run(w, &q, &ignored, &why)) err_set(e, ERR_CONFIG, "%s:%u: %s", path, statement.line, why.text);
    }
    script_close(&s);
    return e->set ? -1 : 0;
}

int world_consistency(const char *name) {
    static const char *const names[] = {
#define CONSISTENCY(id, replicas) [CL_##id] = #id,
#define CONSISTENCY_REFUSED(...)
#include "cql/request/consistency.def"
#undef CONSISTENCY
#undef CONSISTENCY_REFUSED
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (names[i] && !strcasecmp(name, names[i])) return (int)i;
    return -1;
}
