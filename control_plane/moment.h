/* Moments in the form of ISO 8601, in UTC: 2026-01-02T03:04:05Z. */
#pragma once

#include <stdbool.h>

#include "base/slice.h"

/* Parses a date, which may have a time, a fraction of seconds and an offset, to seconds since
 * 1970. Returns false when the text is not one. */
bool moment_read(struct slice text, double *seconds);
enum { MOMENT_TEXT = 32 };
/* Writes a moment, with milliseconds when they are not 0. */
void moment_write(int64_t ms, char out[MOMENT_TEXT]);
