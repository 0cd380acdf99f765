#include "tools/tally/capacity/markers.h"

#include "tools/tally/script.h"

int markers_find(const struct workload_statement *s, struct arena *a, struct markers *k, struct err *e) {
    const struct result_meta *binds = &cql_prepared_info(k->prepared)->binds;
    struct err why = {0};
    struct ast_stmt *tree = cql_parse(a, slice_str(s->text), &why);
    if (!tree) return err_set(e, ERR_CONFIG, "%s", why.text);
    bool batch = tree->kind == STMT_BATCH;
    k->n = binds->n;
    k->n_statements = batch ? tree->batch.n : 1;
    k->list = ARENA_ARRAY(a, k->n + 1, struct marker);
    k->statements = ARENA_ARRAY(a, k->n_statements + 1, const struct ast_stmt *);
    if (!k->list || !k->statements) return err_nomem(e);
    struct token_reader reader;
    uint32_t n = 0;
    token_reader_init(&reader, slice_str(s->text), &why);
    for (struct token t; n < k->n && (t = token_next(&reader)).code && t.code != T_ERROR;)
        if (t.text.n == 1 && *t.text.p == '?') k->list[n++].at = t.text;
    if (n < k->n) return err_set(e, ERR_CONFIG, "its markers must be written as ?, not as :name");
    for (uint32_t i = 0; i < k->n; i++) k->list[i].bind = &binds->columns[i];
    for (uint32_t i = 0; i < k->n_statements; i++) {
        k->statements[i] = batch ? tree->batch.stmts[i] : tree;
        for (uint32_t m = 0; m < k->n; m++)
            if (k->list[m].at.p > k->statements[i]->source.p) k->list[m].statement = i;
        const struct ast_where *w = ast_where(k->statements[i]);
        for (uint32_t r = 0; w && r < w->n; r++)
            for (uint32_t v = 0; w->relations[r]->in_list && v < w->relations[r]->n_values; v++) {
                const struct ast_expr *value = w->relations[r]->values[v];
                if (value->kind != EXPR_BIND) continue;
                k->list[value->bind].in_list = true;
                k->list[value->bind].element = v;
            }
    }
    return 0;
}

/* Whether the word, in any case or in quotes, is a column of that kind. */
static bool names_column(const struct schema_table *t, struct slice word, enum schema_column_kind kind) {
    if (word.n > 1 && *word.p == '"') word = slice_of(word.p + 1, word.n - 2);
    for (uint32_t i = 0; i < t->n_columns; i++)
        if (t->columns[i].kind == kind && script_is_word(word, t->columns[i].name)) return true;
    return false;
}

bool markers_use_statics(const struct workload_statement *s, const struct markers *k, const struct schema_table *t) {
    struct token_reader r;
    struct err ignored = {0};
    token_reader_init(&r, slice_str(s->text), &ignored);
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
