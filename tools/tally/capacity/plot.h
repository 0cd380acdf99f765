/* Small plots for a terminal. */
#pragma once

#include "base/buf.h"

/* A day: values a second, and under NULL nothing, else a limit of each minute drawn above them. */
void plot_day(struct buf *out, const double *seconds, const int32_t *minutes, const char *what);
