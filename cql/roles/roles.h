/* Statements about roles: CREATE, ALTER and DROP, GRANT and REVOKE, LIST. access/ holds the roles
 * themselves. Inside cql only.
 *
 * Life of one that changes: compile resolves the names. The statement runs on a thread for DDL,
 * between access_begin and access_end: it checks permission, then validity, and then makes the
 * change. All error texts are Cassandra's.
 */
#pragma once

#include "access/access.h"
#include "cql/request/db.h"
#include "cql/request/statement.h"
#include "cql/syntax/ast_other.h"

extern const struct statement_ops role_ops, grant_ops, list_roles_ops, identity_ops;

/* The role that makes a request, as a set of roles describes it. */
struct principal {
    struct cql_run *r;
    const struct role_set *roles;
    const char *role;
    bool superuser;
};

/* Returns -1 with ERR_UNAUTHORIZED if the connection has not logged in. */
int principal_init(struct principal *a, struct cql_run *r, const struct role_set *roles) MUST_CHECK;
/* Returns -1 with ERR_UNAUTHORIZED if the role does not have the permission on the resource. */
int principal_require(const struct principal *a, enum permission p, const struct resource *on) MUST_CHECK;
/* As principal_require, but the error names the permission and the resource, roles too. */
int principal_require_by_name(const struct principal *a, enum permission p, const struct resource *on) MUST_CHECK;

/* Puts a changed role into the roles, between access_begin and access_end. */
int principal_put(struct principal *a, const struct role *role) MUST_CHECK;

/* The plan of a statement that changes roles begins with this; roles_run runs it. */
struct roles_change {
    int (*change)(struct principal *a, const void *plan); /* between access_begin and access_end */
};
enum cql_outcome roles_run(struct cql_run *r, const struct cql_statement *s);

/* Returns resource_text in the arena, or NULL if memory is exhausted. */
const char *resource_name(struct arena *a, const struct resource *on) MUST_CHECK;
/* The permissions and the resource that a GRANT, REVOKE or (listed) LIST names, in the statement's
 * arena. ERR_SYNTAX when none of the permissions applies to the resource, except for LIST. */
struct named_permissions {
    bool on_any; /* LIST without ON */
    struct resource on;
    const char *text; /* resource_text */
    uint32_t permissions;
};
int named_permissions(struct compile *c, const struct ast_permissions *p, const struct ast_resource *on, bool listed,
                      struct named_permissions *out) MUST_CHECK;
/* Returns -1 with ERR_INVALID if the table, keyspace or role does not exist. The text is the prefix and
 * "<table k.t> doesn't exist". */
int named_exists(const struct principal *a, const struct resource *on, const char *prefix) MUST_CHECK;
