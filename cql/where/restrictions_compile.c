/* Compiles the relations of WHERE to a plan: some seek, some filter, some are refused. */
#include "cql/where/restrictions.h"

#include "cql/expr/selector.h"

#define FILTERING_NEEDED \
    "Cannot execute this query as it might involve data filtering and thus may have unpredictable performance. If " \
    "you " \
    "want to execute this query despite the performance unpredictability, use ALLOW FILTERING"

/* State of one compilation. */
struct where_builder {
    struct compile *c;
    const struct schema_table *table;
    const struct where_options *o;
    struct where_plan *plan;
    struct where_step **by_ordinal; /* the step that holds a column, by ordinal */
    uint32_t n_steps;
    struct where_step **steps; /* in order of appearance, merged */
    struct where_step *last_clustering;
};

static const char *const purposes[] = {[WHERE_SELECT] = "SELECT", [WHERE_UPDATE] = "UPDATE", [WHERE_DELETE] = "DELETE"};

static const struct cql_type *make_type(struct compile *c, enum cql_type_id id, const struct cql_type *const *args,
                                        uint32_t n) {
    struct cql_type *t = ARENA_NEW(c->arena, struct cql_type);
    const struct cql_type **copy = ARENA_ARRAY(c->arena, n, const struct cql_type *);
    if (!t || !copy) return NULL;
    for (uint32_t i = 0; i < n; i++) copy[i] = args[i];
    *t = (struct cql_type){.id = id, .frozen = id == CQL_TUPLE, .n_args = n, .args = copy};
    return t;
}

/* "(c,d)" and its tuple type; for one column its own name and type. */
static int lhs_receiver(struct where_builder *b, const struct where_step *s, bool in, struct receiver *out) {
    struct buf name;
    buf_init(&name, 0);
    if (in) buf_put_str(&name, s->tuple ? "in" : "in(");
    if (s->tuple) buf_u8(&name, '(');
    const struct cql_type *types[s->n_columns];
    for (uint32_t i = 0; i < s->n_columns; i++) {
        buf_printf(&name, "%s%s", i ? "," : "", s->columns[i]->name);
        types[i] = s->columns[i]->type;
    }
    if (s->tuple || in) buf_u8(&name, ')');
    struct slice text = arena_take(b->c->arena, &name);
    const struct cql_type *type = s->tuple ? make_type(b->c, CQL_TUPLE, types, s->n_columns) : types[0];
    if (in && type) type = make_type(b->c, CQL_LIST, &type, 1);
    if (!text.p || !type) return err_nomem(b->c->err);
    *out = receiver_of(b->table, (const char *)text.p, type);
    return 0;
}

/* In (?, ?) on the right of a tuple relation each marker is for its own column. */
static struct term *compile_value(struct where_builder *b, const struct where_step *s, const struct ast_expr *x) {
    struct receiver to = receiver_of(b->table, s->columns[0]->name, s->columns[0]->type);
    if (s->tuple && lhs_receiver(b, s, false, &to)) return NULL;
    if (!s->tuple || x->kind != EXPR_TUPLE) return term_compile(b->c, x, &to);
    if (x->n_args != s->n_columns) {
        struct buf text;
        buf_init(&text, 4096);
        buf_printf(&text, "Expected %u elements in value tuple, but got %u: ", s->n_columns, x->n_args);
        ast_quote_expr(x, &text);
        return err_null(err_set_buf(b->c->err, ERR_INVALID, &text));
    }
    /* Each value is compiled alone first, so that an error names its column. */
    for (uint32_t i = 0; i < x->n_args; i++) {
        struct receiver item = receiver_of(b->table, s->columns[i]->name, s->columns[i]->type);
        if (!term_compile(b->c, x->args[i], &item)) return NULL;
    }
    struct term *t = term_compile(b->c, x, &to);
    for (uint32_t i = 0; t && i < x->n_args; i++) {
        if (x->args[i]->kind != EXPR_BIND) continue;
        b->c->binds->specs[x->args[i]->bind].name = s->columns[i]->name;
    }
    return t;
}

static int refuse_not_equal(struct where_builder *b, const struct ast_relation *rel) {
    struct buf text;
    bool list = rel->kind != REL_COLUMN;
    buf_init(&text, 4096);
    buf_put_str(&text, "Unsupported \"!=\" relation: ");
    if (list) buf_put_str(&text, rel->kind == REL_TOKEN ? "token(" : "(");
    for (uint32_t i = 0; i < rel->n_lhs; i++) buf_printf(&text, "%s%s", i ? ", " : "", rel->lhs[i]);
    if (list) buf_put_str(&text, ")");
    if (rel->element) {
        buf_put_str(&text, "[");
        ast_quote_expr(rel->element, &text);
        buf_put_str(&text, "]");
    }
    buf_put_str(&text, " != ");
    ast_quote_expr(rel->value, &text);
    return err_set_buf(b->c->err, ERR_INVALID, &text);
}

static int check_slice(struct where_builder *b, const struct schema_column *col, enum ast_op op) {
    bool range = op == OP_LT || op == OP_LTE || op == OP_GT || op == OP_GTE;
    if (!range || !cql_type_contains(col->type, CQL_DURATION)) return 0;
    if (col->type->id == CQL_DURATION)
        return err_invalid(b->c->err, "Slice restrictions are not supported on duration columns");
    const char *what = col->type->id == CQL_TUPLE ? "tuples" : col->type->id == CQL_UDT ? "UDTs" : "collections";
    return err_invalid(b->c->err, "Slice restrictions are not supported on %s containing durations", what);
}

static int check_operator(struct where_builder *b, const struct schema_column *col, enum ast_op op) {
    if (check_slice(b, col, op)) return -1;
    if (!cql_type_is_multicell(col->type)) return 0;
    struct buf text;
    buf_init(&text, 4096);
    buf_printf(&text, "%s column '%s' (", col->type->id == CQL_UDT ? "Non-frozen UDT" : "Collection", col->name);
    cql_type_print(col->type, &text);
    if (col->type->id == CQL_UDT) buf_put_str(&text, ") cannot be restricted by any relation");
    else buf_printf(&text, ") cannot be restricted by a '%s' relation", ast_op_text(op));
    return err_set_buf(b->c->err, ERR_INVALID, &text);
}

static int compile_element(struct where_builder *b, struct where_step *s, const struct ast_relation *rel) {
    const struct schema_column *col = s->columns[0];
    struct err *e = b->c->err;
    s->kind = STEP_ELEMENT;
    if (check_slice(b, col, rel->op)) return -1;
    if (col->type->id == CQL_LIST)
        return err_invalid(e, "Indexes on list entries (%s[index] = value) are not currently supported.", col->name);
    if (col->type->id != CQL_MAP) return err_invalid(e, "Column %s cannot be used as a map", col->name);
    if (rel->op != OP_EQ) return err_invalid(e, "Only EQ relations are supported on map entries");
    if (!cql_type_is_multicell(col->type))
        return err_invalid(e, "Map-entry equality predicates on frozen map column %s are not supported", col->name);
    const char *key = arena_printf(b->c->arena, "key(%s)", col->name),
               *value = arena_printf(b->c->arena, "value(%s)", col->name);
    if (!key || !value) return err_nomem(e);
    struct receiver to_key = receiver_of(b->table, key, col->type->args[0]),
                    to_value = receiver_of(b->table, value, col->type->args[1]);
    s->element = term_compile(b->c, rel->element, &to_key);
    s->term = s->element ? term_compile(b->c, rel->value, &to_value) : NULL;
    return s->term ? 0 : -1;
}

static int compile_in(struct where_builder *b, struct where_step *s, const struct ast_relation *rel) {
    s->kind = STEP_IN;
    if (!rel->in_list) {
        struct receiver to;
        if (lhs_receiver(b, s, true, &to)) return -1;
        s->list = term_compile(b->c, rel->value, &to);
        return s->list ? 0 : -1;
    }
    if (rel->n_values == 1) { /* counts as =: it pages with ORDER BY, and conditional statements accept it */
        s->kind = STEP_EQ;
        s->term = compile_value(b, s, rel->values[0]);
        return s->term ? 0 : -1;
    }
    s->n_values = rel->n_values;
    s->values = ARENA_ARRAY(b->c->arena, rel->n_values + 1, struct term *);
    if (!s->values) return err_nomem(b->c->err);
    for (uint32_t i = 0; i < rel->n_values; i++) {
        s->values[i] = compile_value(b, s, rel->values[i]);
        if (!s->values[i]) return -1;
    }
    return 0;
}

static int compile_step(struct where_builder *b, struct where_step *s, const struct ast_relation *rel) {
    if (rel->element) return compile_element(b, s, rel);
    switch (rel->op) {
    case OP_CONTAINS: case OP_CONTAINS_KEY: {
        const struct schema_column *col = s->columns[0];
        bool key = rel->op == OP_CONTAINS_KEY;
        s->kind = key ? STEP_CONTAINS_KEY : STEP_CONTAINS;
        if (!cql_type_is_collection(col->type))
            return err_invalid(b->c->err, "Cannot use %s on non-collection column %s", ast_op_text(rel->op), col->name);
        if (key && col->type->id != CQL_MAP)
            return err_invalid(b->c->err, "Cannot use CONTAINS KEY on non-map column %s", col->name);
        const char *name = arena_printf(b->c->arena, "%s(%s)", key ? "key" : "value", col->name);
        if (!name) return err_nomem(b->c->err);
        struct receiver to = receiver_of(b->table, name, col->type->args[key || col->type->id != CQL_MAP ? 0 : 1]);
        s->term = term_compile(b->c, rel->value, &to);
        return s->term ? 0 : -1;
    }
    case OP_EQ: case OP_IN: case OP_LT: case OP_LTE: case OP_GT: case OP_GTE: break;
    default: {
        const char *name = s->columns[0]->name, *op = ast_op_text(rel->op);
        bool like = rel->op == OP_LIKE;
        if (rel->op == OP_IS_NOT_NULL) return err_invalid(b->c->err, "Unsupported restriction: %s IS NOT NULL", name);
        if (like && (check_operator(b, s->columns[0], rel->op) || !compile_value(b, s, rel->value))) return -1;
        struct buf text;
        buf_init(&text, 4096);
        if (like) buf_printf(&text, "LIKE restriction is only supported on properly indexed columns. %s LIKE ", name);
        else buf_printf(&text, "Unsupported \"%s\" relation: %s %s ", op, name, op);
        if (rel->value) ast_quote_expr(rel->value, &text);
        if (like) buf_put_str(&text, " is not valid.");
        return err_set_buf(b->c->err, ERR_INVALID, &text);
    }
    }
    if (rel->field) return err_invalid(b->c->err, "Unsupported restriction: %s.%s", s->columns[0]->name, rel->field);
    if (!s->tuple && check_operator(b, s->columns[0], rel->op)) return -1;
    if (rel->op == OP_IN) return compile_in(b, s, rel);
    struct term *value = compile_value(b, s, rel->value);
    s->kind = rel->op == OP_EQ ? STEP_EQ : STEP_RANGE;
    if (!value) return -1;
    const struct where_bound bound = {.term = value, .n = s->n_columns, .tuple = s->tuple,
                                      .inclusive = rel->op == OP_GTE || rel->op == OP_LTE};
    if (rel->op == OP_EQ) s->term = value;
    else if (rel->op == OP_LT || rel->op == OP_LTE) s->to = bound;
    else s->from = bound;
    return 0;
}

/* ---- merging relations of the same columns ---- */

static int merge_refused(struct where_builder *b, const struct where_step *s, const char *format_start,
                         const char *format_end) {
    struct buf text;
    buf_init(&text, 4096);
    buf_put_str(&text, format_start);
    for (uint32_t i = 0; i < s->n_columns; i++) buf_printf(&text, "%s%s", i ? ", " : "", s->columns[i]->name);
    buf_put_str(&text, format_end);
    return err_set_buf(b->c->err, ERR_INVALID, &text);
}

static int merge_step(struct where_builder *b, struct where_step *old, struct where_step *s) {
    bool old_contains = old->kind >= STEP_CONTAINS, new_contains = s->kind >= STEP_CONTAINS;
    if (old_contains && new_contains) {
        s->next = old->next;
        old->next = s;
        return 0;
    }
    const struct where_step *shown = s->n_columns < old->n_columns ? s : old;
    if (old->kind == STEP_EQ)
        return merge_refused(b, shown, "", " cannot be restricted by more than one relation if it includes an Equal");
    if (old->kind == STEP_IN)
        return merge_refused(b, shown, "", " cannot be restricted by more than one relation if it includes a IN");
    if (old->kind == STEP_RANGE && s->kind != STEP_RANGE)
        return merge_refused(b, shown, b->plan->token == old ? "Columns \"" : "Column \"",
                             "\" cannot be restricted by both an equality and an inequality relation");
    if (old_contains)
        return merge_refused(b, shown, "Collection column ",
                             " can only be restricted by CONTAINS, CONTAINS KEY, or map-entry equality");
    if (old->columns[0] != s->columns[0])
        return err_invalid(b->c->err,
                           "Column \"%s\" cannot be restricted by two inequalities not starting with the same column",
                           (old->columns[0]->position > s->columns[0]->position ? old : s)->columns[0]->name);
    if (old->from.term && s->from.term)
        return merge_refused(b, shown, "More than one restriction was found for the start bound on ", "");
    if (old->to.term && s->to.term)
        return merge_refused(b, shown, "More than one restriction was found for the end bound on ", "");
    if (s->from.term) old->from = s->from;
    if (s->to.term) old->to = s->to;
    /* When bounds differ in width, that of one column counts as a tuple of one (where_bound.n). */
    if (old->tuple != s->tuple || s->n_columns > old->n_columns) old->tuple = true;
    if (s->n_columns > old->n_columns) {
        old->columns = s->columns;
        old->n_columns = s->n_columns;
    }
    return 0;
}

/* Without filtering, clustering columns are restricted from the left, a range last. */
static int check_clustering_order(struct where_builder *b, const struct where_step *s) {
    const struct where_step *last = b->last_clustering;
    if (!last || b->o->allow_filtering || b->o->virtual_table) return 0;
    const struct schema_column *a = last->columns[0], *z = s->columns[0];
    if (last->kind == STEP_RANGE && z->position > a->position)
        return err_invalid(b->c->err,
                           "Clustering column \"%s\" cannot be restricted (preceding column \"%s\" is restricted by a "
                           "non-EQ relation)", z->name, a->name);
    if (z->position >= a->position || s->kind != STEP_RANGE) return 0;
    const struct schema_column *next = z; /* the first restricted column after z; a is one */
    do next = schema_clustering(b->table, next->position + 1);
    while (!b->by_ordinal[next->ordinal]);
    return err_invalid(b->c->err,
                       "PRIMARY KEY column \"%s\" cannot be restricted (preceding column \"%s\" is restricted by a "
                       "non-EQ relation)", next->name, z->name);
}

/* ---- the kinds of relation ---- */

static int tuple_refused(struct where_builder *b, const struct ast_relation *rel, const char *start) {
    struct buf text;
    buf_init(&text, 4096);
    buf_printf(&text, "%s: (", start);
    for (uint32_t i = 0; i < rel->n_lhs; i++) buf_printf(&text, "%s%s", i ? ", " : "", rel->lhs[i]);
    buf_printf(&text, ") %s ", ast_op_text(rel->op));
    if (rel->in_list) buf_u8(&text, '(');
    for (uint32_t i = 0; rel->in_list && i < rel->n_values; i++) {
        if (i) buf_put_str(&text, ", ");
        ast_quote_expr(rel->values[i], &text);
    }
    if (rel->in_list) buf_u8(&text, ')');
    else if (rel->value) ast_quote_expr(rel->value, &text);
    return err_set_buf(b->c->err, ERR_INVALID, &text);
}

/* Checks col, the next column of a tuple relation, against the columns before it. */
static int check_tuple_column(struct where_builder *b, const struct where_step *s, const struct schema_column *col,
                              const struct ast_relation *rel) {
    if (col->kind != COLUMN_CLUSTERING)
        return err_invalid(b->c->err,
                           "Multi-column relations can only be applied to clustering columns but was applied to: %s",
                           col->name);
    for (uint32_t k = 0; k < s->n_columns; k++) {
        if (s->columns[k] != col) continue;
        const char *start = arena_printf(b->c->arena, "Column \"%s\" appeared twice in a relation", col->name);
        return start ? tuple_refused(b, rel, start) : err_nomem(b->c->err);
    }
    if (s->n_columns && col->position != s->columns[s->n_columns - 1]->position + 1)
        return tuple_refused(b, rel,
                             "Clustering columns must appear in the PRIMARY KEY order in multi-column relations");
    return 0;
}

static int add_token(struct where_builder *b, struct where_step *s, const struct ast_relation *rel) {
    const struct schema_table *t = b->table;
    struct err *e = b->c->err;
    uint32_t keys = 0, repeated = 0;
    bool *seen = arena_zalloc(b->c->arena, t->n_columns); /* by ordinal */
    if (!seen) return err_nomem(e);
    for (uint32_t i = 0; i < s->n_columns; i++) {
        bool *again = &seen[s->columns[i] - t->columns];
        repeated += *again;
        keys += !*again && s->columns[i]->kind == COLUMN_PARTITION_KEY;
        *again = true;
    }
    if (keys < t->n_partition_key)
        return err_invalid(e, "The token() function must be applied to all partition key components or none of them");
    if (repeated) return err_invalid(e, "The token() function contains duplicate partition key components");
    if (s->n_columns > keys) return err_invalid(e, "The token() function must contains only partition key components");
    for (uint32_t i = 0; i < s->n_columns; i++) {
        if (s->columns[i]->position == i) continue;
        struct buf text;
        buf_init(&text, 4096);
        buf_put_str(&text, "The token function arguments must be in the partition key order: ");
        for (uint32_t k = 0; k < t->n_partition_key; k++)
            buf_printf(&text, "%s%s", k ? ", " : "", schema_partition_key(t, k)->name);
        return err_set_buf(e, ERR_INVALID, &text);
    }
    if (rel->op == OP_NEQ) return refuse_not_equal(b, rel);
    struct receiver to = receiver_of(b->table, "partition key token", ring_token_type(b->c->partitioner));
    struct term *value = rel->value ? term_compile(b->c, rel->value, &to) : NULL;
    if (e->set) return -1;
    struct where_bound bound = {.term = value, .n = 1, .inclusive = rel->op == OP_GTE || rel->op == OP_LTE};
    s->kind = STEP_RANGE;
    switch (rel->op) {
    case OP_EQ: s->kind = STEP_EQ, s->term = value; break;
    case OP_GT: case OP_GTE: s->from = bound; break;
    case OP_LT: case OP_LTE: s->to = bound; break;
    default: return err_invalid(e, "%s cannot be used with the token function", ast_op_text(rel->op));
    }
    if (b->plan->token) return merge_step(b, b->plan->token, s);
    b->plan->token = s;
    b->plan->has_token = true;
    b->plan->partitioner = b->c->partitioner;
    return 0;
}

static int add_relation(struct where_builder *b, const struct ast_relation *rel) {
    if (rel->kind == REL_CUSTOM) return err_invalid(b->c->err, "Custom index expressions are not supported yet.");
    if (rel->kind == REL_TUPLE && rel->op == OP_NEQ) return refuse_not_equal(b, rel);
    struct where_step *s = ARENA_NEW(b->c->arena, struct where_step);
    if (s) s->columns = ARENA_ARRAY(b->c->arena, rel->n_lhs + 1, const struct schema_column *);
    if (!s || !s->columns) return err_nomem(b->c->err);
    for (; s->n_columns < rel->n_lhs; s->n_columns++) {
        const struct schema_column *col = schema_column_find(b->table, rel->lhs[s->n_columns]);
        if (!col) return selector_undefined(b->c, b->table, rel->lhs[s->n_columns]);
        if (rel->kind == REL_TUPLE && check_tuple_column(b, s, col, rel)) return -1;
        s->columns[s->n_columns] = col;
    }
    if (rel->kind == REL_TOKEN) return add_token(b, s, rel);
    s->tuple = rel->kind == REL_TUPLE;
    if (rel->op == OP_NEQ) return refuse_not_equal(b, rel);
    if (compile_step(b, s, rel)) return -1;
    /* A relation on a column that is restricted already is merged into that column's step. */
    for (uint32_t i = 0; i < s->n_columns; i++) {
        struct where_step *old = b->by_ordinal[s->columns[i]->ordinal];
        if (!old) continue;
        if (merge_step(b, old, s)) return -1;
        for (uint32_t k = 0; k < old->n_columns; k++) b->by_ordinal[old->columns[k]->ordinal] = old;
        return 0;
    }
    if (s->columns[0]->kind == COLUMN_CLUSTERING) {
        if (check_clustering_order(b, s)) return -1;
        if (!b->last_clustering || s->columns[0]->position > b->last_clustering->columns[0]->position)
            b->last_clustering = s;
    }
    for (uint32_t i = 0; i < s->n_columns; i++) b->by_ordinal[s->columns[i]->ordinal] = s;
    b->steps[b->n_steps++] = s;
    return 0;
}

/* ---- from steps to a plan ---- */

static int missing_columns(struct where_builder *b, const char *start, uint32_t first, uint32_t n) {
    struct buf text;
    buf_init(&text, 4096);
    const char *lead = ": ";
    buf_put_str(&text, start);
    for (uint32_t i = first; i < first + n; i++) {
        if (b->by_ordinal[i]) continue;
        buf_printf(&text, "%s%s", lead, b->table->columns[i].name);
        lead = ", ";
    }
    return err_set_buf(b->c->err, ERR_INVALID, &text);
}

static int check_clustering_select(struct where_builder *b) {
    const struct schema_table *t = b->table;
    if (b->o->allow_filtering || b->o->virtual_table) return 0;
    uint32_t expected = 0;
    for (uint32_t i = 0; i < t->n_clustering; i++) {
        const struct where_step *s = b->by_ordinal[t->n_partition_key + i];
        if (!s) continue;
        if (s->kind >= STEP_CONTAINS)
            return err_invalid(b->c->err,
                "Clustering columns can only be restricted with CONTAINS with a secondary index or filtering");
        if (i != expected)
            return err_invalid(b->c->err,
                "PRIMARY KEY column \"%s\" cannot be restricted as preceding column \"%s\" is not restricted",
                schema_clustering(t, i)->name, schema_clustering(t, expected)->name);
        expected++;
    }
    return 0;
}

static int check_clustering_modify(struct where_builder *b) {
    const struct schema_table *t = b->table;
    const char *what = purposes[b->o->purpose];
    bool any = false, range = false;
    for (uint32_t i = 0; i < t->n_clustering; i++) {
        const struct where_step *s = b->by_ordinal[t->n_partition_key + i];
        any = any || s;
        range = range || (s && s->kind == STEP_RANGE);
    }
    if (b->o->only_statics && any)
        return err_invalid(b->c->err,
            "Invalid restrictions on clustering columns since the %s statement modifies only static columns", what);
    if (b->o->whole_rows && !b->o->conditional) return check_clustering_select(b);
    if (range && b->o->purpose == WHERE_UPDATE)
        return err_invalid(b->c->err, "Slice restrictions are not supported on the clustering columns in %s statements",
                           what);
    if (b->o->purpose == WHERE_UPDATE && !b->o->only_statics && b->plan->rows != WHERE_ROW_KEYS)
        return missing_columns(b, "Some clustering keys are missing", t->n_partition_key, t->n_clustering);
    bool of_columns = b->o->purpose == WHERE_DELETE && !b->o->whole_rows && !b->o->only_statics;
    return of_columns ? check_clustering_select(b) : 0;
}

static int plan_filters(struct where_builder *b) {
    struct where_plan *w = b->plan;
    struct buf others;
    buf_init(&others, 4096);
    for (uint32_t i = 0; i < b->n_steps; i++) {
        struct where_step *s = b->steps[i];
        enum schema_column_kind kind = s->columns[0]->kind;
        if (kind == COLUMN_REGULAR || kind == COLUMN_STATIC)
            buf_printf(&others, "%s%s", others.n ? ", " : "", s->columns[0]->name);
        bool seeks = kind == COLUMN_PARTITION_KEY;
        for (uint32_t k = 0; k < w->n_clustering_steps; k++) seeks = seeks || w->clustering_steps[k] == s;
        if (seeks && w->partitions != WHERE_TOKENS) continue;
        w->filters[w->n_filters++] = s;
        w->filters_rows = w->filters_rows || kind == COLUMN_CLUSTERING || kind == COLUMN_REGULAR;
    }
    int rc = 0;
    bool refused = w->n_filters && !b->o->allow_filtering && !b->o->virtual_table;
    if (b->o->purpose != WHERE_SELECT && others.n)
        rc = err_invalid(b->c->err, "Non PRIMARY KEY columns found in where clause: %.*s ",
                         SLICE_FMT(buf_slice(&others)));
    else if (refused && others.n)
        rc = err_invalid(b->c->err, "%s", FILTERING_NEEDED);
    else if (refused)
        w->needs_filtering = true;
    buf_fini(&others);
    return rc;
}

/* Whether the steps are one = per column. */
static bool are_equal(struct where_step *const *steps, uint32_t n, uint32_t columns) {
    bool equal = n == columns;
    for (uint32_t i = 0; equal && i < n; i++)
        equal = steps[i]->kind == STEP_EQ && !steps[i]->tuple && steps[i]->n_columns == 1;
    return equal;
}

static int plan_partition(struct where_builder *b) {
    const struct schema_table *t = b->table;
    struct where_plan *w = b->plan;
    uint32_t restricted = 0, exact = 0;
    for (uint32_t i = 0; i < t->n_partition_key; i++) {
        struct where_step *s = b->by_ordinal[i];
        w->partition_steps[i] = s;
        restricted += s != NULL;
        exact += s && (s->kind == STEP_EQ || s->kind == STEP_IN);
        if (s && s->kind == STEP_IN) w->partition_in = true;
    }
    w->keyless = !restricted && !w->token;
    w->partitions = exact == t->n_partition_key && !b->o->virtual_table ? WHERE_KEYS : WHERE_TOKENS;
    if (b->o->purpose != WHERE_SELECT) {
        if (w->token)
            return err_invalid(b->c->err, "The token function cannot be used in WHERE clauses for %s statements",
                               purposes[b->o->purpose]);
        if (restricted < t->n_partition_key)
            return missing_columns(b, "Some partition key parts are missing", 0, t->n_partition_key);
        if (exact < restricted)
            return err_invalid(b->c->err,
                               "Only EQ and IN relation are supported on the partition key (unless you use the token() "
                               "function) for %s statements", purposes[b->o->purpose]);
    }
    if (restricted && w->partitions == WHERE_TOKENS && !b->o->allow_filtering && !b->o->virtual_table)
        return err_invalid(b->c->err, "%s", FILTERING_NEEDED);
    return 0;
}

static int finish_plan(struct where_builder *b) {
    const struct schema_table *t = b->table;
    struct where_plan *w = b->plan;
    if (plan_partition(b)) return -1;
    /* Finds the clustering columns that seek: = and IN from the left, then one range. */
    uint32_t at = 0;
    bool range = false;
    while (at < t->n_clustering && !range) {
        struct where_step *s = b->by_ordinal[t->n_partition_key + at];
        if (!s || s->kind > STEP_RANGE || s->columns[0]->position != at) break;
        w->clustering_steps[w->n_clustering_steps++] = s;
        range = s->kind == STEP_RANGE;
        w->clustering_in = w->clustering_in || s->kind == STEP_IN;
        at += s->n_columns;
    }
    w->rows = at == 0 && t->n_clustering        ? WHERE_ALL_ROWS
              : at == t->n_clustering && !range ? WHERE_ROW_KEYS
                                                : WHERE_SLICES;
    bool select = b->o->purpose == WHERE_SELECT;
    if (select && b->o->only_statics && b->last_clustering)
        return err_invalid(b->c->err, "Cannot restrict clustering columns when selecting only static columns");
    if (select ? check_clustering_select(b) : check_clustering_modify(b)) return -1;
    if (w->partitions == WHERE_TOKENS) {
        /* On a range of tokens every row is read (and charged), so clustering relations filter. */
        w->n_clustering_steps = 0;
        w->rows = WHERE_ALL_ROWS;
    }
    w->one_row = w->partitions == WHERE_KEYS && w->rows == WHERE_ROW_KEYS && !w->token &&
                 are_equal(w->partition_steps, t->n_partition_key, t->n_partition_key) &&
                 are_equal(w->clustering_steps, w->n_clustering_steps, t->n_clustering);
    if (plan_filters(b)) return -1;
    /* A driver can route the statement when bind markers alone give the whole partition key. */
    w->pk_binds = ARENA_ARRAY(b->c->arena, t->n_partition_key, uint16_t);
    if (!w->pk_binds) return err_nomem(b->c->err);
    for (uint32_t i = 0; i < t->n_partition_key; i++) {
        const struct where_step *s = b->by_ordinal[i];
        const struct term *value = !s                                  ? NULL
                                   : s->kind == STEP_EQ                ? s->term
                                   : s->kind == STEP_IN && s->n_values ? s->values[s->n_values - 1]
                                                                       : NULL;
        int32_t bind = value ? term_bind_index(value) : -1;
        if (bind < 0) return 0;
        w->pk_binds[i] = (uint16_t)bind;
    }
    w->n_pk_binds = t->n_partition_key;
    return 0;
}

int where_refuse_filtering(struct compile *c) { return err_invalid(c->err, "%s", FILTERING_NEEDED); }

struct where_plan *where_compile(struct compile *c, const struct schema_table *t, const struct ast_where *where,
                                 const struct where_options *o) {
    struct where_plan *w = ARENA_NEW(c->arena, struct where_plan);
    struct where_builder b = {.c = c, .table = t, .o = o, .plan = w};
    uint32_t n = where ? where->n : 0;
    b.by_ordinal = ARENA_ARRAY(c->arena, t->n_columns, struct where_step *);
    b.steps = ARENA_ARRAY(c->arena, n + 1, struct where_step *);
    if (w) {
        w->table = t;
        w->partition_steps = ARENA_ARRAY(c->arena, t->n_partition_key, struct where_step *);
        w->clustering_steps = ARENA_ARRAY(c->arena, t->n_clustering + 1, struct where_step *);
        w->filters = ARENA_ARRAY(c->arena, n + 1, struct where_step *);
    }
    if (!w || !b.by_ordinal || !b.steps || !w->partition_steps || !w->clustering_steps || !w->filters)
        return err_null(err_nomem(c->err));
    for (uint32_t i = 0; i < n; i++)
        if (add_relation(&b, where->relations[i])) return NULL;
    return finish_plan(&b) ? NULL : w;
}

void where_columns(const struct where_plan *w, bool *wanted) {
    for (uint32_t i = 0; i < w->n_filters; i++)
        for (uint32_t k = 0; k < w->filters[i]->n_columns; k++) wanted[w->filters[i]->columns[k]->ordinal] = true;
}
