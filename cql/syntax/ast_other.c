#include "cql/syntax/ast_other.h"

const struct ast_name *ast_any_table(const struct ast_stmt *s) {
    switch (s->kind) {
    case STMT_BATCH: return s->batch.n ? ast_any_table(s->batch.stmts[0]) : NULL;
    case STMT_CREATE_TABLE: return &s->create_table.table;
    case STMT_ALTER_TABLE: return &s->alter_table.table;
    case STMT_DROP_TABLE:
    case STMT_DROP_VIEW: return &s->drop.name;
    case STMT_CREATE_INDEX: return &s->other->create_index.table;
    case STMT_CREATE_VIEW: return &s->other->create_view.name;
    case STMT_ALTER_VIEW: return &s->other->alter_view.name;
    case STMT_CREATE_TRIGGER:
    case STMT_DROP_TRIGGER: return &s->other->trigger.table;
    case STMT_TRUNCATE: return &s->other->truncate.table;
    default: return ast_table(s);
    }
}
