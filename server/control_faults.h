/* system_control.faults: the faults (faults/faults.h) of a running server; there with --control on,
 * as all of that keyspace. In memory: a restart begins without. */
#pragma once

#include "faults/faults.h"
#include "system_schema/virtual.h"

/* f must outlive the catalogue that the table is given to. */
struct virtual_table control_faults_table(struct faults *f);
