#include "base/steps.h"

#ifdef TALLY_STEPS
static _Thread_local uint64_t steps;

void __sanitizer_cov_trace_pc(void);

/* The compiler calls this at the beginning of each basic block (-fsanitize-coverage=trace-pc). */
__attribute__((no_sanitize_coverage)) void __sanitizer_cov_trace_pc(void) { steps++; }

uint64_t steps_of_thread(void) { return steps; }

void steps_add(uint64_t n) { steps += n; }
#else
typedef int steps_are_not_counted; /* an empty file is not ISO C */
#endif
