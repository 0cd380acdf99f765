/* GRANT and REVOKE, of permissions and of roles. */
#include "cql/roles/roles.h"

struct grant_plan {
    const struct ast_grant *ast;
    bool give;
    struct named_permissions permissions; /* when no role is granted */
};

static int compile_change(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out, bool give) {
    struct grant_plan *p = out->plan = ARENA_NEW(c->arena, struct grant_plan);
    if (!p) return err_nomem(c->err);
    p->ast = &ast->other->grant;
    p->give = give;
    return p->ast->granted_role ? 0
                                : named_permissions(c, &p->ast->permissions, &p->ast->resource, false, &p->permissions);
}

static int compile_grant(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    return compile_change(c, ast, out, true);
}
static int compile_revoke(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    return compile_change(c, ast, out, false);
}

static int put(const struct asker *a, const struct role *role) {
    return access_put(a->r->db->options.access, role, a->r->err) ? 0 : -1;
}

/* ---- roles ---- */

static int check_membership(const struct asker *a, const char *role, const char *member, bool give) {
    static const char is_member[] = "%s is a member of %s";
    if (!give) {
        const struct role *r = role_find(a->roles, member);
        for (uint32_t i = 0; i < r->n_member_of; i++)
            if (!strcmp(r->member_of[i], role)) return 0;
        return err_invalid(a->r->err, "%s is not a member of %s", member, role);
    }
    if (role_is_member(a->roles, member, role)) return err_invalid(a->r->err, is_member, member, role);
    return role_is_member(a->roles, role, member) ? err_invalid(a->r->err, is_member, role, member) : 0;
}

static int change_membership(const struct asker *a, const struct grant_plan *p) {
    const char *role = p->ast->granted_role, *member = p->ast->grantee;
    const struct resource on = {.kind = RESOURCE_OF_ROLE, .name = role};
    struct role next;
    if (asker_must(a, MAY_AUTHORIZE, &on)) return -1;
    if (!role_find(a->roles, role)) return err_invalid(a->r->err, "%s doesn't exist", role);
    if (!role_find(a->roles, member)) return err_invalid(a->r->err, "%s doesn't exist", member);
    if (check_membership(a, role, member, p->give)) return -1;
    if (role_joined(role_find(a->roles, member), role, p->give, a->r->arena, &next)) return err_nomem(a->r->err);
    return put(a, &next);
}

/* ---- permissions ---- */

static bool is_system(const struct asker *a, const struct resource *on) {
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

/* The granting role must itself have every permission that it grants. */
static int may_grant(const struct asker *a, const struct named_permissions *p) {
    if (p->permissions & ~(1u << MAY_SELECT) && is_system(a, &p->on))
        return err_set(a->r->err, ERR_UNAUTHORIZED,
                       "Granting permissions on system keyspaces is strictly limited, this operation is not permitted");
    if (asker_must_by_name(a, MAY_AUTHORIZE, &p->on)) return -1;
    for (int i = 0; i < PERMISSIONS; i++)
        if (p->permissions & 1u << i && asker_must_by_name(a, (enum permission)i, &p->on)) return -1;
    return 0;
}

static int change_permissions(const struct asker *a, const struct grant_plan *p) {
    struct role next;
    if (may_grant(a, &p->permissions)) return -1;
    const struct role *role = role_find(a->roles, p->ast->grantee);
    if (!role) return err_invalid(a->r->err, "Role %s doesn't exist", p->ast->grantee);
    if (named_exists(a, &p->permissions.on, "Resource ")) return -1;
    uint32_t bits = p->permissions.permissions;
    if (role_granted(role, p->permissions.text, p->give ? bits : 0, p->give ? 0 : bits, a->r->arena, &next))
        return err_nomem(a->r->err);
    return put(a, &next);
}

/* ---- run ---- */

static enum cql_outcome apply_change(struct cql_request *r) {
    const struct grant_plan *p = r->compiled->plan;
    struct access_control *access = r->db->options.access;
    struct asker a;
    if (!access) return asker_init(&a, r, NULL) ? CQL_FAILED : CQL_DONE;
    const struct role_set *roles = access_begin(access);
    int rc = asker_init(&a, r, roles);
    if (!rc) rc = p->ast->granted_role ? change_membership(&a, p) : change_permissions(&a, p);
    access_end(access);
    return rc ? CQL_FAILED : CQL_DONE;
}

static enum cql_outcome run_change(struct cql_request *r, const struct cql_statement *s) {
    (void)s;
    r->work_class = WORK_DDL;
    if (!r->blocking) return CQL_OFFLOAD;
    r->apply = apply_change;
    return CQL_DONE;
}

const struct statement_ops grant_ops = {.compile = compile_grant, .run = run_change};
const struct statement_ops revoke_ops = {.compile = compile_revoke, .run = run_change};
