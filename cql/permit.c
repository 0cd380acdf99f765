#include "cql/permit.h"

#include "access/access.h"
#include "cql/request/db.h"
#include "cql/roles/roles.h"
#include "cql/schema/ddl.h"
#include "cql/write/modify.h"
#include "cql/write/write.h"

/* ---- what statements need ---- */

struct permit_need {
    uint32_t permissions; /* bits; none: anyone may */
    bool superuser;       /* and no other role, whatever it was granted */
    struct resource on;
};

static struct permit_need need_of(const struct cql_statement *s) {
    static const struct {
        uint32_t permissions;
        enum resource_kind resource;
    } rows[STMT_KINDS] = {
#define NEEDS(p) (1u << MAY_##p)
#define STMT(id, words, functions, permission, resource, ...) [STMT_##id] = {permission, RESOURCE_OF_##resource},
#include "cql/syntax/stmt.def"
#undef STMT
#undef NEEDS
    };
    enum stmt_category category = stmt_category(s->kind);
    struct permit_need need = {.permissions = rows[s->kind].permissions,
                               .on = {.kind = rows[s->kind].resource, .keyspace = s->keyspace}};
    if (s->change) {
        need.on.keyspace = s->change->keyspace;
        need.on.name = s->change->name;
    } else if (s->table) {
        need.on.keyspace = s->table->keyspace->name;
        need.on.name = s->table->name;
    }
    if (category == STMT_IS_QUERY && s->table->keyspace->is_system) { /* tables that every driver and tool reads */
        static const char *const keyspaces[] = {"system_schema", "system_virtual_schema", "system_traces",
                                                "system_schema_mcs", "system_multiregion_info"};
        static const char *const of_system[] = {"local", "peers", "peers_v2"};
        bool all = false;
        for (size_t i = 0; i < ARRAY_LEN(keyspaces); i++) all = all || !strcmp(need.on.keyspace, keyspaces[i]);
        for (size_t i = 0; i < ARRAY_LEN(of_system); i++)
            all = all || (!strcmp(need.on.keyspace, "system") && !strcmp(need.on.name, of_system[i]));
        if (all) need.permissions = 0;
    }
    /* a condition reveals stored data, so it reads, too */
    if (category == STMT_IS_DML && ((const struct modify_plan *)s->plan)->conditional)
        need.permissions |= 1u << MAY_SELECT;
    /* Writes to system_control change the server: its clock, its faults, its roles (with a state that it
     * restores). Writes to system_auth change roles. */
    need.superuser = category != STMT_IS_QUERY && need.on.keyspace &&
                     (!strcmp(need.on.keyspace, "system_control") ||
                      (category == STMT_IS_DML && !strcmp(need.on.keyspace, "system_auth")));
    return need;
}

/* ---- asking ---- */

static int ask_roles(struct cql_run *r, const struct cql_statement *s, const struct permit_need *need) {
    struct access_control *access = r->db->options.access;
    static const enum permission in_order[] = {MAY_CREATE, MAY_ALTER,  MAY_DROP,
                                               MAY_MODIFY, MAY_SELECT, MAY_AUTHORIZE}; /* as Cassandra asks */
    uint64_t generation = access_generation(access);
    struct principal a;
    /* The session keeps the answer to its newest question while no role has changed. */
    bool remembered = s && s->table && r->session->permitted.generation == generation &&
                      !(need->permissions & ~r->session->permitted.permissions) &&
                      !memcmp(r->session->permitted.table, s->table->id, sizeof(r->session->permitted.table));
    if (!need->superuser && remembered) return 0;
    const struct role_set *roles = access_roles(access);
    int rc = principal_init(&a, r, roles);
    if (!rc && need->superuser && !a.superuser)
        rc = err_set(r->err, ERR_UNAUTHORIZED, "Only superusers may change %s", need->on.keyspace ? need->on.keyspace
                     : "the server");
    for (size_t i = 0; i < ARRAY_LEN(in_order) && !rc; i++)
        if (need->permissions & 1u << in_order[i]) rc = principal_require(&a, in_order[i], &need->on);
    if (!rc && s && s->table) {
        r->session->permitted.generation = generation;
        r->session->permitted.permissions = need->permissions;
        memcpy(r->session->permitted.table, s->table->id, sizeof(r->session->permitted.table));
    }
    role_set_unref(roles);
    return rc;
}

static int ask(struct cql_run *r, const struct cql_statement *s) {
    struct permit_need need = need_of(s);
    if (s->table && s->table->keyspace->is_system && !strcmp(s->table->keyspace->name, "system_traces")) {
        /* A trace shows the values that another role's statement wrote or read, in any table. Cassandra
         * shows all traces to every role. Here a role that may not select from all keyspaces sees only its own. */
        struct err ignored = {0};
        struct cql_run quiet = *r;
        const struct permit_need all = {.permissions = 1u << MAY_SELECT, .on = {.kind = RESOURCE_OF_ALL_KEYSPACES}};
        quiet.err = &ignored;
        r->own_traces_only = ask_roles(&quiet, NULL, &all) != 0;
    }
    if (need.permissions && ask_roles(r, s, &need)) return -1;
    if (s->kind != STMT_RESTORE_TABLE) return 0;
    /* RESTORE TABLE reads the source table, so it needs SELECT on that table. */
    need = (struct permit_need){.permissions = 1u << MAY_SELECT,
                                .on = {RESOURCE_OF_TABLE, s->change->from_keyspace, s->change->from_name}};
    return ask_roles(r, s, &need);
}

int cql_permit(struct cql_run *r, const struct cql_statement *s) {
    uint32_t n = 0;
    if (LIKELY(!r->db->options.access)) return 0;
    if (s->kind != STMT_BATCH) return ask(r, s);
    const struct cql_statement *const *all = batch_statements(s, &n);
    for (uint32_t i = 0; i < n; i++)
        if (ask(r, all[i])) return -1;
    return 0;
}

/* ---- creators ---- */

/* Whether the session's role gets all permissions on an object that the statement creates. */
static bool grants_to_creator(const struct cql_run *r, struct resource *on) {
    const struct cql_statement *s = r->compiled;
    if (LIKELY(!r->db->options.access) || !s || !r->session->role) return false;
    if (s->kind != STMT_CREATE_KEYSPACE && s->kind != STMT_CREATE_TABLE && s->kind != STMT_RESTORE_TABLE) return false;
    *on = (struct resource){s->kind == STMT_CREATE_KEYSPACE ? RESOURCE_OF_KEYSPACE : RESOURCE_OF_TABLE,
                            s->change->keyspace, s->change->name};
    return true;
}

int cql_permit_creation(struct cql_run *r) {
    struct resource on;
    if (!grants_to_creator(r, &on)) return 0;
    const char *text = resource_name(r->arena, &on);
    if (!text) return err_nomem(r->err);
    const struct schema *schema = catalog_schema(r->db->options.catalog);
    bool exists = on.kind == RESOURCE_OF_KEYSPACE ? schema_keyspace_find(schema, on.keyspace) != NULL
                                                  : schema_table_any(schema, on.keyspace, on.name) != NULL;
    schema_unref(schema);
    if (exists) return 0; /* the statement creates nothing */
    const struct role_set *roles = access_roles(r->db->options.access);
    const struct role *role = role_find(roles, r->session->role);
    bool refused = role && !role_has_room(role, text) && !role_is_superuser(roles, role->name);
    role_set_unref(roles);
    return refused ? access_no_room(r->err) : 0;
}

int cql_permit_creator(struct cql_run *r) {
    struct resource on;
    if (!grants_to_creator(r, &on)) return 0;
    struct access_control *access = r->db->options.access;
    const char *text = resource_name(r->arena, &on);
    if (!text) return err_nomem(r->err);
    bool full = false;
    int rc = ACCESS_AGAIN;
    while (rc == ACCESS_AGAIN) {
        const struct role_set *roles = access_begin(access);
        /* Grants nothing if the object that the statement made is gone already: another object may have
         * its name (A3 of access.h). */
        bool there = catalog_has_object(r->db->options.catalog, r->answer.result.change->object);
        const struct role *role = there ? role_find(roles, r->session->role) : NULL;
        struct role next;
        rc = 0;
        full = role && !role_has_room(role, text);
        if (full) role = NULL;
        if (role && role_granted(role, text, resource_permissions(&on), 0, r->arena, &next)) rc = err_nomem(r->err);
        else if (role) rc = access_put(access, &next, r->err) ? 0 : -1;
        bool warns = full && !role_is_superuser(roles, r->session->role);
        if (warns) rc = cql_warn(r, "Role %s may have permissions on at most %d resources and got none on %s",
                                 r->session->role, ROLE_GRANTS_MAX, text);
        rc = access_end(access, rc, r->err);
    }
    return rc;
}
