/* The data folder. It has mode 0700 and is locked, so that two servers never share one. */
#pragma once

#include "base/err.h"

/* Makes the folder if needed, and locks it. A folder within another data folder is refused. Returns
 * the lock's file descriptor, which the caller closes when it no longer uses the data; or -1 and
 * ERR_CONFIG. */
int data_dir_open(const char *path, struct err *e) MUST_CHECK;
