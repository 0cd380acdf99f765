/* Copies a request's body with some parts replaced: ids of prepared statements, the paging
 * state. */
#pragma once

#include "base/buf.h"

struct splice {
    struct slice old; /* points into the body */
    struct slice new;
    unsigned length_bytes; /* 2 or 4: size of the length field before old, which is rewritten too */
};

/* list is ordered by position in the body. */
void splice_put(struct buf *out, struct slice body, const struct splice *list, size_t n);
