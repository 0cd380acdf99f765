/* AWS JSON 1.0. A moment is a number: seconds since 1970, with a fraction
 * (https://smithy.io/2.0/aws/protocols/aws-json-1_0-protocol.html). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <yajl/yajl_parse.h>

#include "control_plane/document.h"

static int on_null(void *b) { return doc_add(b, DOC_NULL) != NULL; }

static int on_flag(void *b, int flag) {
    struct doc *d = doc_add(b, DOC_FLAG);
    if (d) d->flag = flag != 0;
    return d != NULL;
}

static int on_whole(void *b, long long n) {
    struct doc *d = doc_add(b, DOC_WHOLE);
    if (d) d->whole = n;
    return d != NULL;
}

static int on_real(void *b, double x) {
    struct doc *d = doc_add(b, DOC_REAL);
    if (d) d->real = x;
    return d != NULL;
}

static int on_text(void *b, const unsigned char *p, size_t n) { return doc_add_text(b, slice_of(p, n)); }
static int on_map(void *b) { return doc_begin(b, DOC_MAP) != NULL; }
static int on_list(void *b) { return doc_begin(b, DOC_LIST) != NULL; }
static int on_name(void *b, const unsigned char *p, size_t n) { return doc_name(b, slice_of(p, n)); }

static int on_end(void *b) {
    doc_end(b);
    return 1;
}

struct doc *json_read(struct arena *a, struct slice body, struct err *e) {
    static const yajl_callbacks calls = {.yajl_null = on_null,
                                         .yajl_boolean = on_flag,
                                         .yajl_integer = on_whole,
                                         .yajl_double = on_real,
                                         .yajl_string = on_text,
                                         .yajl_start_map = on_map,
                                         .yajl_map_key = on_name,
                                         .yajl_end_map = on_end,
                                         .yajl_start_array = on_list,
                                         .yajl_end_array = on_end};
    struct doc_builder b = {.arena = a};
    if (!body.n) body = slice_str("{}");
    yajl_handle parser = yajl_alloc(&calls, NULL, &b);
    if (!parser) return err_null(err_nomem(e));
    bool ok = yajl_parse(parser, body.p, body.n) == yajl_status_ok && yajl_complete_parse(parser) == yajl_status_ok;
    yajl_free(parser);
    if (ok && b.root) return b.root;
    if (b.no_memory) err_nomem(e);
    else err_invalid(e, "The body is not JSON, or too deep or too large");
    return NULL;
}

/* ---- writing ---- */

static void write_real(double x, struct buf *out) {
    char text[32];
    snprintf(text, sizeof(text), "%.17g", x);
    if (isfinite(x)) buf_printf(out, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
    else buf_printf(out, "\"%s\"", isnan(x) ? "NaN" : x < 0 ? "-Infinity" : "Infinity");
}

void json_write(const struct doc *d, struct buf *out) {
    switch (d->kind) {
    case DOC_NULL: buf_put_str(out, "null"); break;
    case DOC_FLAG: buf_put_str(out, d->flag ? "true" : "false"); break;
    case DOC_WHOLE: buf_printf(out, "%" PRId64, d->whole); break;
    case DOC_REAL: write_real(d->real, out); break;
    case DOC_TEXT: buf_json_str(out, d->text); break;
    case DOC_MOMENT: buf_printf(out, "%" PRId64 ".%03" PRId64, d->whole / 1000, d->whole % 1000); break;
    case DOC_LIST:
    case DOC_MAP:
        buf_u8(out, d->kind == DOC_MAP ? '{' : '[');
        for (const struct doc *x = d->first; x; x = x->next) {
            if (x != d->first) buf_u8(out, ',');
            if (d->kind == DOC_MAP) {
                buf_json_str(out, x->name);
                buf_u8(out, ':');
            }
            json_write(x, out);
        }
        buf_u8(out, d->kind == DOC_MAP ? '}' : ']');
    }
}
