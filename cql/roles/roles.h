/* Statements about roles: who makes them, what they may do, who sees them. The roles themselves are
 * access/. Inside cql only.
 *
 * Life of one that changes: compile finds what it names; it runs on a thread for DDL, between
 * access_begin and access_end: may the one who asks, is it sound, then the change. All words are
 * Cassandra's.
 */
#pragma once

#include "access/access.h"
#include "cql/request/db.h"
#include "cql/request/statement.h"
#include "cql/syntax/ast_other.h"

extern const struct statement_ops create_role_ops, alter_role_ops, drop_role_ops, grant_ops, revoke_ops, list_roles_ops,
    identity_ops;

/* Who asks, as of a set of roles. */
struct asker {
    struct cql_request *r;
    const struct role_set *roles;
    const char *role;
    bool superuser;
};

/* -1 and ERR_UNAUTHORIZED when nobody has logged in. */
int asker_init(struct asker *a, struct cql_request *r, const struct role_set *roles) MUST_CHECK;
/* -1 and ERR_UNAUTHORIZED: the one who asks has no such permission on it. */
int asker_must(const struct asker *a, enum permission p, const struct resource *on) MUST_CHECK;
/* The same; the permission and the resource are named, of roles too. */
int asker_must_by_name(const struct asker *a, enum permission p, const struct resource *on) MUST_CHECK;

/* What a GRANT, REVOKE or (listed) LIST names, in the statement's arena; ERR_SYNTAX when none of
 * the permissions means anything there, but for LIST. */
struct named_permissions {
    bool on_any; /* LIST without ON */
    struct resource on;
    const char *text; /* resource_text */
    uint32_t permissions;
};
int named_permissions(struct compile *c, const struct ast_permissions *p, const struct ast_resource *on, bool listed,
                      struct named_permissions *out) MUST_CHECK;
/* -1 and ERR_INVALID when there is no such table, keyspace or role: "<table k.t> doesn't exist", behind the prefix. */
int named_exists(const struct asker *a, const struct resource *on, const char *prefix) MUST_CHECK;
