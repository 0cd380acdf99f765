/* How a stress is shown while it runs, on stderr: a screen that is drawn anew on a terminal, else a
 * line each second. And sparks, for other screens. */
#pragma once

#include "tools/tally/stress/run.h"

void view_show(struct stress *s);
/* The screen stays; what comes behind begins on a line of its own. */
void view_end(struct stress *s);
/* The last n values as blocks of eight heights. */
void view_spark(const double *values, size_t n, struct buf *out);
