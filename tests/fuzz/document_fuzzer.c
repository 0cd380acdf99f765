/* Bodies of AWS's API: the first byte says JSON or CBOR. What is read is written, read again and
 * written again: the same bytes. Every input shape is asked whether it fits. */
#include <stdlib.h>

#include "control_plane/shape.h"

typedef struct doc *(*read_fn)(struct arena *a, struct slice body, struct err *e);
typedef void (*write_fn)(const struct doc *d, struct buf *out);

static void shapes_are_checked(const struct doc *d) {
    for (int shape = 0; shape < SHAPES; shape++) {
        struct err e = {0};
        enum shape_verdict v = shape_check((enum shape_id)shape, d, &e);
        if (e.set != (v != SHAPE_FITS)) abort();
    }
}

static void survives(struct arena *a, const struct doc *d, read_fn read, write_fn write) {
    struct err e = {0};
    struct buf first, second;
    buf_init(&first, 64 << 20);
    buf_init(&second, 64 << 20);
    write(d, &first);
    const struct doc *again = read(a, buf_slice(&first), &e);
    if (!again) abort();
    write(again, &second);
    if (!slice_eq(buf_slice(&first), buf_slice(&second))) abort();
    buf_fini(&first);
    buf_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct arena a;
    struct err e = {0};
    if (size < 1) return 0;
    bool cbor = data[0] & 1;
    arena_init(&a, 16 << 10, 64 << 20);
    const struct doc *d = (cbor ? cbor_read : json_read)(&a, slice_of(data + 1, size - 1), &e);
    if (!d != e.set) abort();
    if (d) {
        shapes_are_checked(d);
        survives(&a, d, cbor_read, cbor_write);
        if (!cbor) survives(&a, d, json_read, json_write);
    }
    arena_fini(&a);
    return 0;
}
