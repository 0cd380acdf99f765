/* The data folder: made with mode 0700, and locked so that two servers never share one. */
#pragma once

#include "base/err.h"

/* The lock's file descriptor, to be closed when the data is no longer used; -1 and ERR_CONFIG. */
int data_dir_open(const char *path, struct err *e) MUST_CHECK;
