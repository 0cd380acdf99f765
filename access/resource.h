/* Permissions, and the resources that they are granted on. A permission on a resource holds for
 * every resource below it: a table is below "all tables" of its keyspace, that below the keyspace,
 * and the keyspace below "all keyspaces".
 */
#pragma once

#include "base/buf.h"

enum permission {
#define PERMISSION(id) MAY_##id,
#include "access/permission.def"
#undef PERMISSION
    PERMISSIONS
};
enum { PERMISSIONS_ALL = (1 << PERMISSIONS) - 1 };

/* "SELECT" */
const char *permission_name(enum permission p);

enum resource_kind {
#define RESOURCE(id, class, text, shown, permissions) RESOURCE_OF_##id,
#include "access/resource.def"
#undef RESOURCE
    RESOURCE_KINDS
};

struct resource {
    enum resource_kind kind;
    const char *keyspace, *name; /* set where the kind has them */
};

const char *resource_class(const struct resource *r);
/* The permissions that apply to the resource: bits 1 << MAY_x. */
uint32_t resource_permissions(const struct resource *r);
/* "data/k/t", as system_auth keeps it; and "<table k.t>". */
void resource_text(const struct resource *r, struct buf *out);
void resource_show(const struct resource *r, struct buf *out);
/* "User app has no SELECT permission on <table k.t> or any of its parents" */
void permission_missing(enum permission p, const char *role, const struct resource *on, struct buf *out);
/* "<table k.t>" of "data/k/t". */
void resource_show_text(const char *text, struct buf *out);
/* Replaces the resource by the one directly above it. Returns false if it has none. */
bool resource_up(struct resource *r);
