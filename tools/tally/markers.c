#include "tools/tally/markers.h"

#include <string.h>

#include "tools/tally/literal.h"
#include "tools/tally/script.h"
#include "tools/tally/world.h"

/* Whether the word, in any case or in quotes, is this name. */
static bool names_word(struct slice word, const char *name) {
    if (word.n > 1 && *word.p == '"') word = slice_of(word.p + 1, word.n - 2);
    return script_is_word(word, name);
}

/* Notes the marker that holds the whole list of an IN. */
static void find_list(struct markers *k, const struct ast_relation *r) {
    if (r->op == OP_IN && !r->in_list && r->value && r->value->kind == EXPR_BIND)
        k->list[r->value->bind].is_list = true;
}

/* The parser has the names of the markers in their order; the tokens give the places. */
static void find_places(struct slice text, const struct ast_stmt *tree, struct marker *list) {
    struct token_reader reader;
    struct err ignored = {0};
    struct token t, before = {0};
    token_reader_init(&reader, text, &ignored);
    for (uint32_t n = 0; n < tree->binds.n && (t = token_next(&reader)).code && t.code != T_ERROR; before = t) {
        const char *name = tree->binds.names[n];
        bool here = name ? slice_is(before.text, ":") && names_word(t.text, name) : slice_is(t.text, "?");
        const uint8_t *from = name ? before.text.p : t.text.p;
        if (here) list[n++].at = slice_of(from, (size_t)(t.text.p + t.text.n - from));
    }
}

int markers_unname(struct slice text, struct arena *a, struct slice *out, struct err *e) {
    struct err ignored = {0};
    const struct ast_stmt *tree = cql_parse(a, text, true, &ignored);
    struct marker *list = ARENA_ARRAY(a, tree ? tree->binds.n + 1 : 1, struct marker);
    struct buf unnamed;
    const uint8_t *at = text.p;
    *out = text;
    if (!list) return err_nomem(e);
    if (!tree) return 0;
    find_places(text, tree, list);
    buf_init(&unnamed, 0);
    for (uint32_t i = 0; i < tree->binds.n; i++) {
        buf_put(&unnamed, at, (size_t)(list[i].at.p - at));
        buf_u8(&unnamed, '?');
        at = list[i].at.p + list[i].at.n;
    }
    buf_put(&unnamed, at, (size_t)(text.p + text.n - at));
    *out = arena_dup(a, buf_slice(&unnamed));
    buf_fini(&unnamed);
    return out->p ? 0 : err_nomem(e);
}

int markers_find(struct slice text, struct arena *a, struct markers *k, struct err *e) {
    const struct result_meta *binds = &cql_prepared_info(k->prepared)->binds;
    struct err why = {0};
    struct ast_stmt *tree = cql_parse(a, text, true, &why);
    if (!tree) return err_set(e, ERR_CONFIG, "%s", why.text);
    bool batch = tree->kind == STMT_BATCH;
    k->n = binds->n;
    k->n_statements = batch ? tree->batch.n : 1;
    k->list = ARENA_ARRAY(a, k->n + 1, struct marker);
    k->statements = ARENA_ARRAY(a, k->n_statements + 1, const struct ast_stmt *);
    if (!k->list || !k->statements) return err_nomem(e);
    find_places(text, tree, k->list);
    for (uint32_t i = 0; i < k->n; i++) k->list[i].bind = &binds->columns[i];
    for (uint32_t i = 0; i < k->n_statements; i++) {
        k->statements[i] = batch ? tree->batch.stmts[i] : tree;
        for (uint32_t m = 0; m < k->n; m++)
            if (k->list[m].at.p > k->statements[i]->source.p) k->list[m].statement = i;
        const struct ast_where *w = ast_where(k->statements[i]);
        const struct ast_conditions *conditions = ast_conditions(k->statements[i]);
        const struct ast_expr *json = k->statements[i]->kind == STMT_INSERT ? k->statements[i]->insert.json : NULL;
        if (json && json->kind == EXPR_BIND) k->list[json->bind].is_json = true;
        for (uint32_t c = 0; conditions && c < conditions->n; c++) find_list(k, conditions->relations[c]);
        for (uint32_t r = 0; w && r < w->n; r++) {
            find_list(k, w->relations[r]);
            for (uint32_t v = 0; w->relations[r]->in_list && v < w->relations[r]->n_values; v++) {
                const struct ast_expr *value = w->relations[r]->values[v];
                if (value->kind != EXPR_BIND) continue;
                k->list[value->bind].in_list = true;
                k->list[value->bind].element = v;
            }
        }
    }
    return 0;
}

static bool names_column(const struct schema_table *t, struct slice word, enum schema_column_kind kind) {
    for (uint32_t i = 0; i < t->n_columns; i++)
        if (t->columns[i].kind == kind && names_word(word, t->columns[i].name)) return true;
    return false;
}

bool markers_use_statics(struct slice text, const struct markers *k, const struct schema_table *t) {
    struct token_reader r;
    struct err ignored = {0};
    token_reader_init(&r, text, &ignored);
    for (struct token x; (x = token_next(&r)).code && x.code != T_ERROR;)
        if (slice_is(x.text, "*") || names_column(t, x.text, COLUMN_STATIC)) return true;
    for (uint32_t i = 0; i < k->n_statements; i++) {
        const struct ast_stmt *one = k->statements[i];
        if (one->kind == STMT_INSERT && one->insert.json) return true;
        if (one->kind != STMT_DELETE || one->delete_.n_deletions) continue;
        const struct ast_where *w = &one->delete_.where;
        bool of_partition = true;
        for (uint32_t n = 0; n < w->n; n++)
            for (uint32_t c = 0; c < w->relations[n]->n_lhs; c++)
                if (names_column(t, slice_str(w->relations[n]->lhs[c]), COLUMN_CLUSTERING)) of_partition = false;
        if (of_partition) return true;
    }
    return false;
}

/* ---- made-up values ---- */

/* The JSON of INSERT JSON: the key, whose values are strings, which every type takes. Its last column
 * is made of the number. */
static int put_json(const struct schema_table *t, const struct literal_spec *spec, uint64_t number, struct buf *out,
                    struct err *e) {
    struct buf value;
    int rc = 0;
    buf_init(&value, 0);
    buf_put_str(out, "'{");
    for (uint32_t i = 0, n = t->n_partition_key + t->n_clustering; !rc && i < n; i++) {
        buf_clear(&value, SIZE_MAX);
        rc = literal_make(&value, t->columns[i].type, spec, LITERAL_ORDERED, i + 1 == n ? number : 1,
                          t->columns[i].name, e);
        struct slice v = buf_slice(&value);
        if (v.n > 1 && *v.p == '\'') v = slice_of(v.p + 1, v.n - 2);
        buf_printf(out, "%s\"%s\": \"%.*s\"", i ? ", " : "", t->columns[i].name, SLICE_FMT(v));
    }
    buf_put_str(out, "}'");
    buf_fini(&value);
    return rc;
}

/* The place in the key of the marker's column, from 1; 0 if it has none. */
static uint32_t place_in_key(const struct schema_table *t, const struct marker *m) {
    const struct schema_column *c = m->is_json ? NULL : schema_column_find(t, m->bind->name);
    return c && schema_column_is_key(c) ? (uint32_t)(c - t->columns) + 1 : 0;
}

/* The number from which the marker's value is made. Statements of a batch write rows that differ in the last column
 * of the key that has a marker, and a name has one value. */
static uint64_t number_of(const struct schema_table *t, const struct markers *k, const struct marker *m) {
    if (k->n_statements == 1) return 1 + m->element; /* the elements of a list differ */
    const struct marker *first = k->list;
    while (*m->at.p == ':' && !slice_eq(first->at, m->at)) first++;
    if (*m->at.p == ':') return 1 + first->statement;
    uint32_t place = place_in_key(t, m);
    bool last = place || m->is_json;
    for (uint32_t i = 0; last && i < k->n; i++)
        last = k->list[i].statement != m->statement || place_in_key(t, &k->list[i]) <= place;
    return last ? 1 + m->statement : 1;
}

static int put_value(const struct schema *schema, const struct markers *k, const struct marker *m, struct buf *out,
                     struct err *e) {
    static const struct literal_spec spec = {.has_size = true, .size_low = MADE_UP_BYTES, .size_high = MADE_UP_BYTES,
                                             .has_elements = true, .elements_low = 1, .elements_high = 1};
    const struct schema_table *t = schema_table_find(schema, m->bind->keyspace, m->bind->table, e);
    if (!t) return -1;
    uint64_t number = number_of(t, k, m);
    if (m->is_json) return put_json(t, &spec, number, out, e);
    bool list = m->is_list && m->bind->type->n_args;
    if (list) buf_u8(out, '(');
    int rc = literal_make(out, list ? m->bind->type->args[0] : m->bind->type, &spec, LITERAL_ORDERED, number,
                          m->bind->name, e);
    if (list) buf_u8(out, ')');
    return rc;
}

bool markers_are_in(struct slice text, struct arena *a) {
    struct err ignored = {0};
    const struct ast_stmt *tree = cql_parse(a, text, true, &ignored);
    return tree && tree->binds.n > 0;
}

int markers_fill(struct world *w, struct slice text, struct arena *a, struct slice *out, bool *made_up,
                 struct err *e) {
    struct markers k = {0};
    struct buf filled;
    const uint8_t *at = text.p;
    *out = text;
    *made_up = markers_are_in(text, a);
    if (!*made_up) return 0;
    if (!(k.prepared = world_markers(w, text, e))) return -1;
    buf_init(&filled, 0);
    const struct schema *schema = world_schema(w);
    int rc = markers_find(text, a, &k, e);
    for (uint32_t i = 0; !rc && i < k.n; i++) {
        buf_put(&filled, at, (size_t)(k.list[i].at.p - at));
        rc = put_value(schema, &k, &k.list[i], &filled, e);
        at = k.list[i].at.p + k.list[i].at.n;
    }
    buf_put(&filled, at, (size_t)(text.p + text.n - at));
    *out = arena_dup(a, buf_slice(&filled));
    if (!rc && !out->p) rc = err_nomem(e);
    buf_fini(&filled);
    cql_prepared_unref(k.prepared);
    schema_unref(schema);
    return rc;
}
