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
 * then the result. 0 means also when there is no such folder. */
int kv_each_name(const char *path, int (*fn)(void *arg, const char *name, struct err *e), void *arg,
                 struct err *e) MUST_CHECK;
/* Removes a folder of files; a missing folder is no error. */
int kv_remove_folder(const char *path, struct err *e) MUST_CHECK;
/* Reads a small regular file as text. Returns 1 if read, 0 if there is no such file, or -1 on error,
 * also if it has more than size - 1 bytes, or is no regular file. */
int kv_read_text(const char *path, char *text, size_t size, struct err *e) MUST_CHECK;
/* Writes a file and syncs it, but not the folder that names it. */
int kv_write_synced(const char *path, struct slice bytes, struct err *e) MUST_CHECK;

/* ---- saved states ---- */

/* Copies of a store's folder by hard links of its table files, which RocksDB never changes:
 *
 *     <data folder>/states/NAME     a checkpoint; its file tally.of has the part it was saved for,
 *                                   unless that is everything
 *     <data folder>/rows.N          a staged copy, to be opened as the store; tally.stamp names the
 *                                   folder that is the store's
 */

/* The folder of a state, which need not be there. A name is letters, digits, - and _, at most 48 of
 * them. */
int kv_state_path(const char *data_dir, const char *name, char *path, struct err *e) MUST_CHECK;
/* The part for whose sake the state in a folder was saved; "": everything. */
int kv_state_note(const char *folder, const char *of, struct err *e) MUST_CHECK;
int kv_state_read_note(const char *folder, char *of, size_t size, struct err *e) MUST_CHECK;
/* Makes a folder with the content of the folder from under a free name rows.N, which goes to rows.
 * It is on disk when this returns. */
int kv_state_stage(const char *data_dir, const char *from, char rows[32], struct err *e) MUST_CHECK;
/* Removes the remains of a crash: folders of stores other than rows, and unfinished states. */
int kv_state_clean(const char *data_dir, const char *rows, struct err *e) MUST_CHECK;
