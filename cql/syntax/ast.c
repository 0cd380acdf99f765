/* Words of the tree's enumerations, and parts that several kinds of statements have. */
#include "cql/syntax/ast.h"

const char *stmt_words(enum stmt_kind kind) {
    static const char *const words[] = {
#define STMT(id, words, ...) words,
#include "cql/syntax/stmt.def"
#undef STMT
    };
    return words[kind];
}

enum stmt_category stmt_category(enum stmt_kind kind) {
    static const uint8_t categories[] = {
#define STMT(id, words, functions, permission, resource, rule, checks, category, ...) STMT_IS_##category,
#include "cql/syntax/stmt.def"
#undef STMT
        STMT_IS_OTHER,
    };
    return categories[kind];
}

const struct ast_name *ast_table(const struct ast_stmt *s) {
    switch (s->kind) {
    case STMT_SELECT: return &s->select.table;
    case STMT_INSERT: return &s->insert.table;
    case STMT_UPDATE: return &s->update.table;
    case STMT_DELETE: return &s->delete_.table;
    default: return NULL;
    }
}

const struct ast_where *ast_where(const struct ast_stmt *s) {
    switch (s->kind) {
    case STMT_SELECT: return &s->select.where;
    case STMT_UPDATE: return &s->update.where;
    case STMT_DELETE: return &s->delete_.where;
    default: return NULL;
    }
}

const struct ast_conditions *ast_conditions(const struct ast_stmt *s) {
    switch (s->kind) {
    case STMT_INSERT: return &s->insert.conditions;
    case STMT_UPDATE: return &s->update.conditions;
    case STMT_DELETE: return &s->delete_.conditions;
    default: return NULL;
    }
}

const char *ast_op_text(enum ast_op op) {
    static const char *const texts[] = {
        [OP_EQ] = "=", [OP_NEQ] = "!=", [OP_LT] = "<", [OP_LTE] = "<=", [OP_GT] = ">", [OP_GTE] = ">=", [OP_IN] = "IN",
        [OP_CONTAINS] = "CONTAINS", [OP_CONTAINS_KEY] = "CONTAINS KEY",
        [OP_LIKE] = "LIKE", [OP_IS_NOT_NULL] = "IS NOT NULL",
        [OP_ANN] = "ANN OF",
    };
    return texts[op];
}
