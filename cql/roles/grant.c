/* GRANT and REVOKE, of permissions and of roles. */
#include "cql/roles/roles.h"

struct grant_plan {
    const struct ast_grant *ast;
    bool give;
    struct named_permissions permissions; /* when no role is granted */
};

static int compile_change(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    struct grant_plan *p = out->plan = ARENA_NEW(c->arena, struct grant_plan);
    if (!p) return err_nomem(c->err);
    p->ast = &ast->other->grant;
    p->give = ast->kind == STMT_GRANT;
    return p->ast->granted_role ? 0
                                : named_permissions(c, &p->ast->permissions, &p->ast->resource, false, &p->permissions);
}

static int put(const struct principal *a, const struct role *role) {
    return access_put(a->r->db->options.access, role, a->r->err) ? 0 : -1;
}

/* ---- roles ---- */

static int change_membership(const struct principal *a, const struct grant_plan *p) {
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
    if (role_joined(of, role, p->give, a->r->arena, &next)) return err_nomem(a->r->err);
    return put(a, &next);
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

static int change_permissions(const struct principal *a, const struct grant_plan *p) {
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
    return put(a, &next);
}

/* ---- run ---- */

static enum cql_outcome apply_change(struct cql_run *r) {
    const struct grant_plan *p = r->compiled->plan;
    struct access_control *access = r->db->options.access;
    struct principal a;
    if (!access) return principal_init(&a, r, NULL) ? CQL_FAILED : CQL_DONE;
    const struct role_set *roles = access_begin(access);
    int rc = principal_init(&a, r, roles);
    if (!rc) rc = p->ast->granted_role ? change_membership(&a, p) : change_permissions(&a, p);
    access_end(access);
    return rc ? CQL_FAILED : CQL_DONE;
}

static enum cql_outcome run_change(struct cql_run *r, const struct cql_statement *s) {
    (void)s;
    r->answer.work_class = WORK_DDL;
    if (!r->blocking) return CQL_OFFLOAD;
    r->apply = apply_change;
    return CQL_DONE;
}

const struct statement_ops grant_ops = {.compile = compile_change, .run = run_change};
const struct statement_ops revoke_ops = {.compile = compile_change, .run = run_change};
