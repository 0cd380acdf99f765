#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"

int err_set(struct err *e, enum err_code code, const char *fmt, ...) {
    if (e->set) return -1;
    e->set = true;
    e->no_memory = false;
    e->code = code;
    e->rule = NULL;
    memset(&e->detail, 0, sizeof(e->detail));
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(e->text, sizeof(e->text), fmt, ap);
    va_end(ap);
    if (n < 0) e->text[0] = 0;
    if (n >= (int)sizeof(e->text)) {
        size_t at = sizeof(e->text) - 4;
        while (at > 0 && ((uint8_t)e->text[at] & 0xC0) == 0x80) at--; /* not inside a UTF-8 sequence */
        memcpy(e->text + at, "...", 4);
    }
    return -1;
}

int err_set_buf(struct err *e, enum err_code code, struct buf *text) {
    (void)err_set(e, code, "%.*s%s", SLICE_FMT(buf_slice(text)), buf_failed(text) ? "..." : "");
    buf_fini(text);
    return -1;
}

int err_nomem(struct err *e) {
    if (e->set) return -1;
    (void)err_set(e, ERR_SERVER, "The request needs more memory than one request may use");
    e->no_memory = true;
    return -1;
}

const char *err_title(enum err_code code) {
    switch (code) {
#define ERR(id, value, title) \
    case ERR_##id: return title;
#include "base/err.def"
#undef ERR
    }
    return "Unknown error";
}
