/* What older clients of AWS's API send: a form, whose texts are settled by every input shape and
 * then checked. */
#include <stdlib.h>

#include "control_plane/form.h"
#include "control_plane/shape.h"

/* What is answered has names of the server's own. */
static void name_plainly(struct doc *d) {
    for (struct doc *x = d->first; x; x = x->next) {
        x->name = slice_str("Name");
        name_plainly(x);
    }
}

static void check_survives(struct arena *a, struct doc *d) {
    struct err e = {0};
    struct buf bytes, again;
    buf_init(&bytes, 64 << 20);
    buf_init(&again, 64 << 20);
    cbor_write(d, &bytes);
    const struct doc *read = cbor_read(a, buf_slice(&bytes), &e);
    if (!read) abort();
    cbor_write(read, &again);
    if (!slice_eq(buf_slice(&bytes), buf_slice(&again))) abort();
    buf_clear(&again, 0);
    name_plainly(d);
    form_write_answer(d, "urn:x", "X", "id", &again);
    for (size_t i = 0; i < again.n; i++)
        if (again.p[i] < ' ' && again.p[i] != '\n' && again.p[i] != '\t') abort();
    buf_fini(&bytes);
    buf_fini(&again);
}

static void fuzz_form(struct slice body) {
    static const enum shape_id shapes[] = {SHAPE_cw_GetMetricDataInput,      SHAPE_cw_GetMetricStatisticsInput,
                                           SHAPE_cw_ListMetricsInput,        SHAPE_CreateTableRequest,
                                           SHAPE_as_PutScalingPolicyRequest, SHAPE_as_RegisterScalableTargetRequest};
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        struct arena a;
        struct err e = {0}, invalid = {0};
        arena_init(&a, 16 << 10, 64 << 20);
        struct doc *d = form_read(&a, body, &e);
        if (!d != e.set) abort();
        if (d) {
            shape_convert_texts(shapes[i], d);
            if ((shape_check(shapes[i], d, &invalid) != SHAPE_FITS) != invalid.set) abort();
            check_survives(&a, d);
        }
        arena_fini(&a);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_form(slice_of(data, size));
    return 0;
}
