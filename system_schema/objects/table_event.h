/* The history of statements on tables: system_schema_mcs.tables_history. Inside system_schema only.
 *
 * The end of each statement on a table is an event. It is written in one batch with the table's
 * record, so no event is lost and none is recorded for a statement that failed. The key is
 * "history/" | keyspace | 0 | table | 0 | moment u64, milliseconds since 1970, big-endian; the
 * value, version 1:
 *
 *   version u8 | event u8 | created_ms u64 | options
 *
 * The newest HISTORY_EVENTS_MAX events of each table name are kept. After a drop the events of the
 * name stay for HISTORY_DAYS, longer than a table can be restored.
 */
#pragma once

#include "system_schema/objects/objects.h"

enum { HISTORY_EVENTS_MAX = 100, HISTORY_DAYS = 35 };
enum history_event { HISTORY_CREATE, HISTORY_ALTER, HISTORY_DROP, HISTORY_RESTORE };

/* One event; everything lives in the arena. */
struct history_row {
    const char *keyspace, *table, *event;
    int64_t at_ms, created_ms;
    struct table_settings settings;
};
typedef int (*history_fn)(void *arg, const struct history_row *row);
/* Calls fn for the events of a keyspace, or (NULL) for all, ordered by keyspace, table and moment.
 * Returns -1 if fn or the engine failed. */
int history_each(struct objects *o, const char *keyspace, struct arena *a, history_fn fn, void *arg,
                 struct err *e) MUST_CHECK;
/* Adds to the batch: delete the events of the keyspace, and write those that the store from
 * holds. */
int history_take_over(struct objects *o, struct eng *from, const char *keyspace, struct meta_batch *b,
                      struct err *e) MUST_CHECK;

/* Writes x's record as object_save does. If a statement that began in status from has ended, also
 * writes its event; for a dropped keyspace, an event for each of its tables. */
int history_save(struct objects *o, const struct catalog_object *x, enum schema_status from, struct err *e) MUST_CHECK;
/* At the start: deletes events that are too old. */
int history_prune(struct objects *o, struct err *e) MUST_CHECK;
