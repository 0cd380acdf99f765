/* A data folder that no server uses, looked through from end to end: nothing is written, and
 * nothing is cut.
 *
 * Of the store and of each saved state (states/): stamp, CURRENT and IDENTITY, the MANIFEST and the
 * logs by engine/kv_check.h; every block of every table file with its checksum; every record by its
 * own reader; and rows of ids that no named record names. What lies beside the store is the
 * caller's.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

struct eng_verify {
    const char *data_dir;
    /* Something is wrong; the words begin with a file's path or hold one, if there is one. Each once. */
    void (*found)(void *arg, const char *words);
    /* A named record of the layers above: -1 and e when it does not decode. */
    int (*named)(void *arg, struct slice name, struct slice value, struct err *e);
    void (*next_store)(void *arg); /* the named records that follow are another store's */
    /* Whether one of the named records of this store says that the id is in use: asked when all
     * were given. */
    bool (*has)(void *arg, uint32_t id);
    void *arg;
    uint64_t records, rows; /* counted here: named ones; and what stands in partitions */
};

/* -1: it could not be done: no such folder, no memory. */
int eng_verify(struct eng_verify *v, struct err *e) MUST_CHECK;
