#include "native_protocol/notation.h"

void np_put_string(struct buf *out, const char *s) {
    size_t n = strlen(s);
    if (n > UINT16_MAX) n = UINT16_MAX;
    uint8_t *to = buf_reserve(out, 2 + n);
    if (!to) return;
    store_u16(to, (uint16_t)n);
    memcpy(to + 2, s, n);
    buf_advance(out, 2 + n);
}
