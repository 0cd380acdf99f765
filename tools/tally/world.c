#include "tools/tally/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "cql/compat/compat_check.h"
#include "cql/execute.h"
#include "cql/request/consistency.h"
#include "engine/table.h"
#include "native_protocol/request.h"
#include "server/admission.h"
#include "tools/tally/left_out.h"
#include "tools/tally/script.h"

enum { REQUEST_MAX = 64 << 20, PAGE = 5000 };

struct connection {
    uint64_t id;
    struct limit_connection limit;
};

struct world {
    struct world_options o;
    uint64_t ttl_deletes;                /* units of TTL deletes on the table expiring */
    const struct schema_table *expiring; /* set during world_expire; else NULL */
    struct eng *eng;
    struct catalog *catalog;
    struct cql_db *db;
    /* runs definitions without Keyspaces' rules, on the same engine and catalogue; NULL until the
     * first world_define of a strict world */
    struct cql_db *lenient;
    struct arena noted;         /* notes and needs of the last statement */
    struct compat_notes notes;
    const char *needs;
    struct arena kept;          /* left_out */
    struct left_out *left_out;
    struct cql_session session;
    struct clock_control clock;
    struct ledger *ledger;       /* with limits; in memory, and with nothing in it */
    struct admission *admission; /* with limits; else NULL */
    struct connection *connections; /* sorted by id */
    size_t n_connections, cap_connections;
    struct arena arena;
    struct cql_execution run; /* the last one */
    struct buf paging;
};

static bool is_table(const struct schema_table *t, const char *keyspace, const char *name) {
    return keyspace && name && !strcmp(t->keyspace->name, keyspace) && !strcmp(t->name, name);
}

/* Called on the thread of world_expire. */
static void take_ttl_delete(void *arg, const struct schema_table *t, uint64_t units) {
    struct world *w = arg;
    if (w->expiring && is_table(w->expiring, t->keyspace->name, t->name)) w->ttl_deletes += units;
}

static struct cql_db_options database_options(struct world *w) {
    const struct world_options *o = &w->o;
    return (struct cql_db_options){
        .eng = w->eng, .catalog = w->catalog, .clock = &w->clock.clock,
        .mode = o->cassandra ? MODE_CASSANDRA : MODE_KEYSPACES,
        .size_model = o->size_model, .write_size = o->write_size, .timestamp_size = o->timestamp_size,
        .ttl_delete = {.fn = take_ttl_delete, .arg = w}, .compat = {.mode = o->strict ? COMPAT_STRICT : COMPAT_REPORT},
        .admission = w->admission ? admission_of(w->admission) : (struct cql_admission){0}};
}

struct world *world_new(const struct world_options *o, struct err *e) {
    static const struct node_info keyspaces = {"tally", "us-east-1", "rack1", "3.11.2", "3.4.4", "127.0.0.1", 9042};
    static const struct node_info cassandra = {"tally", "datacenter1", "rack1", "5.0.0", "3.4.7", "127.0.0.1", 9042};
    struct limiter_options limits = {.mode = LIMITS_ENFORCE, .guidance = GUIDANCE_OFF};
    struct world *w = calloc(1, sizeof(*w));
    if (!w) return err_null(err_nomem(e));
    const struct eng_options eo = {.durability = ENG_NONE, .clock = &w->clock.clock};
    const struct ledger_options ledger = {.clock = &w->clock.clock, .n_shards = 1};
    w->o = *o;
    clock_control_init(&w->clock, &clock_real);
    arena_init(&w->arena, 16 << 10, REQUEST_MAX);
    arena_init(&w->noted, 4 << 10, REQUEST_MAX);
    arena_init(&w->kept, 4 << 10, REQUEST_MAX);
    w->notes.arena = &w->noted;
    buf_init(&w->paging, 0);
    w->eng = eng_open(&eo, e);
    if (!w->eng || limit_rules_parse("", &limits.rules, e) || limit_values_parse("", &limits.values, e)) goto failed;
    const struct catalog_options co = {.eng = w->eng, .clock = &w->clock.clock,
                                       .mode = o->cassandra ? MODE_CASSANDRA : MODE_KEYSPACES,
                                       .node = o->cassandra ? cassandra : keyspaces,
                                       .quota = admission_quota(&limits.values)};
    if (!(w->catalog = catalog_open(&co, e))) goto failed;
    if (o->limits && !(w->ledger = ledger_open(&ledger, e))) goto failed;
    if (o->limits && !(w->admission = admission_new(&limits, w->catalog, &w->clock.clock, w->ledger, e))) goto failed;
    const struct cql_db_options dbo = database_options(w);
    if ((w->db = cql_db_new(&dbo, e))) return w;
failed:
    world_free(w);
    return NULL;
}

void world_free(struct world *w) {
    cql_execution_fini(&w->run);
    arena_fini(&w->arena); /* it may hold values of the store */
    arena_fini(&w->noted);
    arena_fini(&w->kept);
    if (w->lenient) cql_db_free(w->lenient);
    if (w->db) cql_db_free(w->db);
    if (w->admission) admission_free(w->admission);
    if (w->ledger) ledger_close(w->ledger);
    if (w->catalog) catalog_close(w->catalog);
    if (w->eng) eng_close(w->eng);
    buf_fini(&w->paging);
    clock_control_fini(&w->clock);
    free(w->connections);
    free(w);
}

/* ---- one request ---- */

static bool is_eventual(uint16_t consistency) { return consistency == CL_ONE || consistency == CL_LOCAL_ONE; }

int world_charge_of(const struct world_answer *a, const struct schema_table *t, uint16_t consistency,
                    struct charge *out, uint64_t *entities) {
    struct op_cost part = *a->cost;
    part.reads = part.reads_tail = NULL;
    part.writes = part.writes_tail = NULL;
    *entities = 0;
    for (const struct op_read *r = a->cost->reads; r; r = r->next) {
        if (!is_table(t, r->item.keyspace, r->item.table)) continue;
        struct op_read *copy = op_cost_read(&part), *next = copy ? copy->next : NULL;
        if (!copy) return -1;
        *copy = *r;
        copy->next = next;
        *entities += op_read_entities(r);
    }
    for (const struct op_write *r = a->cost->writes; r; r = r->next) {
        if (!is_table(t, r->item.keyspace, r->item.table)) continue;
        struct op_write *copy = op_cost_write(&part, r->kind), *next = copy ? copy->next : NULL;
        if (!copy) return -1;
        *copy = *r;
        copy->next = next;
        *entities += op_write_entities(r);
    }
    charge_compute(&part, is_eventual(consistency) ? CHARGE_EVENTUAL : CHARGE_STRONG, out);
    return 0;
}

/* Sets up a request. The memory of the previous one is reused. */
static struct cql_execution *begin(struct world *w) {
    cql_execution_fini(&w->run);
    arena_reset(&w->arena);
    w->run = (struct cql_execution){.db = w->db, .session = &w->session, .arena = &w->arena, .notes = &w->notes};
    return &w->run;
}

/* Runs one page; the paging state of the next page is left in w->paging. */
static void run_once(struct world *w, struct world_answer *out, struct err *e) {
    int rc = cql_execute(&w->run, e);
    const struct cql_answer *answer = &w->run.run.answer;
    const struct op_cost *cost = &w->run.cost;
    buf_clear(&w->paging, SIZE_MAX);
    if (!rc) {
        charge_add(&out->charge, &w->run.charge);
        out->pages++;
        out->rows_read += cost->rows_read, out->rows_returned += cost->rows_returned;
        out->bytes_read += cost->bytes_read, partition_count_add(&out->partitions, cost);
        for (const struct op_read *x = cost->reads; x; x = x->next) {
            out->filtered += x->filtered;
            out->past_limit += x->past_limit;
            out->entities += op_read_entities(x);
        }
        for (const struct op_write *x = cost->writes; x; x = x->next) out->entities += op_write_entities(x);
        out->kind = answer->stmt_kind;
        out->n_warnings = answer->n_warnings;
        out->warnings = answer->warnings;
        if (answer->result.paging_state.p) buf_put_slice(&w->paging, answer->result.paging_state);
    }
    if (answer->result.kind == RESULT_PREPARED && answer->result.prepared)
        cql_prepared_unref(answer->result.prepared);
}

static void forget_faults(struct world *w) {
    arena_reset(&w->noted);
    w->notes.first = NULL;
    w->needs = NULL;
}

struct world_faults world_faults(const struct world *w) {
    return (struct world_faults){.notes = w->notes.first, .needs = w->needs};
}

bool world_leave_out(struct world *w, struct slice text, const char *path, uint32_t line) {
    struct err ignored = {0};
    const struct ast_stmt *s = cql_parse(&w->noted, text, true, &ignored);
    if (!s || compat_rule_of(s->kind) == REFUSALS) return false;
    left_out_add(&w->left_out, &w->kept, text, w->session.keyspace, path, line);
    return true;
}

int world_run(struct world *w, const struct world_request *q, struct world_answer *out, struct err *e) {
    *out = (struct world_answer){.cost = &w->run.cost};
    err_clear(e);
    forget_faults(w);
    w->session.protocol_version = 4;
    buf_clear(&w->paging, SIZE_MAX);
    do {
        struct cql_execution *x = begin(w);
        x->request = (struct cql_request){.kind = REQUEST_QUERY, .query = q->text,
                                          .params = {.consistency = q->consistency,
                                                     .serial_consistency = CL_LOCAL_SERIAL,
                                                     .page_size = q->page_size ? q->page_size : PAGE}};
        if (w->paging.n) x->request.params.paging_state = arena_dup(&w->arena, buf_slice(&w->paging));
        run_once(w, out, e);
    } while (w->paging.n);
    if (e->set) w->needs = left_out_needed(w->left_out, &w->noted, q->text, w->session.keyspace, e);
    return e->set ? -1 : 0;
}

int world_define(struct world *w, const struct world_request *q, struct err *e) {
    struct cql_db_options o = database_options(w);
    struct cql_db *strict = w->db;
    struct world_answer ignored;
    if (!w->o.strict) return world_run(w, q, &ignored, e);
    o.compat = (struct compat){.mode = COMPAT_REPORT};
    o.ttl_delete.fn = NULL; /* the first database already counts TTL deletes */
    if (!w->lenient && !(w->lenient = cql_db_new(&o, e))) return -1;
    w->db = w->lenient;
    int rc = world_run(w, q, &ignored, e);
    w->db = strict;
    return rc;
}

/* ---- requests of a capture ---- */

static int set_keyspace(struct world *w, struct slice keyspace, struct err *e) {
    if (keyspace.n >= sizeof(w->session.keyspace))
        return err_invalid(e, "a session's keyspace of %zu bytes", keyspace.n);
    memcpy(w->session.keyspace, keyspace.p, keyspace.n);
    w->session.keyspace[keyspace.n] = 0;
    return 0;
}

static int by_id(const void *a, const void *b) {
    const struct connection *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

int world_send(struct world *w, const struct world_call *c, struct world_answer *out, struct slice *paging_state,
               bool *throttled, struct err *e) {
    const struct np_envelope env = {.version = c->version, .opcode = c->opcode, .flags = c->flags};
    struct np_query_options ignored;
    *out = (struct world_answer){.cost = &w->run.cost};
    *paging_state = (struct slice){0};
    *throttled = false;
    err_clear(e);
    forget_faults(w);
    if (c->now_us && clock_control_set(&w->clock, c->now_us)) return err_invalid(e, "a time that cannot be");
    w->session.protocol_version = c->version;
    if (set_keyspace(w, c->keyspace, e)) return -1;
    if (w->admission) {
        /* The array is sorted by id; ids mostly ascend, so an insertion moves little. */
        const struct connection key = {.id = c->connection};
        struct connection *found =
            w->n_connections ? bsearch(&key, w->connections, w->n_connections, sizeof(key), by_id) : NULL;
        if (!found) {
            if (array_room(&w->connections, w->n_connections, &w->cap_connections, sizeof(key))) return err_nomem(e);
            for (found = w->connections + w->n_connections++; found > w->connections && found[-1].id > key.id; found--)
                *found = found[-1];
            *found = key;
        }
        w->session.limit = &found->limit;
    }
    struct cql_execution *x = begin(w);
    struct cql_params *params = &x->request.params;
    if (np_query_decode(&env, c->body, &w->arena, &x->request, &ignored, e)) return -1;
    if (c->page_size) params->page_size = c->page_size;
    if (c->paging_state.p || c->page_size)
        params->paging_state = c->paging_state.p ? arena_dup(&w->arena, c->paging_state) : (struct slice){0};
    run_once(w, out, e);
    if (w->paging.n) *paging_state = buf_slice(&w->paging);
    *throttled = e->set && x->run.answer.verdict && limit_refuses(x->run.answer.verdict);
    return e->set ? -1 : 0;
}

int world_prepare(struct world *w, struct slice text, struct slice keyspace, struct err *e) {
    struct world_answer ignored;
    err_clear(e);
    if (set_keyspace(w, keyspace, e)) return -1;
    begin(w)->request = (struct cql_request){.kind = REQUEST_PREPARE, .query = text};
    run_once(w, &ignored, e);
    return e->set ? -1 : 0;
}

/* ---- tables ---- */

int world_set_capacity(struct world *w, bool provisioned, uint32_t read, uint32_t write, struct err *e) {
    const struct schema *s = catalog_schema(w->catalog);
    struct buf text, mode;
    buf_init(&text, 0), buf_init(&mode, 0);
    buf_printf(&mode, "'%s'", provisioned ? "PROVISIONED" : "PAY_PER_REQUEST");
    if (provisioned) buf_printf(&mode, ", 'read_capacity_units': %u, 'write_capacity_units': %u", read, write);
    err_clear(e);
    for (uint32_t i = 0; i < s->n_spaces && !e->set; i++) {
        if (s->spaces[i]->keyspace->is_system) continue;
        struct schema_table_cursor c = schema_tables_begin(&s->spaces[i]->tables);
        for (const struct schema_table *t; !e->set && (t = schema_tables_next(&c));) {
            struct table_capacity now;
            schema_capacity(t, &now);
            bool same_units = now.units[READ_CAPACITY] == read && now.units[WRITE_CAPACITY] == write;
            if (provisioned == now.provisioned && (!provisioned || same_units)) continue;
            buf_clear(&text, SIZE_MAX);
            buf_put_str(&text, "ALTER TABLE ");
            cql_identifier_print(t->keyspace->name, false, &text);
            buf_u8(&text, '.');
            cql_identifier_print(t->name, false, &text);
            buf_printf(&text, " WITH CUSTOM_PROPERTIES = {'capacity_mode': {'throughput_mode': %.*s}}",
                       SLICE_FMT(buf_slice(&mode)));
            const struct world_request q = {.text = buf_slice(&text), .consistency = CL_LOCAL_QUORUM};
            struct world_answer ignored;
            if (world_run(w, &q, &ignored, e)) break;
        }
    }
    buf_fini(&text), buf_fini(&mode);
    schema_unref(s);
    return e->set ? -1 : 0;
}

struct cql_prepared *world_markers(struct world *w, struct slice text, struct err *e) {
    err_clear(e);
    forget_faults(w);
    begin(w)->request = (struct cql_request){.kind = REQUEST_PREPARE, .query = text};
    if (!cql_execute(&w->run, e)) return w->run.run.answer.result.prepared;
    w->needs = left_out_needed(w->left_out, &w->noted, text, w->session.keyspace, e);
    return NULL;
}

const char *world_keyspace(const struct world *w) { return w->session.keyspace; }

const struct schema *world_schema(struct world *w) { return catalog_schema(w->catalog); }

int world_storage(struct world *w, const struct schema_table *t, struct table_size *out, struct err *e) {
    const struct schema *s = catalog_schema(w->catalog);
    int rc = cql_table_billable_bytes(w->db, s, t, &(struct stop_check){0}, out, e);
    schema_unref(s);
    return rc;
}

int world_expire(struct world *w, int64_t seconds, const struct schema_table *t, uint64_t *units, struct err *e) {
    w->ttl_deletes = 0;
    w->expiring = t;
    if (clock_control_advance(&w->clock, seconds * 1000000))
        return err_set(e, ERR_CONFIG, "a time to live of %lld seconds is past the year 9999", (long long)seconds);
    int rc = eng_reclaim(w->eng, e);
    w->expiring = NULL;
    *units = w->ttl_deletes;
    return rc;
}

static int load(struct world *w, struct script *s, bool defines, struct err *e) {
    struct script_statement statement;
    struct world_answer ignored;
    struct err why;
    while (!e->set && script_next(s, &statement)) {
        const struct world_request q = {.text = statement.text, .consistency = CL_LOCAL_QUORUM};
        int rc = defines ? world_define(w, &q, &why) : world_run(w, &q, &ignored, &why);
        if (rc && !(defines && world_leave_out(w, statement.text, s->path, statement.line)))
            err_set(e, ERR_CONFIG, "%s:%u: %s", s->path, statement.line, why.text);
    }
    return e->set ? -1 : 0;
}

int world_load(struct world *w, const char *path, bool defines, struct err *e) {
    struct script s;
    if (script_open(&s, path, e)) return -1;
    int rc = load(w, &s, defines, e);
    script_close(&s);
    return rc;
}

int world_load_text(struct world *w, const char *name, struct slice text, struct err *e) {
    struct script s;
    script_of(&s, name, text);
    return load(w, &s, true, e);
}

int world_consistency(const char *name) {
    for (uint16_t i = 0; name && i <= CL_LOCAL_ONE; i++)
        if (!strcasecmp(name, consistency_name(i))) return i;
    return -1;
}
