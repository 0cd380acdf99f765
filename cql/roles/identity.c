/* ADD and DROP IDENTITY: the roles of clients' certificates, which system_auth.identity_to_role lists. */
#include "cql/roles/roles.h"

struct identity_plan {
    struct roles_change run;
    const struct ast_identity *ast;
    bool add;
    const char *identity;
};

static int put(struct principal *a, const struct role *of, const char *identity, bool has) {
    struct role next;
    if (role_identified(of, identity, has, a->r->arena, &next)) return err_nomem(a->r->err);
    return principal_put(a, &next);
}

static int change(struct principal *a, const void *plan) {
    const struct identity_plan *p = plan;
    struct err *e = a->r->err;
    const struct resource all = {.kind = RESOURCE_OF_ALL_ROLES};
    const struct role *bound = role_of_identity(a->roles, p->identity);
    if (p->add) {
        const struct role *role = role_find(a->roles, p->ast->role);
        if (principal_require(a, MAY_CREATE, &all)) return -1;
        if (role && role->superuser && !a->superuser)
            return err_set(e, ERR_UNAUTHORIZED, "Only superusers can bind identities to a role with superuser status");
        if (!role) return err_invalid(e, "Can not add identity for non-existent role '%s'", p->ast->role);
        if (!bound) return put(a, role, p->identity, true);
        return p->ast->if_not_exists ? 0 : err_invalid(e, "%s already exists", p->identity);
    }
    const struct resource on = {.kind = RESOURCE_OF_ROLE, .name = bound ? bound->name : NULL};
    if (principal_require(a, MAY_DROP, bound ? &on : &all)) return -1;
    if (bound && role_is_superuser(a->roles, bound->name) && !a->superuser)
        return err_set(e, ERR_UNAUTHORIZED,
                       "Only superusers can remove identity bindings from a role with superuser status");
    if (bound) return put(a, bound, p->identity, false);
    return p->ast->if_exists ? 0 : err_invalid(e, "identity '%s' doesn't exist", p->identity);
}

static int compile_identity(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    struct identity_plan *p = out->plan = ARENA_NEW(c->arena, struct identity_plan);
    const struct slice text = ast->other->identity.identity;
    if (!p) return err_nomem(c->err);
    if (text.n && memchr(text.p, 0, text.n)) return err_invalid(c->err, "An identity may not hold the character 0");
    p->run.change = change;
    p->add = ast->kind == STMT_ADD_IDENTITY;
    p->ast = &ast->other->identity;
    p->identity = (const char *)arena_dup(c->arena, text).p;
    return p->identity ? 0 : err_nomem(c->err);
}

const struct statement_ops identity_ops = {.compile = compile_identity, .run = roles_run};
