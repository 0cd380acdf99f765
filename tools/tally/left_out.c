#include "tools/tally/left_out.h"

#include <string.h>

#include "cql/syntax/ast_other.h"

static bool same(const char *a, const char *b) { return a && b && !strcmp(a, b); }

void left_out_add(struct left_out **list, struct arena *a, struct slice text, const char *keyspace, const char *path,
                  uint32_t line) {
    struct err ignored = {0};
    const struct ast_stmt *s = cql_parse(a, arena_dup(a, text), true, &ignored);
    bool index = s && s->kind == STMT_CREATE_INDEX, view = s && s->kind == STMT_CREATE_VIEW;
    struct left_out *l = index || view ? ARENA_NEW(a, struct left_out) : NULL;
    if (!l) return;
    const struct ast_name *table = index ? &s->other->create_index.table : &s->other->create_view.name;
    *l = (struct left_out){.next = *list, .place = arena_printf(a, "%s:%u", path, line), .is_view = view,
                           .keyspace = table->keyspace ? table->keyspace : arena_strdup(a, keyspace),
                           .table = table->name};
    l->columns = ARENA_ARRAY(a, index ? s->other->create_index.n_targets + 1 : 1, const char *);
    for (uint32_t i = 0; index && l->columns && i < s->other->create_index.n_targets; i++)
        l->columns[l->n_columns++] = s->other->create_index.targets[i].column;
    if (l->place && l->keyspace && l->columns) *list = l;
}

const char *left_out_needed(const struct left_out *list, struct arena *a, struct slice text, const char *keyspace,
                            const struct err *why) {
    struct err ignored = {0};
    const struct ast_stmt *s = list ? cql_parse(a, arena_dup(a, text), true, &ignored) : NULL;
    const struct ast_name *table = s ? ast_table(s) : NULL;
    const struct ast_where *where = s ? ast_where(s) : NULL;
    if (!table) return NULL;
    if (table->keyspace) keyspace = table->keyspace;
    for (const struct left_out *l = list; l; l = l->next) {
        if (!same(l->keyspace, keyspace) || !same(l->table, table->name)) continue;
        if (l->is_view) return arena_printf(a, "the materialized view that %s would create", l->place);
        /* Without its index, a read by a column needs ALLOW FILTERING. */
        for (uint32_t r = 0; where && r < where->n && strstr(why->text, "ALLOW FILTERING"); r++)
            for (uint32_t n = 0; n < where->relations[r]->n_lhs; n++)
                for (uint32_t c = 0; c < l->n_columns; c++)
                    if (same(l->columns[c], where->relations[r]->lhs[n]))
                        return arena_printf(a, "the index that %s would create", l->place);
    }
    return NULL;
}
