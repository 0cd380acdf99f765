/* Point-in-time recovery and saved states, for the layers above the catalogue. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct catalog;

/* The history of one table, as system_metering.recovery shows it. */
struct history_report {
    const char *keyspace, *name;
    bool begun;
    int64_t earliest_us, gone_us; /* gone_us INT64_MAX: the table exists */
    uint64_t bytes;               /* on disk, and logged since the start */
};

/* How far back a table can be restored, and how long after its drop. */
int64_t catalog_recovery_window_us(const struct catalog *c);
/* The first moment to which a table with that history can be restored; INT64_MAX if the history no
 * longer exists. */
int64_t catalog_restorable_since(struct catalog *c, uint32_t history);
/* Calls fn for every history that exists at the call. Waits for the disk. Returns what fn returned if
 * that is not 0, or -1 if memory is exhausted. */
int catalog_each_history(struct catalog *c, int (*fn)(void *arg, const struct history_report *h), void *arg);

/* Starts to copy what is needed to put back a state that was saved for one keyspace. */
void catalog_saved_prepare(struct catalog *c, const char *name, const char *keyspace);
/* Waits until that copy is complete. Returns 0, or -1 if it failed. */
int catalog_saved_await(struct catalog *c, const char *name, const char *keyspace, struct err *e) MUST_CHECK;
/* Frees the copy that was made for the state, or (NULL) for all states. */
void catalog_saved_forget(struct catalog *c, const char *name);
/* Puts the saved keyspace back into the store and leaves everything else as it is. The catalogue is
 * suspended; resume it as changed. Returns 0, or -1 if nothing has changed. */
int catalog_saved_put_back(struct catalog *c, const char *name, struct err *e) MUST_CHECK;
