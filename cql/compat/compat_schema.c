#include <ctype.h>

#include "cql/compat/compat_check.h"
#include "keyspaces/quota.h"

int compat_check_name(struct compile *c, const char *what, const char *name) {
    size_t n = strlen(name);
    bool fits = n > 0 && n <= QUOTA_NAME_LENGTH && isalnum((uint8_t)name[0]);
    for (const char *p = name; *p && fits; p++) fits = isalnum((uint8_t)*p) || *p == '_';
    return fits ? 0 : compat_refuse(&c->compat, REFUSE_NAME, c->err, what, QUOTA_NAME_LENGTH, name);
}

static int check_columns(struct compile *c, const struct ast_column *columns, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (strlen(columns[i].name) > QUOTA_NAME_LENGTH &&
            compat_refuse(&c->compat, REFUSE_COLUMN_NAME, c->err, QUOTA_NAME_LENGTH, columns[i].name))
            return -1;
        if (columns[i].type && compat_check_type(c, columns[i].type)) return -1;
    }
    return 0;
}

int compat_check_create_table(struct compile *c, const struct ast_create_table *ast) {
    return compat_check_name(c, "Table", ast->table.name) || check_columns(c, ast->columns, ast->n_columns) ? -1 : 0;
}

int compat_check_alter_table(struct compile *c, const struct ast_alter_table *ast) {
    return ast->op == ALTER_TABLE_ADD ? check_columns(c, ast->columns, ast->n_columns) : 0;
}
