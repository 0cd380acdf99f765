/* A duration's three parts, and its wire form of three zigzag variable-length integers (v5
 * specification, section 6.11). */
#pragma once

#include "base/buf.h"

struct cql_duration {
    int32_t months, days;
    int64_t ns;
};

/* Returns -1 if the bytes are no duration. */
int cql_duration_read(struct slice v, struct cql_duration *out);
void cql_duration_write(const struct cql_duration *d, struct buf *out);
/* Unsigned variable-length integer of the protocol: the first byte has as many leading ones as
 * bytes follow. */
int cqlt_vint_read(struct rd *r, uint64_t *out);
size_t cqlt_vint_bytes(uint64_t v); /* bytes that cqlt_vint_write appends */
void cqlt_vint_write(uint64_t v, struct buf *out);
