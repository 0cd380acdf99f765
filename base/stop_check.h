/* A check of whether a thread's request may continue. The check stops a request after its deadline or when it is
 * cancelled.
 *
 * A row may have millions of cells. They are merged, decoded and assembled far below the request, partly in functions
 * that RocksDB calls and that get no argument of ours. So a request sets the check for its thread, and a loop over
 * cells calls it once in STOP_CHECK_CELLS cells. Without a check the loop always continues.
 */
#pragma once

#include "base/compiler.h"

enum { STOP_CHECK_CELLS = 8192 };

/* check returns 0 if the request may continue. Otherwise it sets the request's error and returns -1. */
struct stop_check {
    int (*check)(void *arg);
    void *arg;
};

/* Sets the check of this thread. *c must stay valid until the next call. NULL removes the check. */
void stop_check_set(const struct stop_check *c);
/* Calls the check of this thread. Returns 0 to continue, or -1 to stop. */
int stop_check_run(void) MUST_CHECK;
