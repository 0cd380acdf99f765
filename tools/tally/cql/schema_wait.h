/* Waits until Amazon Keyspaces has completed a schema change. Keyspaces answers CREATE, ALTER and
 * DROP at once and changes the schema in the background
 * (https://docs.aws.amazon.com/keyspaces/latest/devguide/tables-create.html). */
#pragma once

#include "tools/tally/cql/shell.h"

/* A schema change as the server reports it (native protocol, section 4.2.5.5). */
struct schema_announced {
    char what[16], target[16]; /* CREATED, UPDATED, DROPPED; KEYSPACE, TABLE, TYPE */
    char keyspace[SHELL_NAME], name[SHELL_NAME];
};

/* Waits until a table or type is ACTIVE, a keyspace exists, or a dropped object is gone. Ctrl-C
 * ends the wait. A failed creation is reported. */
void schema_wait(struct shell *s, const struct schema_announced *c);
