/* Folders and small files of the data folder. Errors name the path and the reason. */
#pragma once

#include <limits.h>

#include "base/err.h"
#include "base/slice.h"

/* Sets the error "cannot <what> <path>: <errno in words>". Returns -1. */
int kv_cannot(const char *what, const char *path, struct err *e);
/* folder/name */
int kv_path(char path[PATH_MAX], const char *folder, const char *name, struct err *e) MUST_CHECK;
/* Makes a folder, mode 0700, unless it is there. */
int kv_make_folder(const char *path, struct err *e) MUST_CHECK;
int kv_sync_folder(const char *path, struct err *e) MUST_CHECK;
/* Calls fn for every name in a folder but . and .., until it returns another value than 0, which is
 * then the result. 0: also when there is no such folder. */
int kv_each_name(const char *path, int (*fn)(void *arg, const char *name, struct err *e), void *arg,
                 struct err *e) MUST_CHECK;
/* Removes a folder of files; a missing folder is no error. */
int kv_remove_folder(const char *path, struct err *e) MUST_CHECK;
/* Reads a small file as text, at most size - 1 bytes. 1: read, 0: there is no such file, -1. */
int kv_read_text(const char *path, char *text, size_t size, struct err *e) MUST_CHECK;
/* Writes a file and syncs it, but not the folder that names it. */
int kv_write_synced(const char *path, struct slice bytes, struct err *e) MUST_CHECK;
