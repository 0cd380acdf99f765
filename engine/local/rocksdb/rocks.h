/* The store on RocksDB, for the files of this folder: kv_rocksdb.c opens and closes it,
 * rocks_batch.c writes, rocks_sync.c brings the log to disk, rocks_read.c reads, rocks_files.c
 * handles whole files and loads in bulk, rocks_options.c has RocksDB's options and the functions
 * that RocksDB calls, kv_backup.c makes backups. */
#pragma once

#include <limits.h>
#include <pthread.h>
#include <rocksdb/c.h>
#include <stdatomic.h>

#include "engine/local/rocksdb/kv.h"
#include "engine/local/rocksdb/kv_stamp.h"
#include "engine/local/rocksdb/kv_trim.h"

struct kv {
    struct kv_options o;
    rocksdb_t *db;
    rocksdb_cache_t *cache;
    rocksdb_options_t *options;
    rocksdb_env_t *memory; /* has the files of a store without a data folder; NULL if they are on disk */
    rocksdb_readoptions_t *read[2]; /* by tier */
    rocksdb_writeoptions_t *write[2]; /* by patience */
    char rows[PATH_MAX], stamp_path[PATH_MAX];
    bool retired; /* another store has replaced this one */
    bool view;    /* reads a checkpoint, and owns nothing in the data folder */
    _Atomic uint32_t iterators;
    _Atomic bool write_failed;    /* the last write did */
    _Atomic bool log_suspect;     /* an operation on the log has failed since the last successful write */
    _Atomic uint64_t errors_over; /* background errors after which a write succeeded */
    _Atomic uint64_t synced; /* every sequence up to this one is on disk */
    _Atomic uint64_t loads;  /* begun */
    struct kv_trim trim;
    /* Held for reading by writes that do not wait, for writing while the log is handed to the
     * operating system. A write that met a log between a failure and RocksDB's record of it would
     * make the error final (rocks_sync.c). No other lock is taken while it is
     * held. */
    pthread_rwlock_t log_lock;
    /* Used by the thread that syncs. */
    int log_fd;           /* of the newest log that was synced; -1 if none yet */
    uint64_t log_number;  /* of that log */
    uint64_t log_version; /* RocksDB's version number before that log was looked for */
    uint64_t deleted;        /* deleted keys since the last flush because of them; used by the thread that tidies */
    bool stamp_failed;       /* the last attempt to write a stamp failed */
    bool sync_failed;        /* after that no write may count as on disk */
    struct kv_stamp stamp;   /* the last one written */
    uint64_t stamped;        /* the value of synced at that time */
    int64_t stamped_us;
    uint64_t version; /* RocksDB's version number when the stamp last covered every log; 0 if it did not */
};

struct kv_snapshot {
    const rocksdb_snapshot_t *s;
};

#define ROCKS_LOADING "loading" /* the folder of bulk loads */

static inline const char *rocks_chars(struct slice s) { return (const char *)s.p; }
/* Sets the error from RocksDB's text, and frees the text. */
int rocks_failed(char *text, const char *what, struct err *e);
/* The same, of an operation that begins a new log: its failure makes the log suspect. */
int rocks_log_failed(struct kv *kv, char *text, const char *what, struct err *e);
/* Returns -1 if a test has injected this fault. */
int rocks_injected(enum fault_point point, const char *what, struct err *e) MUST_CHECK;
/* Disables RocksDB's counters of the calling thread, which it updates with every key it reads and
 * which Tally does not use. */
void rocks_count_nothing(void);
uint64_t rocks_property(rocksdb_t *db, const char *name, uint64_t otherwise);
/* Whether a range delete may begin at this key (rocks_batch.c). */
bool rocks_begins_short(const struct kv *kv, struct slice from);
/* A write that changes nothing: of the deletion of a key that the store never has, or of a note
 * only. */
int rocks_write_nothing(struct kv *kv, bool deletion, struct err *e) MUST_CHECK;
/* Flushes the memtables. wait false: returns before the end. */
int rocks_flush(struct kv *kv, bool wait, struct err *e) MUST_CHECK;
int rocks_write_stamp(struct kv *kv, struct err *e) MUST_CHECK;
void rocks_renew_stamp(struct kv *kv);
rocksdb_readoptions_t *rocks_read_options(enum eng_tier tier);
/* Whether the merge that RocksDB does for this thread may use this many bytes. If not, the read is incomplete
 * in the cache tier, and fails in the other. */
bool rocks_may_merge(size_t bytes) MUST_CHECK;
size_t rocks_memtable_bytes(const struct kv *kv);
/* Fills kv->options and kv->cache. */
void rocks_set_options(struct kv *kv);
