/* system_control.capture: starts, shows and stops captures (capture/recorder.h) of a running
 * server; there with --control on, as all of that keyspace.
 *
 * INSERT INTO system_control.capture (name) VALUES ('incident') begins captures/incident.tcap in
 * the data folder; DELETE ... WHERE name = 'incident' ends it. The file stays. The one row shows
 * what runs, or what ran last; --capture FILE is shown by its path.
 */
#pragma once

#include "capture/recorder.h"
#include "system_schema/virtual.h"

struct control_capture {
    struct capture_recorder *recorder;
    const char *data_dir; /* NULL: none; nothing can be begun then */
};

/* c must outlive the catalogue that the table is given to. */
struct virtual_table control_capture_table(struct control_capture *c);
