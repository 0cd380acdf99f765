/* Small plots for a terminal. */
#pragma once

#include "base/buf.h"

/* Plots the values of the seconds of a day, and unless minutes is NULL the limit of each minute. */
void plot_day(struct buf *out, const double *seconds, const int32_t *minutes, const char *what);
