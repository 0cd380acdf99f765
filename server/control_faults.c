#include "server/control_faults.h"

#include <stdio.h>

#include "system_schema/system_tables/row_out.h"

/* ---- reading the table ---- */

static int yield_rule(void *arg, const struct fault_rule *rule) {
    struct row_out *ro = arg;
    row_text_copy(ro, "name", rule->name);
    for (int i = 0; i < FAULT_COLUMNS; i++) {
        enum fault_column c = (enum fault_column)i;
        const char *name = fault_column_name(c);
        const void *at = fault_column_at(rule, c);
        enum fault_type type = fault_column_type(c);
        if (!rule->has[c] && type != FAULT_IS_COUNTER) continue;
        switch (type) {
        case FAULT_IS_TEXT: row_text_copy(ro, name, at); break;
        case FAULT_IS_LONG:
        case FAULT_IS_COUNTER: row_long(ro, name, *(const int64_t *)at); break;
        case FAULT_IS_INT: row_int(ro, name, *(const int32_t *)at); break;
        case FAULT_IS_DOUBLE: row_double(ro, name, *(const double *)at); break;
        case FAULT_IS_BOOL: row_bool(ro, name, *(const bool *)at); break;
        }
    }
    return row_out_emit(ro);
}

static int yield_faults(struct row_out *ro) {
    return faults_each(ro->table->virt->owner, yield_rule, ro);
}

/* ---- writing the table ---- */

/* Columns that the statement does not set keep their values. */
static int set_columns(const struct schema_table *t, const struct virtual_change *change, struct fault_rule *rule,
                       struct err *e) {
    for (int c = 0; c < FAULT_COLUMNS; c++) {
        struct value v = virtual_given(change, t, fault_column_name((enum fault_column)c));
        if (!value_is_unset(v) && fault_rule_set(rule, (enum fault_column)c, v.p, v.n, e)) return -1;
    }
    return fault_rule_check(rule, e);
}

static int write_fault(const struct virtual_context *ctx, const struct schema_table *table,
                       const struct virtual_change *change) {
    struct faults *f = table->virt->owner;
    struct fault_rule rule = {0};
    struct slice name = value_slice(virtual_given(change, table, "name"));
    char text[FAULT_NAME_MAX];
    if (!name.n || name.n >= sizeof(text) || memchr(name.p, 0, name.n))
        return err_invalid(ctx->err, "The name of a fault has 1 to %d bytes", FAULT_NAME_MAX - 1);
    snprintf(text, sizeof(text), "%.*s", SLICE_FMT(name));
    if (change->kind == VIRTUAL_DELETE) return faults_remove(f, text), 0;
    if (!faults_find(f, text, &rule)) memcpy(rule.name, text, sizeof(text));
    return set_columns(table, change, &rule, ctx->err) ? -1 : faults_put(f, &rule, ctx->err);
}

struct virtual_table control_faults_table(struct faults *f) {
#define FAULT_TEXT(column) ", " #column " text"
#define FAULT_LONG(column) ", " #column " bigint"
#define FAULT_INT(column) ", " #column " int"
#define FAULT_DOUBLE(column) ", " #column " double"
#define FAULT_BOOL(column) ", " #column " boolean"
#define FAULT_COUNTER FAULT_LONG
    static const char columns[] = "name text pk"
#include "native_protocol/faults/column.def"
        ;
    return (struct virtual_table){.keyspace = "system_control",
                                  .name = "faults",
                                  .comment = "errors, delays and closed connections that hit clients' requests",
                                  .columns = columns,
                                  .virt = {.owner = f, .yield = yield_faults, .write = write_fault}};
}
