#include "cql/compat/compat_check.h"

#include <ctype.h>

#include "cql/syntax/ast_other.h"
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

int compat_check_create_table(struct compile *c, const struct ast_stmt *ast) {
    const struct ast_create_table *x = &ast->create_table;
    return compat_check_name(c, "Table", x->table.name) || check_columns(c, x->columns, x->n_columns) ? -1 : 0;
}

int compat_check_alter_table(struct compile *c, const struct ast_stmt *ast) {
    const struct ast_alter_table *x = &ast->alter_table;
    return x->op == ALTER_TABLE_ADD ? check_columns(c, x->columns, x->n_columns) : 0;
}

int compat_check_create_keyspace(struct compile *c, const struct ast_stmt *ast) {
    compat_is_of(&c->compat, ast->keyspace.name, NULL);
    return compat_check_name(c, "Keyspace", ast->keyspace.name);
}

int compat_check_restore_table(struct compile *c, const struct ast_stmt *ast) {
    (void)compat_table(c, &ast->other->restore.table);
    return compat_check_name(c, "Table", ast->other->restore.table.name);
}

/* A quoted name of a type may hold any characters. */
int compat_check_create_type(struct compile *c, const struct ast_stmt *ast) {
    const struct ast_create_type *x = &ast->create_type;
    const char *name = x->name.name;
    (void)compat_table(c, &x->name);
    if (strlen(name) > QUOTA_NAME_LENGTH &&
        compat_refuse(&c->compat, REFUSE_TYPE_NAME, c->err, QUOTA_NAME_LENGTH, name))
        return -1;
    for (uint32_t i = 0; i < x->n_fields; i++) {
        const char *field = x->field_names[i];
        if (strlen(field) > QUOTA_FIELD_NAME_LENGTH &&
            compat_refuse(&c->compat, REFUSE_FIELD_NAME, c->err, QUOTA_FIELD_NAME_LENGTH, field))
            return -1;
        if (compat_check_type(c, x->field_types[i])) return -1;
    }
    return 0;
}
