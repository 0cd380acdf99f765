#include "access/system_auth.h"

#include <stdlib.h>

#include "system_schema/system_tables/row_out.h"

#define YIELDS_AUTH(name) static int yield_auth_##name(struct row_out *ro)

/* Calls emit for every role. */
typedef int (*emit_fn)(struct row_out *ro, const struct role *r);

static int each_role(struct row_out *ro,
                     emit_fn emit) {
    const struct system_auth *a = ro->table->virt->owner;
    if (!a->access) return 0;
    const struct role_set *roles = access_roles(a->access);
    int rc = 0;
    for (uint32_t i = 0; i < roles->n && !rc; i++) rc = emit(ro, role_at(roles, i));
    role_set_unref(roles);
    return rc;
}

/* Values point into the role; the row is consumed before each_role releases the set. */
static int emit_role(struct row_out *ro, const struct role *r) {
    row_text(ro, "role", r->name);
    row_bool(ro, "can_login", r->login);
    row_bool(ro, "is_superuser", r->superuser);
    if (r->n_member_of) row_texts(ro, "member_of", r->n_member_of, r->member_of);
    if (*r->hash) row_text(ro, "salted_hash", r->hash);
    return row_out_emit(ro);
}

static int emit_memberships(struct row_out *ro, const struct role *r) {
    for (uint32_t i = 0; i < r->n_member_of; i++) {
        row_text(ro, "role", r->member_of[i]);
        row_text(ro, "member", r->name);
        if (row_out_emit(ro)) return -1;
    }
    return 0;
}

static int by_text(const void *x, const void *y) { return strcmp(*(const char *const *)x, *(const char *const *)y); }

static int emit_grants(struct row_out *ro, const struct role *r) {
    for (uint32_t i = 0; i < r->n_grants; i++) {
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

static int emit_resources(struct row_out *ro, const struct role *r) {
    for (uint32_t i = 0; i < r->n_grants; i++) {
        row_text(ro, "resource", r->grants[i].resource);
        row_text(ro, "role", r->name);
        if (row_out_emit(ro)) return -1;
    }
    return 0;
}

static int emit_identities(struct row_out *ro, const struct role *r) {
    for (uint32_t i = 0; i < r->n_identities; i++) {
        row_text(ro, "identity", r->identities[i]);
        row_text(ro, "role", r->name);
        if (row_out_emit(ro)) return -1;
    }
    return 0;
}

static int emit_nothing(struct row_out *ro, const struct role *r) {
    (void)ro, (void)r;
    return 0;
}

YIELDS_AUTH(roles) { return each_role(ro, emit_role); }
YIELDS_AUTH(role_members) { return each_role(ro, emit_memberships); }
YIELDS_AUTH(role_permissions) { return each_role(ro, emit_grants); }
YIELDS_AUTH(resource_role_permissons_index) { return each_role(ro, emit_resources); }
YIELDS_AUTH(network_permissions) { return each_role(ro, emit_nothing); }
YIELDS_AUTH(identity_to_role) { return each_role(ro, emit_identities); }

void system_auth_tables(struct system_auth *a, struct virtual_table tables[AUTH_TABLES]) {
#define AUTH_TABLE(name_, comment_, columns_) \
    tables[AUTH_TABLE_##name_] = (struct virtual_table){.keyspace = "system_auth", \
                                                        .name = #name_, \
                                                        .comment = comment_, \
                                                        .columns = columns_, \
                                                        .virt = {.owner = a, .yield = yield_auth_##name_}};
#include "access/system_auth.def"
#undef AUTH_TABLE
}
