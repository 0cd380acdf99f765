/* What older clients of AWS's API send: a form (an even first byte), whose texts are settled by
 * every input shape and then checked; or (an odd one) an expression of metric math over three
 * series, of which the third is empty: what comes out is in order, finite and bounded. */
#include <math.h>
#include <stdlib.h>

#include "control_plane/form.h"
#include "control_plane/metric_math.h"
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
            shape_settle_texts(shapes[i], d);
            if ((shape_check(shapes[i], d, &invalid) != SHAPE_FITS) != invalid.set) abort();
            check_survives(&a, d);
        }
        arena_fini(&a);
    }
}

static struct math_point points[] = {{0, 1}, {60, 2.5}, {120, -3}, {300, 1e300}};
static const struct math_series series[3] = {{60, 4, points}, {60, 2, points + 1}, {300, 0, points}};

static const struct math_series *find(void *arg, struct slice id, struct err *e) {
    (void)arg;
    if (id.n == 2 && id.p[0] == 'm' && id.p[1] >= '0' && id.p[1] < '3') return &series[id.p[1] - '0'];
    err_invalid(e, "none");
    return NULL;
}

static const struct math_series *metric(void *arg, uint32_t i) {
    (void)arg;
    return i < ARRAY_LEN(series) ? &series[i] : NULL;
}

static void fuzz_expression(struct slice text) {
    const struct math_scope scope = {.find = find, .metric = metric, .start = 0, .end = 3600};
    struct arena a;
    struct err e = {0};
    struct math_series out = {0};
    arena_init(&a, 16 << 10, 64 << 20);
    int rc = math_eval(&a, text, &scope, &out, &e);
    if ((rc != 0) != e.set || out.n > MATH_POINTS) abort();
    for (uint32_t i = 0; !rc && i < out.n; i++)
        if (!isfinite(out.points[i].value) || (i && out.points[i].at <= out.points[i - 1].at)) abort();
    arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    if (data[0] & 1) fuzz_expression(slice_of(data + 1, size - 1));
    else fuzz_form(slice_of(data + 1, size - 1));
    return 0;
}
