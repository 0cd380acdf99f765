/* A check, set for a thread, of whether its request may continue: deadline and cancellation.
 *
 * One row may have millions of cells. They are merged, decoded and assembled far below the request,
 * partly in functions that RocksDB calls, which get no argument of ours. So a request sets the check
 * for its thread, and a loop over cells calls it after each PATIENCE_CELLS of them. Without a check
 * the work always continues.
 */
#pragma once

#include "base/compiler.h"

enum { PATIENCE_CELLS = 8192 };

/* ask returns 0 to continue, or -1 to stop with the error that it has set. */
struct patience {
    int (*ask)(void *arg);
    void *arg;
};

/* Sets the check of this thread. *p must stay valid until the next call. NULL removes the check. */
void patience_set(const struct patience *p);
/* Calls the check of this thread. Returns 0 to continue, or -1 to stop. */
int patience_ask(void) MUST_CHECK;
