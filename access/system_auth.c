#include "access/system_auth.h"

#include <stdlib.h>

#include "access/password.h"
#include "system_schema/system_tables/row_out.h"

static int by_text(const void *x, const void *y) { return strcmp(*(const char *const *)x, *(const char *const *)y); }

/* A row of two texts for each name. */
static int emit_pairs(struct row_out *ro, uint32_t n, const char *const *names, const char *column, const char *other,
                      const struct role *r) {
    for (uint32_t i = 0; i < n; i++) {
        row_text(ro, column, names[i]);
        row_text(ro, other, r->name);
        if (row_out_emit(ro)) return -1;
    }
    return 0;
}

/* The rows of one role in a table. */
static int emit_role(struct row_out *ro, const struct role *r, int table) {
    switch (table) {
    case AUTH_TABLE_roles:
        row_text(ro, "role", r->name);
        row_bool(ro, "can_login", r->login);
        row_bool(ro, "is_superuser", r->superuser);
        if (r->n_member_of) row_texts(ro, "member_of", r->n_member_of, r->member_of);
        if (*r->hash) row_text(ro, "salted_hash", r->hash);
        return row_out_emit(ro);
    case AUTH_TABLE_role_members: return emit_pairs(ro, r->n_member_of, r->member_of, "role", "member", r);
    case AUTH_TABLE_identity_to_role: return emit_pairs(ro, r->n_identities, r->identities, "identity", "role", r);
    case AUTH_TABLE_network_permissions: return 0;
    default: break;
    }
    for (uint32_t i = 0; i < r->n_grants; i++) { /* role_permissions, resource_role_permissons_index */
        const char *names[PERMISSIONS];
        uint32_t n = 0;
        for (int k = 0; k < PERMISSIONS; k++)
            if (r->grants[i].permissions & 1u << k) names[n++] = permission_name((enum permission)k);
        qsort(names, n, sizeof(names[0]), by_text);
        row_text(ro, "role", r->name);
        row_text(ro, "resource", r->grants[i].resource);
        row_texts(ro, "permissions", n, names);
        if (row_out_emit(ro)) return -1;
    }
    return 0;
}

/* Values point into the roles; each row is consumed before the set is released. */
static int each_role(struct row_out *ro, int table) {
    const struct system_auth *a = ro->table->virt->owner;
    if (!a->access) return 0;
    const struct role_set *roles = access_roles(a->access);
    int rc = 0;
    for (uint32_t i = 0; i < roles->n && !rc; i++) rc = emit_role(ro, role_at(roles, i), table);
    role_set_unref(roles);
    return rc;
}

/* ---- UPDATE roles ---- */

/* Puts the given values into the role, as a row of system_auth.roles in Cassandra takes them. */
static int take_values(const struct schema_table *t, const struct virtual_change *change, struct arena *a,
                       struct role *role, struct err *e) {
    struct value login = virtual_given(change, t, "can_login"), superuser = virtual_given(change, t, "is_superuser"),
                 hash = virtual_given(change, t, "salted_hash");
    if (!value_is_unset(virtual_given(change, t, "member_of")))
        return err_invalid(e, "member_of of system_auth.roles cannot be written; use GRANT and REVOKE");
    if (!value_is_unset(login)) role->login = login.n == 1 && *login.p;
    if (!value_is_unset(superuser)) role->superuser = superuser.n == 1 && *superuser.p;
    if (value_is_unset(hash)) return 0;
    const char *text = value_is_null(hash) ? "" : (const char *)arena_dup(a, value_slice(hash)).p;
    if (!text) return err_nomem(e);
    enum password_form form = hash.n <= 0                             ? PASSWORD_IS_HASH
                              : strlen(text) != value_slice(hash).n ? PASSWORD_IS_NO_HASH
                                                                      : password_form(text);
    if (form == PASSWORD_IS_TOO_SLOW)
        return err_invalid(e, "The cost of a hashed password may be at most %d", PASSWORD_COST_MAX);
    if (form != PASSWORD_IS_HASH) return err_invalid(e, "Invalid hashed password value. Please use jBcrypt.");
    role->hash = text;
    return 0;
}

static int write_roles(const struct virtual_context *ctx, const struct schema_table *t,
                       const struct virtual_change *change) {
    struct access_control *access = ((const struct system_auth *)t->virt->owner)->access;
    struct role given = {0};
    int rc = ACCESS_AGAIN;
    if (!access) return err_set(ctx->err, ERR_UNAUTHORIZED, "%s keyspace is not user-modifiable.", t->keyspace->name);
    if (change->kind == VIRTUAL_DELETE)
        return err_invalid(ctx->err, "Rows of system_auth.roles cannot be deleted; use DROP ROLE");
    const char *name = (const char *)arena_dup(ctx->arena, value_slice(change->values[0])).p;
    if (!name) return err_nomem(ctx->err);
    if (take_values(t, change, ctx->arena, &given, ctx->err)) return -1; /* bcrypt is slow, so before the lock */
    while (rc == ACCESS_AGAIN) {
        const struct role_set *roles = access_begin(access);
        const struct role *now = strlen(name) == value_slice(change->values[0]).n ? role_find(roles, name) : NULL;
        struct role next = now ? *now : given;
        if (!value_is_unset(virtual_given(change, t, "can_login"))) next.login = given.login;
        if (!value_is_unset(virtual_given(change, t, "is_superuser"))) next.superuser = given.superuser;
        if (given.hash) next.hash = given.hash;
        if (!now) rc = err_invalid(ctx->err, "Role %s doesn't exist; use CREATE ROLE", name);
        else rc = access_put(access, &next, ctx->err) ? 0 : -1;
        rc = access_end(access, rc, ctx->err);
    }
    return rc;
}

#define AUTH_TABLE(name, ...) \
    static int yield_auth_##name(struct row_out *ro) { return each_role(ro, AUTH_TABLE_##name); }
#include "access/system_auth.def"
#undef AUTH_TABLE

void system_auth_tables(struct system_auth *a, struct virtual_table tables[AUTH_TABLES]) {
#define AUTH_TABLE(name_, comment_, columns_) \
    tables[AUTH_TABLE_##name_] = (struct virtual_table){.keyspace = "system_auth", \
                                                        .name = #name_, \
                                                        .comment = comment_, \
                                                        .columns = columns_, \
                                                        .gc_grace = 7776000, \
                                                        .virt = {.owner = a, .yield = yield_auth_##name_}};
#include "access/system_auth.def"
#undef AUTH_TABLE
    if (a->cassandra_mode) tables[AUTH_TABLE_roles].virt.write = write_roles;
}
