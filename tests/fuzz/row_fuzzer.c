/* Stored rows from hostile bytes: [u16 n][n bytes: one row][the rest: another]. What decodes must
 * encode to the same meaning, and merging a sound row with itself must succeed. */
#include <stdlib.h>

#include "engine/row.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round_trip(struct slice bytes, struct arena *a) {
    struct err e = {0};
    struct eng_row row, again;
    struct buf out, merged;
    uint64_t tombstones = 0;
    eng_row_init(&row, ENG_ROW, slice_of("", 0));
    if (eng_row_decode(bytes, a, &row, &e)) return;
    eng_row_sort(&row);
    buf_init(&out, 0);
    buf_init(&merged, 0);
    eng_row_encode(&row, &out);
    if (eng_row_decode(buf_slice(&out), a, &again, &e) || again.n_cells != row.n_cells) abort();
    if (eng_row_merge(buf_slice(&out), buf_slice(&out), &merged)) abort();
    (void)eng_row_resolve(&row, ENG_NO_TS, 1000, &tombstones);
    buf_fini(&out);
    buf_fini(&merged);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct arena a;
    struct buf out;
    if (size < 2) return 0;
    size_t n = load_u16(data);
    if (n > size - 2) n = size - 2;
    struct slice one = slice_of(data + 2, n), other = slice_of(data + 2 + n, size - 2 - n);
    arena_init(&a, 4096, 16 << 20);
    check_round_trip(one, &a);
    check_round_trip(other, &a);
    buf_init(&out, 0);
    (void)!eng_row_merge(one, other, &out);
    buf_fini(&out);
    arena_fini(&a);
    return 0;
}
