/* The schema of a server as CQL, from its system tables: keyspaces, types, tables with their columns, times to live and custom properties. */
#pragma once

#include "tools/client/client.h"

/* System keyspaces are left out. */
int server_schema(struct client *c, struct buf *out, struct err *e) MUST_CHECK;
