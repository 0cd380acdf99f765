#include "base/json.h"

#include <inttypes.h>

void json_member(struct buf *out, const char *name) {
    if (out->n && !memchr("{[:", out->p[out->n - 1], 3)) buf_u8(out, ',');
    if (name) buf_printf(out, "\"%s\":", name);
}

void json_open(struct buf *out, const char *name, char bracket) {
    json_member(out, name);
    buf_u8(out, (uint8_t)bracket);
}

void json_slice(struct buf *out, const char *name, struct slice text) {
    json_member(out, name);
    buf_json_str(out, text);
}

void json_text(struct buf *out, const char *name, const char *text) {
    json_member(out, name);
    if (text) buf_json_str(out, slice_str(text));
    else buf_put_str(out, "null");
}

void json_flag(struct buf *out, const char *name, bool on) {
    json_member(out, name);
    buf_put_str(out, on ? "true" : "false");
}

void json_count(struct buf *out, const char *name, uint64_t n) {
    json_member(out, name);
    buf_printf(out, "%" PRIu64, n);
}

void json_amount(struct buf *out, const char *name, double n) {
    json_member(out, name);
    if (n < 0) buf_put_str(out, "null");
    else buf_printf(out, "%.10g", n);
}

void json_amounts(struct buf *out, const struct json_amount *list, size_t n) {
    for (size_t i = 0; i < n; i++) json_amount(out, list[i].name, list[i].n);
}
