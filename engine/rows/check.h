/* The check of a stored record, for the verification of a store. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/slice.h"

/* Decodes a record, or one operand of it, of a partition. -1: it is damaged, and e says how. Memory
 * comes from the arena. */
int engi_check_record(struct slice key, struct slice value, struct arena *a, struct err *e) MUST_CHECK;
