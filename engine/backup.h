/* Backups of a local store into a folder (engine/local/rocksdb/kv_backup.c, docs/restore.md). */
#pragma once

#include "engine/engine.h"

struct eng_backup {
    uint32_t number, files;
    bool damaged; /* what describes it cannot be read; the rest of this is 0 */
    int64_t made_s;
    uint64_t bytes; /* of its files, those that it shares with others too */
};

/* A backup of the whole store into a folder of backups, which is made when it is not there;
 * everything acknowledged before the call is in it. keep: the number of backups to keep; 0 for all.
 * Blocking, long; while rows are written. */
int eng_backup_make(struct eng *eng, const char *folder, uint32_t keep, struct eng_backup *out,
                    struct err *e) MUST_CHECK;
/* Without an engine. All of a folder, oldest first: at most max are filled in, *n is how many there
 * are. */
int eng_backup_list(const char *folder, struct eng_backup *out, uint32_t max, uint32_t *n, struct err *e) MUST_CHECK;
/* Reads every file of a backup; -1 if it is not whole, and e names the file. */
int eng_backup_verify(const char *folder, uint32_t number, struct err *e) MUST_CHECK;
/* Makes a data folder, which holds none yet, of a backup; each file's checksum is compared. An
 * engine may be opened on it then, which writes its stamp. */
int eng_backup_restore(const char *folder, uint32_t number, const char *data_dir, struct err *e) MUST_CHECK;
