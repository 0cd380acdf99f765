/* The disk alone: appends of as many bytes as a small insert puts into the log, to a file that
 * grows as that does. What a durable write takes at least. */
#pragma once

#include "tests/bench/drive.h"

struct disk;

/* A file in the folder, which disk_close removes. NULL with a message on stderr. */
struct disk *disk_open(const char *dir);
/* Bytes of so many appends, and one sync. 0 / -1 with a message on stderr. */
int disk_sync(struct disk *d, unsigned appends) MUST_CHECK;
/* One after the other, each on disk before the next one. Adds to *out; at least one. 0 / -1 with a
 * message on stderr. */
int disk_run(struct disk *d, double seconds, struct drive_result *out) MUST_CHECK;
void disk_close(struct disk *d);
