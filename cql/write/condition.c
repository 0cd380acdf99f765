#include "cql/write/condition.h"

#include "cql/row/cell_form.h"
#include "cql/request/request.h"
#include "cql/where/restrictions.h"
#include "cql/write/multicell.h"

enum condition_access { WHOLE, ELEMENT, FIELD };

struct condition {
    const struct schema_column *column;
    enum condition_access access;
    uint16_t field;
    enum ast_op op;
    const struct cql_type *type; /* of the values compared: the column's, the element's or the field's */
    const struct term *element;
    bool in_marker;              /* IN ?: values[0] is a list */
    uint32_t n_values;
    const struct term **values;
};

const struct schema_column *condition_column(const struct condition *c) { return c->column; }

/* ---- compiling ---- */

const char *condition_part_name(struct compile *c, const char *fmt, const char *column) {
    char *s = arena_printf(c->arena, fmt, column);
    return s ? s : err_null(err_nomem(c->err));
}

/* Sets the access, the type compared and the name that bind markers get. */
static int compile_element(struct compile *c, const struct schema_table *t, const struct ast_relation *rel,
                           struct condition *out, const char **name) {
    const struct schema_column *col = out->column;
    if (!cql_type_is_collection(col->type))
        return err_invalid(c->err, "Invalid element access syntax for non-collection column %s", col->name);
    if (col->type->id == CQL_SET)
        return err_invalid(c->err, "Invalid element access syntax for set column %s", col->name);
    bool map = col->type->id == CQL_MAP;
    struct receiver key = receiver_of(t, condition_part_name(c, map ? "key(%s)" : "idx(%s)", col->name),
                                      map ? col->type->args[0] : cql_type_scalar(CQL_INT));
    *name = condition_part_name(c, "value(%s)", col->name);
    if (!key.name || !*name) return -1;
    out->access = ELEMENT;
    out->type = col->type->args[map ? 1 : 0];
    out->element = term_compile(c, rel->element, &key);
    return out->element ? 0 : -1;
}

static int compile_field(struct compile *c, const struct ast_relation *rel, struct condition *out, const char **name) {
    const struct schema_column *col = out->column;
    if (col->type->id != CQL_UDT)
        return err_invalid(c->err, "Invalid field access syntax for non-UDT column %s", col->name);
    uint32_t at = cql_type_field(col->type, slice_str(rel->field));
    if (at == col->type->n_args) return err_invalid(c->err, "Unknown field %s for column %s", rel->field, col->name);
    out->access = FIELD;
    out->field = (uint16_t)at;
    out->type = col->type->args[at];
    *name = arena_printf(c->arena, "%s.%s", col->name, rel->field);
    return *name ? 0 : err_nomem(c->err);
}

static int compile_values(struct compile *c, const struct ast_relation *rel, const struct receiver *to,
                          struct condition *out) {
    out->n_values = rel->op == OP_IN && rel->in_list ? rel->n_values : 1;
    out->values = ARENA_ARRAY(c->arena, out->n_values + 1, const struct term *);
    if (!out->values) return err_nomem(c->err);
    if (rel->op == OP_IN && rel->in_list) {
        for (uint32_t i = 0; i < rel->n_values; i++)
            if (!(out->values[i] = term_compile(c, rel->values[i], to))) return -1;
        return 0;
    }
    struct receiver one = *to;
    if (rel->op == OP_IN) {
        struct cql_type *list = ARENA_NEW(c->arena, struct cql_type);
        const struct cql_type **arg = ARENA_ARRAY(c->arena, 1, const struct cql_type *);
        if (!list || !arg) return err_nomem(c->err);
        arg[0] = to->type;
        *list = (struct cql_type){.id = CQL_LIST, .n_args = 1, .args = arg};
        one.type = list;
        one.name = condition_part_name(c, "in(%s)", to->name);
        if (!one.name) return -1;
        out->in_marker = true;
    }
    out->values[0] = term_compile(c, rel->value, &one);
    return out->values[0] ? 0 : -1;
}

struct condition *condition_compile(struct compile *c, const struct schema_table *t, const struct ast_relation *rel) {
    struct condition *out = ARENA_NEW(c->arena, struct condition);
    if (!out) return err_null(err_nomem(c->err));
    const char *name = rel->lhs[0];
    out->op = rel->op;
    out->column = schema_column_find(t, name);
    if (!out->column) return err_null(err_invalid(c->err, "Undefined column name %s in table %s.%s", name,
                                                  t->keyspace->name, t->name));
    if (schema_column_is_key(out->column))
        return err_null(err_invalid(c->err, "PRIMARY KEY column '%s' cannot have IF conditions", name));
    if (out->column->type->id == CQL_COUNTER)
        return err_null(err_invalid(c->err, "Conditions on counters are not supported"));
    if (rel->kind != REL_COLUMN || rel->op > OP_CONTAINS_KEY)
        return err_null(err_invalid(c->err, "Unsupported condition on column %s: %s", name, ast_op_text(rel->op)));
    out->type = out->column->type;
    if (rel->element && compile_element(c, t, rel, out, &name)) return NULL;
    if (rel->field && compile_field(c, rel, out, &name)) return NULL;
    if (rel->op == OP_CONTAINS || rel->op == OP_CONTAINS_KEY) {
        bool key = rel->op == OP_CONTAINS_KEY, map = out->column->type->id == CQL_MAP;
        if (!cql_type_is_collection(out->column->type) || (key && !map))
            return err_null(err_invalid(c->err, "Cannot use %s on non-%s column %s", ast_op_text(rel->op),
                                        cql_type_is_collection(out->column->type) ? "map" : "collection",
                                        out->column->name));
        out->type = out->column->type->args[map && !key ? 1 : 0];
        if (!(name = condition_part_name(c, key ? "key(%s)" : "value(%s)", out->column->name))) return NULL;
    }
    bool range = rel->op == OP_LT || rel->op == OP_LTE || rel->op == OP_GT || rel->op == OP_GTE;
    if (range && out->type->id == CQL_DURATION)
        return err_null(err_invalid(c->err, "Slice conditions ( %s ) are not supported on durations",
                                    ast_op_text(rel->op)));
    if (range && cql_type_contains(out->type, CQL_DURATION))
        return err_null(err_invalid(c->err, "Slice conditions are not supported on %s containing durations",
                                    cql_type_is_collection(out->type) ? "collections"
                                    : out->type->id == CQL_TUPLE      ? "tuples"
                                                                      : "UDTs"));
    struct receiver to = receiver_of(t, name, out->type);
    return compile_values(c, rel, &to, out) ? NULL : out;
}

/* ---- binding ---- */

int condition_bind(struct cql_run *r, struct bound_condition *out) {
    const struct condition *c = out->condition;
    if (c->access == ELEMENT && term_eval(c->element, &r->eval, &out->element)) return -1;
    struct cql_elems it = {.left = c->n_values};
    struct value v;
    if (c->in_marker) {
        if (term_eval(c->values[0], &r->eval, &v)) return -1;
        if (value_is_unset(v)) return err_invalid(r->err, "Invalid 'unset' value in condition");
        if (value_is_null(v)) return err_invalid(r->err, "Invalid null list in IN condition");
        const struct cql_type list = {.id = CQL_LIST, .n_args = 1, .args = &c->type};
        if (cql_elems_open(&list, value_slice(v), &it))
            return err_invalid(r->err, "Invalid list value in IN condition");
    }
    struct value *values = ARENA_ARRAY(r->arena, (size_t)it.left + 1, struct value);
    if (!values) return err_nomem(r->err);
    while (c->in_marker && cql_elems_next(&it, &v)) values[out->n_values++] = v;
    for (uint32_t i = 0; !c->in_marker && i < c->n_values; i++) {
        if (term_eval(c->values[i], &r->eval, &v)) return -1;
        if (value_is_unset(v) && c->op == OP_IN) continue;
        values[out->n_values++] = v;
    }
    out->values = values;
    return 0;
}

int condition_check_element(struct cql_run *r, const struct bound_condition *b) {
    const struct condition *c = b->condition;
    bool map = c->column->type->id == CQL_MAP;
    if (c->access != ELEMENT || (map && value_is_unset(b->element))) return 0; /* unset: no element */
    if (value_is_null(b->element))
        return err_invalid(r->err, "Invalid %s value for %s element access",
                           value_is_unset(b->element) ? "unset" : "null", map ? "map" : "list");
    return map || b->element.n == 4 ? 0 : err_invalid(r->err, "Invalid list index");
}

/* ---- matching ---- */

static struct value list_item(const struct cql_type *t, struct value list, uint32_t at) {
    struct cql_elems it;
    struct value item = value_null();
    if (value_is_null(list) || cql_elems_open(t, value_slice(list), &it)) return value_null();
    for (uint32_t i = 0; i <= at; i++)
        if (!cql_elems_next(&it, &item)) return value_null();
    return item;
}

/* The part of the column's value that is compared: the whole, a field or an element. */
static struct value part_of(const struct bound_condition *b, struct value whole) {
    const struct condition *c = b->condition;
    const struct cql_type *t = c->column->type;
    if (c->access == WHOLE) return whole;
    if (c->access == FIELD) return list_item(t, whole, c->field);
    if (value_is_unset(b->element)) return value_null();
    if (t->id != CQL_MAP) return list_item(t, whole, load_u32(b->element.p));
    struct cql_elems it;
    struct value k, v;
    if (value_is_null(whole) || cql_elems_open(t, value_slice(whole), &it)) return value_null();
    while (cql_elems_next(&it, &k) && cql_elems_next(&it, &v))
        if (cql_value_compare(t->args[0], value_slice(k), value_slice(b->element)) == 0) return v;
    return value_null();
}

static bool compare(const struct condition *c, enum ast_op op, struct value have, struct value want) {
    static const uint8_t none[4];
    if (value_is_null(want)) return value_is_null(have) == (op != OP_NEQ);
    /* A non-frozen collection without elements is null and compares as the empty one. */
    bool multicell = c->access == WHOLE && cql_type_is_multicell(c->type) && cql_type_is_collection(c->type);
    if (value_is_null(have) && multicell && (op == OP_EQ || op == OP_NEQ)) have = value_of(none, sizeof none);
    if (value_is_null(have)) return op == OP_NEQ;
    int d = cql_value_compare(c->type, value_slice(have), value_slice(want));
    switch (op) {
    case OP_NEQ: return d != 0;
    case OP_LT: return d < 0;
    case OP_LTE: return d <= 0;
    case OP_GT: return d > 0;
    case OP_GTE: return d >= 0;
    default: return d == 0;
    }
}

int condition_match(const struct bound_condition *b, struct cql_run *r, const struct eng_row *row) {
    const struct condition *c = b->condition;
    const struct cql_type *t = c->column->type;
    struct value whole = value_null();
    struct value first = b->n_values ? b->values[0] : value_null();
    struct err *e = r->err;
    uint32_t n;
    /* all earlier conditions held: after a false condition no fault is reported */
    if (c->access == ELEMENT && t->id == CQL_LIST && (int32_t)load_u32(b->element.p) < 0)
        return err_invalid(e, "Invalid negative list index %d", (int32_t)load_u32(b->element.p));
    if (value_is_unset(first)) return err_invalid(e, "Invalid 'unset' value in condition");
    if (b->n_values && c->op != OP_EQ && c->op != OP_NEQ && c->op != OP_IN) {
        const char *op = ast_op_text(c->op);
        if (value_is_null(first)) return err_invalid(e, "Invalid comparison with null for operator \"%s\"", op);
        bool whole_collection = c->op != OP_CONTAINS && c->op != OP_CONTAINS_KEY && c->access == WHOLE &&
                                cql_type_is_multicell(c->type) && cql_type_is_collection(c->type);
        const char *what = c->type->id == CQL_LIST ? "list" : c->type->id == CQL_SET ? "set" : "map";
        if (whole_collection && first.n >= 4 && load_u32(first.p) == 0)
            return err_invalid(e, "Invalid comparison with an empty %s for operator \"%s\"", what, op);
    }
    const struct eng_cell *cells = cells_of(row, c->column, &n);
    if (n && !cql_type_is_multicell(t)) whole = value_of_slice(cells[0].value);
    else if (n && cell_assemble(t, cells, n, r->arena, &whole, r->err)) return -1;
    if (c->op == OP_CONTAINS) return where_collection_has(t, whole, NULL, &b->values[0]);
    if (c->op == OP_CONTAINS_KEY) return where_collection_has(t, whole, &b->values[0], NULL);
    struct value have = part_of(b, whole);
    if (c->op != OP_IN) return compare(c, c->op, have, b->values[0]);
    for (uint32_t i = 0; i < b->n_values; i++)
        if (compare(c, OP_EQ, have, b->values[i])) return 1;
    return 0;
}
