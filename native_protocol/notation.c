#include "native_protocol/notation.h"

void np_put_string(struct buf *out, const char *s) {
    size_t n = strlen(s);
    if (n > UINT16_MAX) n = UINT16_MAX;
    buf_u16(out, (uint16_t)n);
    buf_put(out, s, n);
}
