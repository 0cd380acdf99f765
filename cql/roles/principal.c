#include "cql/roles/roles.h"

#include "cql/expr/term.h"

int principal_init(struct principal *a, struct cql_run *r, const struct role_set *roles) {
    *a = (struct principal){.r = r, .roles = roles, .role = r->session->role};
    if (!r->db->options.access || !a->role)
        return err_set(r->err, ERR_UNAUTHORIZED, "You have to be logged in and not anonymous to perform this request");
    a->superuser = role_is_superuser(roles, a->role);
    return 0;
}

int principal_require_by_name(const struct principal *a, enum permission p, const struct resource *on) {
    struct buf text;
    if (role_permissions(a->roles, a->role, on) & 1u << p) return 0;
    buf_init(&text, 0);
    permission_missing(p, a->role, on, &text);
    return err_set_buf(a->r->err, ERR_UNAUTHORIZED, &text);
}

int principal_require(const struct principal *a, enum permission p, const struct resource *on) {
    bool is_data = on->kind <= RESOURCE_OF_TABLE || on->kind >= RESOURCE_OF_ALL_FUNCTIONS;
    if (is_data) return principal_require_by_name(a, p, on);
    if (role_permissions(a->roles, a->role, on) & 1u << p) return 0;
    return err_set(a->r->err, ERR_UNAUTHORIZED,
                   "User %s does not have sufficient privileges to perform the requested operation", a->role);
}

int principal_put(struct principal *a, const struct role *role) {
    const struct role_set *next = access_put(a->r->db->options.access, role, a->r->err);
    if (next) a->roles = next;
    return next ? 0 : -1;
}

/* ---- run ---- */

static enum cql_outcome apply(struct cql_run *r) {
    const struct roles_change *plan = r->compiled->plan;
    struct access_control *access = r->db->options.access;
    struct principal a;
    if (!access) return principal_init(&a, r, NULL) ? CQL_FAILED : CQL_DONE;
    int rc = ACCESS_AGAIN;
    while (rc == ACCESS_AGAIN) {
        rc = principal_init(&a, r, access_begin(access));
        if (!rc) rc = plan->change(&a, plan);
        rc = access_end(access, rc, r->err);
    }
    return rc ? CQL_FAILED : CQL_DONE;
}

enum cql_outcome roles_run(struct cql_run *r, const struct cql_statement *s) {
    (void)s;
    r->answer.work_class = WORK_DDL;
    if (!r->blocking) return CQL_OFFLOAD;
    r->apply = apply;
    return CQL_DONE;
}

/* ---- what statements name ---- */

const char *resource_name(struct arena *a, const struct resource *on) {
    struct buf text;
    buf_init(&text, 0);
    resource_text(on, &text);
    return (const char *)arena_take(a, &text).p;
}

static int refuse_unknown(struct compile *c, const char *kind, struct slice name) {
    return err_invalid(c->err, "Resource <%s %.*s> doesn't exist", kind, SLICE_FMT(name));
}

static int resource_of(struct compile *c, const struct ast_resource *from, bool listed, struct resource *out) {
    static const enum resource_kind kinds[] = {[RESOURCE_ALL_KEYSPACES] = RESOURCE_OF_ALL_KEYSPACES,
                                               [RESOURCE_KEYSPACE] = RESOURCE_OF_KEYSPACE,
                                               [RESOURCE_ALL_TABLES] = RESOURCE_OF_ALL_TABLES,
                                               [RESOURCE_TABLE] = RESOURCE_OF_TABLE,
                                               [RESOURCE_ALL_ROLES] = RESOURCE_OF_ALL_ROLES,
                                               [RESOURCE_ROLE] = RESOURCE_OF_ROLE,
                                               [RESOURCE_ALL_FUNCTIONS] = RESOURCE_OF_ALL_FUNCTIONS,
                                               [RESOURCE_ALL_FUNCTIONS_IN] = RESOURCE_OF_ALL_FUNCTIONS_IN,
                                               [RESOURCE_ALL_MBEANS] = RESOURCE_OF_ALL_MBEANS};
    switch (from->kind) {
    case RESOURCE_FUNCTION: {
        /* Refuses a function: the server has built-in ones only, which take no grants. */
        const char *keyspace = from->name.keyspace;
        if (!keyspace)
            return err_invalid(c->err, "In this context function name must be explictly qualified by a keyspace");
        if (from->n_args && !schema_keyspace_find(c->schema, keyspace))
            return err_set(c->err, ERR_CONFIG, "Keyspace %s doesn't exist", keyspace);
        for (uint32_t i = 0; i < from->n_args; i++)
            if (!compile_type_in(c, keyspace, from->arg_types[i])) return -1;
        if (!listed && strcmp(keyspace, "system") == 0)
            return err_invalid(c->err, "Altering permissions on builtin functions is not supported");
        return refuse_unknown(c, "function", slice_str(from->name.name));
    }
    case RESOURCE_MBEAN: case RESOURCE_MBEANS: return refuse_unknown(c, "mbean", from->mbean);
    case RESOURCE_TABLE:
        *out = (struct resource){RESOURCE_OF_TABLE, from->name.keyspace ? from->name.keyspace : c->keyspace,
                                 from->name.name};
        if (out->keyspace && *out->keyspace) return 0;
        return err_invalid(c->err,
                           "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename");
    default: *out = (struct resource){kinds[from->kind], from->name.name, from->name.name}; return 0;
    }
}

/* Both lists are Cassandra's, in its order. */
_Static_assert((int)PERMISSION_CREATE == MAY_CREATE && (int)PERMISSION_AUTHORIZE == MAY_AUTHORIZE &&
                   (int)PERMISSION_SELECT_MASKED == MAY_SELECT_MASKED && PERMISSIONS == PERMISSION_SELECT_MASKED + 1,
               "the grammar's permissions are those of access/permission.def");

int named_permissions(struct compile *c, const struct ast_permissions *p, const struct ast_resource *on, bool listed,
                      struct named_permissions *out) {
    *out = (struct named_permissions){.on_any = on->kind == RESOURCE_NONE, .permissions = p->n ? 0 : PERMISSIONS_ALL};
    for (uint32_t i = 0; i < p->n; i++) out->permissions |= 1u << p->items[i];
    if (out->on_any) return 0;
    if (resource_of(c, on, listed, &out->on)) return -1;
    if (!listed) out->permissions &= resource_permissions(&out->on);
    if (!out->permissions)
        return err_set(c->err, ERR_SYNTAX, "Resource type %s does not support any of the requested permissions",
                       resource_class(&out->on));
    out->text = resource_name(c->arena, &out->on);
    return out->text ? 0 : err_nomem(c->err);
}

int named_exists(const struct principal *a, const struct resource *on, const char *prefix) {
    const struct schema *schema = catalog_schema(a->r->db->options.catalog);
    struct buf text;
    bool there = true;
    if (on->kind == RESOURCE_OF_TABLE) there = schema_table_any(schema, on->keyspace, on->name) != NULL;
    else if (on->kind == RESOURCE_OF_KEYSPACE || on->kind == RESOURCE_OF_ALL_TABLES ||
             on->kind == RESOURCE_OF_ALL_FUNCTIONS_IN)
        there = schema_keyspace_find(schema, on->keyspace) != NULL;
    else if (on->kind == RESOURCE_OF_ROLE) there = role_find(a->roles, on->name) != NULL;
    schema_unref(schema);
    if (there) return 0;
    buf_init(&text, 0);
    buf_put_str(&text, prefix);
    resource_show(on, &text);
    buf_put_str(&text, " doesn't exist");
    return err_set_buf(a->r->err, ERR_INVALID, &text);
}
