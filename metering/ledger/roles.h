/* The usage of each role's connections: the first LEDGER_ROLES - 1 roles by name, all others
 * together in a last one without a name. Not thread-safe. */
#pragma once

#include "base/buf.h"
#include "metering/ledger/usage.h"

enum { LEDGER_ROLES = 256, LEDGER_ROLE_NAME = 64 };
struct ledger_role {
    char name[LEDGER_ROLE_NAME];
    uint64_t connections; /* open now */
    struct usage usage;   /* of closed connections, too */
};
struct roles {
    uint32_t n;
    struct ledger_role list[LEDGER_ROLES];
};

/* Finds the role of that name, or adds it. */
struct ledger_role *roles_open(struct roles *r, const char *name);

/* Appends the roles as bytes for the ledger's file: names and sums. */
void roles_put(const struct roles *r, struct buf *out);
/* Adds the roles from such bytes. Reading stops at the first damaged role. */
void roles_take(struct roles *r, struct slice bytes);
