/* DESCRIBE: sent to a server that supports it (Cassandra 4.0 and later), else answered from its
 * system_schema tables. */
#pragma once

#include "tools/tally/cql/shell.h"

/* text: the whole command. */
void describe(struct shell *s, struct slice text);
