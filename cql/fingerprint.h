/* What statements that differ only in their values have in common: the text with ? for every literal, and one ? for a list of them. */
#pragma once

#include "base/arena.h"
#include "base/slice.h"

/* In the arena. A text that is no CQL is cut where it stops to be, a long one behind its first 4,000 tokens: "..." stands there. p NULL: no memory. */
struct slice cql_fingerprint(struct arena *a, struct slice text) MUST_CHECK;
