/* A compiled term, between term.c (which makes it) and term_eval.c; inside cql only. */
#pragma once

#include "cql/expr/function.h"

enum term_kind { TERM_CONSTANT, TERM_BIND, TERM_ITEMS, TERM_CALL };

struct term {
    enum term_kind kind;
    const struct cql_type *type;
    struct value value;   /* TERM_CONSTANT */
    int32_t bind;         /* TERM_BIND */
    uint32_t n_args;      /* TERM_ITEMS: items, of a map keys and values in turn; TERM_CALL: arguments */
    struct term **args;   /* a NULL item is a field of a UDT that was not given */
    const struct function *f;
};

/* Sorts a set's or map's wire form by element or key and drops what repeats (the last wins); in place when that is so already. */
int term_sort_elements(const struct cql_type *t, struct cql_request *r, struct value *v) MUST_CHECK;
