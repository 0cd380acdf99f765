/* Waits until Amazon Keyspaces has carried out a change of the schema: it answers CREATE, ALTER and
 * DROP at once and does the work afterwards
 * (https://docs.aws.amazon.com/keyspaces/latest/devguide/tables-create.html). */
#pragma once

#include "tools/tally/cql/shell.h"

/* What the server said has changed (native protocol, section 4.2.5.5). */
struct schema_announced {
    char what[16], target[16]; /* CREATED, UPDATED, DROPPED; KEYSPACE, TABLE, TYPE */
    char keyspace[SHELL_NAME], name[SHELL_NAME];
};

/* Until a table or type is ACTIVE, a keyspace is there, or what was dropped is gone. Ctrl-C ends
 * the wait; a creation that fails is said. */
void schema_wait(struct shell *s, const struct schema_announced *c);
