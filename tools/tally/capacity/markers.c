#include "tools/tally/capacity/markers.h"

#include <strings.h>

#include "cql/syntax/token.h"

static void find_lists(const struct ast_where *w, struct markers *k) {
    for (uint32_t i = 0; w && i < w->n; i++) {
        const struct ast_relation *r = w->relations[i];
        for (uint32_t v = 0; r->in_list && v < r->n_values; v++) {
            if (r->values[v]->kind != EXPR_BIND) continue;
            struct marker *m = &k->list[r->values[v]->bind];
            m->in_list = true;
            m->element = v;
        }
    }
}

int markers_find(const struct workload_statement *s, struct arena *a, struct markers *k, struct err *e) {
    const struct result_meta *binds = &cql_prepared_info(k->prepared)->binds;
    struct err why = {0};
    struct ast_stmt *tree = cql_parse(a, slice_str(s->text), &why);
    if (!tree) return err_set(e, ERR_CONFIG, "%s:%u: %s", s->file, s->line, why.text);
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
    if (n < k->n)
        return err_set(e, ERR_CONFIG, "%s:%u: its markers must be written as ?, not as :name", s->file, s->line);
    for (uint32_t i = 0; i < k->n; i++) k->list[i].bind = &binds->columns[i];
    for (uint32_t i = 0; i < k->n_statements; i++) {
        k->statements[i] = batch ? tree->batch.stmts[i] : tree;
        for (uint32_t m = 0; m < k->n; m++)
            if (k->list[m].at.p > k->statements[i]->source.p) k->list[m].statement = i;
        find_lists(ast_where(k->statements[i]), k);
    }
    return 0;
}

static bool is_static(const struct schema_table *t, struct slice word) {
    for (uint32_t i = 0; i < t->n_columns; i++) {
        const char *name = t->columns[i].name;
        bool same = word.n == strlen(name) && !strncasecmp((const char *)word.p, name, word.n);
        if (t->columns[i].kind == COLUMN_STATIC && same) return true;
    }
    return false;
}

static bool names_clustering(const struct ast_where *w, const struct schema_table *t) {
    for (uint32_t i = 0; i < w->n; i++)
        for (uint32_t k = 0; k < w->relations[i]->n_lhs; k++) {
            const struct schema_column *c = schema_column_find(t, w->relations[i]->lhs[k]);
            if (c && c->kind == COLUMN_CLUSTERING) return true;
        }
    return false;
}

bool markers_use_statics(const struct workload_statement *s, const struct markers *k, const struct schema_table *t) {
    struct token_reader r;
    struct err ignored = {0};
    token_reader_init(&r, slice_str(s->text), &ignored);
    for (struct token x; (x = token_next(&r)).code && x.code != T_ERROR;) {
        bool quoted = x.text.n > 1 && *x.text.p == '"';
        const struct slice word = quoted ? slice_of(x.text.p + 1, x.text.n - 2) : x.text;
        if ((x.text.n == 1 && *x.text.p == '*') || is_static(t, word)) return true;
    }
    for (uint32_t i = 0; i < k->n_statements; i++) {
        const struct ast_stmt *one = k->statements[i];
        if (one->kind == STMT_INSERT && one->insert.json) return true;
        if (one->kind == STMT_DELETE && !one->delete_.n_deletions && !names_clustering(&one->delete_.where, t))
            return true;
    }
    return false;
}
