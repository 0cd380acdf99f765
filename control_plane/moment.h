/* Moments as ISO 8601 has them, in UTC: 2026-01-02T03:04:05Z. */
#pragma once

#include <stdbool.h>

#include "base/slice.h"

/* Seconds since 1970, of a date with or without a time, a fraction of seconds, or an offset. false: it is none. */
bool moment_read(struct slice text, double *seconds);
enum { MOMENT_TEXT = 32 };
/* To the second; with milliseconds where there are any. */
void moment_write(int64_t ms, char out[MOMENT_TEXT]);
