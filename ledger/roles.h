/* What the connections of each role used: the first LEDGER_ROLES by name, all others together in
 * one without a name. Not thread-safe. */
#pragma once

#include "base/buf.h"
#include "ledger/usage.h"

enum { LEDGER_ROLES = 256, LEDGER_ROLE_NAME = 64 };
struct ledger_role {
    char name[LEDGER_ROLE_NAME];
    uint64_t connections; /* open now */
    struct usage usage;   /* of closed ones, too */
};
struct roles {
    uint32_t n;
    struct ledger_role list[LEDGER_ROLES];
};

/* The role of that name, from now on if need be. */
struct ledger_role *roles_open(struct roles *r, const char *name);

/* As bytes, for the ledger's file: names and sums. */
void roles_put(const struct roles *r, struct buf *out);
/* Adds them; what is damaged, and behind it, is left out. */
void roles_take(struct roles *r, struct slice bytes);
