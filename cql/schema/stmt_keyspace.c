#include <string.h>
#include <strings.h>

#include "cql/schema/ddl.h"

enum { KEYSPACE_NAME_LENGTH = 48 }; /* Cassandra's, and Amazon Keyspaces' */

static int refuse_without_class(struct compile *c) {
    return c->err->set ? -1 : ddl_fail(c, DDL_NO_CLASS);
}

static int read_tags(struct compile *c, const struct ast_prop_value *v, struct catalog_change *change) {
    struct table_settings *s = ARENA_NEW(c->arena, struct table_settings);
    if (!s) return err_nomem(c->err);
    s->given = SETTING_BIT(tags);
    change->settings = s;
    return prop_tags(c, v, &s->tags);
}

static const struct ast_prop *prop_of(const struct ast_props *p, const char *name) {
    for (uint32_t i = 0; i < p->n; i++)
        if (strcmp(p->props[i].name, name) == 0) return &p->props[i];
    return NULL;
}

/* Reads the properties, which are checked before whether the keyspace exists. */
static int read_properties(struct compile *c, const struct ast_props *p, struct catalog_change *change) {
    const struct ast_prop *replication = prop_of(p, "replication"), *tags = prop_of(p, "tags"),
                          *timestamps = prop_of(p, "client_side_timestamps");
    for (uint32_t i = 0; i < p->n; i++) {
        const char *name = p->props[i].name;
        bool known = strcmp(name, "replication") == 0 || strcmp(name, "durable_writes") == 0;
        bool ours = strcmp(name, "tags") == 0 || strcmp(name, "client_side_timestamps") == 0;
        if (!known && (!ours || c->schema->cassandra_mode)) return ddl_fail(c, DDL_OPTION_UNKNOWN, name);
    }
    if (timestamps) {
        /* They are the tables' as soon as the keyspace has several Regions
         * (schema_has_client_timestamps), and cannot be turned off. */
        struct option_list *l = option_list_new(c);
        if (!l || prop_map(c, timestamps->name, timestamps->value, false, l)) return -1;
        change->client_timestamps = l->n == 1 && !strcmp(l->items[0].name, "client_side_timestamps.status") &&
                                    !strcasecmp(l->items[0].value, "ENABLED");
        if (!change->client_timestamps) return ddl_fail(c, DDL_TIMESTAMPS_STATUS);
    }
    if (replication) { /* names without "replication." before them; the catalogue expects 'class' first */
        struct option_list *l = option_list_new(c);
        if (!l || prop_map(c, "replication", replication->value, false, l)) return -1;
        for (uint32_t i = 0; i < l->n; i++) {
            l->items[i].name += strlen("replication.");
            if (strcmp(l->items[i].name, "class") != 0) continue;
            struct schema_option class = l->items[i];
            l->items[i] = l->items[0];
            l->items[0] = class;
        }
        change->n_replication = l->n;
        change->replication = l->items;
        if (l->n && strcmp(l->items[0].name, "class")) return refuse_without_class(c);
    }
    return tags ? read_tags(c, tags->value, change) : 0;
}

static int read_durable_writes(struct compile *c, const struct ast_props *p, struct catalog_change *change) {
    const struct ast_prop *writes = prop_of(p, "durable_writes");
    const char *text = writes ? prop_text(c, writes->name, writes->value) : NULL;
    bool durable;
    if (!writes) return 0;
    if (!text || prop_bool(c, writes->name, text, &durable)) return -1;
    change->durable_writes = durable;
    return 0;
}

/* The catalogue reports whether the keyspace exists, before faults of other properties. */
static int check_existence(struct compile *c, const struct ast_props *p, struct catalog_change *change) {
    const struct schema_keyspace *ks = schema_keyspace_find(c->schema, change->keyspace);
    bool creates = change->op == CATALOG_CREATE_KEYSPACE;
    struct err ignored = {0};
    struct compile quiet = *c;
    if ((ks != NULL) != creates)
        return read_durable_writes(c, p, change) || (creates && !change->n_replication) ? refuse_without_class(c) : 0;
    quiet.err = &ignored;
    (void)!read_durable_writes(&quiet, p, change);
    return 0;
}

static int compile_create(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    const struct ast_keyspace *k = &ast->keyspace;
    struct catalog_change *change = ddl_change_new(c, CATALOG_CREATE_KEYSPACE, out);
    if (!change) return -1;
    change->keyspace = k->name;
    change->conditional = k->if_not_exists;
    if (ddl_permit(c, out)) return -1;
    const struct schema_keyspace *ks = schema_keyspace_find(c->schema, k->name);
    if (ks && ks->is_system) return 0;
    size_t n = strlen(k->name);
    if (!ddl_is_word(k->name)) return ddl_fail(c, DDL_KEYSPACE_NAME, k->name);
    if (n > KEYSPACE_NAME_LENGTH) return ddl_fail(c, DDL_KEYSPACE_NAME_LENGTH, KEYSPACE_NAME_LENGTH, k->name, n);
    if (read_properties(c, &k->props, change)) return -1;
    if (!prop_of(&k->props, "replication")) return ddl_fail(c, DDL_NO_REPLICATION);
    return check_existence(c, &k->props, change);
}

static int compile_alter(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    const struct ast_keyspace *k = &ast->keyspace;
    struct catalog_change *change = ddl_change_new(c, CATALOG_ALTER_KEYSPACE, out);
    if (!change) return -1;
    change->keyspace = k->name;
    change->conditional = k->if_exists;
    if ((!schema_system_is_replicated(k->name) && ddl_refuse_system(c, change)) || ddl_permit(c, out)) return -1;
    if (!k->add_tags && !k->drop_tags) {
        if (read_properties(c, &k->props, change)) return -1;
        return check_existence(c, &k->props, change);
    }
    if (c->schema->cassandra_mode) return ddl_refuse(c, "TAGS");
    if (read_tags(c, k->tags, change)) return -1;
    change->at_once = true; /* as in stmt_alter_table.c */
    if (k->add_tags) return 0;
    change->removed_tags = change->settings->tags;
    change->settings = NULL;
    return 0;
}

static int compile_drop(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    struct catalog_change *change = ddl_change_new(c, CATALOG_DROP_KEYSPACE, out);
    if (!change) return -1;
    change->keyspace = ast->keyspace.name;
    change->conditional = ast->keyspace.if_exists;
    return ddl_refuse_system(c, change) || ddl_permit(c, out) ? -1 : 0;
}

static int check(struct compile *c, const struct ast_stmt *ast) {
    (void)c;
    (void)ast;
    return 0;
}

const struct statement_ops create_keyspace_ops = {.compile = compile_create, .check = check};
const struct statement_ops alter_keyspace_ops = {.compile = compile_alter, .check = check};
const struct statement_ops drop_keyspace_ops = {.compile = compile_drop, .check = check};
