/* How far a read may go for its data. */
#pragma once

/* CACHE is for loops: a read whose data is on disk only, or that passes many rows or a large one, is
 * incomplete (ENG_INCOMPLETE, KV_INCOMPLETE). */
enum eng_tier { ENG_TIER_CACHE, ENG_TIER_ANY };
enum { ENG_CACHE_BYTES_MAX = 512 << 10 /* of the rows of a read in the cache tier */ };
