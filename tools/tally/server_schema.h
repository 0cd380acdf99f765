/* The schema of a server as CQL, from its system tables: keyspaces, types, tables with their
 * columns, times to live and custom properties. */
#pragma once

#include "tools/client/client.h"

/* A part of the schema. NULL: of any name. */
struct server_schema_part {
    const char *keyspace;
    const char *type, *table; /* "" leaves out all of them; both "" is the keyspaces' own statements */
};

/* System keyspaces are left out. */
int server_schema(struct client *c, struct buf *out, struct err *e) MUST_CHECK;
/* Only what the part names; a system keyspace when it names one. */
int server_schema_of(struct client *c, const struct server_schema_part *part, struct buf *out,
                     struct err *e) MUST_CHECK;
