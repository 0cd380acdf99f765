/* Reads a server's schema from its system tables and writes it as CQL: keyspaces, types, and tables
 * with columns, default TTL and custom properties. */
#pragma once

#include "tools/client/client.h"

/* Selects a part of the schema. NULL means any name. */
struct server_schema_part {
    const char *keyspace;
    const char *type, *table; /* "" leaves out all of them; both "" is the keyspaces' own statements */
};

/* The whole schema without system keyspaces. */
int server_schema(struct client *c, struct buf *out, struct err *e) MUST_CHECK;
/* The selected part; a system keyspace only when the part names it. */
int server_schema_of(struct client *c, const struct server_schema_part *part, struct buf *out,
                     struct err *e) MUST_CHECK;
