/* GRANT and REVOKE, of permissions and of roles. */
#include "cql/roles/roles.h"

struct grant_plan {
    struct roles_change run;
    const struct ast_grant *ast;
    bool give;
    struct named_permissions permissions; /* when no role is granted */
};

static int change_membership(struct principal *a, const void *plan) {
    const struct grant_plan *p = plan;
    static const char is_member[] = "%s is a member of %s";
    const char *role = p->ast->granted_role, *member = p->ast->grantee;
    const struct resource on = {.kind = RESOURCE_OF_ROLE, .name = role};
    struct role next;
    if (principal_require(a, MAY_AUTHORIZE, &on)) return -1;
    if (!role_find(a->roles, role)) return err_invalid(a->r->err, "%s doesn't exist", role);
    if (!role_find(a->roles, member)) return err_invalid(a->r->err, "%s doesn't exist", member);
    const struct role *of = role_find(a->roles, member);
    bool joined = false;
    for (uint32_t i = 0; i < of->n_member_of; i++) joined = joined || !strcmp(of->member_of[i], role);
    if (!p->give && !joined) return err_invalid(a->r->err, "%s is not a member of %s", member, role);
    if (p->give && role_is_member(a->roles, member, role)) return err_invalid(a->r->err, is_member, member, role);
    if (p->give && role_is_member(a->roles, role, member)) return err_invalid(a->r->err, is_member, role, member);
    return role_joined(of, role, p->give, a->r->arena, &next) ? err_nomem(a->r->err) : principal_put(a, &next);
}

/* ---- permissions ---- */

static bool is_system(const struct principal *a, const struct resource *on) {
    const struct schema *schema = on->kind == RESOURCE_OF_TABLE || on->kind == RESOURCE_OF_KEYSPACE ||
                                          on->kind == RESOURCE_OF_ALL_TABLES
                                      ? catalog_schema(a->r->db->options.catalog)
                                      : NULL;
    if (!schema) return false;
    const struct schema_keyspace *ks = schema_keyspace_find(schema, on->keyspace);
    bool is = ks && ks->is_system;
    schema_unref(schema);
    return is;
}

static int change_permissions(struct principal *a, const void *plan) {
    const struct grant_plan *p = plan;
    const struct resource *on = &p->permissions.on;
    uint32_t bits = p->permissions.permissions;
    struct role next;
    if (bits & ~(1u << MAY_SELECT) && is_system(a, on))
        return err_set(a->r->err, ERR_UNAUTHORIZED,
                       "Granting permissions on system keyspaces is strictly limited, this operation is not permitted");
    /* The granting role must itself have every permission that it grants. */
    if (principal_require_by_name(a, MAY_AUTHORIZE, on)) return -1;
    for (int i = 0; i < PERMISSIONS; i++)
        if (bits & 1u << i && principal_require_by_name(a, (enum permission)i, on)) return -1;
    const struct role *role = role_find(a->roles, p->ast->grantee);
    if (!role) return err_invalid(a->r->err, "Role %s doesn't exist", p->ast->grantee);
    if (named_exists(a, on, "Resource ")) return -1;
    if (role_granted(role, p->permissions.text, p->give ? bits : 0, p->give ? 0 : bits, a->r->arena, &next))
        return err_nomem(a->r->err);
    return principal_put(a, &next);
}

/* ---- the statement ---- */

static int compile_grant(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    struct grant_plan *p = out->plan = ARENA_NEW(c->arena, struct grant_plan);
    if (!p) return err_nomem(c->err);
    *p = (struct grant_plan){.ast = &ast->other->grant, .give = ast->kind == STMT_GRANT};
    p->run.change = p->ast->granted_role ? change_membership : change_permissions;
    if (p->ast->granted_role) return 0;
    return named_permissions(c, &p->ast->permissions, &p->ast->resource, false, &p->permissions);
}

const struct statement_ops grant_ops = {.compile = compile_grant, .run = roles_run};
