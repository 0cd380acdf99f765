/* Writes to system tables that take them (system_schema/virtual.h). Inside cql only. */
#pragma once

#include "cql/write/modify.h"

/* The items are all of such tables. Plans on any thread; the functions of the tables run where the
 * write is applied, one after the other: the first that refuses ends it. */
enum cql_outcome virtual_write_run(struct cql_request *r, const struct write_item *items, uint32_t n);
