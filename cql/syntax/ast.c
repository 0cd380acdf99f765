/* The words of the tree's enumerations. */
#include "cql/syntax/ast.h"

const char *stmt_words(enum stmt_kind kind) {
    static const char *const words[] = {
#define STMT(id, words, state, feature) words,
#include "cql/syntax/stmt.def"
#undef STMT
    };
    return words[kind];
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
