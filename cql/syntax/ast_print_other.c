/* Canonical CQL of the statements that are parsed and refused. */
#include "cql/syntax/print.h"

static void print_types(struct ast_type *const *t, uint32_t n, struct buf *out) {
    buf_put_str(out, "(");
    for (uint32_t i = 0; i < n; i++) {
        if (i) buf_put_str(out, ", ");
        ast_print_type(t[i], out);
    }
    buf_put_str(out, ")");
}

static void print_function_name(const struct ast_name *n, struct buf *out) {
    if (n->keyspace) {
        ast_print_name(n->keyspace, out);
        buf_put_str(out, ".");
    }
    if (!strcmp(n->name, "token")) buf_put_str(out, n->name); /* reserved, and yet a function */
    else ast_print_name(n->name, out);
}

static void print_alter_type(const struct ast_alter_type *t, struct buf *out) {
    buf_put_str(out, "ALTER TYPE ");
    cqli_print_if(t->if_exists, "IF EXISTS ", out);
    cqli_print_table(&t->name, out);
    switch (t->op) {
    case ALTER_TYPE_ADD:
        buf_put_str(out, " ADD ");
        cqli_print_if(t->field_if_not_exists, "IF NOT EXISTS ", out);
        ast_print_name(t->field, out);
        buf_put_str(out, " ");
        ast_print_type(t->type, out);
        break;
    case ALTER_TYPE_ALTER:
        buf_put_str(out, " ALTER ");
        ast_print_name(t->field, out);
        buf_put_str(out, " TYPE ");
        ast_print_type(t->type, out);
        break;
    case ALTER_TYPE_RENAME:
        buf_put_str(out, " RENAME ");
        cqli_print_if(t->field_if_exists, "IF EXISTS ", out);
        for (uint32_t i = 0; i < t->n_renames; i++) {
            if (i) buf_put_str(out, " AND ");
            ast_print_name(t->rename_from[i], out);
            buf_put_str(out, " TO ");
            ast_print_name(t->rename_to[i], out);
        }
        break;
    }
}

static void print_create_index(const struct ast_create_index *x, struct buf *out) {
    static const char *const kinds[] = {
        [INDEX_SIMPLE] = "",         [INDEX_KEYS] = "keys", [INDEX_VALUES] = "values",
        [INDEX_ENTRIES] = "entries", [INDEX_FULL] = "full",
    };
    buf_printf(out, "CREATE %sINDEX ", x->custom ? "CUSTOM " : "");
    cqli_print_if(x->if_not_exists, "IF NOT EXISTS ", out);
    if (x->name.name) {
        ast_print_name(x->name.name, out);
        buf_put_str(out, " ");
    }
    buf_put_str(out, "ON ");
    cqli_print_table(&x->table, out);
    buf_put_str(out, " (");
    for (uint32_t i = 0; i < x->n_targets; i++) {
        bool wrapped = x->targets[i].kind != INDEX_SIMPLE;
        if (i) buf_put_str(out, ", ");
        buf_put_str(out, kinds[x->targets[i].kind]);
        cqli_print_if(wrapped, "(", out);
        ast_print_name(x->targets[i].column, out);
        cqli_print_if(wrapped, ")", out);
    }
    buf_put_str(out, ")");
    if (x->has_class) {
        buf_put_str(out, " USING ");
        cqli_print_string(x->using_class, out);
    }
    cqli_print_props(&x->props, out);
}

static void print_create_view(const struct ast_create_view *v, struct buf *out) {
    buf_put_str(out, "CREATE MATERIALIZED VIEW ");
    cqli_print_if(v->if_not_exists, "IF NOT EXISTS ", out);
    cqli_print_table(&v->name, out);
    buf_put_str(out, " AS SELECT ");
    cqli_print_selectors(v->selectors, v->n_selectors, out);
    buf_put_str(out, " FROM ");
    cqli_print_table(&v->table, out);
    cqli_print_where(&v->where, out);
    buf_put_str(out, " ");
    cqli_print_key(v->partition_key, v->n_partition_key, v->clustering, v->n_clustering, out);
    cqli_print_props(&v->props, out);
}

static void print_create_function(const struct ast_create_function *f, struct buf *out) {
    buf_printf(out, "CREATE %sFUNCTION ", f->or_replace ? "OR REPLACE " : "");
    cqli_print_if(f->if_not_exists, "IF NOT EXISTS ", out);
    print_function_name(&f->name, out);
    buf_put_str(out, " (");
    for (uint32_t i = 0; i < f->n_args; i++) {
        if (i) buf_put_str(out, ", ");
        ast_print_name(f->arg_names[i], out);
        buf_put_str(out, " ");
        ast_print_type(f->arg_types[i], out);
    }
    buf_printf(out, ") %s ON NULL INPUT RETURNS ", f->called_on_null ? "CALLED" : "RETURNS NULL");
    ast_print_type(f->returns, out);
    buf_printf(out, " LANGUAGE %s AS ", f->language);
    cqli_print_string(f->body, out);
}

static void print_create_aggregate(const struct ast_create_aggregate *a, struct buf *out) {
    buf_printf(out, "CREATE %sAGGREGATE ", a->or_replace ? "OR REPLACE " : "");
    cqli_print_if(a->if_not_exists, "IF NOT EXISTS ", out);
    print_function_name(&a->name, out);
    buf_put_str(out, " ");
    print_types(a->arg_types, a->n_args, out);
    buf_put_str(out, " SFUNC ");
    print_function_name(&(struct ast_name){.name = a->sfunc}, out);
    buf_put_str(out, " STYPE ");
    ast_print_type(a->stype, out);
    if (a->finalfunc) {
        buf_put_str(out, " FINALFUNC ");
        print_function_name(&(struct ast_name){.name = a->finalfunc}, out);
    }
    if (a->initcond) {
        buf_put_str(out, " INITCOND ");
        ast_print_expr(a->initcond, out);
    }
}

static void print_trigger(enum stmt_kind kind, const struct ast_trigger *t, struct buf *out) {
    buf_printf(out, "%s ", stmt_words(kind));
    cqli_print_if(t->if_not_exists, "IF NOT EXISTS ", out);
    cqli_print_if(t->if_exists, "IF EXISTS ", out);
    ast_print_name(t->name, out);
    buf_put_str(out, " ON ");
    cqli_print_table(&t->table, out);
    if (kind != STMT_CREATE_TRIGGER) return;
    buf_put_str(out, " USING ");
    cqli_print_string(t->using_class, out);
}

/* ---- roles ---- */

static void print_strings(const char *words, const struct slice *s, uint32_t n, struct buf *out) {
    buf_printf(out, "%s {", words);
    for (uint32_t i = 0; i < n; i++) {
        if (i) buf_put_str(out, ", ");
        cqli_print_string(s[i], out);
    }
    buf_put_str(out, "}");
}

static void print_role_option(const struct ast_role_options *o, uint32_t option, struct buf *out) {
    switch (option) {
    case ROLE_PASSWORD:
    case ROLE_HASHED_PASSWORD:
        buf_put_str(out, option == ROLE_PASSWORD ? "PASSWORD = " : "HASHED PASSWORD = ");
        cqli_print_string(o->password, out);
        break;
    case ROLE_SUPERUSER: buf_printf(out, "SUPERUSER = %s", o->superuser ? "true" : "false"); break;
    case ROLE_LOGIN: buf_printf(out, "LOGIN = %s", o->login ? "true" : "false"); break;
    case ROLE_OPTIONS:
        buf_put_str(out, "OPTIONS = ");
        ast_print_prop(o->options, out);
        break;
    case ROLE_DATACENTERS:
        if (o->all_datacenters) buf_put_str(out, "ACCESS TO ALL DATACENTERS");
        else print_strings("ACCESS TO DATACENTERS", o->datacenters, o->n_datacenters, out);
        break;
    default:
        if (o->all_cidrs) buf_put_str(out, "ACCESS FROM ALL CIDRS");
        else print_strings("ACCESS FROM CIDRS", o->cidrs, o->n_cidrs, out);
        break;
    }
}

static void print_role(enum stmt_kind kind, const struct ast_role *r, struct buf *out) {
    static const char *const verbs[][2] = {{"CREATE ROLE ", "CREATE USER "},
                                           {"ALTER ROLE ", "ALTER USER "},
                                           {"DROP ROLE ", "DROP USER "}};
    buf_put_str(out, verbs[kind == STMT_CREATE_ROLE ? 0 : kind == STMT_ALTER_ROLE ? 1 : 2][r->user]);
    cqli_print_if(r->if_not_exists, "IF NOT EXISTS ", out);
    cqli_print_if(r->if_exists, "IF EXISTS ", out);
    cqli_print_string(slice_str(r->name), out);
    if (r->user) {
        uint32_t given = r->options.given;
        if (given & (ROLE_PASSWORD | ROLE_HASHED_PASSWORD)) {
            buf_put_str(out, given & ROLE_PASSWORD ? " WITH PASSWORD " : " WITH HASHED PASSWORD ");
            cqli_print_string(r->options.password, out);
        }
        if (given & ROLE_SUPERUSER) buf_put_str(out, r->options.superuser ? " SUPERUSER" : " NOSUPERUSER");
        return;
    }
    const char *lead = " WITH ";
    for (uint32_t bit = 1; bit <= ROLE_CIDRS; bit <<= 1) {
        if (!(r->options.given & bit)) continue;
        buf_put_str(out, lead);
        print_role_option(&r->options, bit, out);
        lead = " AND ";
    }
}

/* ---- permissions ---- */

static void print_permissions(const struct ast_permissions *p, struct buf *out) {
    static const char *const words[] = {
        [PERMISSION_CREATE] = "CREATE",     [PERMISSION_ALTER] = "ALTER",
        [PERMISSION_DROP] = "DROP",         [PERMISSION_SELECT] = "SELECT",
        [PERMISSION_MODIFY] = "MODIFY",     [PERMISSION_AUTHORIZE] = "AUTHORIZE",
        [PERMISSION_DESCRIBE] = "DESCRIBE", [PERMISSION_EXECUTE] = "EXECUTE",
        [PERMISSION_UNMASK] = "UNMASK",     [PERMISSION_SELECT_MASKED] = "SELECT_MASKED",
    };
    if (!p->n) buf_put_str(out, "ALL PERMISSIONS");
    for (uint32_t i = 0; i < p->n; i++) buf_printf(out, "%s%s", i ? ", " : "", words[p->items[i]]);
}

static void print_resource(const struct ast_resource *r, struct buf *out) {
    static const char *const words[] = {
        [RESOURCE_NONE] = "",
        [RESOURCE_ALL_KEYSPACES] = "ALL KEYSPACES",
        [RESOURCE_KEYSPACE] = "KEYSPACE ",
        [RESOURCE_ALL_TABLES] = "ALL TABLES IN KEYSPACE ",
        [RESOURCE_TABLE] = "TABLE ",
        [RESOURCE_ALL_ROLES] = "ALL ROLES",
        [RESOURCE_ROLE] = "ROLE ",
        [RESOURCE_ALL_FUNCTIONS] = "ALL FUNCTIONS",
        [RESOURCE_ALL_FUNCTIONS_IN] = "ALL FUNCTIONS IN KEYSPACE ",
        [RESOURCE_FUNCTION] = "FUNCTION ",
        [RESOURCE_ALL_MBEANS] = "ALL MBEANS",
        [RESOURCE_MBEAN] = "MBEAN ",
        [RESOURCE_MBEANS] = "MBEANS ",
    };
    buf_put_str(out, words[r->kind]);
    switch (r->kind) {
    case RESOURCE_KEYSPACE:
    case RESOURCE_ALL_TABLES:
    case RESOURCE_ALL_FUNCTIONS_IN:
    case RESOURCE_TABLE: cqli_print_table(&r->name, out); break;
    case RESOURCE_ROLE: cqli_print_string(slice_str(r->name.name), out); break;
    case RESOURCE_FUNCTION:
        print_function_name(&r->name, out);
        print_types(r->arg_types, r->n_args, out);
        break;
    case RESOURCE_MBEAN:
    case RESOURCE_MBEANS: cqli_print_string(r->mbean, out); break;
    default: break;
    }
}

static void print_grant(enum stmt_kind kind, const struct ast_grant *g, struct buf *out) {
    bool grant = kind == STMT_GRANT;
    buf_put_str(out, grant ? "GRANT " : "REVOKE ");
    if (g->granted_role) {
        cqli_print_string(slice_str(g->granted_role), out);
    } else {
        print_permissions(&g->permissions, out);
        buf_put_str(out, " ON ");
        print_resource(&g->resource, out);
    }
    buf_put_str(out, grant ? " TO " : " FROM ");
    cqli_print_string(slice_str(g->grantee), out);
}

static void print_list(const struct ast_list *l, struct buf *out) {
    static const char *const words[] = {[LIST_PERMISSIONS] = "", [LIST_ROLES] = "ROLES", [LIST_USERS] = "USERS"};
    buf_printf(out, "LIST %s", words[l->kind]);
    if (l->kind == LIST_PERMISSIONS) print_permissions(&l->permissions, out);
    if (l->resource.kind != RESOURCE_NONE) {
        buf_put_str(out, " ON ");
        print_resource(&l->resource, out);
    }
    if (l->of) {
        buf_put_str(out, " OF ");
        cqli_print_string(slice_str(l->of), out);
    }
    cqli_print_if(l->norecursive, " NORECURSIVE", out);
}

void cqli_print_other(const struct ast_stmt *s, struct buf *out) {
    const struct ast_other *o = s->other;
    switch (s->kind) {
    case STMT_TRUNCATE:
        buf_put_str(out, "TRUNCATE TABLE ");
        cqli_print_table(&o->truncate.table, out);
        break;
    case STMT_ALTER_TYPE: print_alter_type(&o->alter_type, out); break;
    case STMT_RESTORE_TABLE:
        buf_put_str(out, "RESTORE TABLE ");
        cqli_print_table(&o->restore.table, out);
        buf_put_str(out, " FROM TABLE ");
        cqli_print_table(&o->restore.from, out);
        cqli_print_props(&o->restore.props, out);
        break;
    case STMT_CREATE_INDEX: print_create_index(&o->create_index, out); break;
    case STMT_CREATE_VIEW: print_create_view(&o->create_view, out); break;
    case STMT_ALTER_VIEW:
        buf_put_str(out, "ALTER MATERIALIZED VIEW ");
        cqli_print_if(o->alter_view.if_exists, "IF EXISTS ", out);
        cqli_print_table(&o->alter_view.name, out);
        cqli_print_props(&o->alter_view.props, out);
        break;
    case STMT_CREATE_FUNCTION: print_create_function(&o->create_function, out); break;
    case STMT_CREATE_AGGREGATE: print_create_aggregate(&o->create_aggregate, out); break;
    case STMT_DROP_FUNCTION:
    case STMT_DROP_AGGREGATE:
        buf_printf(out, "%s ", stmt_words(s->kind));
        cqli_print_if(o->drop_function.if_exists, "IF EXISTS ", out);
        print_function_name(&o->drop_function.name, out);
        if (o->drop_function.has_args) print_types(o->drop_function.arg_types, o->drop_function.n_args, out);
        break;
    case STMT_CREATE_TRIGGER:
    case STMT_DROP_TRIGGER: print_trigger(s->kind, &o->trigger, out); break;
    case STMT_CREATE_ROLE:
    case STMT_ALTER_ROLE:
    case STMT_DROP_ROLE: print_role(s->kind, &o->role, out); break;
    case STMT_GRANT:
    case STMT_REVOKE: print_grant(s->kind, &o->grant, out); break;
    case STMT_LIST: print_list(&o->list, out); break;
    case STMT_ADD_IDENTITY:
    case STMT_DROP_IDENTITY:
        buf_printf(out, "%s ", stmt_words(s->kind));
        cqli_print_if(o->identity.if_not_exists, "IF NOT EXISTS ", out);
        cqli_print_if(o->identity.if_exists, "IF EXISTS ", out);
        cqli_print_string(o->identity.identity, out);
        if (s->kind != STMT_ADD_IDENTITY) break;
        buf_put_str(out, " TO ROLE ");
        cqli_print_string(slice_str(o->identity.role), out);
        break;
    default: break;
    }
}
