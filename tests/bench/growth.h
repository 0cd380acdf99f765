/* What a request costs as more and more is stored: each row of growth.def on three sizes, n, 4n and
 * 16n, in turns.
 *
 * A tallyd of its own for each size; a server beside them holds all three, each in a keyspace. What
 * is asked for is the same at every size, so a cost that follows the size is a fault: look-ups in a
 * tree grow with its logarithm, nothing else may.
 */
#pragma once

#include "tests/bench/growth_load.h"
#include "tests/bench/measure.h"

enum { GROWTH_STEPS = 3, GROWTH_FACTOR = 4, GROWTH_SPAN = 16 };
enum growth_target { GROWTH_TALLYD, GROWTH_OTHER, GROWTH_TARGETS };

typedef struct growth_cost growth_costs[GROWTH_TARGETS][GROWTHS][GROWTH_STEPS]; /* no requests: not measured */

bool growth_asked(const struct bench_options *o);
/* costs: one for each run. 0 / -1: a request failed or a server did not start, said on stderr. */
int growth_measure(const struct bench_options *o, growth_costs *costs);
uint64_t growth_stored(const struct bench_options *o, int step);
/* How often the CPU of the first step the last one takes, each in its best turn, which is the one
 * that other programs disturbed least; 0: not measured. */
double growth_ratio(const struct growth_cost c[GROWTH_STEPS]);
/* What it may be; of what reads all that is there, what it must be at least. What follows nothing
 * has a quarter of the growth for the logarithm, which a row that is passed downwards in memory
 * pays each time. */
double growth_bound(enum growth what);
bool growth_holds(enum growth what, double ratio);
