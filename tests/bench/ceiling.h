/* Ceilings: servers that answer the load's EXECUTE frames with the least work there can be,
 * measured in the same run.
 *
 * canned: parses the frame header and answers a constant. rocksdb: the same loop, and the RocksDB
 * work that the statement needs (get, write batch, seek and 100 next) on keys and values of the
 * size that tallyd stores; writes are gathered per wake-up into one batch (of a partial update its
 * cell alone, and nothing is read); with fsync, a thread flushes the log while anybody waits and
 * only then answers. RocksDB's options are tallyd's where the work does not hang on them. synced:
 * canned, but inserts are answered behind an append of as many bytes for each to a file and one
 * fdatasync, which the loop makes once all that are connected have asked: each client's next insert
 * is in the next sync, and no thread waits for another. No server that puts writes on disk does
 * less.
 */
#pragma once

#include <stdbool.h>

struct ceiling_options {
    bool rocksdb;
    bool fsync; /* answers to writes wait for the log to be on disk */
    bool synced; /* not beside rocksdb */
};

/* For proc_start_child: runs one loop until SIGTERM; arg is a struct ceiling_options. */
int ceiling_main(int port_fd, const char *dir, void *arg);
