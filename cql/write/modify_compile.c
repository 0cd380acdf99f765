/* From the trees of INSERT, UPDATE and DELETE to plans: names and types checked, terms compiled. */
#include "cql/write/modify.h"

#include <stdlib.h>

#include "base/name_tree.h"
#include "cql/expr/function.h"
#include "system_schema/system_tables/virtual.h"

struct builder {
    struct compile *c;
    const struct schema_table *table;
    struct modify_plan *plan;
};

static const struct schema_column *find_column(struct builder *b, const char *name) {
    const struct schema_column *col = schema_column_find(b->table, name);
    if (!col)
        err_invalid(b->c->err, "Undefined column name %s in table %s.%s", name, b->table->keyspace->name,
                    b->table->name);
    return col;
}

static int begin(struct builder *b, struct compile *c, const struct ast_name *name, enum op_write_kind kind,
                 uint32_t n_ops, struct cql_statement *out) {
    const struct schema_table *t = statement_table(c, name);
    if (!t) return -1;
    struct modify_plan *p = ARENA_NEW(c->arena, struct modify_plan);
    if (!p || !(p->ops = ARENA_ARRAY(c->arena, (size_t)n_ops + 1, struct modify_op))) return err_nomem(c->err);
    p->kind = kind;
    p->table = t;
    for (uint32_t i = t->n_partition_key + t->n_clustering; i < t->n_columns; i++)
        p->counter = p->counter || t->columns[i].type->id == CQL_COUNTER;
    p->has_ttl = schema_has_ttl(t);
    p->has_timestamps = schema_has_client_timestamps(t);
    p->regions = schema_regions(t->keyspace);
    p->server_times = !c->schema->cassandra_mode && !p->has_timestamps;
    out->table = t;
    out->plan = p;
    *b = (struct builder){.c = c, .table = t, .plan = p};
    return 0;
}

static struct modify_op *new_op(struct builder *b, enum modify_op_kind kind, const struct schema_column *col) {
    struct modify_op *op = &b->plan->ops[b->plan->n_ops];
    op->position = b->plan->n_ops++;
    op->kind = kind;
    op->column = col;
    if (kind == MODIFY_INCREASE || kind == MODIFY_LIST_SET || kind == MODIFY_LIST_DELETE ||
        (kind == MODIFY_SUBTRACT && col->type->id == CQL_LIST))
        b->plan->reads = true;
    return op;
}

/* Operations on one column keep their order. */
static int by_column(const void *pa, const void *pb) {
    const struct modify_op *a = *(const struct modify_op *const *)pa, *b = *(const struct modify_op *const *)pb;
    bool sa = a->column->kind == COLUMN_STATIC, sb = b->column->kind == COLUMN_STATIC;
    if (sa != sb) return sa ? -1 : 1;
    if (a->column->id != b->column->id) return a->column->id < b->column->id ? -1 : 1;
    return (a->position > b->position) - (a->position < b->position);
}

/* Cassandra reads an empty element of these types in a bound list as null, and fails with an
 * internal error when it writes it. */
static const bool fails_empty[CQL_TYPES] = {
    [CQL_BIGINT] = true, [CQL_BOOLEAN] = true, [CQL_DECIMAL] = true,   [CQL_DOUBLE] = true,
    [CQL_FLOAT] = true,  [CQL_INET] = true,    [CQL_INT] = true,       [CQL_TIMESTAMP] = true,
    [CQL_UUID] = true,   [CQL_VARINT] = true,  [CQL_TIMEUUID] = true,
};

/* Static columns first, then by column id, so that cells come in the engine's order. */
static int sort_ops(struct compile *c, struct modify_plan *p) {
    const struct modify_op **order = ARENA_ARRAY(c->arena, p->n_ops + 1, const struct modify_op *);
    struct modify_op *sorted = ARENA_ARRAY(c->arena, p->n_ops + 1, struct modify_op);
    if (!order || !sorted) return err_nomem(c->err);
    for (uint32_t i = 0; i < p->n_ops; i++) order[i] = &p->ops[i];
    if (p->n_ops > 1) qsort(order, p->n_ops, sizeof *order, by_column);
    for (uint32_t i = 0; i < p->n_ops; i++) {
        struct modify_op *op = &sorted[i];
        *op = *order[i];
        /* Derived once, so that an execution need not. */
        const struct cql_type *t = op->column->type;
        bool multicell = cql_type_is_multicell(t);
        bool adds_to_list = t->id == CQL_LIST && multicell &&
                            (op->kind == MODIFY_SET || op->kind == MODIFY_ADD || op->kind == MODIFY_PREPEND);
        op->sets_cell = op->kind == MODIFY_SET && !multicell;
        op->repeats = adds_to_list && op->column->kind == COLUMN_STATIC;
        op->checks_items =
            adds_to_list && op->value && term_bind_index(op->value) >= 0 && fails_empty[t->args[0]->id];
    }
    p->ops = sorted;
    for (uint32_t i = 1; i < p->n_ops; i++) p->repeats = p->repeats || p->ops[i].column == p->ops[i - 1].column;
    p->n_static_ops = 0;
    while (p->n_static_ops < p->n_ops && p->ops[p->n_static_ops].column->kind == COLUMN_STATIC) p->n_static_ops++;
    return 0;
}

/* See modify_plan.whole. */
static void find_whole(struct modify_plan *p) {
    const struct schema_table *t = p->table;
    bool sets = true;
    for (uint32_t i = 0; i < p->n_ops; i++) sets = sets && p->ops[i].kind == MODIFY_SET;
    p->whole = sets && !p->repeats && !p->json_unset && (!p->n_static_ops || p->n_static_ops == t->n_static) &&
               (!modify_writes_rows(p) || p->n_ops - p->n_static_ops == t->n_regular);
}

/* Equal keys of some types may differ in bytes, and the stored key stays as it was first written: its
 * size is known only by reading it. A column that was dropped may be added again and then has its old values. */
static bool hides_older(const struct schema_table *t) {
    static const enum cql_type_id many[] = {CQL_DECIMAL, CQL_VARINT, CQL_BOOLEAN, CQL_TUPLE, CQL_UDT};
    bool alike = false;
    for (uint32_t i = 0; i < t->n_clustering; i++)
        for (size_t k = 0; k < ARRAY_LEN(many); k++)
            alike = alike || cql_type_contains(schema_clustering(t, i)->type, many[k]);
    return !alike && !t->lacks_dropped;
}

/* ---- USING, IF ---- */

int modify_compile_using(struct compile *c, const struct modify_plan *p, const struct ast_using *using,
                         const struct term **timestamp, const struct term **ttl) {
    struct receiver to = {.keyspace = p ? p->table->keyspace->name : "[batch]",
                          .table = p ? p->table->name : "[batch]",
                          .name = "[timestamp]",
                          .type = cql_type_scalar(CQL_BIGINT)};
    if (using->timestamp && !(*timestamp = term_compile(c, using->timestamp, &to))) return -1;
    to.name = "[ttl]";
    to.type = cql_type_scalar(CQL_INT);
    return using->ttl && !(*ttl = term_compile(c, using->ttl, &to)) ? -1 : 0;
}

static int check_timestamp(struct builder *b) {
    if (!b->plan->timestamp || !b->plan->conditional) return 0;
    return err_invalid(b->c->err, "Cannot provide custom timestamp for conditional updates");
}

/* Compiled before the rest of the statement, as in Cassandra: its faults are reported first. */
static int compile_attributes(struct builder *b, const struct ast_using *using, const struct ast_conditions *ast) {
    struct modify_plan *p = b->plan;
    if (modify_compile_using(b->c, p, using, &p->timestamp, &p->ttl)) return -1;
    p->if_exists = ast->if_exists;
    p->if_not_exists = ast->if_not_exists;
    p->conditional = ast->if_exists || ast->if_not_exists || ast->n > 0;
    if (ast->n && check_timestamp(b)) return -1;
    p->conditions = ARENA_ARRAY(b->c->arena, (size_t)ast->n + 1, struct condition *);
    if (!p->conditions) return err_nomem(b->c->err);
    for (uint32_t i = 0; i < ast->n; i++)
        if (!(p->conditions[p->n_conditions++] = condition_compile(b->c, b->table, ast->relations[i]))) return -1;
    return 0;
}

int modify_check_counter(const struct modify_plan *p, struct err *e) {
    if (p->timestamp && p->counter) return err_invalid(e, "Cannot provide custom timestamp for counter updates");
    if (p->ttl && p->counter) return err_invalid(e, "Cannot provide custom TTL for counter updates");
    return 0;
}

static int check_attributes(struct builder *b) {
    const struct modify_plan *p = b->plan;
    struct err *e = b->c->err;
    if (p->conditional && p->counter) return err_invalid(e, "Conditional updates are not supported on counter tables");
    if (check_timestamp(b)) return -1;
    return b->c->in_batch ? 0 : modify_check_counter(p, e);
}

/* A writable system table takes whole rows and whole values, without timestamp, TTL or conditions.
 * The error texts are Cassandra's (ModificationStatement, AbstractMutableVirtualTable). */
static int check_virtual(struct builder *b) {
    const struct modify_plan *p = b->plan;
    const struct schema_table *t = b->table;
    struct err *e = b->c->err;
    if (!t->virt) return 0;
    if (p->conditional) return err_invalid(e, "Conditional updates are not supported by virtual tables");
    if (p->timestamp) return err_invalid(e, "Custom timestamp is not supported by virtual tables");
    if (p->ttl) return err_invalid(e, "Expiring columns are not supported by virtual tables");
    if (!t->virt->write) return 0;
    if (p->where && p->where->rows == WHERE_ALL_ROWS && !t->virt->erased)
        return err_invalid(e, "Partition deletion is not supported by table %s.%s", t->keyspace->name, t->name);
    if (p->where && p->where->rows == WHERE_SLICES)
        return err_invalid(e, "Range deletion is not supported by table %s.%s", t->keyspace->name, t->name);
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind != MODIFY_SET && p->ops[i].kind != MODIFY_DELETE)
            return err_invalid(e, "Operations on parts of a value are not supported by table %s.%s", t->keyspace->name,
                               t->name);
    return 0;
}

/* ---- INSERT ---- */

static int missing_keys(struct builder *b, const char *what, uint32_t first, uint32_t n) {
    struct buf names;
    buf_init(&names, 4096);
    for (uint32_t i = first; i < first + n; i++)
        if (!b->plan->keys[i]) buf_printf(&names, "%s%s", names.n ? ", " : "", b->table->columns[i].name);
    int rc = names.n ? err_invalid(b->c->err, "%s: %.*s", what, SLICE_FMT(buf_slice(&names))) : 0;
    buf_fini(&names);
    return rc;
}

static int insert_json(struct builder *b, const struct ast_insert *ast) {
    const struct schema_table *t = b->table;
    struct receiver to = receiver_of(t, "[json]", cql_type_scalar(CQL_TEXT));
    b->plan->json = term_compile(b->c, ast->json, &to);
    b->plan->json_unset = ast->json_default_unset;
    if (!b->plan->json) return -1;
    b->c->binds->worked_on = true;
    /* A literal is decoded at prepare, so its faults are reported before those of bound values. */
    struct cql_run r = {.arena = b->c->arena, .err = b->c->err};
    const struct value *values;
    if (term_is_constant(b->plan->json) && modify_json_values(&r, b->plan, &values)) return -1;
    for (uint32_t i = t->n_partition_key + t->n_clustering; i < t->n_columns; i++)
        new_op(b, MODIFY_SET, &t->columns[i])->value_type = t->columns[i].type;
    return sort_ops(b->c, b->plan);
}

static int insert_values(struct builder *b, const struct ast_insert *ast, struct cql_statement *out) {
    struct err *e = b->c->err;
    struct name_tree named = {.arena = b->c->arena};
    for (uint32_t i = 0; i < ast->n_columns; i++) {
        int rc = name_tree_put(&named, slice_str(ast->columns[i]), i);
        if (rc) return rc < 0 ? err_nomem(e) : err_invalid(e, "The column names contains duplicates");
    }
    b->plan->keys = ARENA_ARRAY(b->c->arena, b->table->n_columns, const struct term *);
    if (!b->plan->keys) return err_nomem(e);
    for (uint32_t i = 0; i < 2 * ast->n_columns; i++) { /* key columns are compiled after the others */
        uint32_t at = i % ast->n_columns;
        const struct schema_column *col = find_column(b, ast->columns[at]);
        if (!col) return -1;
        bool is_key = schema_column_is_key(col);
        if (is_key != (i >= ast->n_columns)) continue;
        struct receiver to = receiver_of(b->table, col->name, col->type);
        const struct term *value = term_compile(b->c, ast->values[at], &to);
        if (!value) return -1;
        if (is_key) {
            b->plan->keys[col->ordinal] = value;
            continue;
        }
        struct modify_op *op = new_op(b, MODIFY_SET, col);
        op->value = value;
        op->value_type = col->type;
    }
    const struct schema_table *t = b->table;
    struct modify_plan *p = b->plan;
    if (sort_ops(b->c, p)) return -1;
    if (missing_keys(b, "Some partition key parts are missing", 0, t->n_partition_key)) return -1;
    uint32_t given = 0;
    for (uint32_t i = 0; i < t->n_clustering; i++) given += p->keys[t->n_partition_key + i] != NULL;
    p->static_only = t->n_clustering && !given && p->n_ops && p->n_static_ops == p->n_ops;
    if (!p->static_only && missing_keys(b, "Some clustering keys are missing", t->n_partition_key, t->n_clustering))
        return -1;
    /* A driver can route the statement when bind markers alone give the whole partition key. */
    out->pk_indexes = ARENA_ARRAY(b->c->arena, t->n_partition_key, uint16_t);
    if (!out->pk_indexes) return err_nomem(e);
    for (uint32_t i = 0; i < t->n_partition_key; i++) {
        int32_t at = term_bind_index(p->keys[i]);
        if (at < 0) return 0;
        out->pk_indexes[i] = (uint16_t)at;
    }
    out->n_pk = t->n_partition_key;
    return 0;
}

static int finish(struct builder *b) {
    struct modify_plan *p = b->plan;
    const struct schema_table *t = b->table;
    const char *keyspace = t->keyspace->name;
    if (check_attributes(b)) return -1;
    /* Checked last: permission to write is refused only for a statement without other faults. In
     * Cassandra's own keyspaces of virtual tables the table itself refuses a write, at execution. */
    bool own = !strcmp(keyspace, "system_views") || !strcmp(keyspace, "system_virtual_schema");
    if (t->keyspace->is_system && !(t->virt && (t->virt->write || own)))
        return err_set(b->c->err, ERR_UNAUTHORIZED, "%s keyspace is not user-modifiable.", keyspace);
    if (check_virtual(b)) return -1;
    if (p->whole && !p->conditional) return 0;
    p->by_cells = row_view_layout_of_cells(p->table, b->c->arena);
    return p->by_cells ? 0 : err_nomem(b->c->err);
}

int modify_compile_insert(struct compile *c, const struct ast_stmt *stmt, struct cql_statement *out) {
    const struct ast_insert *ast = &stmt->insert;
    struct builder b;
    const struct schema_table *t = statement_table(c, &ast->table);
    if (!t || begin(&b, c, &ast->table, OP_INSERT, ast->json ? t->n_columns : ast->n_columns, out)) return -1;
    struct modify_plan *p = b.plan;
    if (compile_attributes(&b, &ast->using, &ast->conditions)) return -1;
    if (p->counter)
        return err_invalid(c->err, "INSERT statements are not allowed on counter tables, use UPDATE instead");
    if (ast->unmatched) return err_invalid(c->err, "Unmatched column names/values");
    if (ast->json ? insert_json(&b, ast) : insert_values(&b, ast, out)) return -1;
    p->hides_older = hides_older(t);
    find_whole(p);
    return finish(&b);
}

/* ---- WHERE, common to UPDATE and DELETE ---- */

static int compile_where(struct builder *b, const struct ast_where *where, enum where_purpose purpose,
                         struct cql_statement *out) {
    struct modify_plan *p = b->plan;
    bool static_conditions = false, regular_conditions = false;
    for (uint32_t i = 0; i < p->n_conditions; i++) {
        bool is_static = condition_column(p->conditions[i])->kind == COLUMN_STATIC;
        static_conditions = static_conditions || is_static;
        regular_conditions = regular_conditions || !is_static;
    }
    /* A DELETE without columns addresses rows, never static columns alone. */
    bool whole_rows = purpose == WHERE_DELETE && p->n_ops == 0;
    p->static_only = !whole_rows && p->n_static_ops == p->n_ops && !regular_conditions &&
                     (p->n_static_ops || static_conditions) && b->table->n_clustering;
    struct where_options o = {.purpose = purpose, .only_statics = p->static_only, .whole_rows = whole_rows,
                              .conditional = p->conditional};
    struct where_plan *w = where_compile(b->c, b->table, where, &o);
    if (!w) return -1;
    if (p->conditional && !p->static_only && w->rows != WHERE_ROW_KEYS) {
        if (check_attributes(b)) return -1;
        return err_invalid(b->c->err,
                           "%s statements must restrict all PRIMARY KEY columns with equality relations in order to %s",
                           purpose == WHERE_DELETE ? "DELETE" : "UPDATE",
                           regular_conditions && p->n_ops && p->n_static_ops == p->n_ops
                               ? "use IF condition on non static columns"
                               : "delete non static columns");
    }
    p->where = w;
    out->n_pk = w->n_pk_binds;
    out->pk_indexes = w->pk_binds;
    return 0;
}

/* ---- UPDATE ---- */

/* Quotes the operation as Cassandra does: v = v + 1, m['a'] = 1. what: kind of column or type. */
static int refuse_operation(struct builder *b, const struct ast_assignment *a, const char *what) {
    const char *sign = a->op == ASSIGN_SUB || a->op == ASSIGN_PREPEND ? "-" : "+";
    struct buf text;
    buf_init(&text, 4096);
    buf_printf(&text, "Invalid operation (%s", a->column);
    if (a->op == ASSIGN_ELEMENT) {
        buf_put_str(&text, "[");
        ast_quote_expr(a->element, &text);
        buf_put_str(&text, "]");
    }
    if (a->op == ASSIGN_FIELD) buf_printf(&text, ".%s", a->field);
    buf_put_str(&text, " = ");
    if (a->op == ASSIGN_ADD || a->op == ASSIGN_SUB) buf_printf(&text, "%s %s ", a->column, sign);
    ast_quote_expr(a->value, &text);
    if (a->op == ASSIGN_PREPEND) buf_printf(&text, " %s %s", sign, a->column);
    buf_printf(&text, ") for %s %s", what, a->column);
    return err_set_buf(b->c->err, ERR_INVALID, &text);
}

static int bad_operation(struct builder *b, const struct ast_assignment *a, const char *what) {
    const char *column = condition_part_name(b->c, "%s column", what);
    return column ? refuse_operation(b, a, column) : -1;
}

static int set_value(struct builder *b, struct modify_op *op, const struct ast_expr *x, const char *name,
                     const struct cql_type *type) {
    struct receiver to = receiver_of(b->table, name, type);
    op->value_type = type;
    op->value = name ? term_compile(b->c, x, &to) : NULL;
    return op->value ? 0 : -1;
}

static int set_element(struct builder *b, struct modify_op *op, const struct ast_expr *x, const char *fmt,
                       const struct cql_type *type) {
    struct receiver to = receiver_of(b->table, condition_part_name(b->c, fmt, op->column->name), type);
    op->element = to.name ? term_compile(b->c, x, &to) : NULL;
    return op->element ? 0 : -1;
}

/* A value that is no map (+) or set of keys (-) has its own error text. */
static int map_operand(struct builder *b, const struct ast_assignment *a, struct modify_op *op,
                       const struct cql_type *type, const char *what) {
    if (set_value(b, op, a->value, op->column->name, type) == 0) return 0;
    struct buf text;
    buf_init(&text, 4096);
    buf_printf(&text, "Value for a map %s, but was: '", what);
    ast_quote_expr(a->value, &text);
    buf_u8(&text, '\'');
    err_clear(b->c->err);
    return err_set_buf(b->c->err, ERR_INVALID, &text);
}

static enum match fits_column(void *type, uint32_t i, const struct cql_type *t) {
    (void)i;
    return cql_type_eq(type, t) ? MATCH_EXACT : MATCH_NO;
}

static int find_field(struct builder *b, const struct schema_column *col, const char *field, uint16_t *out) {
    uint32_t at = cql_type_field(col->type, slice_str(field));
    *out = (uint16_t)at;
    if (at < col->type->n_args) return 0;
    return err_invalid(b->c->err, "UDT column %s does not have a field named %s", col->name, field);
}

static int update_add_or_subtract(struct builder *b, const struct ast_assignment *a, const struct schema_column *col) {
    const struct cql_type *t = col->type;
    bool add = a->op == ASSIGN_ADD;
    if (t->id == CQL_COUNTER) {
        struct modify_op *count = new_op(b, MODIFY_COUNT, col);
        count->negative = !add;
        return set_value(b, count, a->value, col->name, t);
    }
    bool single = !cql_type_is_collection(t) && t->id != CQL_UDT && t->id != CQL_TUPLE;
    if (single && add && b->plan->conditional && b->c->schema->cassandra_mode) {
        /* A statement with conditions may add to numbers and texts, because it reads the stored value
         * (Cassandra 5.0; 3.11 refuses it as an operation on a non-counter). */
        bool text = col->type->id == CQL_TEXT || col->type->id == CQL_ASCII;
        if (!text && !function_is_number(col->type)) return refuse_operation(b, a, "non-numeric and non-text type");
        struct modify_op *op = new_op(b, MODIFY_INCREASE, col);
        struct receiver to = receiver_of(b->table, col->name, col->type);
        struct function_args args = {.n = 2, .fits = fits_column, .arg = (void *)(uintptr_t)col->type};
        op->sum = function_operator(b->c, EXPR_ADD, &args, &to, false);
        return op->sum ? set_value(b, op, a->value, col->name, col->type) : -1;
    }
    if (!cql_type_is_collection(t))
        return bad_operation(b, a, add && (t->id == CQL_UDT || t->id == CQL_TUPLE) ? "tuple" : "non counter");
    if (!cql_type_is_multicell(t)) return bad_operation(b, a, "frozen collection");
    struct modify_op *op = new_op(b, add ? MODIFY_ADD : MODIFY_SUBTRACT, col);
    if (t->id != CQL_MAP) return set_value(b, op, a->value, col->name, t);
    if (add) return map_operand(b, a, op, t, "addition has to be a map");
    struct cql_type *keys = ARENA_NEW(b->c->arena, struct cql_type);
    if (!keys) return err_nomem(b->c->err);
    *keys = (struct cql_type){.id = CQL_SET, .n_args = 1, .args = t->args};
    return map_operand(b, a, op, keys, "substraction has to be a set");
}

static int update_assignment(struct builder *b, const struct ast_assignment *a) {
    const struct schema_column *col = find_column(b, a->column);
    if (!col) return -1;
    if (schema_column_is_key(col)) return err_invalid(b->c->err, "PRIMARY KEY part %s found in SET part", col->name);
    switch (a->op) {
    case ASSIGN_SET:
        if (set_value(b, new_op(b, MODIFY_SET, col), a->value, col->name, col->type)) return -1;
        if (col->type->id != CQL_COUNTER) return 0;
        return err_invalid(b->c->err,
            "Cannot set the value of counter column %s (counters can only be incremented/decremented, not set)",
            col->name);
    case ASSIGN_ADD: case ASSIGN_SUB: return update_add_or_subtract(b, a, col);
    case ASSIGN_PREPEND:
        if (col->type->id != CQL_LIST) return bad_operation(b, a, "non list");
        if (!cql_type_is_multicell(col->type)) return bad_operation(b, a, "frozen list");
        return set_value(b, new_op(b, MODIFY_PREPEND, col), a->value, col->name, col->type);
    case ASSIGN_ELEMENT: {
        const struct cql_type *t = col->type;
        if (!cql_type_is_collection(t)) return bad_operation(b, a, "non collection");
        if (!cql_type_is_multicell(t)) return bad_operation(b, a, "frozen collection");
        if (t->id == CQL_SET) return bad_operation(b, a, "set");
        bool map = t->id == CQL_MAP;
        struct modify_op *op = new_op(b, map ? MODIFY_PUT : MODIFY_LIST_SET, col);
        if (set_element(b, op, a->element, map ? "key(%s)" : "idx(%s)", map ? t->args[0] : cql_type_scalar(CQL_INT)))
            return -1;
        return set_value(b, op, a->value, condition_part_name(b->c, "value(%s)", col->name), t->args[map ? 1 : 0]);
    }
    case ASSIGN_FIELD: {
        uint16_t field;
        if (col->type->id != CQL_UDT) return bad_operation(b, a, "non-UDT");
        if (!cql_type_is_multicell(col->type)) return bad_operation(b, a, "frozen UDT");
        if (find_field(b, col, a->field, &field)) return -1;
        struct modify_op *op = new_op(b, MODIFY_FIELD, col);
        op->field = field;
        char *name = arena_printf(b->c->arena, "%s.%s", col->name, a->field);
        return name ? set_value(b, op, a->value, name, col->type->args[field]) : err_nomem(b->c->err);
    }
    }
    return -1;
}

int modify_compile_update(struct compile *c, const struct ast_stmt *stmt, struct cql_statement *out) {
    const struct ast_update *ast = &stmt->update;
    struct builder b;
    if (begin(&b, c, &ast->table, OP_UPDATE, ast->n_assignments, out)) return -1;
    struct modify_plan *p = b.plan;
    if (compile_attributes(&b, &ast->using, &ast->conditions)) return -1;
    for (uint32_t i = 0; i < ast->n_assignments; i++)
        if (update_assignment(&b, &ast->assignments[i])) return -1;
    if (sort_ops(c, p)) return -1;
    if (compile_where(&b, &ast->where, WHERE_UPDATE, out)) return -1;
    find_whole(p);
    return finish(&b);
}

/* ---- DELETE ---- */

int modify_compile_delete(struct compile *c, const struct ast_stmt *stmt, struct cql_statement *out) {
    const struct ast_delete *ast = &stmt->delete_;
    struct builder b;
    if (begin(&b, c, &ast->table, OP_DELETE, ast->n_deletions, out)) return -1;
    struct modify_plan *p = b.plan;
    if (compile_attributes(&b, &ast->using, &ast->conditions)) return -1;
    for (uint32_t i = 0; i < ast->n_deletions; i++) {
        const struct ast_deletion *d = &ast->deletions[i];
        const struct schema_column *col = find_column(&b, d->column);
        if (!col) return -1;
        if (schema_column_is_key(col))
            return err_invalid(c->err, "Invalid identifier %s for deletion (should not be a PRIMARY KEY part)",
                               col->name);
        const struct cql_type *t = col->type;
        if (d->element) {
            bool list = t->id == CQL_LIST;
            if (!cql_type_is_collection(t) || !cql_type_is_multicell(t))
                return err_invalid(c->err, "Invalid deletion operation for %s collection column %s",
                                   cql_type_is_collection(t) ? "frozen" : "non", col->name);
            struct modify_op *op = new_op(&b, list ? MODIFY_LIST_DELETE : MODIFY_DISCARD, col);
            const char *fmt = list ? "idx(%s)" : t->id == CQL_MAP ? "key(%s)" : "value(%s)";
            if (set_element(&b, op, d->element, fmt, list ? cql_type_scalar(CQL_INT) : t->args[0])) return -1;
        } else if (d->field) {
            uint16_t field;
            if (col->type->id != CQL_UDT)
                return err_invalid(c->err, "Invalid field deletion operation for non-UDT column %s", col->name);
            if (!cql_type_is_multicell(col->type))
                return err_invalid(c->err, "Frozen UDT column %s does not support field deletions", col->name);
            if (find_field(&b, col, d->field, &field)) return -1;
            new_op(&b, MODIFY_FIELD_DELETE, col)->field = field;
        } else {
            new_op(&b, MODIFY_DELETE, col);
        }
    }
    if (sort_ops(c, p)) return -1;
    return compile_where(&b, &ast->where, WHERE_DELETE, out) || finish(&b) ? -1 : 0;
}
