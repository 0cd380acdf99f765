/* BATCH: checks what may go together, binds every statement, and writes all of them into one engine batch or none.
 *
 * A batch with conditions, counters or list indexes takes the locks of all its partitions on a blocking thread; conditions are
 * decided together (cas.c) and must be of one partition. Any other is added to the caller's batch like a single statement.
 */
#include "cql/write/batch.h"

#include <stdio.h>
#include <stdlib.h>

#include "cql/write/cas.h"
#include "cql/request/db.h"

enum { UNLOGGED_PARTITIONS_WARN = 10, TABLE_NAMES_MAX = 900 };
/* Cassandra's batch_size_warn_threshold and batch_size_fail_threshold, and what it counts for a partition. */
enum { SIZE_WARN = 5 * 1024, SIZE_FAIL = 50 * 1024, DATA_PARTITION = 29 };

struct batch_plan {
    enum ast_batch_kind kind;
    const struct term *timestamp;
    uint32_t n;
    const struct cql_statement **statements;
};

struct batch {
    struct cql_request *r;
    enum ast_batch_kind kind;
    const struct term *timestamp;
    uint32_t n;
    const struct batch_item *items;
    bool conditional, counters, locked;
    int64_t ts;
    struct modify_write *writes;
    uint32_t n_parts; /* distinct */
    const struct eng_part **parts;
};

/* ---- what may go together ---- */

struct traits {
    bool conditional, counters, others, own_timestamp, several_tables;
    const struct schema_table *table;
};

static void traits_add(struct traits *t, const struct modify_plan *p) {
    t->conditional = t->conditional || p->conditional;
    t->counters = t->counters || p->counter;
    t->others = t->others || !p->counter;
    t->own_timestamp = t->own_timestamp || p->timestamp;
    t->several_tables = t->several_tables || (t->table && t->table != p->table);
    t->table = p->table;
}

static int check(const struct traits *t, enum ast_batch_kind kind, bool timestamp, struct err *e) {
    if (timestamp && t->conditional) return err_invalid(e, "Cannot provide custom timestamp for conditional BATCH");
    if (timestamp && kind == BATCH_COUNTER) return err_invalid(e, "Cannot provide custom timestamp for counter BATCH");
    if (timestamp && t->own_timestamp) return err_invalid(e, "Timestamp must be set either on BATCH or individual statements");
    if (timestamp && t->counters) return err_invalid(e, "Cannot provide custom timestamp for a BATCH containing counters");
    if (kind == BATCH_COUNTER && t->others) return err_invalid(e, "Cannot include non-counter statement in a counter batch");
    if (t->counters && t->others) return err_invalid(e, "Counter and non-counter mutations cannot exist in the same batch");
    if (kind == BATCH_LOGGED && t->counters) return err_invalid(e, "Cannot include a counter statement in a logged batch");
    if (t->conditional && t->several_tables) return err_invalid(e, "Batch with conditions cannot span multiple tables");
    return 0;
}

/* ---- the statement ---- */

/* Drivers route a batch by the last statement that binds its whole partition key, if all are of one table and the batch binds
 * nothing of its own (Cassandra's VariableSpecifications). */
static void note_partition_key(struct cql_statement *out, const struct batch_plan *p, const struct traits *t) {
    if (t->several_tables || (p->timestamp && !term_is_constant(p->timestamp))) return;
    for (uint32_t i = 0; i < p->n; i++) {
        if (!p->statements[i]->n_pk) continue;
        out->n_pk = p->statements[i]->n_pk;
        out->pk_indexes = p->statements[i]->pk_indexes;
    }
}

static int batch_compile(struct compile *c, const struct ast_stmt *stmt, struct cql_statement *out) {
    const struct ast_batch *ast = &stmt->batch;
    struct batch_plan *p = ARENA_NEW(c->arena, struct batch_plan);
    struct traits traits = {0};
    const struct term *ttl = NULL;
    if (!p || !(p->statements = ARENA_ARRAY(c->arena, (size_t)ast->n + 1, const struct cql_statement *))) return err_nomem(c->err);
    p->kind = ast->kind;
    if (ast->using.ttl) return err_invalid(c->err, "Global TTL on the BATCH statement is not supported.");
    if (modify_compile_using(c, NULL, &ast->using, &p->timestamp, &ttl)) return -1;
    for (uint32_t i = 0; i < ast->n; i++) {
        const struct cql_statement *s = statement_compile(c, ast->stmts[i], modify_ops(ast->stmts[i]->kind));
        if (!s) return -1;
        p->statements[p->n++] = s;
        traits_add(&traits, modify_plan_of(s));
    }
    out->plan = p;
    note_partition_key(out, p, &traits);
    return check(&traits, p->kind, p->timestamp, c->err);
}

/* ---- running ---- */

static void use_values(struct batch *b, uint32_t i) {
    b->r->params.values = b->items[i].values;
    b->r->params.n_values = b->items[i].n_values;
}

static int find_timestamp(struct batch *b) {
    struct cql_request *r = b->r;
    int rc = modify_timestamp(r, b->timestamp, &b->ts);
    if (rc) return rc < 0 ? -1 : 0;
    bool own_clock = b->conditional || b->counters;
    b->ts = r->params.has_timestamp && !own_clock ? r->params.timestamp : eng_write_us(r->db->options.eng, r->now_us);
    return 0;
}

static int bind_all(struct batch *b) {
    b->writes = ARENA_ARRAY(b->r->arena, b->n, struct modify_write);
    if (!b->writes) return err_nomem(b->r->err);
    for (uint32_t i = 0; i < b->n; i++) {
        use_values(b, i);
        if (modify_bind(b->r, modify_plan_of(b->items[i].statement), b->ts, &b->writes[i])) return -1;
    }
    return 0;
}

static int by_address(const void *a, const void *b) {
    const struct eng_part *x = *(const struct eng_part *const *)a, *y = *(const struct eng_part *const *)b;
    if (x->table != y->table) return x->table < y->table ? -1 : 1;
    if (x->token != y->token) return x->token < y->token ? -1 : 1;
    return slice_cmp(x->key, y->key);
}

static int list_parts(struct batch *b) {
    size_t n = 0;
    for (uint32_t i = 0; i < b->n; i++) n += b->writes[i].n_parts;
    b->parts = ARENA_ARRAY(b->r->arena, n + 1, const struct eng_part *);
    if (!b->parts) return err_nomem(b->r->err);
    n = 0;
    for (uint32_t i = 0; i < b->n; i++)
        for (uint32_t k = 0; k < b->writes[i].n_parts; k++) b->parts[n++] = &b->writes[i].parts[k];
    qsort(b->parts, n, sizeof *b->parts, by_address);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || by_address(&b->parts[i], &b->parts[b->n_parts - 1]) != 0) b->parts[b->n_parts++] = b->parts[i];
    return 0;
}

/* The tables of the batch, each once: "ks.t, ks.u". */
static uint32_t table_names(const struct batch *b, char names[TABLE_NAMES_MAX]) {
    size_t used = 0;
    uint32_t n_tables = 0;
    names[0] = '\0';
    for (uint32_t i = 0; i < b->n; i++) {
        const struct schema_table *t = b->writes[i].plan->table;
        uint32_t k = 0;
        while (k < i && b->writes[k].plan->table != t) k++;
        if (k < i) continue;
        n_tables++;
        int len = snprintf(names + used, TABLE_NAMES_MAX - used, "%s%s.%s", used ? ", " : "", t->keyspace->name, t->name);
        if (len > 0 && used + (size_t)len < TABLE_NAMES_MAX) used += (size_t)len;
        else names[used] = '\0';
    }
    return n_tables;
}

static int warn_of_partitions(struct batch *b) {
    char names[TABLE_NAMES_MAX];
    if (b->kind != BATCH_UNLOGGED || b->conditional || b->n_parts <= UNLOGGED_PARTITIONS_WARN) return 0;
    uint32_t n_tables = table_names(b, names);
    return cql_warn(b->r,
                    "Unlogged batch covering %u partitions detected against table%s [%s]. You should use a logged batch for atomicity, or "
                    "asynchronous writes for performance.",
                    b->n_parts, n_tables == 1 ? "" : "s", names);
}

static int check_size(struct batch *b) {
    char names[TABLE_NAMES_MAX];
    if (b->conditional || b->n_parts <= 1) return 0;
    uint64_t size = (uint64_t)b->n_parts * DATA_PARTITION;
    for (uint32_t i = 0; i < b->n; i++) size += b->writes[i].data_bytes;
    if (size > SIZE_FAIL) return err_invalid(b->r->err, "Batch too large");
    if (size <= SIZE_WARN) return 0;
    table_names(b, names);
    return cql_warn(b->r, "Batch for [%s] is of size %llu, exceeding specified threshold of %d by %llu.", names, (unsigned long long)size, SIZE_WARN,
                    (unsigned long long)(size - SIZE_WARN));
}

static int add_all(struct batch *b, struct eng_batch *to) {
    for (uint32_t i = 0; i < b->n; i++) {
        use_values(b, i);
        b->writes[i].measures = true;
        if (b->counters && i) b->writes[i].ts = eng_write_us(b->r->db->options.eng, b->r->now_us); /* above what was just written */
        if (modify_add(&b->writes[i], to)) return -1;
        /* A counter may occur twice in a batch, and the second must read what the first wrote. */
        if (b->counters && !eng_batch_empty(to) && eng_batch_commit(to, &b->r->commit_seq, b->r->err)) return -1;
    }
    return check_size(b) || warn_of_partitions(b) ? -1 : 0;
}

static enum cql_outcome run_blind(struct batch *b) {
    struct eng_batch *to = b->r->batch;
    eng_batch_savepoint(to);
    if (add_all(b, to)) {
        eng_batch_rollback(to);
        return CQL_FAILED;
    }
    eng_batch_release(to);
    return CQL_COMMIT;
}

static int check_conditional(struct batch *b) {
    if (b->n_parts > 1) return err_invalid(b->r->err, "Batch with conditions cannot span multiple partitions");
    for (uint32_t i = 0; i < b->n; i++) {
        const struct modify_plan *p = b->writes[i].plan;
        if (p->where && p->where->partition_in) return err_invalid(b->r->err, "Batch with conditions cannot span multiple partitions (you cannot use IN on the partition key)");
        if (p->where && p->where->clustering_in)
            return err_invalid(b->r->err, "IN on the clustering key columns is not supported with conditional %s", p->kind == OP_DELETE ? "deletions" : "updates");
    }
    return 0;
}

static int refuse(struct batch *b, const struct cas *c) {
    for (uint32_t i = 0; i < b->n; i++) {
        struct modify_write *w = &b->writes[i];
        const struct eng_row *row, *statics;
        if (!w->plan->conditional) continue;
        cas_stored(c, w, &row, &statics);
        if (modify_cost_failed(w, b->parts[0], row, statics)) return -1;
    }
    return 0;
}

/* 1: go on and write, 0: refused and answered, -1. */
static int decide(struct batch *b, int64_t *newest) {
    struct cas c;
    if (!b->conditional) return 1;
    if (cas_init(&c, b->r, b->writes[0].plan->table, b->parts[0], true)) return -1;
    for (uint32_t i = 0; i < b->n; i++) {
        use_values(b, i);
        if (cas_add(&c, &b->writes[i])) return -1;
    }
    int rc = cas_check(&c);
    if (rc < 0 || cas_answer(&c, rc == 1)) return -1;
    if (rc == 0 && refuse(b, &c)) return -1;
    for (uint32_t i = 0; rc == 1 && i < b->n; i++)
        if (cas_newest(&c, &b->writes[i], newest)) return -1;
    return rc;
}

static enum cql_outcome write_locked(struct batch *b) {
    struct cql_request *r = b->r;
    int64_t newest = ENG_NO_TS;
    int go = decide(b, &newest);
    if (go < 0) return CQL_FAILED;
    if (go == 0) {
        r->commit_seq = eng_barrier_seq(r->db->options.eng); /* what refused it must not be lost once it was told */
        return CQL_COMMIT;
    }
    b->ts = eng_ts_above(b->ts, newest);
    for (uint32_t i = 0; i < b->n; i++) modify_order(&b->writes[i], b->conditional, b->ts);
    struct eng_batch *to = eng_batch_new(r->db->options.eng);
    if (!to) {
        err_nomem(r->err);
        return CQL_FAILED;
    }
    int rc = add_all(b, to);
    if (rc == 0 && !eng_batch_empty(to)) rc = eng_batch_commit(to, &r->commit_seq, r->err);
    eng_batch_free(to);
    return rc ? CQL_FAILED : r->commit_seq ? CQL_COMMIT : CQL_DONE;
}

static enum cql_outcome run_locked(struct batch *b) {
    struct eng *eng = b->r->db->options.eng;
    b->r->commit_seq = 0;
    if (b->conditional && check_conditional(b)) return CQL_FAILED;
    if (b->n_parts == 0) return CQL_DONE;
    eng_lock_many(eng, b->parts, b->n_parts);
    /* The order of conditional writes is that of the lock. */
    if (b->conditional || b->counters) b->ts = eng_write_us(b->r->db->options.eng, b->r->now_us);
    enum cql_outcome outcome = write_locked(b);
    eng_unlock_many(eng, b->parts, b->n_parts);
    return outcome;
}

static const char *write_type(enum ast_batch_kind kind, const struct traits *traits) {
    if (traits->conditional) return "CAS";
    if (traits->counters) return "COUNTER";
    return kind == BATCH_LOGGED ? "BATCH" : "UNLOGGED_BATCH";
}

static enum cql_outcome run(struct batch *b) {
    struct cql_request *r = b->r;
    struct traits traits = {0};
    r->result = (struct cql_result){.kind = RESULT_VOID};
    if (b->n == 0) return CQL_DONE;
    for (uint32_t i = 0; i < b->n; i++) {
        const struct modify_plan *p = modify_plan_of(b->items[i].statement);
        traits_add(&traits, p);
        b->locked = b->locked || modify_needs_lock(p);
    }
    if (check(&traits, b->kind, b->timestamp, r->err)) return CQL_FAILED;
    r->work_class = WORK_UPDATE;
    r->write_type = write_type(b->kind, &traits);
    if (b->locked && !r->blocking) return CQL_OFFLOAD;
    b->conditional = traits.conditional;
    b->counters = traits.counters;
    const struct schema_table *t = modify_plan_of(b->items[0].statement)->table;
    r->cost->keyspace = t->keyspace->name;
    r->cost->table = t->name;
    r->cost->n_columns = (uint16_t)t->n_columns;
    r->cost->is_logged_batch = b->kind == BATCH_LOGGED;
    if (find_timestamp(b) || bind_all(b) || list_parts(b)) return CQL_FAILED;
    return b->locked ? run_locked(b) : run_blind(b);
}

/* The statements' values replace the request's while they run. */
static enum cql_outcome run_and_restore(struct batch *b) {
    struct cql_params params = b->r->params;
    enum cql_outcome outcome = run(b);
    b->r->params = params;
    return outcome;
}

enum cql_outcome batch_run(struct cql_request *r, enum ast_batch_kind kind, const struct batch_item *items, uint32_t n) {
    struct batch b = {.r = r, .kind = kind, .n = n, .items = items};
    return run_and_restore(&b);
}

static enum cql_outcome batch_statement_run(struct cql_request *r, const struct cql_statement *s) {
    const struct batch_plan *p = s->plan;
    struct batch_item *items = ARENA_ARRAY(r->arena, (size_t)p->n + 1, struct batch_item);
    if (!items) {
        err_nomem(r->err);
        return CQL_FAILED;
    }
    /* Markers are numbered through the whole text, so each statement gets all values. */
    for (uint32_t i = 0; i < p->n; i++) items[i] = (struct batch_item){.statement = p->statements[i], .n_values = r->params.n_values, .values = r->params.values};
    struct batch b = {.r = r, .kind = p->kind, .timestamp = p->timestamp, .n = p->n, .items = items};
    return run_and_restore(&b);
}

const struct statement_ops batch_ops = {.compile = batch_compile, .run = batch_statement_run};
