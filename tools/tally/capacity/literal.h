/* CQL literals: made up after what a workload says of a column, or read from a sample. */
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
/* -1: ERR_CONFIG without a place, e names what is not understood. */
int literal_spec_parse(struct arena *a, const char *text, struct literal_spec *out, struct err *e) MUST_CHECK;

/* ORDERED: n is told by the literal, so that another n has another one: of a key. RANDOM: n only decides which. */
enum literal_kind { LITERAL_ORDERED, LITERAL_RANDOM };
/* spec NULL: nothing is said. -1: ERR_CONFIG, for how long a value is must be said. */
int literal_make(struct buf *out, const struct cql_type *t, const struct literal_spec *spec, enum literal_kind kind,
                 uint64_t n, const char *column, struct err *e) MUST_CHECK;

/* A field of a sample, as a literal of the type: quoted where CQL wants quotes. */
void literal_of_text(struct buf *out, const struct cql_type *t, struct slice text);
/* A JSON value at *r, which then is behind it. -1: ERR_CONFIG, it is no JSON, or no value of the
 * type. *null: it is null. */
int literal_of_json(struct buf *out, const struct cql_type *t, struct rd *r, bool *null, struct err *e) MUST_CHECK;
/* Steps over white space; the next byte, 0 at the end. */
uint8_t json_peek(struct rd *r);
/* A string at *r without its quotes, escapes undone, into the arena. */
int json_string(struct arena *a, struct rd *r, struct slice *out, struct err *e) MUST_CHECK;
