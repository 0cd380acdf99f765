#include "system_schema/objects/type_use.h"

/* True if t is the named user type or contains it, without looking into other user types. */
static bool names_type(const struct cql_type *t, const char *name) {
    if (t->id == CQL_UDT) return strcmp(t->name, name) == 0;
    bool names = false;
    for (uint32_t i = 0; i < t->n_args && !names; i++) names = names_type(t->args[i], name);
    return names;
}

int32_t type_nesting(const struct cql_type *t) {
    int32_t deepest = 0;
    for (uint32_t i = 0; i < t->n_args; i++) {
        int32_t inner = type_nesting(t->args[i]);
        deepest = inner > deepest ? inner : deepest;
    }
    return deepest + (t->id == CQL_UDT);
}

int type_users_find(const struct schema_space *space, const char *name, struct arena *a, struct type_users *out) {
    *out = (struct type_users){.tables = ARENA_ARRAY(a, space->tables.n + 1, const char *),
                               .parents = ARENA_ARRAY(a, space->n_types + 1, const char *)};
    if (!out->tables || !out->parents) return -1;
    struct schema_table_cursor at = schema_tables_begin(&space->tables);
    for (const struct schema_table *t; (t = schema_tables_next(&at));) {
        bool uses = false;
        for (uint32_t i = 0; i < t->n_columns && !uses; i++) uses = names_type(t->columns[i].type, name);
        if (uses) out->tables[out->n_tables++] = t->name;
    }
    for (uint32_t i = 0; i < space->n_types; i++) {
        const struct cql_type *parent = space->types[i]->type;
        bool uses = false;
        for (uint32_t k = 0; k < parent->n_args && !uses; k++) uses = names_type(parent->args[k], name);
        if (uses && space->types[i]->status != SCHEMA_DELETING) out->parents[out->n_parents++] = parent->name;
    }
    return 0;
}
