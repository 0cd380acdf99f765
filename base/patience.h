/* Whether long work may go on.
 *
 * One row may have millions of cells. They are merged, decoded and put together far below the request,
 * partly in functions that RocksDB calls. So a request gives its thread a question, and a loop over
 * cells asks it after each PATIENCE_CELLS of them. A thread without a question always goes on.
 */
#pragma once

#include "base/compiler.h"

enum { PATIENCE_CELLS = 8192 };

/* A long-running function calls ask now and then. 0: go on; -1: stop with the error that ask has
 * set. */
struct patience {
    int (*ask)(void *arg);
    void *arg;
};

/* The question of this thread from now on, which must stay where it is until the next call; NULL: none. */
void patience_set(const struct patience *p);
/* 0: go on; -1: stop. */
int patience_ask(void) MUST_CHECK;
