/* A capture from hostile bytes: every record lies in the file behind the one before, what is read
 * is written again to the same bytes, and digests end where they do. The first byte says whether
 * checksums are to be made right, so that what is behind them is reached. */
#include <stdlib.h>

#include "base/crc32c.h"
#include "metering/capture/digest.h"
#include "metering/capture/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mend(struct buf *b) {
    if (b->n < CAPTURE_HEADER) return;
    store_u32(b->p + CAPTURE_HEADER - 4, crc32c(0, slice_of(b->p, CAPTURE_HEADER - 4)));
    for (size_t at = CAPTURE_HEADER; b->n - at >= CAPTURE_RECORD_HEADER;) {
        uint32_t n = load_u32(b->p + at);
        if (n > b->n - at - CAPTURE_RECORD_HEADER) return;
        store_u32(b->p + at + 4,
                  crc32c(crc32c(0, slice_of(b->p + at, 4)), slice_of(b->p + at + CAPTURE_RECORD_HEADER, n)));
        at += CAPTURE_RECORD_HEADER + n;
    }
}

static void look_at_digest(struct slice body) {
    struct rd in = rd_of(body);
    struct capture_digest d;
    struct capture_digest_statement s;
    int32_t n;
    uint64_t hash;
    if (capture_get_digest(&in, &d)) return;
    for (uint16_t i = 0; i < d.n_statements; i++) {
        if (capture_get_digest_statement(&in, &s)) return;
        for (uint16_t k = 0; k < s.n_values; k++)
            if (capture_get_digest_value(&s.values, &n, &hash)) abort();
    }
}

/* Not all bytes are the shortest form of what they say: written once, it reads as itself. */
static void check_again(const struct capture_header *h, const struct capture_record *r) {
    struct buf b;
    struct capture_record again;
    struct err e = {0};
    buf_init(&b, 0);
    capture_put_record(&b, h, r);
    if (buf_failed(&b) || capture_get_record(buf_slice(&b), 0, h, &again, &e) != (ssize_t)b.n || again.kind != r->kind)
        abort();
    if (r->kind == CAPTURE_REQUEST &&
        (again.request.took_us != r->request.took_us || again.request.began_us != r->request.began_us ||
         !slice_eq(again.request.body, r->request.body)))
        abort();
    buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct capture_reader r;
    struct capture_record record;
    struct err e = {0};
    struct buf file;
    if (!size) return 0;
    buf_init(&file, 0);
    buf_put(&file, data + 1, size - 1);
    if (data[0] & 1) mend(&file);
    if (!capture_reader_of(&r, "fuzz", buf_slice(&file), &e)) {
        uint64_t from = CAPTURE_HEADER;
        while (capture_reader_next(&r, &record, &e) == CAPTURE_GOT_RECORD) {
            if (record.at != from || r.at <= from || r.at > file.n) abort();
            from = r.at;
            check_again(&r.header, &record);
            if (record.kind == CAPTURE_REQUEST) look_at_digest(record.request.body);
        }
    }
    buf_fini(&file);
    return 0;
}
