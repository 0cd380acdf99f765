/* system_control.capture: starts, shows and stops captures (metering/capture/recorder.h) of a running
 * server. Like the whole keyspace it exists with --control on.
 *
 * INSERT INTO system_control.capture (name) VALUES ('incident') begins captures/incident.tcap in
 * the data folder; DELETE ... WHERE name = 'incident' ends it. The file stays. The table has one
 * row: the running capture, or else the last one. The name of a capture by --capture FILE is its
 * path.
 */
#pragma once

#include "metering/capture/recorder.h"
#include "system_schema/system_tables/virtual.h"

struct control_capture {
    struct capture_recorder *recorder;
    const char *data_dir; /* NULL if none, and then INSERT is refused */
};

/* c must outlive the catalogue that the table is given to. */
struct virtual_table control_capture_table(struct control_capture *c);
