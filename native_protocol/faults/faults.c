#include "native_protocol/faults/faults.h"

#include <pthread.h>
#include <stdlib.h>

#include "cql/prepared.h"

struct faults {
    pthread_mutex_t lock;
    _Atomic unsigned n;
    struct fault_rule *all[FAULTS_MAX]; /* by name */
};

struct faults *faults_new(struct err *e) {
    struct faults *f = calloc(1, sizeof(*f));
    if (!f) return err_null(err_nomem(e));
    pthread_mutex_init(&f->lock, NULL);
    return f;
}

void faults_free(struct faults *f) {
    if (!f) return;
    for (unsigned i = 0; i < f->n; i++) free(f->all[i]);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

unsigned faults_count(const struct faults *f) { return atomic_load_explicit(&f->n, memory_order_relaxed); }

/* ---- the list; under its lock ---- */

static unsigned position_of(const struct faults *f, const char *name) {
    unsigned i = 0;
    while (i < f->n && strcmp(f->all[i]->name, name) < 0) i++;
    return i;
}

static bool is_at(const struct faults *f, unsigned i, const char *name) {
    return i < f->n && !strcmp(f->all[i]->name, name);
}

bool faults_find(struct faults *f, const char *name, struct fault_rule *out) {
    pthread_mutex_lock(&f->lock);
    unsigned at = position_of(f, name);
    bool found = is_at(f, at, name);
    if (found) *out = *f->all[at];
    pthread_mutex_unlock(&f->lock);
    return found;
}

int faults_put(struct faults *f, const struct fault_rule *rule, struct err *e) {
    struct fault_rule *copy;
    int rc = 0;
    pthread_mutex_lock(&f->lock);
    unsigned at = position_of(f, rule->name);
    if (is_at(f, at, rule->name)) {
        *f->all[at] = *rule;
    } else if (f->n == FAULTS_MAX) {
        rc = err_invalid(e, "There are %d faults already, which is the most there may be", FAULTS_MAX);
    } else if (!(copy = malloc(sizeof(*copy)))) {
        rc = err_nomem(e);
    } else {
        *copy = *rule;
        memmove(f->all + at + 1, f->all + at, (f->n - at) * sizeof(f->all[0]));
        f->all[at] = copy;
        f->n++;
    }
    pthread_mutex_unlock(&f->lock);
    return rc;
}

void faults_remove(struct faults *f, const char *name) {
    pthread_mutex_lock(&f->lock);
    unsigned at = position_of(f, name);
    if (is_at(f, at, name)) {
        free(f->all[at]);
        f->n--;
        memmove(f->all + at, f->all + at + 1, (f->n - at) * sizeof(f->all[0]));
    }
    pthread_mutex_unlock(&f->lock);
}

int faults_each(struct faults *f, int (*fn)(void *arg, const struct fault_rule *rule), void *arg) {
    int rc = 0;
    pthread_mutex_lock(&f->lock);
    for (unsigned i = 0; i < f->n && !rc; i++) rc = fn(arg, f->all[i]);
    pthread_mutex_unlock(&f->lock);
    return rc;
}

/* ---- does a rule match a request? ---- */

/* The tables of a request, compared with a rule. any: there is a table or keyspace at all;
 * meant: one of them is the rule's. */
struct tables_seen {
    bool system, control, any, meant;
};

/* name NULL: only a keyspace is known. */
static void compare_table(struct tables_seen *p, const struct fault_rule *r, const char *keyspace, const char *name,
                          bool system) {
    bool same_keyspace = !*r->keyspace_name || !strcmp(r->keyspace_name, keyspace);
    bool same_table = !*r->table_name || (name && !strcmp(r->table_name, name));
    p->any = true;
    p->system = p->system || system;
    p->control = p->control || !strcmp(keyspace, "system_control");
    p->meant = p->meant || (same_keyspace && same_table);
}

static bool is_where(const struct fault_rule *r, const struct cql_run *q) {
    struct tables_seen p = {0};
    const struct catalog_change *change = q->compiled ? q->compiled->change : NULL;
    /* The tables that a statement was compiled for. A BATCH request has its tables in its cost. */
    const struct table_use *tables = NULL;
    if (q->answer.result.kind == RESULT_PREPARED)
        tables = cql_prepared_info(q->answer.result.prepared)->statement->tables;
    else if (q->compiled && q->in->kind != REQUEST_BATCH) tables = q->compiled->tables;
    for (const struct table_use *t = tables; t; t = t->next)
        compare_table(&p, r, t->table->keyspace->name, t->table->name, t->table->keyspace->is_system);
    for (const struct op_write *w = q->cost->writes; w; w = w->next)
        compare_table(&p, r, w->item.keyspace, w->item.table, q->cost->is_system);
    if (q->cost->table) compare_table(&p, r, q->cost->keyspace, q->cost->table, q->cost->is_system);
    if (change && change->keyspace) compare_table(&p, r, change->keyspace, change->name, false);
    if (p.control || (p.system && !*r->keyspace_name)) return false;
    return p.any ? p.meant : !*r->keyspace_name;
}

/* An unlogged batch without conditions, over several partitions. */
static bool may_be_applied_partly(const struct cql_run *q) {
    const struct op_write *first = q->cost->writes;
    bool several = false;
    if (q->answer.stmt_kind != STMT_BATCH || q->cost->is_logged_batch || q->cost->is_system) return false;
    if (!first || first->conditional) return false;
    for (const struct op_write *w = first->next; w && !several; w = w->next)
        several = w->item.object != first->item.object || w->item.token != first->item.token ||
                  !slice_eq(w->key, first->key);
    return several;
}

static bool matches(const struct fault_rule *r, const struct cql_run *q, uint64_t connection) {
    if (r->kind < 0 ? q->in->kind == REQUEST_PREPARE : r->kind != (int)q->in->kind) return false;
    if (r->stmt_kind != STMT_KINDS && r->stmt_kind != q->answer.stmt_kind) return false;
    if (r->has[FAULT_COLUMN_connection] && (uint64_t)r->connection != connection) return false;
    if (*r->role && (!q->session->role || strcmp(r->role, q->session->role))) return false;
    /* A driver can handle UNPREPARED only for a request that names a prepared statement. */
    if (r->fails && r->code == ERR_UNPREPARED && !q->statement && !q->n_item_statements) return false;
    if (r->partly && !may_be_applied_partly(q)) return false;
    return is_where(r, q);
}

const struct fault_rule *faults_hit(struct faults *f, const struct cql_run *q, uint64_t connection) {
    const struct fault_rule *found = NULL;
    pthread_mutex_lock(&f->lock);
    for (unsigned i = 0; i < f->n && !found; i++) {
        struct fault_rule *r = f->all[i];
        if (!matches(r, q, connection) || !fault_rule_hits(r, ++r->matched)) continue;
        r->hits++;
        found = r;
    }
    struct fault_rule *copy = found ? arena_alloc(q->arena, sizeof(*copy)) : NULL;
    if (copy) *copy = *found;
    pthread_mutex_unlock(&f->lock);
    if (found && !copy) err_nomem(q->err);
    return copy;
}
