/* Reclaiming: a thread has the store remove dead data that is old enough, table by table. The store
 * knows what that is and how to find it (struct store_reclaim of engine/store.h); this file keeps the
 * pace and the turns.
 *
 * The thread keeps to a pace in rows a second, and the store holds no lock or guard while it waits.
 * It visits a table once in an eighth of the table's gc_grace. In its next round it visits the parts
 * of a table where reads had to pass many rows that a deletion covers (STORE_MANY_COVERED), so that
 * later reads need not pass them again. Private to engine/.
 */
#pragma once

#include "base/err.h"
#include "engine/front/eng.h"

void engi_reclaim_init(struct engi_reclaim *r, uint32_t rows_per_second);
void engi_reclaim_fini(struct engi_reclaim *r);
int engi_reclaim_start(struct eng *eng, struct err *e) MUST_CHECK;
void engi_reclaim_stop(struct eng *eng);
