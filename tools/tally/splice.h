/* A request's body with some of its parts exchanged: ids of prepared statements, the paging state. */
#pragma once

#include "base/buf.h"

struct splice {
    struct slice old; /* lies in the body */
    struct slice new;
    unsigned length_bytes; /* of the length in front of it, which becomes the new one's: 2 or 4 */
};

/* In the order in which they lie there. */
void splice_put(struct buf *out, struct slice body, const struct splice *list, size_t n);
