/* Saved states of a local store (engine/local/rocksdb/kv_folder.h, docs/restore.md). */
#pragma once

#include "engine/engine.h"

enum { ENG_STATE_OF_MAX = 256 };
/* Saves everything under a name, which may be there already, for the sake of a part that `of`
 * names, at most ENG_STATE_OF_MAX - 1 bytes; "": all. Blocking. ERR_INVALID: a bad name, or there
 * is no data folder. */
int eng_state_save(struct eng *eng, const char *name, const char *of, struct err *e) MUST_CHECK;
/* Reads the part that a state was saved for. ERR_INVALID: there is no such state. */
int eng_state_of(const struct eng *eng, const char *name, char of[ENG_STATE_OF_MAX], struct err *e) MUST_CHECK;
/* Replaces the whole content by the saved state. No call to the engine may run meanwhile, except
 * from the engine's own threads, eng_ready, and a backup. The caller repeats its settings of tables
 * and histories afterwards. After a crash the content is either state. Returns -1 if nothing has
 * changed. */
int eng_state_put_back(struct eng *eng, const char *name, struct err *e) MUST_CHECK;
/* Closes the replaced store and removes its files, if no read of it is left; waits a little for
 * that. Otherwise the next eng_state_put_back or eng_close does it. */
void eng_state_settle(struct eng *eng);
int eng_state_remove(struct eng *eng, const char *name, struct err *e) MUST_CHECK;
/* Calls fn for every saved state, in no order, until fn returns -1. */
int eng_state_each(struct eng *eng, int (*fn)(void *arg, const char *name, const char *of, int64_t saved_s), void *arg,
                   struct err *e) MUST_CHECK;
/* Opens a saved state where it lies, only for eng_ingest and eng_history_ingest to copy from and
 * eng_meta_scan to read. Returns NULL with e set. The state may be removed while it is open. Close
 * it with eng_state_close. */
struct eng *eng_state_open(const struct eng *eng, const char *name, struct err *e) MUST_CHECK;
void eng_state_close(struct eng *state);
