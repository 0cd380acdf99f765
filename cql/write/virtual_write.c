#include "cql/write/write.h"

#include "cql/request/db.h"

struct planned {
    const struct schema_table *table;
    struct virtual_change change;
};

struct virtual_write {
    struct cql_run *r;
    size_t n, cap;
    struct planned *all;
};

/* partition: the whole partition is deleted. */
static int put(struct virtual_write *w, const struct modify_plan *p, const struct value *values, bool partition) {
    struct cql_run *r = w->r;
    if (w->n == w->cap) {
        size_t cap = w->cap ? w->cap * 2 : 8;
        struct planned *all = ARENA_ARRAY(r->arena, cap, struct planned);
        if (!all) return err_nomem(r->err);
        if (w->n) memcpy(all, w->all, w->n * sizeof *all);
        w->all = all;
        w->cap = cap;
    }
    struct planned *x = &w->all[w->n++];
    *x = (struct planned){.table = p->table, .change.values = values};
    if (p->kind == OP_DELETE && p->n_ops == 0) x->change.kind = partition ? VIRTUAL_DELETE_PARTITION : VIRTUAL_DELETE;
    else x->change.kind = p->kind == OP_INSERT ? VIRTUAL_INSERT : VIRTUAL_UPDATE;
    return 0;
}

static struct value *row_of(struct virtual_write *w, const struct schema_table *t, const struct value *partition) {
    struct value *values = ARENA_ARRAY(w->r->arena, t->n_columns, struct value);
    if (!values) return err_null(err_nomem(w->r->err));
    for (uint32_t i = 0; i < t->n_columns; i++) values[i].n = VALUE_UNSET;
    memcpy(values, partition, t->n_partition_key * sizeof *values);
    return values;
}

/* One row of the statement: its key, and the values that the operations set. */
static int plan_row(struct virtual_write *w, const struct modify_write *m, const struct value *partition,
                    const struct row_key *key) {
    struct cql_run *r = w->r;
    const struct modify_plan *p = m->plan;
    const struct schema_table *t = p->table;
    struct value *values = row_of(w, t, partition);
    if (!values) return -1;
    if (row_key_decode(t, key->ck, key->image, r->arena, values + t->n_partition_key, r->err)) return -1;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        struct value *to = &values[p->ops[i].column->ordinal];
        if (p->ops[i].kind == MODIFY_DELETE) *to = value_null();
        else if (m->json) *to = m->json[p->ops[i].column->ordinal];
        else if (term_eval(p->ops[i].value, &r->eval, to)) return -1;
    }
    return put(w, p, values, false);
}

static int plan_item(struct virtual_write *w, const struct write_item *item) {
    struct cql_run *r = w->r;
    const struct modify_plan *p = modify_plan_of(item->statement);
    const struct schema_table *t = p->table;
    if (!t->virt->write)
        return err_invalid(r->err, "Modification is not supported by table %s.%s", t->keyspace->name, t->name);
    bool whole = p->where && p->where->rows == WHERE_ALL_ROWS && t->n_clustering;
    struct modify_times times = {.batch = ENG_NO_TS, .protocol = ENG_NO_TS, .server = ENG_NO_TS};
    struct modify_write m;
    struct where_keys keys = {.n = 1};
    r->eval.values = item->values;
    r->eval.n_values = item->n_values;
    modify_begin(&m, r, p, item->values, item->n_values);
    if (modify_bind(&m) || modify_bind_rows(&m) || modify_bind_times(&m, &times)) return -1;
    if (p->where && where_key_values(p->where, &r->eval, &keys)) return -1;
    if (!p->where) keys.values = (struct value *)m.key_values;
    for (uint32_t i = 0; i < keys.n; i++) {
        const struct value *partition = keys.values + (size_t)i * t->n_partition_key;
        const struct value *values = whole ? row_of(w, t, partition) : NULL;
        if (whole && (!values || put(w, p, values, true))) return -1;
        for (uint32_t k = 0; !whole && k < m.n_keys; k++)
            if (plan_row(w, &m, partition, &m.keys[k])) return -1;
    }
    return 0;
}

static enum cql_outcome apply(struct cql_run *r) {
    const struct virtual_write *w = r->running;
    struct virtual_context ctx = db_virtual_context(r);
    for (size_t i = 0; i < w->n; i++)
        if (w->all[i].table->virt->write(&ctx, w->all[i].table, &w->all[i].change)) return CQL_FAILED;
    return CQL_DONE;
}

enum cql_outcome virtual_write_run(struct cql_run *r, const struct write_item *items, uint32_t n) {
    r->answer.work_class = WORK_DDL;
    if (!r->blocking) return CQL_OFFLOAD;
    struct virtual_write *w = ARENA_NEW(r->arena, struct virtual_write);
    if (!w) {
        err_nomem(r->err);
        return CQL_FAILED;
    }
    w->r = r;
    for (uint32_t i = 0; i < n; i++)
        if (plan_item(w, &items[i])) return CQL_FAILED;
    r->running = w;
    r->apply = apply;
    return CQL_DONE;
}
