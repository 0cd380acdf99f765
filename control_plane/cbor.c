/* Smithy RPC v2 CBOR (https://smithy.io/2.0/additional-specs/protocols/smithy-rpc-v2.html). The
 * reader takes texts and containers of definite and of indefinite length; the writer makes definite
 * ones. A moment is seconds since 1970 after tag 1. libcbor decodes single items and calls a
 * function for each; these functions build the tree. */
#include <cbor.h>

#include "control_plane/document.h"

/* An open container, or an open text that comes in pieces. left: the items still to come. */
struct level {
    bool indefinite, pieces;
    uint64_t left; /* in a map, names count, too */
};

struct reader {
    struct doc_builder b;
    struct level levels[DOCUMENT_DEPTH + 1];
    uint32_t n_levels;
    struct buf text; /* the pieces of an open text */
    bool bad;
};

static struct level *top(struct reader *r) { return r->n_levels ? &r->levels[r->n_levels - 1] : NULL; }

/* Closes the containers that are full. */
static void settle(struct reader *r) {
    for (struct level *l; (l = top(r)) && !l->indefinite && !l->left;) {
        r->n_levels--;
        doc_end(&r->b);
        if (top(r) && !top(r)->indefinite) top(r)->left--;
    }
}

/* Counts a complete item in its container. */
static void count(struct reader *r) {
    if (top(r) && !top(r)->indefinite) top(r)->left--;
    settle(r);
}

static void check(struct reader *r, bool ok) { r->bad = r->bad || !ok; }

/* Must the next text be a name? Each entry of a map begins with one. */
static bool wants_name(const struct reader *r) {
    const struct doc *open = r->b.depth ? r->b.open[r->b.depth - 1] : NULL;
    return open && open->kind == DOC_MAP && !r->b.name.p;
}

static void take_text(struct reader *r, struct slice s) {
    if (r->bad) return;
    check(r, wants_name(r) ? doc_name(&r->b, s) : doc_add_text(&r->b, s));
    count(r);
}

static void on_text(void *arg, cbor_data p, size_t n) {
    struct reader *r = arg;
    if (!top(r) || !top(r)->pieces) take_text(r, slice_of(p, n));
    else buf_put(&r->text, p, n);
}

static void open_level(struct reader *r, struct level l) {
    if (r->n_levels == ARRAY_LEN(r->levels)) check(r, false);
    else r->levels[r->n_levels++] = l;
}

static void on_pieces(void *arg) {
    struct reader *r = arg;
    buf_clear(&r->text, SIZE_MAX);
    open_level(r, (struct level){.indefinite = true, .pieces = true});
}

static void on_break(void *arg) {
    struct reader *r = arg;
    struct level *l = top(r);
    check(r, l && l->indefinite);
    if (r->bad) return;
    bool pieces = l->pieces;
    r->n_levels--;
    if (pieces) {
        check(r, !buf_failed(&r->text));
        take_text(r, buf_slice(&r->text));
        return;
    }
    check(r, !r->b.name.p);
    doc_end(&r->b);
    count(r);
}

static void begin(struct reader *r, enum doc_kind kind, bool indefinite, uint64_t n) {
    check(r, n <= DOCUMENT_NODES && !wants_name(r) && doc_begin(&r->b, kind));
    if (r->bad) return;
    open_level(r, (struct level){.indefinite = indefinite, .left = kind == DOC_MAP ? 2 * n : n});
    settle(r);
}

static void on_list(void *arg, size_t n) { begin(arg, DOC_LIST, false, n); }
static void on_map(void *arg, size_t n) { begin(arg, DOC_MAP, false, n); }
static void on_endless_list(void *arg) { begin(arg, DOC_LIST, true, 0); }
static void on_endless_map(void *arg) { begin(arg, DOC_MAP, true, 0); }

static void take_real(struct reader *r, double x) {
    struct doc *d = wants_name(r) ? NULL : doc_add(&r->b, DOC_REAL);
    if (d) d->real = x;
    check(r, d != NULL);
    count(r);
}

static void take_whole(struct reader *r, int64_t n) {
    struct doc *d = wants_name(r) ? NULL : doc_add(&r->b, DOC_WHOLE);
    if (d) d->whole = n;
    check(r, d != NULL);
    count(r);
}

static void on_u64(void *arg, uint64_t n) {
    if (n > INT64_MAX) take_real(arg, (double)n);
    else take_whole(arg, (int64_t)n);
}
static void on_u8(void *arg, uint8_t n) { take_whole(arg, n); }
static void on_u16(void *arg, uint16_t n) { take_whole(arg, n); }
static void on_u32(void *arg, uint32_t n) { take_whole(arg, n); }
static void on_n64(void *arg, uint64_t n) {
    if (n > INT64_MAX) take_real(arg, -1 - (double)n);
    else take_whole(arg, -1 - (int64_t)n);
}
static void on_n8(void *arg, uint8_t n) { take_whole(arg, -1 - (int64_t)n); }
static void on_n16(void *arg, uint16_t n) { take_whole(arg, -1 - (int64_t)n); }
static void on_n32(void *arg, uint32_t n) { take_whole(arg, -1 - (int64_t)n); }
static void on_float(void *arg, float x) { take_real(arg, x); }
static void on_double(void *arg, double x) { take_real(arg, x); }

static void on_flag(void *arg, bool flag) {
    struct reader *r = arg;
    struct doc *d = wants_name(r) ? NULL : doc_add(&r->b, DOC_FLAG);
    if (d) d->flag = flag;
    check(r, d != NULL);
    count(r);
}

static void on_null(void *arg) {
    struct reader *r = arg;
    check(r, !wants_name(r) && doc_add(&r->b, DOC_NULL));
    count(r);
}

static void on_bytes(void *arg, cbor_data p, size_t n) {
    (void)p, (void)n;
    check(arg, false); /* no member of the API has bytes as its value */
}
static void on_byte_pieces(void *arg) { check(arg, false); }
/* Tags are ignored: a moment's number is accepted without its tag, too. */
static void on_tag(void *arg, uint64_t tag) { (void)arg, (void)tag; }

struct doc *cbor_read(struct arena *a, struct slice body, struct err *e) {
    static const struct cbor_callbacks calls = {.uint8 = on_u8,
                                                .uint16 = on_u16,
                                                .uint32 = on_u32,
                                                .uint64 = on_u64,
                                                .negint8 = on_n8,
                                                .negint16 = on_n16,
                                                .negint32 = on_n32,
                                                .negint64 = on_n64,
                                                .byte_string = on_bytes,
                                                .byte_string_start = on_byte_pieces,
                                                .string = on_text,
                                                .string_start = on_pieces,
                                                .array_start = on_list,
                                                .indef_array_start = on_endless_list,
                                                .map_start = on_map,
                                                .indef_map_start = on_endless_map,
                                                .tag = on_tag,
                                                .float2 = on_float,
                                                .float4 = on_float,
                                                .float8 = on_double,
                                                .undefined = on_null,
                                                .null = on_null,
                                                .boolean = on_flag,
                                                .indef_break = on_break};
    struct reader r = {.b = {.arena = a}};
    if (!body.n) body = slice_str("\xa0");
    buf_init(&r.text, body.n);
    size_t at = 0;
    while (at < body.n && !r.bad) {
        struct cbor_decoder_result got = cbor_stream_decode(body.p + at, body.n - at, &calls, &r);
        check(&r, got.status == CBOR_DECODER_FINISHED);
        at += got.read;
    }
    buf_fini(&r.text);
    if (!r.bad && r.b.root && !r.n_levels) return r.b.root;
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
