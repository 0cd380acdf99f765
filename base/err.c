#include "base/err.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"

/* The length of the n bytes at p without a UTF-8 sequence that is cut at the end. */
static size_t whole(const char *p, size_t n) {
    size_t at = n;
    while (at > 0 && n - at < 3 && ((uint8_t)p[at - 1] & 0xC0) == 0x80) at--;
    uint8_t lead = at > 0 ? (uint8_t)p[at - 1] : 0;
    size_t need = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 0;
    return need > n - at + 1 ? at - 1 : n;
}

/* Whether all conversions of the format are those that err_print implements. */
static bool is_simple(const char *fmt) {
    for (const char *at; (at = strchr(fmt, '%')); fmt++) {
        fmt = at + strspn(at + 1, "0123456789.*lz") + 1;
        const char *star = memchr(at, '*', (size_t)(fmt - at));
        if (!*fmt || !strchr("%cduxsf", *fmt) || (star && strncmp(star - 1, ".*s", 3) != 0)) return false;
    }
    return true;
}

void err_print(char *to, size_t cap, const char *fmt, va_list ap) {
    size_t n = 0; /* bytes written; the text is too long when n reaches cap */
    if (!is_simple(fmt)) {
        if (vsnprintf(to, cap, fmt, ap) < 0) *to = 0;
        return;
    }
    while (*fmt && n < cap) {
        size_t length = strspn(fmt + (*fmt == '%'), "0123456789.*lz") + 1;
        char spec[16], number[64];
        const char *s = number;
        size_t size;
        if (*fmt != '%' || fmt[1] == '%') {
            s = fmt;
            size = 1;
            length = *fmt == '%';
        } else {
            assert(length + 1 < sizeof spec);
            memcpy(spec, fmt, length + 1);
            spec[length + 1] = 0;
            if (fmt[length] == 's') {
                const char *dot = strchr(spec, '.');
                bool given = dot && dot[1] == '*';
                size = given ? (size_t)va_arg(ap, int) : dot ? strtoul(dot + 1, NULL, 10) : SIZE_MAX;
                s = va_arg(ap, const char *);
                if (!given) size = strnlen(s, size);
                size = whole(s, size);
            } else {
                if (fmt[length] == 'f') snprintf(number, sizeof number, spec, va_arg(ap, double));
                else if (strstr(spec, "ll")) snprintf(number, sizeof number, spec, va_arg(ap, long long));
                else if (strchr(spec, 'l')) snprintf(number, sizeof number, spec, va_arg(ap, long));
                else if (strchr(spec, 'z')) snprintf(number, sizeof number, spec, va_arg(ap, size_t));
                else snprintf(number, sizeof number, spec, va_arg(ap, int));
                size = strlen(number);
            }
        }
        for (size_t i = 0; i < size && n < cap; i++) {
            if (!s[i]) to[n++] = (char)0xC0;
            if (n < cap) to[n++] = s[i] ? s[i] : (char)0x80;
        }
        fmt += length + 1;
    }
    if (n < cap) to[n] = 0;
    else memcpy(to + whole(to, cap - 4), "...", 4);
}

int err_set(struct err *e, enum err_code code, const char *fmt, ...) {
    if (e->set) return -1;
    e->set = true;
    e->no_memory = false;
    e->code = code;
    e->rule = NULL;
    memset(&e->detail, 0, sizeof(e->detail));
    va_list ap;
    va_start(ap, fmt);
    err_print(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
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

int err_about(struct err *e, const char *keyspace, const char *name) {
    snprintf(e->detail.keyspace, sizeof(e->detail.keyspace), "%s", keyspace);
    snprintf(e->detail.name, sizeof(e->detail.name), "%s", name);
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
