/* How far a read may go for what it looks for. */
#pragma once

/* CACHE is for loops: what is on disk only, or goes through many rows, is incomplete
 * (ENG_INCOMPLETE, KV_INCOMPLETE). */
enum eng_tier { ENG_TIER_CACHE, ENG_TIER_ANY };
