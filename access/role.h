/* Roles: their logins, memberships and permissions. A role set is an immutable snapshot that all
 * threads share; access/access.h makes the next one.
 */
#pragma once

#include <stdatomic.h>

#include "access/resource.h"
#include "base/arena.h"
#include "base/err.h"

/* Limits on one role and on the number of roles. A statement that would exceed one fails with
 * ERR_INVALID and changes nothing. A superuser has all permissions without grants: at ROLE_GRANTS_MAX
 * it creates further objects and gets no grants on them. */
enum {
    ROLES_MAX = 10000,
    ROLE_NAME_MAX = 255,
    ROLE_GRANTS_MAX = 10000,
    ROLE_MEMBERSHIPS_MAX = 1000,
    ROLE_IDENTITIES_MAX = 1000
};

struct grant {
    const char *resource; /* resource_text */
    uint32_t permissions; /* bits; never 0 */
};

struct role {
    const char *name, *hash; /* hash: access/password.h; empty: no password */
    bool superuser, login;
    uint32_t n_member_of, n_grants;
    const char *const *member_of; /* sorted */
    const struct grant *grants;   /* sorted by resource */
    uint32_t n_identities;
    const char *const *identities; /* sorted; of certificates that log in as it, each in at most one role */
};

struct role_cell; /* one role, reference-counted */

struct role_set {
    atomic_uint refs;
    uint32_t n;
    struct role_cell **cells; /* sorted by name */
};

const struct role *role_at(const struct role_set *s, uint32_t i);
const struct role *role_find(const struct role_set *s, const char *name);
void role_set_ref(const struct role_set *s);
void role_set_unref(const struct role_set *s);
/* Returns a set in which role replaces the role of that name or is added; with role NULL, the set
 * without that name. Returns NULL if memory is exhausted. */
const struct role_set *role_set_with(const struct role_set *s, const char *name, const struct role *role) MUST_CHECK;
const struct role_set *role_set_empty(void) MUST_CHECK;

/* Calls take once for the role and once for each role that it is a member of: directly, or
 * (deep) through others, too. Stops when take returns false. */
typedef bool (*role_take_fn)(void *arg, const struct role *r);
void role_each_granted(const struct role_set *s, const char *name, bool deep, role_take_fn take, void *arg);
bool role_is_member(const struct role_set *s, const char *name, const char *of); /* a role is a member of itself */
bool role_is_superuser(const struct role_set *s, const char *name);
/* Returns the permissions of the role on the resource: all that were granted to it, or to a role
 * that it is a member of, on the resource or on one above it. */
uint32_t role_permissions(const struct role_set *s, const char *name, const struct resource *r);

/* Each of these fills out with a changed copy of the role: permissions on a resource added or
 * removed; a membership added or removed. The copy lives in the arena and shares unchanged parts
 * with r. Returns -1 if memory is exhausted. */
int role_granted(const struct role *r, const char *resource, uint32_t add, uint32_t take, struct arena *a,
                 struct role *out) MUST_CHECK;
/* Whether role_granted may add permissions on the resource: the role has some already, or fewer than
 * ROLE_GRANTS_MAX. */
bool role_has_room(const struct role *r, const char *resource);
int role_joined(const struct role *r, const char *other, bool member, struct arena *a, struct role *out) MUST_CHECK;
/* The same for an identity of a certificate. */
int role_identified(const struct role *r, const char *identity, bool has, struct arena *a, struct role *out) MUST_CHECK;
/* The role that has the identity; NULL if there is none. */
const struct role *role_of_identity(const struct role_set *s, const char *identity);

/* The role's record: version u8 | flags u8 | hash | memberships | grants, and in version 2 |
 * identities. A role without identities is written as version 1. */
void role_encode(const struct role *r, struct buf *out);
/* Decodes into the arena. -1 and ERR_SERVER: the record is damaged, or exceeds a limit. */
int role_decode(const char *name, struct slice form, struct arena *a, struct role *out, struct err *e) MUST_CHECK;
