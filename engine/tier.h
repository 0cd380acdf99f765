/* How far a read may go for its data. */
#pragma once

/* CACHE is for loops: a read whose data is on disk only, or that passes many rows, is incomplete
 * (ENG_INCOMPLETE, KV_INCOMPLETE). */
enum eng_tier { ENG_TIER_CACHE, ENG_TIER_ANY };
