/* DESCRIBE: asked of a server that knows it (Cassandra 4.0 on), else answered from its
 * system_schema tables. */
#pragma once

#include "tools/tally/cql/shell.h"

/* text: the whole command. */
void describe(struct shell *s, struct slice text);
