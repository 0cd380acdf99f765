/* Counts the basic blocks of our own code that a thread has executed, for tests of cost. The number
 * is the same on a busy machine and on a quiet one. Only builds with TALLY_STEPS count (the asan
 * preset with gcc); libraries are not counted. */
#pragma once

#ifdef TALLY_STEPS
#include <stdint.h>

/* The blocks that this thread has executed so far, plus the numbers given to steps_add. Any
 * thread. */
uint64_t steps_of_thread(void);
/* Counts n more for this thread: a test's wrapper of memcpy adds what a copy of its length costs. */
void steps_add(uint64_t n);
#endif
