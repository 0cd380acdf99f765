/* system_control.faults: the faults (native_protocol/faults/faults.h) of a running server. Like the whole
 * keyspace it exists with --control on. Faults are kept in memory, so that a restarted server
 * has none. */
#pragma once

#include "native_protocol/faults/faults.h"
#include "system_schema/system_tables/virtual.h"

/* f must outlive the catalogue that the table is given to. */
struct virtual_table control_faults_table(struct faults *f);
