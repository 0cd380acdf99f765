/* Smithy RPC v2 CBOR (https://smithy.io/2.0/additional-specs/protocols/smithy-rpc-v2.html). The
 * reader takes texts and containers of definite and of indefinite length; the writer makes definite
 * ones. A moment is seconds since 1970 after tag 1. libcbor writes items. Its reader allocates as
 * many items as a header announces, so this file reads for itself: an item is a head, followed by
 * the bytes or items that the head counts (RFC 8949, section 3). */
#include <cbor.h>
#include <math.h>

#include "control_plane/document.h"

enum { UNSIGNED, NEGATIVE, BYTES, TEXT, LIST, MAP, TAG, SIMPLE }; /* major types */
enum { FALSE = 20, TRUE, NUL, UNDEFINED, HALF = 25, FLOAT, DOUBLE, INDEFINITE = 31 };

/* form: the low five bits. n: the argument, a number, a length or a float's bits. */
struct cbor_head {
    uint8_t major, form;
    uint64_t n;
};

struct cbor_reader {
    struct doc_builder b;
    const uint8_t *p, *end;
    struct buf text; /* the pieces of a text of indefinite length */
};

/* Reads a head. Tags are skipped: a moment's number is accepted without its tag, too. */
static bool read_head(struct cbor_reader *r, struct cbor_head *h) {
    do {
        if (r->p == r->end) return false;
        h->major = *r->p >> 5;
        h->form = *r->p++ & 31;
        h->n = h->form < 24 ? h->form : 0;
        if (h->form == INDEFINITE) return h->major >= BYTES && h->major != TAG;
        if (h->form > 27) return false;
        size_t more = h->form < 24 ? 0 : (size_t)1 << (h->form - 24);
        if ((size_t)(r->end - r->p) < more) return false;
        while (more--) h->n = h->n << 8 | *r->p++;
    } while (h->major == TAG);
    return true;
}

static bool is_break(const struct cbor_head *h) { return h->major == SIMPLE && h->form == INDEFINITE; }

static bool read_text(struct cbor_reader *r, const struct cbor_head *h, struct slice *text) {
    struct cbor_head piece = *h;
    if (h->form == INDEFINITE) {
        buf_clear(&r->text, SIZE_MAX);
        while (read_head(r, &piece) && !is_break(&piece)) {
            if (piece.form == INDEFINITE || !read_text(r, &piece, text)) return false;
            buf_put_slice(&r->text, *text);
        }
        *text = buf_slice(&r->text);
        return is_break(&piece) && !buf_failed(&r->text);
    }
    if (h->major != TEXT || h->n > (uint64_t)(r->end - r->p)) return false;
    *text = slice_of(r->p, (size_t)h->n);
    r->p += h->n;
    return true;
}

static bool read_real(struct cbor_reader *r, const struct cbor_head *h) {
    struct doc *d = doc_add(&r->b, DOC_REAL);
    if (!d) return false;
    if (h->form == HALF) { /* a sign, five bits of exponent, ten of fraction */
        int exponent = h->n >> 10 & 31, fraction = h->n & 1023;
        d->real = exponent == 31 ? (fraction ? NAN : INFINITY)
                  : exponent     ? ldexp(fraction + 1024, exponent - 25)
                                 : ldexp(fraction, -24);
        if (h->n >> 15) d->real = -d->real;
    } else if (h->form == FLOAT) {
        float x;
        memcpy(&x, &(uint32_t){(uint32_t)h->n}, sizeof(x));
        d->real = x;
    } else {
        memcpy(&d->real, &h->n, sizeof(d->real));
    }
    return true;
}

/* Reads the item that begins with h. doc_begin bounds the recursion. */
static bool read_item(struct cbor_reader *r, const struct cbor_head *h) {
    struct slice text;
    struct doc *d;
    switch (h->major) {
    case UNSIGNED:
    case NEGATIVE:
        d = doc_add(&r->b, h->n > INT64_MAX ? DOC_REAL : DOC_WHOLE);
        if (d && d->kind == DOC_REAL) d->real = h->major == NEGATIVE ? -1 - (double)h->n : (double)h->n;
        else if (d) d->whole = h->major == NEGATIVE ? -1 - (int64_t)h->n : (int64_t)h->n;
        return d != NULL;
    case TEXT: return read_text(r, h, &text) && doc_add_text(&r->b, text);
    case LIST:
    case MAP:
        if (!doc_begin(&r->b, h->major == MAP ? DOC_MAP : DOC_LIST)) return false;
        for (uint64_t i = 0; h->form == INDEFINITE || i < h->n; i++) {
            struct cbor_head next;
            if (!read_head(r, &next)) return false;
            if (h->form == INDEFINITE && is_break(&next)) break;
            if (h->major == MAP) {
                bool named = next.major == TEXT && read_text(r, &next, &text) && doc_name(&r->b, text);
                if (!named || !read_head(r, &next)) return false;
            }
            if (!read_item(r, &next)) return false;
        }
        doc_end(&r->b);
        return true;
    case SIMPLE:
        if (h->form == NUL || h->form == UNDEFINED) return doc_add(&r->b, DOC_NULL) != NULL;
        if (h->form >= HALF && h->form <= DOUBLE) return read_real(r, h);
        d = h->form == TRUE || h->form == FALSE ? doc_add(&r->b, DOC_FLAG) : NULL;
        if (d) d->flag = h->form == TRUE;
        return d != NULL;
    default: return false; /* bytes: no member of the API has them as its value */
    }
}

struct doc *cbor_read(struct arena *a, struct slice body, struct err *e) {
    if (!body.n) body = slice_str("\xa0");
    struct cbor_reader r = {.b = {.arena = a}, .p = body.p, .end = body.p + body.n};
    struct cbor_head h;
    buf_init(&r.text, body.n);
    bool ok = read_head(&r, &h) && read_item(&r, &h) && r.p == r.end;
    buf_fini(&r.text);
    if (ok) return r.b.root;
    if (r.b.no_memory) err_nomem(e);
    else err_invalid(e, "The body is not CBOR, or too deep or too large");
    return NULL;
}

/* ---- writing ---- */

typedef size_t (*head_fn)(size_t n, unsigned char *out, size_t room);

static void put_head(head_fn encode, size_t n, struct buf *out) {
    unsigned char head[9];
    buf_put(out, head, encode(n, head, sizeof(head)));
}

static void put_real(double x, struct buf *out) {
    unsigned char form[9];
    buf_put(out, form, cbor_encode_double(x, form, sizeof(form)));
}

static void put_text(struct slice s, struct buf *out) {
    put_head(cbor_encode_string_start, s.n, out);
    buf_put_slice(out, s);
}

static void write_items(const struct doc *d, struct buf *out) {
    for (const struct doc *x = d->first; x; x = x->next) {
        if (d->kind == DOC_MAP) put_text(x->name, out);
        cbor_write(x, out);
    }
}

void cbor_write(const struct doc *d, struct buf *out) {
    unsigned char form[9];
    switch (d->kind) {
    case DOC_NULL: buf_put(out, form, cbor_encode_null(form, sizeof(form))); break;
    case DOC_FLAG: buf_put(out, form, cbor_encode_bool(d->flag, form, sizeof(form))); break;
    case DOC_WHOLE:
        buf_put(out, form,
                d->whole < 0 ? cbor_encode_negint((uint64_t)(-1 - d->whole), form, sizeof(form))
                             : cbor_encode_uint((uint64_t)d->whole, form, sizeof(form)));
        break;
    case DOC_REAL: put_real(d->real, out); break;
    case DOC_TEXT: put_text(d->text, out); break;
    case DOC_MOMENT:
        buf_u8(out, 0xC1); /* tag 1 */
        put_real((double)d->whole / 1000, out);
        break;
    case DOC_LIST:
        put_head(cbor_encode_array_start, d->n, out);
        write_items(d, out);
        break;
    case DOC_MAP:
        put_head(cbor_encode_map_start, d->n, out);
        write_items(d, out);
        break;
    }
}
