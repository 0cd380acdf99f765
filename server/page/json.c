#include "server/page/json.h"

void json_item(struct buf *out) {
    if (out->n && !strchr("{[:", out->p[out->n - 1])) buf_u8(out, ',');
}

void json_member(struct buf *out, const char *name) {
    json_item(out);
    buf_printf(out, "\"%s\":", name);
}

void json_text(struct buf *out, const char *name, const char *text) {
    json_member(out, name);
    buf_json_str(out, slice_str(text));
}

void json_count(struct buf *out, const char *name, uint64_t n) {
    json_member(out, name);
    buf_printf(out, "%llu", (unsigned long long)n);
}
