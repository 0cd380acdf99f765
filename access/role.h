/* Roles: who may log in, who is a member of whom, who may do what. A set of them is an immutable
 * snapshot that all threads share; the store that makes the next one is access/access.h.
 */
#pragma once

#include <stdatomic.h>

#include "access/resource.h"
#include "base/arena.h"
#include "base/err.h"

/* What one role may hold, and how many there may be: administrators pay, with ERR_INVALID. */
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
    const char *const *identities; /* sorted; of certificates that stand for it, each in one role at most */
};

struct role_cell; /* one role, counted */

struct role_set {
    atomic_uint refs;
    uint32_t n;
    struct role_cell **cells; /* sorted by name */
};

const struct role *role_at(const struct role_set *s, uint32_t i);
const struct role *role_find(const struct role_set *s, const char *name);
void role_set_ref(const struct role_set *s);
void role_set_unref(const struct role_set *s);
/* The set with the role instead of the one of its name, or with it too; or (role NULL) without that
 * one. NULL: no memory. */
const struct role_set *role_set_with(const struct role_set *s, const char *name, const struct role *role) MUST_CHECK;
const struct role_set *role_set_empty(void) MUST_CHECK;

/* Calls take for the role and for each that it is a member of, directly or (deep) not, once; it
 * stops at the first that answers false. */
typedef bool (*role_take_fn)(void *arg, const struct role *r);
void role_each_granted(const struct role_set *s, const char *name, bool deep, role_take_fn take, void *arg);
bool role_is_member(const struct role_set *s, const char *name, const char *of); /* of itself, too */
bool role_is_superuser(const struct role_set *s, const char *name);
/* What the role may do on the resource, by what it and those it is a member of were given on that
 * and on what is above it. */
uint32_t role_permissions(const struct role_set *s, const char *name, const struct resource *r);

/* The role with these permissions on the resource added or taken away; with or without a
 * membership. In the arena, sharing what is the same. -1: no memory. */
int role_granted(const struct role *r, const char *resource, uint32_t add, uint32_t take, struct arena *a,
                 struct role *out) MUST_CHECK;
int role_joined(const struct role *r, const char *other, bool member, struct arena *a, struct role *out) MUST_CHECK;
/* With an identity or without it. */
int role_identified(const struct role *r, const char *identity, bool has, struct arena *a, struct role *out) MUST_CHECK;
/* The role that has the identity; NULL: none. */
const struct role *role_of_identity(const struct role_set *s, const char *identity);

/* The role's record: version u8 | flags u8 | hash | memberships | grants, and in version 2 |
 * identities. Without any it is of version 1. */
void role_encode(const struct role *r, struct buf *out);
/* In the arena. -1 and ERR_SERVER: damaged, or larger than a role may be. */
int role_decode(const char *name, struct slice form, struct arena *a, struct role *out, struct err *e) MUST_CHECK;
