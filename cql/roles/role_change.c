/* CREATE, ALTER and DROP ROLE and USER. */
#include "access/password.h"
#include "cql/roles/roles.h"

/* ---- options ---- */

static int refuse_list(struct err *e, const char *before, uint32_t n, const struct slice *items, const char *after) {
    struct buf text;
    buf_init(&text, 0);
    buf_put_str(&text, before);
    for (uint32_t i = 0; i < n; i++) buf_printf(&text, "%s%.*s", i ? ", " : "", SLICE_FMT(items[i]));
    buf_put_str(&text, after);
    return err_set_buf(e, ERR_INVALID, &text);
}

/* There is one data centre, and there are no groups of addresses and no options. */
static int check_options(const struct ast_role_options *o, struct err *e) {
    if (o->given & ROLE_OPTIONS)
        return err_invalid(e, "org.apache.cassandra.auth.CassandraRoleManager doesn't support OPTIONS");
    if (o->given & ROLE_DATACENTERS && !o->all_datacenters)
        return refuse_list(e, "Invalid value(s) for DATACENTERS '[", o->n_datacenters, o->datacenters,
                           "]',All values must be valid datacenters");
    if (o->given & ROLE_CIDRS && !o->all_cidrs)
        return refuse_list(e, "Invalid CIDR group(s): [", o->n_cidrs, o->cidrs, "]. Available CIDR Groups are: []");
    return 0;
}

/* Computes the hash of the password that a statement gives. This is slow, so it is done before the roles
 * are locked. Sets *hash to NULL if the statement gives none. */
static int hash_given(struct cql_run *r, const struct ast_role_options *o, char room[PASSWORD_HASH_MAX],
                      const char **hash) {
    *hash = NULL;
    if (!(o->given & (ROLE_PASSWORD | ROLE_HASHED_PASSWORD))) return 0;
    const char *password = (const char *)arena_dup(r->arena, o->password).p;
    if (!password) return err_nomem(r->err);
    if (strlen(password) != o->password.n) return err_invalid(r->err, "A password must not hold the character 0");
    if (o->given & ROLE_HASHED_PASSWORD) {
        *hash = password;
        enum password_form form = password_form(password);
        if (form == PASSWORD_IS_TOO_SLOW)
            return err_invalid(r->err, "The cost of a hashed password may be at most %d", PASSWORD_COST_MAX);
        return form == PASSWORD_IS_HASH ? 0 : err_invalid(r->err, "Invalid hashed password value. Please use jBcrypt.");
    }
    *hash = room;
    return password_hash(password, room, r->err);
}

static void take_options(struct role *role, const struct ast_role_options *o, const char *hash) {
    if (o->given & ROLE_SUPERUSER) role->superuser = o->superuser;
    if (o->given & ROLE_LOGIN) role->login = o->login;
    if (hash) role->hash = hash;
}

/* ---- CREATE ---- */

static int may_create(const struct principal *a, const struct ast_role *role) {
    const struct resource roles = {.kind = RESOURCE_OF_ALL_ROLES};
    const struct ast_role_options *o = &role->options;
    if (principal_require(a, MAY_CREATE, &roles)) return -1;
    if (!(o->given & ROLE_SUPERUSER) || !o->superuser || a->superuser) return 0;
    return err_set(a->r->err, ERR_UNAUTHORIZED, "Only superusers can create a role with superuser status");
}

static int create(struct principal *a, const struct ast_role *role, const char *hash) {
    if (may_create(a, role)) return -1;
    if (!*role->name) return err_invalid(a->r->err, "Role name can't be an empty string");
    if (role_find(a->roles, role->name))
        return role->if_not_exists ? 0 : err_invalid(a->r->err, "%s already exists", role->name);
    struct role made = {.name = role->name, .hash = "", .login = role->user};
    take_options(&made, &role->options, hash);
    if (principal_put(a, &made)) return -1;
    /* The creator may do everything with the role. */
    const struct resource on = {.kind = RESOURCE_OF_ROLE, .name = role->name};
    const char *text = resource_name(a->r->arena, &on);
    const struct role *creator = role_find(a->roles, a->role);
    struct role next;
    if (!text) return err_nomem(a->r->err);
    if (a->superuser && !role_has_room(creator, text)) return 0;
    if (role_granted(creator, text, resource_permissions(&on), 0, a->r->arena, &next)) return err_nomem(a->r->err);
    return principal_put(a, &next);
}

/* ---- ALTER ---- */

static int may_alter(const struct principal *a, const struct ast_role *role) {
    const struct resource on = {.kind = RESOURCE_OF_ROLE, .name = role->name};
    const struct ast_role_options *o = &role->options;
    if (o->given & ROLE_SUPERUSER && role_is_member(a->roles, a->role, role->name))
        return err_set(a->r->err, ERR_UNAUTHORIZED,
                       "You aren't allowed to alter your own superuser status or that of a role granted to you");
    if (o->given & ROLE_SUPERUSER && !a->superuser)
        return err_set(a->r->err, ERR_UNAUTHORIZED, "Only superusers are allowed to alter superuser status");
    if (a->superuser) return 0;
    if (strcmp(a->role, role->name)) return principal_require(a, MAY_ALTER, &on);
    /* A role without the permission to alter itself may change only its own password. */
    if (o->given & ROLE_LOGIN) return err_set(a->r->err, ERR_UNAUTHORIZED, "You aren't allowed to alter LOGIN");
    if (o->given & ROLE_SUPERUSER) return err_set(a->r->err, ERR_UNAUTHORIZED, "You aren't allowed to alter SUPERUSER");
    if (o->given & ROLE_OPTIONS) return err_set(a->r->err, ERR_UNAUTHORIZED, "You aren't allowed to alter OPTIONS");
    return 0;
}

static int alter(struct principal *a, const struct ast_role *role, const char *hash) {
    if (may_alter(a, role)) return -1;
    if (!role->options.given) return err_invalid(a->r->err, "ALTER [ROLE|USER] can't be empty");
    const struct role *now = role_find(a->roles, role->name);
    if (!now) return role->if_exists ? 0 : err_invalid(a->r->err, "Role %s doesn't exist", role->name);
    struct role next = *now;
    take_options(&next, &role->options, hash);
    return principal_put(a, &next);
}

/* ---- DROP ---- */

static int drop(const struct principal *a, const struct ast_role *role) {
    const struct resource on = {.kind = RESOURCE_OF_ROLE, .name = role->name};
    if (principal_require(a, MAY_DROP, &on)) return -1;
    const struct role *now = role_find(a->roles, role->name);
    if (now && role_is_superuser(a->roles, role->name) && !a->superuser)
        return err_set(a->r->err, ERR_UNAUTHORIZED, "Only superusers can drop a role with superuser status");
    if (!now) return role->if_exists ? 0 : err_invalid(a->r->err, "%s doesn't exist", role->name);
    if (!strcmp(a->role, role->name)) return err_invalid(a->r->err, "Cannot DROP primary role for current login");
    return access_drop(a->r->db->options.access, role->name, a->r->err) ? 0 : -1;
}

/* ---- run ---- */

static enum cql_outcome change_roles(struct cql_run *r) {
    enum stmt_kind kind = r->compiled->kind;
    const struct ast_role *role = &r->compiled->ast->other->role;
    struct access_control *access = r->db->options.access;
    struct principal a;
    char room[PASSWORD_HASH_MAX];
    const char *hash;
    if (!access) {
        /* Refuses the change when the server runs without log-ins; the errors come in Cassandra's order. */
        const struct ast_role_options *o = &role->options;
        struct principal nobody;
        if (check_options(o, r->err)) return CQL_FAILED;
        if (r->compiled->kind == STMT_ALTER_ROLE && o->given & ROLE_SUPERUSER)
            err_set(r->err, ERR_UNAUTHORIZED, "Only superusers are allowed to alter superuser status");
        else if (o->given & (ROLE_PASSWORD | ROLE_HASHED_PASSWORD))
            err_invalid(r->err, "org.apache.cassandra.auth.CassandraRoleManager doesn't support %s",
                        o->given & ROLE_PASSWORD ? "PASSWORD" : "HASHED_PASSWORD");
        return r->err->set || principal_init(&nobody, r, NULL) ? CQL_FAILED : CQL_DONE;
    }
    /* The permission check comes first: a role that may not make the change sees no other error. */
    const struct role_set *roles = access_roles(access);
    int rc = principal_init(&a, r, roles);
    if (!rc && kind == STMT_CREATE_ROLE) rc = may_create(&a, role);
    if (!rc && kind == STMT_ALTER_ROLE) rc = may_alter(&a, role);
    role_set_unref(roles);
    if (rc || check_options(&role->options, r->err) || hash_given(r, &role->options, room, &hash))
        return CQL_FAILED;
    for (rc = ACCESS_AGAIN; rc == ACCESS_AGAIN;) {
        rc = principal_init(&a, r, access_begin(access));
        if (!rc)
            rc = kind == STMT_CREATE_ROLE  ? create(&a, role, hash)
                 : kind == STMT_ALTER_ROLE ? alter(&a, role, hash)
                                           : drop(&a, role);
        rc = access_end(access, rc, r->err);
    }
    return rc ? CQL_FAILED : CQL_DONE;
}

static int compile_role(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    (void)c, (void)ast, (void)out;
    return 0;
}

static enum cql_outcome run_role(struct cql_run *r, const struct cql_statement *s) {
    (void)s;
    r->answer.work_class = WORK_DDL;
    if (!r->blocking) return CQL_OFFLOAD;
    r->apply = change_roles;
    return CQL_DONE;
}

const struct statement_ops role_ops = {.compile = compile_role, .run = run_role};
