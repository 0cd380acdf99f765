/* Shows a running stress on stderr: on a terminal a screen that is redrawn, else a line each
 * second. Also draws sparklines. */
#pragma once

#include "tools/tally/stress/run.h"

void view_show(struct stress *s);
/* Ends the screen with a newline, so that later output begins on its own line. */
void view_end(struct stress *s);
/* Draws n values as blocks of eight heights. */
void view_spark(const double *values, size_t n, struct buf *out);
