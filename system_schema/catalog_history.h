/* What happened to tables: system_schema_mcs.tables_history. Inside system_schema only.
 *
 * Every end of a statement on a table is an event, written together with the table's record: none
 * is told that did not happen, none is lost. The key is
 * "history/" | keyspace | 0 | table | 0 | moment u64, milliseconds since 1970, big-endian; the value, version 1:
 *
 *   version u8 | event u8 | created_ms u64 | options
 *
 * Of a table's name the newest HISTORY_EVENTS_MAX are kept, and those of a name that is dropped for
 * HISTORY_DAYS: longer than a table can be restored.
 */
#pragma once

#include "system_schema/catalog_state.h"
#include "system_schema/meta_batch.h"

enum { HISTORY_EVENTS_MAX = 100, HISTORY_DAYS = 35 };
enum history_event { HISTORY_CREATE, HISTORY_ALTER, HISTORY_DROP, HISTORY_RESTORE };

/* One event; everything lives in the arena. */
struct history_row {
    const char *keyspace, *table, *event;
    int64_t at_ms, created_ms;
    uint32_t n_options;
    const struct schema_option *options;
};
typedef int (*history_fn)(void *arg, const struct history_row *row);
/* Those of a keyspace, or (NULL) all, by keyspace, table and moment. -1: fn said so, or the engine. */
int history_each(struct catalog *c, const char *keyspace, struct arena *a, history_fn fn, void *arg,
                 struct err *e) MUST_CHECK;
/* The events of a keyspace become those of another store. */
int history_take_over(struct catalog *c, struct eng *from, const char *keyspace, struct meta_batch *b,
                      struct err *e) MUST_CHECK;
