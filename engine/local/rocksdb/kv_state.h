/* Saved states of a store's folder: copies by hard links of its table files, which RocksDB never
 * changes. Private to engine/.
 *
 *     <data folder>/states/NAME     a checkpoint; its file tally.of has the part it was saved for,
 *                                   unless that is everything
 *     <data folder>/rows.N          a staged copy, to be opened as the store; tally.stamp names the
 *                                   folder that is the store's
 */
#pragma once

#include "base/err.h"

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
