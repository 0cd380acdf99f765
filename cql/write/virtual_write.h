/* Writes to system tables that take them (system_schema/system_tables/virtual.h). Inside cql only. */
#pragma once

#include "cql/write/modify.h"

/* All items are on such tables. Planning runs on a worker; the tables' functions run when the write
 * is applied, one after the other, until the first failure. */
enum cql_outcome virtual_write_run(struct cql_run *r, const struct write_item *items, uint32_t n);
