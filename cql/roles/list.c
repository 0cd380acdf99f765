/* LIST ROLES, USERS and PERMISSIONS, from the current roles. */
#include <stdlib.h>

#include "cql/roles/roles.h"

struct list_plan {
    const struct ast_list *ast;
    struct named_permissions permissions;
};

struct column {
    const char *name, *type;
};
static const struct column role_columns[] = {{"role", "text"},
                                             {"super", "boolean"},
                                             {"login", "boolean"},
                                             {"options", "map<text, text>"},
                                             {"datacenters", "text"}};
static const struct column user_columns[] = {{"name", "text"}, {"super", "boolean"}, {"datacenters", "text"}};
static const struct column permission_columns[] = {{"role", "text"},
                                                   {"username", "text"},
                                                   {"resource", "text"},
                                                   {"permission", "text"}};

/* ---- compile ---- */

static int take_columns(struct compile *c, const char *table, const struct column *columns, uint32_t n,
                        struct cql_statement *out) {
    struct result_column *made = ARENA_ARRAY(c->arena, n, struct result_column);
    if (!made) return err_nomem(c->err);
    for (uint32_t i = 0; i < n; i++) {
        const struct cql_type *type = cql_type_parse(c->arena, slice_str(columns[i].type), NULL, NULL, NULL, c->err);
        if (!type) return -1;
        made[i] = (struct result_column){"system_auth", table, columns[i].name, type};
    }
    out->result.n = n;
    out->result.columns = made;
    return 0;
}

static int compile_list(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    struct list_plan *p = out->plan = ARENA_NEW(c->arena, struct list_plan);
    if (!p) return err_nomem(c->err);
    p->ast = &ast->other->list;
    switch (p->ast->kind) {
    case LIST_ROLES: return take_columns(c, "roles", role_columns, ARRAY_LEN(role_columns), out);
    case LIST_USERS: return take_columns(c, "users", user_columns, ARRAY_LEN(user_columns), out);
    case LIST_PERMISSIONS: break;
    }
    if (named_permissions(c, &p->ast->permissions, &p->ast->resource, true, &p->permissions)) return -1;
    return take_columns(c, "permissions", permission_columns, ARRAY_LEN(permission_columns), out);
}

/* ---- rows ---- */

struct listing {
    struct principal *a;
    const struct list_plan *plan;
    const struct role *shown[ROLES_MAX];
    uint32_t n;
};

static struct value text_of(const char *s) { return value_of_slice(slice_str(s)); }
static struct value bool_of(bool v) { return value_of_slice(slice_of(v ? "\1" : "\0", 1)); }

static int emit(const struct principal *a, const struct value *values) {
    if (row_sink_row(a->r->sink, values)) return err_set(a->r->err, ERR_SERVER, "The response is too large");
    a->r->cost->rows_returned++;
    return 0;
}

static bool show(void *arg, const struct role *r) {
    struct listing *l = arg;
    l->shown[l->n++] = r;
    return true;
}

static int by_name(const void *x, const void *y) {
    return strcmp((*(const struct role *const *)x)->name, (*(const struct role *const *)y)->name);
}

static int list_roles(struct listing *l) {
    static const uint8_t no_options[4];
    static const struct resource all = {.kind = RESOURCE_OF_ALL_ROLES};
    const struct ast_list *ast = l->plan->ast;
    const struct principal *a = l->a;
    bool sees_all = role_permissions(a->roles, a->role, &all) & 1u << MAY_DESCRIBE;
    if (ast->of) {
        const struct resource on = {.kind = RESOURCE_OF_ROLE, .name = ast->of};
        if (named_exists(a, &on, "")) return -1;
        if (!sees_all && !role_is_member(a->roles, a->role, ast->of))
            return err_set(a->r->err, ERR_UNAUTHORIZED, "You are not authorized to view roles granted to %s ", ast->of);
        role_each_granted(a->roles, ast->of, !ast->norecursive, show, l);
    } else if (sees_all) {
        for (uint32_t i = 0; i < a->roles->n; i++) show(l, role_at(a->roles, i));
    } else {
        role_each_granted(a->roles, a->role, !ast->norecursive, show, l);
    }
    qsort(l->shown, l->n, sizeof(l->shown[0]), by_name);
    for (uint32_t i = 0; i < l->n; i++) {
        const struct role *r = l->shown[i];
        const struct value role[] = {text_of(r->name), bool_of(r->superuser), bool_of(r->login),
                                     value_of_slice(slice_of(no_options, 4)), text_of("ALL")};
        const struct value user[] = {text_of(r->name), bool_of(r->superuser), text_of("ALL")};
        bool roles = l->plan->ast->kind == LIST_ROLES;
        if ((roles || r->login) && emit(l->a, roles ? role : user)) return -1;
    }
    return 0;
}

static int list_permissions(struct listing *l) {
    const char *of = l->plan->ast->of;
    const struct principal *a = l->a;
    const struct resource on = {.kind = RESOURCE_OF_ROLE, .name = of};
    if (!l->plan->permissions.on_any && named_exists(a, &l->plan->permissions.on, "")) return -1;
    if (of && named_exists(a, &on, "")) return -1;
    if (!a->superuser && !(of && role_is_member(a->roles, a->role, of))) {
        if (!of) return err_set(a->r->err, ERR_UNAUTHORIZED, "You are not authorized to view everyone's permissions");
        return err_set(a->r->err, ERR_UNAUTHORIZED, "You are not authorized to view %s's permissions", of);
    }
    if (of) role_each_granted(a->roles, of, true, show, l);
    for (uint32_t i = 0; !of && i < a->roles->n; i++) show(l, role_at(a->roles, i));
    qsort(l->shown, l->n, sizeof(l->shown[0]), by_name);
    for (uint32_t i = 0; i < l->n; i++)
        for (uint32_t k = 0; k < l->shown[i]->n_grants; k++) {
            const struct named_permissions *p = &l->plan->permissions;
            const struct grant *g = &l->shown[i]->grants[k];
            struct resource at = p->on; /* shows grants on this resource, and on those that contain it */
            bool asked = p->on_any || !strcmp(g->resource, p->text);
            struct buf text;
            buf_init(&text, 0);
            while (!asked && !l->plan->ast->norecursive && resource_up(&at)) {
                buf_clear(&text, SIZE_MAX);
                resource_text(&at, &text);
                asked = !buf_failed(&text) && slice_is(buf_slice(&text), g->resource);
            }
            buf_clear(&text, SIZE_MAX);
            resource_show_text(g->resource, &text);
            int rc = buf_failed(&text) ? err_nomem(a->r->err) : 0;
            for (int bit = 0; bit < PERMISSIONS && asked && !rc; bit++) {
                if (!(g->permissions & p->permissions & 1u << bit)) continue;
                const struct value role = text_of(l->shown[i]->name);
                const struct value values[] = {role, role, value_of_slice(buf_slice(&text)),
                                               text_of(permission_name((enum permission)bit))};
                rc = emit(a, values);
            }
            buf_fini(&text);
            if (rc) return -1;
        }
    return 0;
}

/* ---- run ---- */

static enum cql_outcome run_list(struct cql_run *r, const struct cql_statement *s) {
    struct access_control *access = r->db->options.access;
    const struct role_set *roles = access ? access_roles(access) : NULL;
    struct principal a;
    struct listing *l = ARENA_NEW(r->arena, struct listing);
    int rc = !l ? err_nomem(r->err) : principal_init(&a, r, roles);
    if (!rc && r->sink->begin(r->sink, &s->result)) rc = err_nomem(r->err);
    if (!rc) {
        l->a = &a;
        l->plan = s->plan;
        rc = l->plan->ast->kind == LIST_PERMISSIONS ? list_permissions(l) : list_roles(l);
    }
    role_set_unref(roles);
    if (rc) return CQL_FAILED;
    r->cost->is_system = true;
    if (!r->cost->rows_returned) { /* an empty list is a VOID result */
        r->sink->restart(r->sink);
        return CQL_DONE;
    }
    r->answer.result.kind = RESULT_ROWS;
    r->answer.result.meta = &s->result;
    return CQL_DONE;
}

const struct statement_ops list_roles_ops = {.compile = compile_list, .run = run_list};
