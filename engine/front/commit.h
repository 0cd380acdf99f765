/* The commit thread, for the rest of engine/ (commit.c). */
#pragma once

#include "base/err.h"

struct eng;

int engi_commit_start(struct eng *eng, struct err *e) MUST_CHECK;
/* Ends the thread and syncs what the durability promises at a clean end. */
void engi_commit_stop(struct eng *eng);
/* A new sequence, for a write that the store has just taken. */
uint64_t engi_commit_next_seq(struct eng *eng);
/* -1 while a failed sync is not healed: nothing may be written. */
int engi_commit_check(const struct eng *eng, struct err *e) MUST_CHECK;
/* Has seq synced, also where writes are acknowledged before their sync, and waits for it. One
 * thread syncs at a time, and none after a failed sync: a second fsync may succeed although the
 * first one lost data. */
int engi_commit_wait(struct eng *eng, uint64_t seq, struct err *e) MUST_CHECK;
