/* Verifies a data folder that no server uses, from end to end. It writes and cuts nothing.
 *
 * It checks the store and each saved state (states/): stamp, CURRENT and IDENTITY, the MANIFEST and
 * the logs by engine/local/rocksdb/kv_check.h; every block of every table file with its checksum;
 * every record by its own reader; and rows of ids that no named record names. Checking the other
 * files of the folder is the caller's task.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

struct eng_verify {
    const char *data_dir;
    /* Reports a fault, each once. The words begin with a file's path or contain one, if there is
     * one. */
    void (*found)(void *arg, const char *words);
    /* Decodes a named record of the layers above: -1 and e when it does not decode. */
    int (*named)(void *arg, struct slice name, struct slice value, struct err *e);
    void (*next_store)(void *arg); /* the named records that follow are another store's */
    /* Whether a named record of this store says that the id is in use; called after all named
     * records. */
    bool (*has)(void *arg, uint32_t id);
    void *arg;
    uint64_t records, rows; /* counts: named records; records of partitions, on a cluster their operands */
    /* On a cluster: objects of rows; those that changed whenever they were read, so that their
     * counters were not compared. */
    uint64_t objects, busy;
};

/* Returns -1 if the check was not possible: no such folder, or memory is exhausted. */
int eng_verify(struct eng_verify *v, struct err *e) MUST_CHECK;

/* The same for a pool of a Ceph cluster (engine/rados), while servers use it: their writes do not
 * change the report. It checks each object of rows: its state and that of
 * its halves or its whole, its counters against its keys, every operand by its own reader, and that
 * its table is in the catalogue. It checks the named records and the log of batches, too. data_dir
 * is not used. -1 if the cluster does not answer, or memory is exhausted. */
struct eng_rados;
int eng_verify_rados(struct eng_verify *v, const struct eng_rados *where, struct err *e) MUST_CHECK;
