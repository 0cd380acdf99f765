/* The roles of the server, persisted in the engine. They decide which clients may log in and what a
 * role may do.
 *
 * Readers take the current set (access_roles), which never changes. A thread changes roles between
 * access_begin and access_end, one thread at a time, starting from the set that access_begin
 * returns. The changes are durable and visible to readers, all at once, when access_end returns.
 *
 * A1. A role that readers see is in the engine's records as it is, except for the roles of the
 *     operator's file, which no record holds.
 * A2. Memberships form no cycle, and name existing roles.
 * A3. Grants are on existing tables and keyspaces. A grant is made between access_begin and
 *     access_end on an object that exists. The notice that the object is gone comes later and
 *     removes the grants before the name can be used again.
 * A4. Records change only together with their version, on the condition that it is the version of
 *     the current set. So of two servers on one store that change roles at the same time one fails.
 *     It reads the records again, and runs its statement again.
 * A5. A server removes grants on an object only when the schema's records, read after those of the
 *     roles, hold no object of that name: its snapshot may be older than the object and the grants.
 *     A grant that is made later changes the version of the roles (A4).
 */
#pragma once

#include "access/role.h"
#include "engine/engine.h"
#include "system_schema/catalog.h"

struct access_control;

struct access_options {
    struct eng *eng;
    struct catalog *catalog;
    /* If there is no role at all, access_open makes one with this name, this password and all
     * rights. NULL if it makes none. Both strings outlive the roles. */
    const char *first_role, *first_password;
};

/* Records that cannot be read stay where they are; the log names them. */
struct access_control *access_open(const struct access_options *o, struct err *e) MUST_CHECK;
void access_close(struct access_control *a);

/* Call before the store is put back to a saved state. Until access_resume, notices of dropped
 * objects remove no grants. */
void access_suspend(struct access_control *a);
/* changed: the store was replaced; the roles become those that it holds and those of the operator's
 * file, as after a start. Returns -1 if the store cannot be read. */
int access_resume(struct access_control *a, bool changed, struct err *e) MUST_CHECK;

/* A reference to the current set. Any thread. */
const struct role_set *access_roles(struct access_control *a);
/* Changes with every change of the roles: one atomic load. */
uint64_t access_generation(const struct access_control *a);

/* Makes sure that the current set is as new as the call: other servers may have changed roles. Waits for
 * the store. Returns -1 with ERR_OVERLOADED, or the store cannot be read. */
int access_catch_up(struct access_control *a, struct err *e) MUST_CHECK;

/* ---- changes ---- */

/* The current set, after what other servers have changed. May wait for the store. */
const struct role_set *access_begin(struct access_control *a);
/* Writes the changes, and waits for the disk. rc below 0: the caller has failed, and nothing is
 * written. Returns rc, or -1, or ACCESS_AGAIN: another server has changed roles meanwhile; nothing
 * was written, and the caller starts again at access_begin. */
enum { ACCESS_AGAIN = 1 };
int access_end(struct access_control *a, int rc, struct err *e) MUST_CHECK;
/* -1, ERR_INVALID: the role has as many permissions as it may have. */
int access_no_room(struct err *e);
/* Puts the role and returns the set with it. Returns NULL with e set. */
const struct role_set *access_put(struct access_control *a, const struct role *r, struct err *e) MUST_CHECK;
/* Adds a role of the operator's file: an existing role gets this password hash, a new one all
 * rights. The change is not recorded. Not between access_begin and access_end. */
int access_provide(struct access_control *a, const char *name, const char *hash, struct err *e) MUST_CHECK;
/* Removes the role, the memberships of others in it, and the grants on it. */
const struct role_set *access_drop(struct access_control *a, const char *name, struct err *e) MUST_CHECK;
