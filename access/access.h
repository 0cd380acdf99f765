/* The roles of the server, persisted in the engine: who is asked whether someone may log in, and
 * what a role may do.
 *
 * Readers take the current set (access_roles), which never changes. Who changes roles does it
 * between access_begin and access_end, one at a time, against the set that begin gives; each put
 * and drop is durable and seen by readers when it returns.
 *
 * A1. A role that readers see is in the engine's records as it is, but for those given by the
 *     operator's file, which no record holds.
 * A2. Memberships have no circle, and name roles that there are.
 * A3. Grants are on tables and keyspaces that there are. A grant is made between access_begin and
 *     access_end on an object that is there; the notice that the object is gone comes later and
 *     takes the grants away, before the name can be used again.
 */
#pragma once

#include "access/role.h"
#include "engine/engine.h"
#include "system_schema/catalog.h"

struct access_control;

struct access_options {
    struct eng *eng;
    struct catalog *catalog;
    /* A role with all rights and this password is made when there is no role at all; NULL: none is.
     * Both outlive the roles. */
    const char *first_role, *first_password;
};

/* Records that cannot be read are left where they are, and told in the log by name. */
struct access_control *access_open(const struct access_options *o, struct err *e) MUST_CHECK;
void access_close(struct access_control *a);

/* While the store is being put back to a saved state: what is told to have been dropped takes
 * nothing away from the roles that come. */
void access_suspend(struct access_control *a);
/* changed: the store is another one: the roles are those that it holds, and the operator's file's,
 * as after a start. -1: the store cannot be read. */
int access_resume(struct access_control *a, bool changed, struct err *e) MUST_CHECK;

/* A reference to the current set. Any thread. */
const struct role_set *access_roles(struct access_control *a);
/* Changes with every change of the roles: one atomic load. */
uint64_t access_generation(const struct access_control *a);

/* ---- changes; they wait for the disk ---- */

const struct role_set *access_begin(struct access_control *a);
void access_end(struct access_control *a);
/* The role as it is to be; the set that it gives back is the current one now. NULL: err. */
const struct role_set *access_put(struct access_control *a, const struct role *r, struct err *e) MUST_CHECK;
/* Of the operator's file: the role that there is gets this password's hash, or one with all rights
 * is there from now on; not recorded. */
int access_provide(struct access_control *a, const char *name, const char *hash, struct err *e) MUST_CHECK;
/* Takes the role away, its memberships and what was granted on it. */
const struct role_set *access_drop(struct access_control *a, const char *name, struct err *e) MUST_CHECK;
