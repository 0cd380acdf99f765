#include <string.h>

#include "cql/schema/ddl.h"

enum { KEYSPACE_NAME_LENGTH = 48 }; /* Cassandra's, and Amazon Keyspaces' */

static int check_name(struct compile *c, const char *name) {
    size_t n = strlen(name);
    bool word = n > 0;
    for (const char *p = name; *p && word; p++)
        word = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') || *p == '_';
    if (!word) return err_invalid(c->err, "Keyspace name must not be empty and must contain alphanumeric or underscore characters only (got \"%s\")", name);
    if (n > KEYSPACE_NAME_LENGTH)
        return err_invalid(c->err, "Keyspace name must not be more than %d characters long (got %zu characters for \"%s\")", KEYSPACE_NAME_LENGTH, n, name);
    return 0;
}

/* 'class' first, as the catalogue wants it; names without "replication." before them. */
static int take_replication(struct compile *c, const struct ast_prop_value *v, struct catalog_change *change) {
    struct option_list *l = ARENA_NEW(c->arena, struct option_list);
    if (!l) return err_nomem(c->err);
    l->arena = c->arena;
    l->err = c->err;
    if (prop_map(c, "replication", v, false, l)) return -1;
    for (uint32_t i = 0; i < l->n; i++) {
        l->items[i].name += strlen("replication.");
        if (strcmp(l->items[i].name, "class") != 0) continue;
        struct schema_option class = l->items[i];
        l->items[i] = l->items[0];
        l->items[0] = class;
    }
    change->n_replication = l->n;
    change->replication = l->items;
    if (l->n == 0) return err_set(c->err, ERR_CONFIG, "Missing replication strategy class");
    return 0;
}

static int take_tags(struct compile *c, const struct ast_prop_value *v, struct catalog_change *change) {
    struct option_list *l = ARENA_NEW(c->arena, struct option_list);
    if (!l) return err_nomem(c->err);
    l->arena = c->arena;
    l->err = c->err;
    if (prop_map(c, "tags", v, false, l) || tags_check(c, l, 0)) return -1;
    change->n_options = l->n;
    change->options = l->items;
    return 0;
}

static int take_props(struct compile *c, const struct ast_props *p, struct catalog_change *change) {
    for (uint32_t i = 0; i < p->n; i++) {
        const char *name = p->props[i].name;
        const struct ast_prop_value *v = p->props[i].value;
        if (strcmp(name, "replication") == 0) {
            if (take_replication(c, v, change)) return -1;
        } else if (strcmp(name, "durable_writes") == 0) {
            bool durable;
            const char *text = prop_text(c, name, v);
            if (!text || prop_bool(c, name, text, &durable)) return -1;
            change->durable_writes = durable;
        } else if (strcmp(name, "tags") == 0 && !c->schema->cassandra_mode) {
            if (take_tags(c, v, change)) return -1;
        } else if (strcmp(name, "client_side_timestamps") != 0 || c->schema->cassandra_mode) {
            return err_set(c->err, ERR_SYNTAX, "Unknown property '%s'", name);
        }
    }
    return 0;
}

static int compile_create(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    const struct ast_keyspace *k = &ast->keyspace;
    struct catalog_change *change = ddl_change_new(c, CATALOG_CREATE_KEYSPACE, out);
    if (!change) return -1;
    change->keyspace = k->name;
    change->conditional = k->if_not_exists;
    if (check_name(c, k->name) || take_props(c, &k->props, change)) return -1;
    if (!change->n_replication) return err_invalid(c->err, "Missing mandatory option 'replication'");
    return 0;
}

static int compile_alter(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    const struct ast_keyspace *k = &ast->keyspace;
    struct catalog_change *change = ddl_change_new(c, CATALOG_ALTER_KEYSPACE, out);
    if (!change) return -1;
    change->keyspace = k->name;
    change->conditional = k->if_exists;
    if (!k->add_tags && !k->drop_tags) return take_props(c, &k->props, change);
    if (c->schema->cassandra_mode) return ddl_refuse(c, "TAGS");
    if (take_tags(c, k->tags, change)) return -1;
    if (k->add_tags) return 0;
    const char **names = ARENA_ARRAY(c->arena, change->n_options + 1, const char *);
    if (!names) return err_nomem(c->err);
    for (uint32_t i = 0; i < change->n_options; i++) names[i] = change->options[i].name;
    change->n_unset = change->n_options;
    change->unset = names;
    change->n_options = 0;
    return 0;
}

static int compile_drop(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    struct catalog_change *change = ddl_change_new(c, CATALOG_DROP_KEYSPACE, out);
    if (!change) return -1;
    change->keyspace = ast->keyspace.name;
    change->conditional = ast->keyspace.if_exists;
    return 0;
}

const struct statement_ops create_keyspace_ops = {compile_create, ddl_run, ddl_more};
const struct statement_ops alter_keyspace_ops = {compile_alter, ddl_run, ddl_more};
const struct statement_ops drop_keyspace_ops = {compile_drop, ddl_run, ddl_more};
