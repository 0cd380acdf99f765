/* Generates CQL literals from a workload's specification of a column. */
#pragma once

#include "base/arena.h"
#include "types/type.h"

/* "size 20..400", "elements 1..5 size 10", "range 1..1000", "one of 'red' | 'blue'". */
struct literal_spec {
    bool has_size, has_elements, has_range;
    int64_t size_low, size_high, elements_low, elements_high, range_low, range_high;
    uint32_t n_choices;
    const struct slice *choices; /* literals; in the arena */
};
/* Returns -1 with ERR_CONFIG without a place; e names the part that is not understood. */
int literal_spec_parse(struct arena *a, const char *text, struct literal_spec *out, struct err *e) MUST_CHECK;

/* ORDERED: different n give different literals, as keys need. RANDOM: n only seeds the choice. */
enum literal_kind { LITERAL_ORDERED, LITERAL_RANDOM };
/* Appends the literal number n. spec NULL: no specification. Returns -1 with ERR_CONFIG, the
 * specification lacks a size or a number of elements, or the type has no generated values. */
int literal_make(struct buf *out, const struct cql_type *t, const struct literal_spec *spec, enum literal_kind kind,
                 uint64_t n, const char *column, struct err *e) MUST_CHECK;
