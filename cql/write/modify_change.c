/* From a bound write to changes of mutations: the cells of its rows, and their cost. */
#include "base/hot.h"
#include "cql/expr/function.h"
#include "cql/request/db.h"
#include "cql/write/modify.h"
#include "cql/row/row_key.h"
#include "cql/row/row_size.h"
#include "metering/size/size.h"

/* Bytes that Cassandra 5.0 adds for a row in the size of a batch; measured. */
enum { DATA_ROW = 21, DATA_EXPIRING_ROW = 12 };

/* ---- cost ---- */

static struct op_write *new_cost(struct modify_write *w, const struct eng_part *part) {
    const struct modify_plan *p = w->plan;
    struct op_write *c = op_cost_write(w->r->cost, p->kind);
    if (!c) return err_null(err_nomem(w->r->err));
    c->conditional = p->conditional;
    c->applied = true;
    c->item = (struct charge_item){.object = p->table->object,
                                   .one_partition = true,
                                   .keyspace = p->table->keyspace->name,
                                   .table = p->table->name,
                                   .token = part->token};
    c->key = part->key;
    c->key_types = p->table->key_types;
    c->n_key_types = p->table->n_partition_key;
    c->regions = p->regions;
    c->image.known = w->whole ? IMAGE_AS_WRITTEN : IMAGE_UNKNOWN;
    return c;
}

/* Key columns of an address: INSERT has their values, the others decode them from the keys. */
static int cost_keys(struct modify_write *w, struct mutation *m, const struct row_key *key, struct op_write *c) {
    const struct schema_table *t = w->plan->table;
    const struct value *v = w->key_values;
    if (!v) {
        struct value *values = arena_alloc(w->r->arena, (t->n_partition_key + t->n_clustering) * sizeof *values);
        if (!values) return err_nomem(w->r->err);
        if (row_key_split(t, m->part.key, values, w->r->err)) return -1;
        if (key && t->n_clustering &&
            row_key_decode(t, key->ck, key->image, w->r->arena, values + t->n_partition_key, w->r->err))
            return -1;
        v = values;
    }
    if (c->has_static) {
        const struct size_rule of_statics = size_rule_of_statics();
        size_add_row(&c->statics, &of_statics);
        for (uint32_t i = 0; i < t->n_partition_key; i++)
            size_add_partition_key(&c->statics, &of_statics, t->columns[i].type, v[i]);
    }
    if (c->has_row) {
        size_add_row(&c->row, &w->rule);
        for (uint32_t i = 0; i < t->n_partition_key; i++)
            size_add_partition_key(&c->row, &w->rule, t->columns[i].type, v[i]);
    }
    for (uint32_t i = 0; key && i < t->n_clustering; i++) {
        const struct value of_clustering = v[t->n_partition_key + i];
        if (c->has_row) size_add_clustering(&c->row, &w->rule, schema_clustering(t, i)->type, of_clustering);
        m->data_bytes += value_slice(of_clustering).n;
    }
    return 0;
}

int modify_cost_failed(struct modify_write *w, const struct eng_part *part, const struct eng_row *row,
                       const struct eng_row *statics) {
    const struct schema_table *t = w->plan->table;
    struct op_write *c = new_cost(w, part);
    if (!c) return -1;
    c->applied = false;
    c->row_existed = row || statics;
    c->has_row = row != NULL;
    c->has_static = statics != NULL;
    c->reads_when_failed = (w->plan->if_exists || w->plan->if_not_exists) && schema_has_ttl(t) &&
                           !schema_has_client_timestamps(t);
    struct row_view v;
    if (row_view_init(&v, w->plan->by_cells, 1, w->r->arena, w->r->err) ||
        row_view_partition(&v, part->key, statics, w->r->err))
        return -1;
    if (row_view_row(&v, row, w->r->err)) return -1;
    struct row_sizer sizer;
    row_sizer_init(&sizer, &v, w->r->cost);
    row_sizer_partition(&sizer);
    if (row) row_size_add(&c->row, &sizer);
    if (statics) row_size_add_static(&c->statics, &v);
    return 0;
}

/* ---- cells ---- */

/* The operations of one row, while they run. */
struct row_ops {
    struct modify_write *w;
    struct cell_writer cells;
    const struct eng_row *current; /* NULL if there is none, or no operation needs it */
    struct size_sum *sum;          /* of the values; NULL if they are not sized */
    struct size_rule rule;
};

/* The index or key of column[x]. */
static int op_element(struct modify_write *w, const struct modify_op *op, struct value *v) {
    const struct cql_type *t = op->column->type;
    if (term_eval(op->element, &w->r->eval, v)) return -1;
    if (!value_is_null(*v)) return 0;
    bool unset = value_is_unset(*v);
    bool discards = op->kind == MODIFY_LIST_DELETE || (op->kind == MODIFY_DISCARD && t->id == CQL_SET);
    if (unset && discards) return 0;
    const char *what = unset ? "unset" : "null";
    if (t->id == CQL_LIST) return err_invalid(w->r->err, "Invalid %s value for list index", what);
    return err_invalid(w->r->err, t->id == CQL_MAP ? "Invalid %s map key" : "Invalid %s set element", what);
}

/* Cassandra runs the static operations once for each row that IN names: an addition is repeated. */
static uint32_t static_times(const struct modify_write *w) { return w->n_keys > 1 ? w->n_keys : 1; }

/* Adds v to the stored value; 1 if there is none, so nothing is written. */
static int increase(struct row_ops *x, const struct modify_op *op, struct value *v) {
    struct evaluation *ev = &x->w->r->eval;
    uint32_t n;
    /* of an operation before */
    const struct eng_cell *cell =
        cells_of(&(struct eng_row){.cells = x->cells.cells, .n_cells = x->cells.n}, op->column, &n);
    cell = cell ? cell + n - 1 : cells_of(x->current, op->column, &n);
    if (!cell) return 1;
    const struct value both[] = {value_of_slice(cell->value), *v};
    if (function_call(op->sum, ev, both, 2, v)) return -1;
    return value_is_null(*v)
               ? err_invalid(ev->err, "Invalid null or empty value for an addition to column %s", op->column->name)
               : 0;
}

/* The increment is the cell, which counter.c replaces with the new value. */
static int set_count(struct row_ops *x, const struct modify_op *op, struct value v) {
    struct err *e = x->w->r->err;
    if (value_is_null(v)) return err_invalid(e, "Invalid null value for counter increment");
    if (v.n != 8) return err_invalid(e, "Expected 8 or 0 byte long (%d)", v.n);
    if (op->negative && load_u64(v.p) == (uint64_t)INT64_MIN)
        return err_invalid(e, "The negation of %lld overflows supported counter precision (signed 8 bytes integer)",
                           (long long)INT64_MIN);
    uint64_t by = load_u64(v.p) * (op->column->kind == COLUMN_STATIC ? static_times(x->w) : 1);
    uint8_t *p = arena_alloc(x->w->r->arena, 8);
    if (!p) return err_nomem(e);
    store_u64(p, op->negative ? -by : by);
    return cells_set(&x->cells, op->column, value_of(p, 8));
}

static inline void add_size(struct row_ops *x, const struct modify_op *op, struct value v) {
    if (x->sum) size_add_column(x->sum, &x->rule, op->value_type, v);
}

/* Any operation, with its value. */
SELDOM static int run_any(struct row_ops *x, const struct modify_op *op, struct value v) {
    struct modify_write *w = x->w;
    struct cell_writer *cells = &x->cells;
    struct value element = {.n = 0};
    struct cql_elems it;
    struct value item;
    bool checks = op->checks_items && v.n >= 0 && cql_elems_open(op->column->type, value_slice(v), &it) == 0;
    while (checks && cql_elems_next(&it, &item))
        if (item.n == 0) return err_invalid(w->r->err, "An element of list %s must not be empty", op->column->name);
    if (op->element && op_element(w, op, &element)) return -1;
    if (value_is_unset(element) || (value_is_unset(v) && op->kind != MODIFY_LIST_SET)) return 0;
    w->n_given++;
    int nothing = op->kind == MODIFY_INCREASE ? increase(x, op, &v) : 0;
    if (nothing) return nothing < 0 ? -1 : 0;
    add_size(x, op, v);
    switch (op->kind) {
    case MODIFY_SET: return cells_replace(cells, op->column, v);
    case MODIFY_INCREASE: return cells_set(cells, op->column, v);
    case MODIFY_ADD: case MODIFY_PREPEND: return cells_add(cells, op->column, v, op->kind == MODIFY_PREPEND);
    case MODIFY_SUBTRACT: return cells_subtract(cells, op->column, v, x->current);
    case MODIFY_PUT: return cells_put(cells, op->column, element, v);
    case MODIFY_LIST_SET: return cells_list_set(cells, op->column, element, v, x->current, false);
    case MODIFY_FIELD: case MODIFY_FIELD_DELETE: return cells_field(cells, op->column, op->field, v);
    case MODIFY_COUNT: return set_count(x, op, v);
    case MODIFY_DELETE: return cells_delete(cells, op->column);
    case MODIFY_DISCARD: return cells_discard(cells, op->column, element);
    case MODIFY_LIST_DELETE: return cells_list_set(cells, op->column, element, value_null(), x->current, true);
    }
    return -1;
}

static inline int run_op(struct row_ops *x, const struct modify_op *op) {
    struct modify_write *w = x->w;
    struct value v = value_null();
    if (w->json) v = w->json[op->column->ordinal];
    else if (op->value && term_eval(op->value, &w->r->eval, &v)) return -1;
    if (UNLIKELY(!op->sets_cell)) return run_any(x, op, v);
    if (value_is_unset(v)) return 0;
    w->n_given++;
    add_size(x, op, v);
    return cells_set(&x->cells, op->column, v);
}

/* Runs an operation that adds to a static list as often as Cassandra does; its value is sized once. */
SELDOM static int run_again(struct row_ops *x, const struct modify_op *op) {
    uint32_t times = static_times(x->w);
    struct size_sum *sum = x->sum;
    int rc = 0;
    x->sum = NULL;
    for (uint32_t k = 1; k < times && !rc; k++) rc = run_op(x, op);
    x->sum = sum;
    x->cells.unsorted |= times > 1;
    return rc;
}

/* Keeps the error of an operation that was refused, while those before it in the statement run. */
SELDOM static int keep_error(struct modify_write *w, struct err **kept) {
    struct err *e = *kept ? *kept : ARENA_NEW(w->r->arena, struct err);
    if (!e) return err_nomem(w->r->err);
    *e = *w->r->err;
    *kept = e;
    err_clear(w->r->err);
    return 0;
}

/* Operations run column by column, but Cassandra runs them in the statement's order. When list
 * contents make several fail, the error must be that of the first in the statement: after a failure
 * only operations before it in the statement still run. */
static int run_ops(struct row_ops *x, uint32_t from, uint32_t to) {
    struct modify_write *w = x->w;
    const struct modify_op *refused = NULL;
    struct err *first = NULL;
    for (const struct modify_op *op = w->plan->ops + from, *end = w->plan->ops + to; op < end; op++) {
        if (UNLIKELY(refused != NULL) && op->position > refused->position) continue;
        if (LIKELY(run_op(x, op) == 0) && LIKELY(!op->repeats || run_again(x, op) == 0)) continue;
        if (!w->plan->reads || keep_error(w, &first)) return -1;
        refused = op;
    }
    if (refused) *w->r->err = *first;
    return refused ? -1 : 0;
}

/* Cells of the operations from..to of the plan, for the static row or for a row of the mutation. */
static int make_cells(struct modify_write *w, struct mutation *m, uint32_t from, uint32_t to,
                      const struct eng_row *current, struct op_write *c, struct eng_row *out) {
    const struct modify_plan *p = w->plan;
    struct row_ops x = {.w = w,
                        .cells = {.arena = w->r->arena, .err = w->r->err, .eng = w->r->db->options.eng,
                                  .now_us = w->r->now_us, .ts = w->ts, .overwrite_ts = w->ts - 1, .now = w->now,
                                  .ttl = w->ttl, .repeats = p->repeats},
                        .current = current,
                        .rule = out->kind == ENG_STATIC ? size_rule_of_statics() : w->rule};
    if (p->kind != OP_DELETE) x.sum = out->kind == ENG_STATIC ? &c->statics : &c->row;
    if (cells_init(&x.cells, to - from) || run_ops(&x, from, to)) return -1;
    x.cells.unsorted = x.cells.unsorted || (p->repeats && !p->counter);
    cells_finish(&x.cells, out);
    m->data_bytes += x.cells.data_bytes;
    if (out->kind == ENG_ROW) m->data_bytes += DATA_ROW + (out->live_ttl ? DATA_EXPIRING_ROW : 0);
    return 0;
}

/* ---- rows ---- */

static int read_current(struct modify_write *w, struct mutation *m, const struct eng_row *row,
                        const struct eng_row **out) {
    struct eng_row *before;
    *out = NULL;
    if (!w->plan->reads) return 0;
    int rc = mutation_read(w->r, m, row->kind, row->ck, w->now, &before);
    if (rc == 1) *out = before;
    return rc < 0 ? -1 : 0;
}

static int add_row(struct modify_write *w, struct mutation *m, const struct row_key *key, struct op_write *c) {
    const struct modify_plan *p = w->plan;
    const struct eng_row *current;
    struct change *last = m->last;
    uint32_t given = w->n_given;
    if (row_key_check(key, w->r->err)) return -1;
    struct change *change = mutation_add(w->mutations, m, CHANGE_ROW);
    if (!change) return -1;
    struct eng_row *row = &change->row;
    change->cost = c;
    row->ck = key->ck;
    c->row_key = key->ck.p ? key->ck : slice_str("");
    row->key_image = key->image;
    change->counts = p->counter && p->kind == OP_UPDATE;
    if (p->kind == OP_INSERT) {
        row->live_ts = w->ts;
        row->live_ttl = w->ttl;
        if (w->ttl) row->live_expiry = w->now + w->ttl;
    }
    if (p->kind == OP_DELETE && p->n_ops == 0) {
        row->del_ts = w->deletion_ts;
        row->del_at = w->now;
    }
    if (read_current(w, m, row, &current) || make_cells(w, m, p->n_static_ops, p->n_ops, current, c, row)) return -1;
    if (p->kind != OP_DELETE && p->has_timestamps)
        size_add_timestamps(&c->row, (uint64_t)w->r->cost->timestamp_size * c->row.n_columns);
    if (p->kind != OP_DELETE && (w->ttl || p->has_ttl)) {
        uint64_t cells = p->table->n_partition_key + p->table->n_clustering;
        for (uint32_t i = 0; i < row->n_cells; i++)
            cells += !(row->cells[i].flags & (ENG_CELL_TOMBSTONE | ENG_CELL_COMPLEX_DELETION));
        size_add_ttl(&c->row, &w->rule, cells);
    }
    /* Each operation of an INSERT sets another column. A row with an image of its key may hide another
     * way to write the same key. */
    bool sets_all = w->n_given - given == p->table->n_regular;
    if (p->hides_older && sets_all && !row->key_image.p) row->covers_below = p->table->n_column_ids;
    bool of_columns = p->kind != OP_INSERT && p->n_ops > 0;
    if (!of_columns || w->n_given != given) return 0;
    mutation_drop_newest(m, last); /* all values are unset */
    c->has_row = false;
    return 0;
}

/* One address: the row and, with it, the static row of its partition. */
static int add_address(struct modify_write *w, struct mutation *m, const struct row_key *key, bool statics) {
    struct op_write *c = new_cost(w, &m->part);
    if (!c) return -1;
    c->has_static = statics;
    c->has_row = key && modify_writes_rows(w->plan);
    if (cost_keys(w, m, key, c)) return -1;
    bool names_row = c->has_row;
    /* the row comes first: its error is reported before one of the static columns */
    if (names_row && add_row(w, m, key, c)) return -1;
    if (statics) {
        const struct eng_row *current;
        struct change *last = m->last, *change = mutation_add(w->mutations, m, CHANGE_ROW);
        uint32_t given = w->n_given;
        if (!change) return -1;
        change->cost = c;
        change->row.kind = ENG_STATIC;
        change->counts = w->plan->counter && w->plan->kind == OP_UPDATE;
        if (read_current(w, m, &change->row, &current) ||
            make_cells(w, m, 0, w->plan->n_static_ops, current, c, &change->row))
            return -1;
        c->has_static = w->n_given != given;
        if (!c->has_static) mutation_drop_newest(m, last); /* all values are unset */
    }
    if (!names_row && !statics) return 0;
    /* The part whose values are all unset costs nothing. A statement that writes nothing at all
     * costs as its key, which is that of the row where it names one. */
    if (!c->has_row && !c->has_static) {
        c->has_row = names_row;
        c->has_static = !names_row;
        c->image.known = IMAGE_AS_WRITTEN;
    }
    if (!c->has_static) c->statics = (struct size_sum){0};
    if (!c->has_row) {
        c->row = (struct size_sum){0};
        c->row_key = (struct slice){0};
    }
    return 0;
}

int modify_add(struct modify_write *w, struct mutations *to) {
    bool statics = w->plan->n_static_ops > 0;
    w->mutations = to;
    for (uint32_t i = 0; i < w->n_parts; i++) {
        struct mutation *m = mutations_find(to, &w->parts[i]);
        if (!m->by_cells) m->by_cells = w->plan->by_cells;
        if (!w->rows_by_key) {
            struct op_write *c = new_cost(w, &m->part);
            if (!c) return -1;
            c->has_row = c->many = true;
            if (cost_keys(w, m, NULL, c)) return -1;
            bool all = w->plan->where->rows == WHERE_ALL_ROWS;
            for (uint32_t k = 0; k < (all ? 1 : w->n_slices); k++) {
                struct change *change = mutation_add(w->mutations, m, all ? CHANGE_PARTITION : CHANGE_RANGE);
                if (!change) return -1;
                change->cost = c;
                if (!all) change->range = w->slices[k];
                change->row.del_ts = w->deletion_ts;
                change->row.del_at = w->now;
            }
            continue;
        }
        if (w->n_keys == 0 && w->plan->static_only && add_address(w, m, NULL, true)) return -1;
        for (uint32_t k = 0; k < w->n_keys; k++)
            if (add_address(w, m, &w->keys[k], statics && k == 0)) return -1;
    }
    return 0;
}
