/* Time zones by name, as the files of the package tzdata describe them (RFC 9636).
 *
 * zone_find takes a name as a user wrote it: one of zone.def, or the id of a zone. It reads the
 * zone's file at the first use and keeps it until the process ends, for all threads. So there are at
 * most as many zones in memory as files, each of a few kilobytes, and an update of tzdata counts
 * from the next start on.
 */
#pragma once

#include "base/slice.h"

/* One end of daylight saving time in each year: day d of the year (J: without 29 February), or
 * weekday d (0 is Sunday) of week w (5: the last) of a month; s: seconds after midnight. */
struct zone_day {
    enum zone_day_kind { ZONE_MONTH, ZONE_DAY, ZONE_JULIAN } kind;
    int month, w, d;
    int32_t s;
};

/* Offsets are seconds east of UTC. */
struct zone {
    const uint8_t *times, *kinds, *offsets; /* n_times of 8 bytes and of 1, n_offsets of 6 */
    uint32_t n_times, n_offsets;
    bool rule, saves; /* after the last of the times: an offset, one for winter and one for summer */
    int32_t standard, saving;
    struct zone_day begin, end;
};

/* Reads a file, whose bytes the zone refers to. Returns false if they are not a TZif file of version 2 or
 * later. */
bool zone_read(struct slice file, struct zone *z);
/* The offset at a local time, in seconds since 1970. A time that clocks skip has the offset from before, as has
 * one that they show twice. */
int32_t zone_offset(const struct zone *z, int64_t local_s);
/* Returns NULL if there is no such zone, or its file cannot be read. */
const struct zone *zone_find(struct slice name);
