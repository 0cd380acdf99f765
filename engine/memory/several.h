/* A store with several writers, in memory: the twin of a distributed store, for tests. It implements
 * engine/store.h with nothing but the functions there: it proves nothing from memory, appends
 * operands, and checks the ballots of conditional writes.
 */
#pragma once

#include "engine/engine.h"
#include "engine/store.h"

/* Opens the store; faults may be NULL. Returns -1 if memory is exhausted. */
int several_open(struct store *s, const struct eng_test_faults *faults, struct err *e) MUST_CHECK;
/* Opens the store that first is an open handle of. The handles are closed in any order. */
int several_share(struct store *s, const struct store *first, const struct eng_test_faults *faults,
                  struct err *e) MUST_CHECK;
