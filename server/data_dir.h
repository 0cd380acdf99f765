/* The data folder. It has mode 0700 and is locked, so that two servers never share one. */
#pragma once

#include <stdint.h>

#include "base/err.h"

/* The disk space of the files of a data folder, in bytes, by part. Files that a saved state shares with the
 * store count once, as the store's. */
enum data_dir_part { DATA_DIR_TABLES, DATA_DIR_LOG, DATA_DIR_STATES, DATA_DIR_OTHER, DATA_DIR_PARTS };
struct data_dir_use {
    uint64_t bytes[DATA_DIR_PARTS];
    uint64_t free, size; /* of the file system */
};
const char *data_dir_part_name(enum data_dir_part p);
/* Reads the attributes of all files of the folder. Skips files that are removed meanwhile. */
struct data_dir_use data_dir_use(const char *path);

/* Makes the folder if needed, and locks it. A folder within another data folder is refused. Returns
 * the lock's file descriptor, which the caller closes when it no longer uses the data; or -1 and
 * ERR_CONFIG. */
int data_dir_open(const char *path, struct err *e) MUST_CHECK;
