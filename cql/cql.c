#include "cql/cql.h"

#include <assert.h>
#include <stdlib.h>

#include "access/access.h"
#include "base/log.h"
#include "base/name_tree.h"
#include "cql/permit.h"
#include "cql/prepared.h"
#include "cql/row/table_size.h"
#include "cql/statement.h"
#include "cql/write/row_bound.h"
#include "cql/write/write.h"

int cql_table_billable_bytes(struct cql_db *db, const struct schema *schema, const struct schema_table *t,
                             const struct stop_check *stop_check, struct table_size *out, struct err *e) {
    int64_t now_us = clock_wall_us(db->options.clock);
    return table_billable_bytes(db->sizes, schema, t, now_us, stop_check, out, e);
}

int64_t cql_table_billable_last(struct cql_db *db, const struct schema_table *t, uint64_t *bytes) {
    return table_billable_last(db->sizes, t, bytes);
}

struct cql_db *cql_db_new(const struct cql_db_options *o, struct err *e) {
    struct cql_db *db = calloc(1, sizeof(*db));
    if (db) {
        const struct op_cost rules = {.size_model = o->size_model, .timestamp_size = o->timestamp_size};
        db->options = *o;
        db->each_prepared = prepared_each;
        db->unlist_prepared = prepared_unlist;
        db->prepared = prepared_cache_new(o->prepared_bytes);
        if (db->prepared) db->sizes = table_sizes_new(o->eng, &rules, e);
        if (db->sizes && o->max_row_bytes) db->row_bound = row_bound_new(o->max_row_bytes, e);
    }
    if (db && db->sizes && (db->row_bound || !o->max_row_bytes)) {
        if (o->ttl_delete.fn) table_sizes_watch(db->sizes, o->catalog, o->ttl_delete.fn, o->ttl_delete.arg);
        db->listener = (struct catalog_listener){.changed = prepared_on_change, .arg = db};
        catalog_on_change(o->catalog, &db->listener);
        return db;
    }
    if (db) prepared_cache_free(db->prepared);
    if (db) table_sizes_free(db->sizes);
    free(db);
    return err_null(err_nomem(e));
}

void cql_db_free(struct cql_db *db) {
    if (!db) return;
    catalog_off_change(db->options.catalog, &db->listener);
    prepared_cache_free(db->prepared);
    table_sizes_unwatch(db->sizes);
    table_sizes_free(db->sizes);
    row_bound_free(db->row_bound);
    free(db);
}

void cql_keep_half(struct cql_run *r) { write_keep_half(r); }

void cql_abandon(struct cql_run *r) {
    if (r->running_fini) r->running_fini(r);
    r->running_fini = NULL;
    r->running = NULL;
    r->apply = NULL;
}

/* Drops the schema that the request's and its batch's statements are compiled for. */
static void drop_schema(struct cql_run *r) {
    for (uint32_t i = 0; i < r->n_item_statements; i++) cql_prepared_unref(r->item_statements[i]);
    r->n_item_statements = 0;
    if (r->schema) schema_unref(r->schema);
    r->schema = NULL;
}

void cql_run_fini(struct cql_run *r) {
    cql_abandon(r);
    r->compiled = NULL;
    if (r->statement) cql_prepared_unref(r->statement);
    r->statement = NULL;
    drop_schema(r);
}

static int check_values(struct cql_run *r, const struct bind_specs *binds) {
    if (r->in->params.names) {
        /* By-name values take the places of their markers; of values of one name the first counts. */
        const struct cql_params *p = &r->in->params;
        struct value *values = ARENA_ARRAY(r->arena, binds->n + 1, struct value);
        struct name_tree named = {.arena = r->arena};
        if (!values) return err_nomem(r->err);
        for (uint32_t i = 0; i < p->n_values; i++)
            if (name_tree_put(&named, p->names[i], i) < 0) return err_nomem(r->err);
        for (uint32_t i = 0; i < binds->n; i++) {
            const char *name = binds->names && binds->names[i] ? binds->names[i] : binds->specs[i].name;
            const uint32_t *at = name ? name_tree_find(&named, slice_str(name)) : NULL;
            if (!at) return err_invalid(r->err, "Invalid amount of bind variables");
            values[i] = p->values[*at];
        }
        r->eval.values = values;
        r->eval.n_values = binds->n;
    }
    if (r->eval.n_values == binds->n) return 0;
    if (r->in->kind == REQUEST_QUERY) return err_invalid(r->err, "Invalid amount of bind variables");
    return err_invalid(r->err, "there were %u markers(?) in CQL but %u bound variables", binds->n, r->eval.n_values);
}

/* ---- what a loop runs ---- */

/* Bounds the work that one request does on the loop it arrived on. A worker runs a longer request,
 * so that the loop's other connections do not wait for it. The cost of parsing and compiling grows with the
 * length of the text (tests/unit/cql/test_growth.c), that of a batch with its items, and that of values of
 * collections with their elements, which are checked and sorted. The time to read and print a number grows faster
 * than its digits, so a request with large values leaves the loop, too, if a function or JSON
 * may print or read them; for stored values the read decides (cql/read/engine_source.c). */
enum { TEXT_MAX = 16 << 10, ITEMS_MAX = 512, BATCH_BYTES_MAX = 1 << 20, VALUE_BYTES_MAX = 64 << 10 };

static enum cql_outcome leave_loop(struct cql_run *r, enum cql_work_class class) {
    bool batch = r->in->kind == REQUEST_BATCH;
    r->answer.work_class = class;
    if (class == WORK_UPDATE)
        r->answer.write_type = write_type(batch ? &r->in->batch_kind : NULL, false, false);
    return CQL_OFFLOAD;
}

static size_t bytes_of(const struct value *values, uint32_t n) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < n; i++) bytes += values[i].n > 0 ? (size_t)values[i].n : 0;
    return bytes;
}

/* The class of the workers that run a request before it is parsed. */
static enum cql_work_class class_of(const struct cql_request *in) {
    static const enum cql_work_class classes[] = {
#define STMT(id, words, functions, permission, resource, rule, checks, category, operation, work) WORK_##work,
#include "cql/syntax/stmt.def"
#undef STMT
        WORK_DDL, /* STMT_KINDS */
    };
    switch (in->kind) {
    case REQUEST_BATCH: return WORK_UPDATE;
    case REQUEST_EXECUTE: return WORK_READ;
    default: return classes[cql_parse_kind(in->query)];
    }
}

/* Whether a QUERY, PREPARE or BATCH takes too long for a loop, before any work. */
static bool is_long(const struct cql_request *in) {
    size_t text = in->query.n, bytes = 0;
    for (uint32_t i = 0; i < in->n_items; i++) {
        text += in->items[i].query.n;
        bytes += bytes_of(in->items[i].values, in->items[i].n_values);
    }
    return text > TEXT_MAX || in->n_items > ITEMS_MAX || bytes > BATCH_BYTES_MAX;
}

/* ---- kinds of request ---- */

/* The keyspace for unqualified names: the request's (v5), or the session's; NULL if none. */
static int default_keyspace(struct cql_run *r, const char **out) {
    *out = r->session && *r->session->keyspace ? r->session->keyspace : NULL;
    if (!r->in->params.keyspace.p) return 0;
    *out = (const char *)arena_dup(r->arena, r->in->params.keyspace).p;
    if (!*out) return err_nomem(r->err);
    const struct schema *schema = catalog_schema(r->db->options.catalog);
    bool known = schema_keyspace_find(schema, *out);
    schema_unref(schema);
    return known ? 0 : err_invalid(r->err, "Keyspace '%s' does not exist", *out);
}

/* The request, or its refusal, counts for the table. */
static void name_table(struct op_cost *cost, const struct schema_table *t) {
    if (!cost) return;
    cost->keyspace = t->keyspace->name;
    cost->table = t->name;
    cost->object = t->object;
    cost->is_system = t->keyspace->is_system;
}

/* Compiles a text for one run, in the request's arena. */
static struct cql_statement *compile_once(struct cql_run *r, struct slice query, const char *keyspace) {
    struct bind_specs *binds = ARENA_NEW(r->arena, struct bind_specs);
    if (!binds) return err_null(err_nomem(r->err));
    struct ast_stmt *ast = r->in->tree ? r->in->tree : cql_parse(r->arena, query, r->schema->cassandra_mode, r->err);
    if (!ast) return NULL;
    r->answer.stmt_kind = ast->kind;
    enum partitioner_id partitioner = r->session ? r->session->partitioner : PARTITIONER_MURMUR3;
    struct compile c = {.arena = r->arena, .schema = r->schema, .keyspace = keyspace, .binds = binds,
                        .partitioner = partitioner, .compat = compat_in(r, &r->db->options.compat),
                        .reading = r->eval.reading, .err = r->err, .permit = cql_permit, .asked_by = r};
    struct cql_statement *s = cql_compile(&c, ast);
    if (!s && c.tables) name_table(r->cost, c.tables->table);
    return s;
}

/* In cassandra mode a change of the schema is answered when it is visible. No thread waits with the
 * client: a change may take long, or be held. */
static enum cql_outcome await_change(struct cql_run *r) {
    enum { LOOK_EVERY_US = 10000 };
    const uint32_t *unfinished = r->running;
    int rc = catalog_outcome(r->db->options.catalog, *unfinished, r->err);
    if (rc <= 0) return rc ? CQL_FAILED : CQL_DONE;
    r->answer.again_us = clock_machine_us(r->db->options.clock) + LOOK_EVERY_US;
    return cql_check_running(r) ? CQL_FAILED : CQL_AGAIN;
}

static enum cql_outcome apply_change(struct cql_run *r) {
    uint32_t *unfinished = r->running = ARENA_NEW(r->arena, uint32_t);
    struct schema_change *change = ARENA_NEW(r->arena, struct schema_change);
    struct catalog_change asked = *r->compiled->change;
    const struct compat k = asked.compat ? compat_in(r, asked.compat) : (struct compat){0};
    if (asked.compat) asked.compat = &k;
    if (cql_permit_creation(r)) return CQL_FAILED;
    int rc = unfinished && change
                 ? catalog_apply(r->db->options.catalog, &asked, change, unfinished, r->err)
                 : err_nomem(r->err);
    if (rc < 0) return CQL_FAILED;
    if (rc) {
        const char *role = r->session->role, *address = r->session->client_address;
        log_info("%s %s%s%s accepted: role %s, from %s", stmt_words(r->answer.stmt_kind), asked.keyspace,
                 asked.name ? "." : "", asked.name ? asked.name : "", role ? role : "none",
                 address ? address : "this server");
    }
    r->answer.result.change = change;
    r->answer.result.kind = rc ? RESULT_SCHEMA_CHANGE : RESULT_VOID;
    return *unfinished ? await_change(r) : CQL_DONE;
}

/* Runs a compiled statement whose values are in r->eval. A change of the schema is the same for all
 * kinds of statements: it waits for the disk, so a worker applies it. */
static enum cql_outcome run_statement(struct cql_run *r, const struct cql_statement *s) {
    if (cql_permit(r, s)) return CQL_FAILED;
    if (UNLIKELY(s->works_on_values) && !r->blocking &&
        bytes_of(r->in->params.values, r->in->params.n_values) > VALUE_BYTES_MAX)
        return leave_loop(r, s->kind == STMT_SELECT ? WORK_READ : WORK_UPDATE);
    if (UNLIKELY(r->notes != NULL) && r->statement && s == cql_prepared_info(r->statement)->statement) {
        struct compat k = compat_in(r, &s->compat);
        compat_again(&k); /* it was compiled by another request; its refusals are noted for this one, too */
    }
    if (s->table) name_table(r->cost, s->table);
    r->compiled = s;
    if (LIKELY(!s->change)) return s->ops->run(r, s);
    r->answer.work_class = WORK_DDL;
    if (!r->blocking) return CQL_OFFLOAD;
    r->apply = apply_change;
    return CQL_DONE;
}

static enum cql_outcome run_text(struct cql_run *r, struct slice query, const char *keyspace) {
    r->schema = catalog_schema(r->db->options.catalog);
    struct cql_statement *s = compile_once(r, query, keyspace);
    return !s || check_values(r, &s->binds) ? CQL_FAILED : run_statement(r, s);
}

static enum cql_outcome run_execute(struct cql_run *r) {
    r->statement = prepared_get(r->db, r->in->prepared_id, r->err);
    if (!r->statement) return CQL_FAILED;
    const struct prepared_info *info = cql_prepared_info(r->statement);
    const struct cql_statement *s = info->statement;
    r->answer.stmt_kind = s->kind;
    r->answer.fingerprint = info->shown;
    if (UNLIKELY(s->late)) return run_text(r, info->query, info->keyspace);
    if (s->table && s->table->virt) r->schema = catalog_schema(r->db->options.catalog);
    bool as_bound = r->eval.n_values == s->binds.n && !r->in->params.names;
    return UNLIKELY(!as_bound) && check_values(r, &s->binds) ? CQL_FAILED : run_statement(r, s);
}

/* Each statement of a batch has its own markers and values, numbered from 0. */
static int batch_statement(struct cql_run *r, const struct cql_batch_item *item, const char *keyspace,
                           struct write_item *out) {
    if (item->query.p) {
        out->statement = compile_once(r, item->query, keyspace);
    } else {
        struct cql_prepared *p = prepared_get(r->db, item->prepared_id, r->err);
        if (p) r->item_statements[r->n_item_statements++] = p;
        out->statement = p ? cql_prepared_info(p)->statement : NULL;
    }
    if (!out->statement) return -1;
    out->n_values = item->n_values;
    out->values = item->values;
    if (item->n_values == out->statement->binds.n) return 0;
    return err_invalid(r->err, "There were %u markers(?) in CQL but %u bound variables", out->statement->binds.n,
                       item->n_values);
}

static int compile_items_once(struct cql_run *r, const char *keyspace, struct write_item *items) {
    r->schema = catalog_schema(r->db->options.catalog);
    for (uint32_t i = 0; i < r->in->n_items; i++)
        if (batch_statement(r, &r->in->items[i], keyspace, &items[i])) return -1;
    return 0;
}

static enum cql_outcome run_batch(struct cql_run *r) {
    const char *keyspace;
    if (default_keyspace(r, &keyspace)) return CQL_FAILED;
    struct write_item *items = ARENA_ARRAY(r->arena, r->in->n_items + 1, struct write_item);
    r->item_statements = ARENA_ARRAY(r->arena, r->in->n_items + 1, struct cql_prepared *);
    if (!items || !r->item_statements) {
        err_nomem(r->err);
        return CQL_FAILED;
    }
    /* All are compiled in one snapshot of the schema: while it changes, two of them could be compiled for two
     * versions of a table. */
    int rc = compile_items_once(r, keyspace, items);
    while (!rc && UNLIKELY(catalog_generation(r->db->options.catalog) != r->schema->generation)) {
        drop_schema(r);
        rc = cql_check_running(r) ? -1 : compile_items_once(r, keyspace, items);
    }
    r->answer.stmt_kind = STMT_BATCH;
    if (rc) return CQL_FAILED;
    /* Cassandra checks the statements of a batch only after it has read them all. */
    for (uint32_t i = 0; i < r->in->n_items; i++) {
        enum stmt_kind kind = items[i].statement->kind;
        if (stmt_category(kind) == STMT_IS_DML && kind != STMT_BATCH) continue;
        err_invalid(r->err, "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed.");
        return CQL_FAILED;
    }
    for (uint32_t i = 0; i < r->in->n_items; i++)
        if (cql_permit(r, items[i].statement)) return CQL_FAILED;
    const struct write_batch batch = {.kind = r->in->batch_kind};
    return batch_run(r, &batch, items, r->in->n_items);
}

/* Completes an answer of rows. */
static enum cql_outcome finish_rows(struct cql_run *r, enum cql_outcome outcome) {
    if (r->answer.result.kind != RESULT_ROWS) return outcome;
    /* Whether the client of an EXECUTE has other columns than the rows (v5). Rows of a condition are sent with their
     * columns each time. */
    struct slice known = r->in->params.result_metadata_id;
    if (r->statement && known.p) {
        const struct result_meta *meta = &cql_prepared_info(r->statement)->statement->result;
        r->answer.result.meta_changed = meta->n && !slice_eq(known, slice_of(meta->id, 16));
    }
    if (LIKELY(outcome != CQL_DONE || !eng_failed(r->db->options.eng))) return outcome;
    int rc = cql_warn(r, "The storage could not be synced: rows written lately may be lost at a restart");
    return rc ? CQL_FAILED : outcome;
}

enum cql_outcome cql_run_more(struct cql_run *r) {
    assert(r->blocking && r->compiled);
    r->answer.again_us = 0;
    enum cql_outcome outcome = r->compiled->change ? await_change(r) : r->compiled->ops->more(r, r->compiled);
    return finish_rows(r, outcome);
}

int cql_admit(struct cql_run *r) {
    const struct cql_admission *a = cql_admission_of(r);
    if (r->admitted || !a->admit) return 0;
    if (a->admit(a->arg, r, r->err)) return -1;
    r->admitted = true;
    return 0;
}

/* A worker runs the refused request again. Mostly it is refused again, which is short. */
static enum cql_outcome leave_refused(struct cql_run *r) {
    enum cql_work_class class = class_of(r->in);
    err_clear(r->err);
    return leave_loop(r, class == WORK_SCAN ? WORK_READ : class);
}

/* Amazon Keyspaces' words for a keyspace or table that is not ready yet say neither why nor for how long. A warning
 * adds both. A worker asks the catalogue, because the catalogue's lock is held while a change is recorded. */
COLD static enum cql_outcome warn_of_wait(struct cql_run *r) {
    const struct err_detail *about = &r->err->detail;
    struct buf text;
    if (r->err->code != ERR_INVALID || !about->keyspace[0] || r->db->options.mode == MODE_CASSANDRA) return CQL_FAILED;
    if (!r->blocking) return leave_refused(r);
    buf_init(&text, 0);
    catalog_describe_wait(r->db->options.catalog, about->keyspace, about->name, &text);
    if (text.n && !buf_failed(&text)) (void)cql_warn(r, "%.*s", SLICE_FMT(buf_slice(&text)));
    buf_fini(&text);
    return CQL_FAILED;
}

enum cql_outcome cql_apply(struct cql_run *r, enum cql_outcome outcome) {
    enum cql_outcome (*apply)(struct cql_run *) = r->apply;
    r->apply = NULL;
    outcome = apply ? apply(r) : outcome;
    bool changed = outcome != CQL_FAILED && r->answer.result.kind == RESULT_SCHEMA_CHANGE;
    if (UNLIKELY(changed) && cql_permit_creator(r)) return CQL_FAILED;
    return UNLIKELY(outcome == CQL_FAILED && r->blocking) ? warn_of_wait(r) : outcome;
}

static enum cql_outcome run_once(struct cql_run *r) {
    const char *keyspace;
    r->eval = (struct evaluation){
        .db = r->db,
        .arena = r->arena,
        .err = r->err,
        .n_values = r->in->params.n_values,
        .values = r->in->params.values,
        .reading = {r->now_us, r->db->options.mode == MODE_KEYSPACES},
        .now_s = r->in->params.has_now ? r->in->params.now_seconds : r->now_us / 1000000,
    };
    r->answer.result.kind = RESULT_VOID;
    r->answer.stmt_kind = STMT_KINDS;
    if (!r->blocking && r->in->kind != REQUEST_EXECUTE && is_long(r->in)) return leave_loop(r, class_of(r->in));
    switch (r->in->kind) {
    case REQUEST_QUERY:
        return default_keyspace(r, &keyspace) ? CQL_FAILED : finish_rows(r, run_text(r, r->in->query, keyspace));
    case REQUEST_PREPARE: {
        if (default_keyspace(r, &keyspace)) return CQL_FAILED;
        struct cql_prepared *p = prepared_make(r->db, r->in->query, keyspace, r->session->partitioner, r->err);
        if (!p) return CQL_FAILED;
        r->answer.stmt_kind = cql_prepared_info(p)->statement->kind;
        r->answer.result = (struct cql_result){.kind = RESULT_PREPARED, .prepared = p};
        return CQL_DONE;
    }
    case REQUEST_EXECUTE: return finish_rows(r, run_execute(r));
    case REQUEST_BATCH: return run_batch(r);
    }
    err_set(r->err, ERR_PROTOCOL, "Unknown kind of request");
    return CQL_FAILED;
}

/* ---- the schema and the roles of several servers on one store ---- */

int cql_catch_up(struct cql_db *db, struct err *e) {
    const struct cql_db_options *o = &db->options;
    return catalog_catch_up(o->catalog, e) || (o->access && access_catch_up(o->access, e)) ? -1 : 0;
}

/* J1. A server refuses a request, and changes schema or roles, only by a schema and roles that are as new as the
 *     request. Another server on the store may have changed them, and this one is notified later: mostly at once, but
 *     after seconds if it was paused.
 * Returns whether the outcome depends on that. */
static bool depends_on_newest(const struct cql_run *r, bool changes) {
    if (eng_one_writer(r->db->options.eng)) return false;
    switch (changes ? ERR_INVALID : r->err->code) {
    case ERR_INVALID:
    case ERR_CONFIG:
    case ERR_UNAUTHORIZED:
    case ERR_ALREADY_EXISTS:
    case ERR_UNPREPARED: return true;
    default: return false;
    }
}

/* Keeps J1. before: the generations of schema and roles when the run began. */
COLD static enum cql_outcome run_with_newest(struct cql_run *r, enum cql_outcome outcome, const uint64_t before[2]) {
    const struct cql_db_options *o = &r->db->options;
    struct err why = {0};
    if (!r->blocking) return leave_refused(r);
    int rc = cql_catch_up(r->db, &why);
    bool changed = before[0] != catalog_generation(o->catalog) ||
                   (o->access && before[1] != access_generation(o->access));
    if (rc == 0 && !changed) return outcome;
    cql_run_fini(r);
    err_clear(r->err);
    r->answer = (struct cql_answer){0};
    if (r->notes) r->notes->first = NULL;
    if (rc == 0) return run_once(r);
    *r->err = why;
    return CQL_FAILED;
}

enum cql_outcome cql_run(struct cql_run *r) {
    const struct cql_db_options *o = &r->db->options;
    struct compat_notes notes = {.arena = r->arena};
    uint64_t before[2] = {0};
    if (r->blocking) {
        before[0] = catalog_generation(o->catalog);
        before[1] = o->access ? access_generation(o->access) : 0;
    }
    bool reports = UNLIKELY(o->compat.mode == COMPAT_REPORT) && !r->notes;
    if (reports) r->notes = &notes;
    enum cql_outcome outcome = run_once(r);
    bool changes = outcome == CQL_DONE && r->blocking && r->answer.work_class == WORK_DDL;
    if (UNLIKELY(outcome == CQL_FAILED || changes) && depends_on_newest(r, changes))
        outcome = run_with_newest(r, outcome, before);
    if (UNLIKELY(outcome == CQL_FAILED)) outcome = warn_of_wait(r);
    if (LIKELY(!reports)) return outcome;
    r->notes = NULL;
    /* A request that leaves the loop runs again on another thread, which reports its notes. */
    if (outcome != CQL_OFFLOAD && !r->noted) compat_notes_give(&notes, o->compat.report);
    return outcome;
}
