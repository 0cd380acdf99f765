#include "cql/write/write.h"

#include <assert.h>

#include "cql/request/consistency.h"
#include "cql/request/db.h"
#include "cql/write/cas.h"
#include "cql/write/row_bound.h"
#include "cql/write/write_rules.h"

struct write {
    struct cql_run *r;
    const struct write_batch *batch;
    uint32_t n;
    const struct write_item *items;
    bool conditional, counters, locked;
    /* a statement changes a part of its row, and writes are sized by whole rows: for the charge or
     * for a limit of Keyspaces */
    bool sized_by_row;
    struct modify_times times;
    struct modify_write *writes;
    struct cas **cas;      /* when conditional: for each item, that of its partition */
    struct cas **each_cas; /* each once */
    uint32_t n_cas;
    struct name_tree by_part; /* of partitions other than the first: the first item of each */
    struct mutations m;
    uint32_t n_left_out; /* the last n_left_out of m are not applied */
    const struct eng_part **parts; /* of m, to be locked */
    bool *written; /* of them, by a commit that had a conflict */
};

/* ---- binding ---- */

static void use_values(struct write *w, uint32_t i) {
    w->r->eval.values = w->items[i].values;
    w->r->eval.n_values = w->items[i].n_values;
}

static const struct modify_plan *plan_of(const struct write *w, uint32_t i) {
    return modify_plan_of(w->items[i].statement);
}

static bool is_of_first(const struct write *w, uint32_t i) {
    const struct eng_part *a = &w->writes[i].parts[0], *b = &w->writes[0].parts[0];
    return a->table == b->table && slice_eq(a->key, b->key);
}

/* The cas of the item's partition, created for the partition's first item. */
static struct cas *cas_of(struct write *w, uint32_t i) {
    const struct eng_part *part = &w->writes[i].parts[0];
    if (i && is_of_first(w, i)) return w->cas[0];
    if (i) {
        const struct slice where = slice_of(arena_alloc(w->r->arena, sizeof part->table + part->key.n),
                                            sizeof part->table + part->key.n);
        if (!where.p) return err_null(err_nomem(w->r->err));
        store_u32((uint8_t *)where.p, part->table);
        memcpy((uint8_t *)where.p + sizeof part->table, part->key.p, part->key.n);
        int known = name_tree_put(&w->by_part, where, i);
        if (known < 0) return err_null(err_nomem(w->r->err));
        if (known) return w->cas[*name_tree_find(&w->by_part, where)];
    }
    struct cas *c = ARENA_NEW(w->r->arena, struct cas);
    if (!c) return err_null(err_nomem(w->r->err));
    if (cas_init(c, w->r, plan_of(w, i)->table, w->batch)) return NULL;
    c->part = part;
    w->each_cas[w->n_cas++] = c;
    return c;
}

/* A conditional write, also a batch, is on one partition and names its rows one by one. On Amazon
 * Keyspaces a logged batch may span partitions and tables
 * (https://docs.aws.amazon.com/keyspaces/latest/devguide/batchStatements.html). It binds its
 * timestamp and TTL later, when its conditions hold (find_newest). */
static int bind_rows(struct write *w, uint32_t i) {
    use_values(w, i);
    if (w->conditional) {
        const struct where_plan *where = w->writes[i].plan->where;
        const char *what = w->writes[i].plan->kind == OP_DELETE ? "deletions" : "updates";
        struct err *e = w->r->err;
        if (where && where->partition_in && w->batch)
            return err_invalid(e, "Batch with conditions cannot span multiple partitions (you cannot use IN on the "
                                  "partition key)");
        if (where && where->partition_in)
            return err_invalid(e, "IN on the partition key is not supported with conditional %s", what);
        if (!is_of_first(w, i) && !(w->batch && write_rules_spans(w->r, w->batch->kind)))
            return err_invalid(e, "Batch with conditions cannot span multiple partitions");
        if (where && where->clustering_in)
            return err_invalid(e, "IN on the clustering key columns is not supported with conditional %s", what);
        w->cas[i] = cas_of(w, i);
        if (!w->cas[i]) return -1;
    }
    if (modify_bind_rows(&w->writes[i])) return -1;
    if (w->conditional) w->writes[i].ts = w->times.server;
    else if (modify_bind_times(&w->writes[i], &w->times)) return -1;
    if (write_rules_bound(w->items[i].statement, &w->writes[i], w->times.server)) return -1;
    return w->conditional ? cas_add(w->cas[i], &w->writes[i]) : 0;
}

static int bind(struct write *w) {
    const struct cql_run *r = w->r;
    w->times = (struct modify_times){.batch = ENG_NO_TS, .protocol = ENG_NO_TS, .server = ENG_NO_TS};
    /* The order of conditional writes and of counts is the server's alone. */
    if (r->in->params.has_timestamp && !w->conditional && !w->counters) w->times.protocol = r->in->params.timestamp;
    if (w->conditional) {
        w->cas = ARENA_ARRAY(r->arena, 2 * (size_t)w->n, struct cas *);
        if (!w->cas) return err_nomem(r->err);
        w->each_cas = w->cas + w->n;
        w->by_part.arena = r->arena;
    }
    if (!w->batch && !w->conditional) {
        /* A statement outside a batch and without conditions reports a wrong timestamp before other
         * faults (ModificationStatement.validateTimestamp). */
        use_values(w, 0);
        if (modify_check_timestamp(w->r, plan_of(w, 0))) return -1;
    }
    /* A batch with several faults reports the first statement's; without conditions, faults of
     * partition keys come before all others. */
    for (uint32_t i = 0; i < w->n; i++) {
        use_values(w, i);
        if (modify_bind(&w->writes[i])) return -1;
        if (w->conditional && bind_rows(w, i)) return -1;
    }
    if (modify_timestamp(w->r, w->batch ? w->batch->timestamp : NULL, &w->times.batch) < 0) return -1;
    for (uint32_t i = 0; !w->conditional && i < w->n; i++)
        if (bind_rows(w, i)) return -1;
    for (uint32_t k = 0; k < w->n_cas; k++)
        if (cas_check_elements(w->each_cas[k])) return -1;
    if (w->batch && w->batch->kind == BATCH_LOGGED && write_rules_rows(w->r, w->items, w->writes, w->n)) return -1;
    size_t n = 0;
    for (uint32_t i = 0; i < w->n; i++) n += w->writes[i].n_parts;
    w->m.r = w->r;
    struct mutation_address *all = arena_alloc(w->r->arena, (n + 1) * sizeof *all);
    if (!all) return err_nomem(w->r->err);
    n = 0;
    for (uint32_t i = 0; i < w->n; i++)
        for (uint32_t k = 0; k < w->writes[i].n_parts; k++)
            all[n++] = (struct mutation_address){.table = w->writes[i].plan->table, .part = &w->writes[i].parts[k]};
    return mutations_open(&w->m, all, n);
}

static int check_level(const struct write *w) {
    const struct cql_statement *s = w->items[0].statement;
    if (w->conditional) return consistency_check(w->r, CONSISTENCY_CONDITION, s->table, &s->compat);
    if (w->batch) return consistency_check(w->r, CONSISTENCY_BATCH, s->table, &s->compat);
    return consistency_check(w->r, w->counters ? CONSISTENCY_COUNTER : CONSISTENCY_WRITE, s->table, &s->compat);
}

/* ---- deciding ---- */

static int find_newest(struct write *w, int64_t *newest) {
    int rc = 0;
    for (uint32_t i = 0; !rc && i < w->n; i++) {
        use_values(w, i);
        rc = modify_bind_times(&w->writes[i], &w->times) ? -1 : cas_newest(w->cas[i], &w->writes[i], newest);
    }
    return rc;
}

/* Returns 1 to continue with the write, 0 if refused and answered, or -1 on error, ENG_INCOMPLETE. */
static int decide(struct write *w, int64_t *newest) {
    int held = 1;
    if (!w->conditional) return 1;
    for (uint32_t k = 0; k < w->n_cas; k++) {
        int rc = cas_check(w->each_cas[k], mutations_find(&w->m, w->each_cas[k]->part));
        if (rc < 0) return rc;
        held = held && rc;
    }
    if (w->n_cas == 1 ? cas_answer(w->each_cas[0], held) : cas_answer_alone(w->each_cas[0], held)) return -1;
    int rc = held ? find_newest(w, newest) : 0;
    /* Charges a refused write: each row for which a condition was false, once. */
    for (uint32_t i = 0; !held && i < w->n; i++) {
        const struct eng_row *row, *statics;
        if (!w->writes[i].plan->conditional) continue;
        rc = cas_refused(w->cas[i], &w->writes[i], &row, &statics);
        if (rc < 0) return rc;
        if (rc && modify_cost_failed(&w->writes[i], w->cas[i]->part, row, statics)) return -1;
        rc = 0;
    }
    return rc ? rc : held;
}

/* Makes all changes and checks them. Returns 0, -1, or ENG_INCOMPLETE. */
static int change_all(struct write *w) {
    for (uint32_t i = 0; i < w->n; i++) {
        use_values(w, i);
        if (modify_add(&w->writes[i], &w->m)) return -1;
    }
    for (uint32_t i = 0; i < w->m.n; i++)
        if (consistency_reach(w->r, w->m.list[i].table->keyspace)) return -1;
    int rc = w->counters ? counter_settle(&w->m, w->writes[0].now) : 0;
    if (rc) return rc;
    const struct compat *compat = &w->items[0].statement->compat;
    if (check_write_size(&w->m)) return -1;
    rc = row_bound_check(&w->m);
    if (rc) return rc;
    rc = w->sized_by_row ? size_by_rows(&w->m, compat) : 0;
    if (rc) return rc;
    if (write_rules_sized(w->r, compat)) return -1;
    return w->batch ? check_batch_size(&w->m, w->batch->kind, w->conditional) : 0;
}

/* ---- the locks ---- */

/* Whether the write reads at most a few rows (for conditions, counters or sizing). An event loop
 * may then do it, if the rows are in memory and no other request writes them. */
static bool is_short(const struct write *w) {
    enum { ROWS_MAX = 8 };
    for (uint32_t i = 0; i < w->n; i++) {
        const struct modify_plan *p = plan_of(w, i);
        const struct where_plan *where = p->where;
        if (p->reads) return false;
        if (!where) continue;
        /* Each statement writes one row by its key; deleting a one-row partition does not count. */
        if (p->kind == OP_DELETE && !p->n_ops && !p->table->n_clustering) return false;
        if (where->partition_in || where->clustering_in) return false;
        if (!p->static_only && where->rows != WHERE_ROW_KEYS) return false;
    }
    return w->n <= ROWS_MAX;
}

/* Releases the locks: on a worker those of all partitions, on a loop that of the only one. */
static void unlock(struct cql_run *r) {
    struct write *w = r->running;
    if (r->blocking) eng_unlock_many(r->db->options.eng, w->parts, w->m.n);
    else eng_batch_unlock(r->batch, &w->m.list[0].part);
    r->running_fini = NULL;
}

/* ---- applying ---- */

/* Commits a batch that was decided under locks. After a conflict the request may start over and
 * write the partitions that are not written yet, for example counters of a batch. A conditional
 * batch cannot, once a part of it was written: its conditions have held. */
static enum cql_outcome commit_locked(struct write *w, struct eng_batch *b) {
    struct cql_run *r = w->r;
    int rc = eng_batch_commit_locked(b, w->parts, w->m.n, w->written, &r->answer.commit_seq, r->err);
    if (rc != ENG_CHANGED) return rc ? CQL_FAILED : CQL_COMMIT;
    enum cql_outcome outcome = CQL_CONFLICT;
    for (uint32_t i = 0; i < w->m.n; i++) {
        if (!w->written[i]) continue;
        struct cql_written *done = ARENA_NEW(r->arena, struct cql_written);
        if (!done || w->conditional) {
            outcome = CQL_FAILED;
            break;
        }
        *done = (struct cql_written){.next = r->written, .part = w->m.list[i].part};
        r->written = done;
    }
    if (!r->written) return outcome;
    err_clear(r->err);
    err_set(r->err, ERR_WRITE_TIMEOUT,
            "Another server writes to some of the batch's partitions at the same time; the others were written");
    return outcome;
}

/* Adds the changes of a partition to the batch. */
static int apply_changes(struct cql_run *r, const struct mutation *m) {
    for (const struct change *c = m->first; c; c = c->next) {
        const struct eng_row *row = &c->row;
        int rc = 0;
        if (c->kind == CHANGE_RANGE) {
            rc = eng_batch_delete_range(r->batch, &m->part, &c->range, row->del_ts, row->del_at, r->cost, r->err);
        } else if (c->kind == CHANGE_PARTITION) {
            rc = eng_batch_delete_partition(r->batch, &m->part, row->del_ts, row->del_at, r->cost, r->err);
        } else if (row->n_cells || row->live_ts != ENG_NO_TS || row->del_ts != ENG_NO_TS) {
            /* An UPDATE may write nothing, for example when it removes elements that a list does not have. */
            rc = eng_batch_row(r->batch, &m->part, row, r->cost, r->err);
        }
        if (rc) return -1;
    }
    return 0;
}

/* On a loop all requests of a wake-up share the batch, and its owner commits it. */
static enum cql_outcome apply(struct cql_run *r) {
    struct write *w = r->running;
    struct eng_batch *b = r->batch;
    enum cql_outcome outcome = CQL_COMMIT;
    /* Skips the partitions that earlier runs of the request have written. */
    for (const struct cql_written *done = r->written; done; done = done->next) {
        struct mutation *m = mutations_find(&w->m, &done->part);
        if (m->part.table == done->part.table && slice_eq(m->part.key, done->part.key)) m->written = true;
    }
    eng_batch_savepoint(b);
    int rc = 0;
    for (uint32_t i = 0; i < w->m.n - w->n_left_out && !rc; i++)
        if (!w->m.list[i].written) rc = apply_changes(r, &w->m.list[i]);
    if (rc) eng_batch_rollback(b);
    else eng_batch_release(b);
    if (!rc && r->blocking && !eng_batch_empty(b)) {
        if (w->locked) outcome = commit_locked(w, b);
        else rc = eng_batch_commit(b, &r->answer.commit_seq, r->err);
    }
    if (w->locked && !r->blocking && !rc && !eng_batch_empty(b)) {
        /* On a loop the batch keeps the lock until all writes of the wake-up are committed. */
        const struct mutation *m = &w->m.list[0];
        for (const struct change *c = m->first; c; c = c->next) eng_batch_wrote(b, &m->part, c->row.kind, c->row.ck);
        r->running_fini = NULL;
    }
    if (r->running_fini) r->running_fini(r);
    return rc ? CQL_FAILED : outcome;
}

void write_keep_half(struct cql_run *r) {
    struct write *w = r->running;
    assert(r->apply == apply && w->m.n > 1 && !w->conditional);
    w->n_left_out = w->m.n - w->m.n / 2;
    for (uint32_t i = w->m.n - w->n_left_out; i < w->m.n; i++)
        for (struct change *c = w->m.list[i].first; c; c = c->next) {
            if (c->cost) c->cost->left_out = true;
            for (struct change *s = c->summed; s; s = s->next) s->cost->left_out = true;
        }
    /* Removes left-out operations from the cost. A statement whose values are all unset has no
     * change to mark, so it stays and is charged for its key. */
    struct op_write **at = &r->cost->writes;
    r->cost->writes_tail = NULL;
    while (*at) {
        if ((*at)->left_out) {
            *at = (*at)->next;
        } else {
            r->cost->writes_tail = *at;
            at = &(*at)->next;
        }
    }
}

/* The rows that made a condition false are shown to the client, so they must be durable first. */
static enum cql_outcome wait_for_reason(struct cql_run *r) {
    r->answer.commit_seq = eng_barrier_seq(r->db->options.eng);
    return CQL_COMMIT;
}

/* ---- the one path ---- */

const char *write_type(const enum ast_batch_kind *kind, bool conditional, bool counters) {
    if (conditional) return "CAS";
    if (counters || (kind && *kind == BATCH_COUNTER)) return "COUNTER";
    if (!kind) return "SIMPLE";
    return *kind == BATCH_LOGGED ? "BATCH" : "UNLOGGED_BATCH";
}

enum cql_outcome write_run(struct cql_run *r, const struct write_batch *batch, const struct write_item *items,
                           uint32_t n) {
    bool by_row = r->cost->write_size == WRITE_SIZE_ROW || write_rules_on(r);
    struct write *w = arena_alloc(r->arena, sizeof *w);
    struct modify_write *writes = arena_alloc(r->arena, n * sizeof *writes);
    if (!w || !writes) {
        err_nomem(r->err);
        return CQL_FAILED;
    }
    *w = (struct write){.r = r, .batch = batch, .items = items, .n = n, .writes = writes};
    for (uint32_t i = 0; i < w->n; i++) {
        const struct modify_plan *p = plan_of(w, i);
        modify_begin(&w->writes[i], r, p, w->items[i].values, w->items[i].n_values);
        w->conditional = w->conditional || p->conditional;
        w->counters = w->counters || p->counter;
        w->sized_by_row = w->sized_by_row || (by_row && !w->writes[i].whole);
        w->locked = w->locked || modify_needs_lock(p);
    }
    w->locked = w->locked || w->sized_by_row;
    r->answer.write_type = write_type(batch ? &batch->kind : NULL, w->conditional, w->counters);
    if (plan_of(w, 0)->table->virt) return check_level(w) ? CQL_FAILED : virtual_write_run(r, w->items, w->n);
    r->answer.work_class = WORK_UPDATE;
    if (!r->blocking && (eng_is_remote(r->db->options.eng) || (w->locked && !is_short(w)))) return CQL_OFFLOAD;
    if (!w->conditional && check_level(w)) return CQL_FAILED;
    if (bind(w) || (w->conditional && check_level(w))) return CQL_FAILED;
    if (w->m.n == 0) return CQL_DONE;
    r->running = w;
    if (!w->locked) {
        int rc = change_all(w);
        if (rc) return rc == ENG_INCOMPLETE ? CQL_OFFLOAD : CQL_FAILED;
        r->apply = apply;
        r->independent = true;
        return CQL_COMMIT;
    }
    /* The locks are held until the write is applied or abandoned. */
    if (r->blocking) {
        w->parts = ARENA_ARRAY(r->arena, w->m.n, const struct eng_part *);
        w->written = ARENA_ARRAY(r->arena, w->m.n, bool);
        if (!w->parts || !w->written) {
            err_nomem(r->err);
            return CQL_FAILED;
        }
        for (uint32_t i = 0; i < w->m.n; i++) w->parts[i] = &w->m.list[i].part;
        eng_lock_many(r->db->options.eng, w->parts, w->m.n);
        r->running_fini = unlock;
    } else {
        int got = w->m.n == 1 ? eng_batch_try_lock(r->batch, &w->m.list[0].part) : -1;
        if (got < 0) return CQL_OFFLOAD;
        if (got == 1) r->running_fini = unlock;
    }
    int64_t newest = ENG_NO_TS;
    int rc = decide(w, &newest);
    if (rc == 0) r->apply = wait_for_reason;
    if (rc == 1) {
        /* The order of conditional writes and of counts is that of the lock. */
        int64_t ts = eng_ts_above(eng_write_us(r->db->options.eng, r->now_us), newest);
        for (uint32_t i = 0; i < w->n; i++) modify_order(&w->writes[i], w->conditional, ts);
        rc = change_all(w);
        if (rc == 0) r->apply = apply;
    }
    if (r->apply != apply && r->running_fini) r->running_fini(r);
    if (rc != ENG_INCOMPLETE) return rc ? CQL_FAILED : CQL_COMMIT;
    /* Nothing was written: the request starts over on a worker. An answer that was already given to
     * the sink is dropped. */
    r->sink->restart(r->sink);
    return CQL_OFFLOAD;
}

/* ---- a statement outside a batch ---- */

static enum cql_outcome run_alone(struct cql_run *r, const struct cql_statement *s) {
    const struct write_item item = {.statement = s, .n_values = r->eval.n_values, .values = r->eval.values};
    return write_run(r, NULL, &item, 1);
}

const struct statement_ops insert_ops = {.compile = modify_compile_insert, .run = run_alone};
const struct statement_ops update_ops = {.compile = modify_compile_update, .run = run_alone};
const struct statement_ops delete_ops = {.compile = modify_compile_delete, .run = run_alone};

const struct statement_ops *write_ops(enum stmt_kind kind) {
    return kind == STMT_INSERT ? &insert_ops : kind == STMT_UPDATE ? &update_ops : &delete_ops;
}
