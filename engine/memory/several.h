/* A store with several writers, in memory: the twin of a distributed store, for tests. It implements
 * engine/store.h with nothing but the functions there: it proves nothing from memory, appends
 * operands, and checks the ballots of conditional writes.
 */
#pragma once

#include "engine/engine.h"
#include "engine/store.h"

/* The store as one engine sees it. kv, from kv_memory_open or kv_memory_share, must live as long.
 * faults may be NULL. -1: no memory. */
int several_init(struct store *s, struct kv *kv, const struct eng_test_faults *faults, struct err *e) MUST_CHECK;
void several_fini(struct store *s);
