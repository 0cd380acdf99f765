#include "tools/tally/splice.h"

void splice_put(struct buf *out, struct slice body, const struct splice *list, size_t n) {
    const uint8_t *at = body.p;
    for (size_t i = 0; i < n; i++) {
        const struct splice *s = &list[i];
        buf_put(out, at, (size_t)(s->old.p - s->length_bytes - at));
        if (s->length_bytes == 2) buf_u16(out, (uint16_t)s->new.n);
        else buf_u32(out, (uint32_t)s->new.n);
        buf_put_slice(out, s->new);
        at = s->old.p + s->old.n;
    }
    buf_put(out, at, (size_t)(body.p + body.n - at));
}
