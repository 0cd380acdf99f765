#include "metering/capture/format.h"

#include "base/crc32c.h"

static const char magic[8] = {'T', 'A', 'L', 'L', 'Y', 'C', 'A', 'P'};
enum { FLAG_HASHED = 1, FLAG_STRICT = 2, FLAG_CASSANDRA = 4 };

/* ---- writing ---- */

static void put_string(struct buf *out, struct slice s) {
    buf_uvarint(out, s.n);
    buf_put_slice(out, s);
}

void capture_put_header(struct buf *out, const struct capture_header *h) {
    size_t at = out->n;
    buf_put(out, magic, sizeof(magic));
    buf_u16(out, CAPTURE_VERSION);
    buf_u16(out, (uint16_t)((h->hashed ? FLAG_HASHED : 0) | (h->strict ? FLAG_STRICT : 0) |
                            (h->cassandra ? FLAG_CASSANDRA : 0)));
    buf_u8(out, h->size_model);
    buf_u8(out, h->write_size);
    buf_u32(out, h->timestamp_size);
    buf_u64(out, (uint64_t)h->started_us);
    buf_u32(out, h->part);
    if (!buf_failed(out)) buf_u32(out, crc32c(0, slice_of(out->p + at, out->n - at)));
}

static void put_request(struct buf *out, const struct capture_header *h, const struct capture_request *q) {
    buf_uvarint(out, q->began_us > h->started_us ? (uint64_t)(q->began_us - h->started_us) : 0);
    buf_uvarint(out, q->took_us);
    buf_uvarint(out, q->connection);
    buf_u8(out, q->version);
    buf_u8(out, q->flags);
    buf_u8(out, q->opcode);
    buf_u8(out, q->marks);
    buf_uvarint(out, q->outcome);
    buf_uvarint(out, q->read_halves);
    buf_uvarint(out, q->write_halves);
    buf_uvarint(out, q->static_halves);
    buf_uvarint(out, q->row_bytes);
    buf_uvarint(out, q->static_bytes);
    buf_uvarint(out, q->rows_read);
    buf_uvarint(out, q->rows_returned);
    put_string(out, q->keyspace);
    put_string(out, q->body);
}

static uint32_t checksum(const uint8_t *length, struct slice payload) {
    return crc32c(crc32c(0, slice_of(length, 4)), payload);
}

void capture_put_record(struct buf *out, const struct capture_header *h, const struct capture_record *r) {
    size_t at = out->n;
    buf_u64(out, 0); /* length and checksum, set below */
    buf_u8(out, (uint8_t)r->kind);
    switch (r->kind) {
    case CAPTURE_STATEMENT:
        buf_put(out, r->statement.id.p, CAPTURE_ID);
        put_string(out, r->statement.keyspace);
        put_string(out, r->statement.text);
        break;
    case CAPTURE_REQUEST: put_request(out, h, &r->request); break;
    case CAPTURE_DROPPED: buf_uvarint(out, r->dropped); break;
    case CAPTURE_END: put_string(out, r->reason); break;
    }
    if (buf_failed(out)) return;
    struct slice payload = slice_of(out->p + at + CAPTURE_RECORD_HEADER, out->n - at - CAPTURE_RECORD_HEADER);
    buf_patch_u32(out, at, (uint32_t)payload.n);
    buf_patch_u32(out, at + 4, checksum(out->p + at, payload));
}

/* ---- reading ---- */

int capture_get_header(struct slice file, struct capture_header *out, struct err *e) {
    struct rd in = rd_of(file);
    struct slice first = rd_bytes(&in, sizeof(magic));
    if (!first.p || memcmp(first.p, magic, sizeof(magic)))
        return err_set(e, ERR_CONFIG, "offset 0: this is no capture");
    uint16_t version = rd_u16(&in), flags = rd_u16(&in);
    if (!in.bad && version != CAPTURE_VERSION)
        return err_set(e, ERR_CONFIG, "offset 8: a capture of version %u; this program reads version %d", version,
                       CAPTURE_VERSION);
    *out = (struct capture_header){.hashed = flags & FLAG_HASHED,
                                   .strict = flags & FLAG_STRICT,
                                   .cassandra = flags & FLAG_CASSANDRA,
                                   .size_model = rd_u8(&in)};
    out->write_size = rd_u8(&in);
    out->timestamp_size = rd_u32(&in);
    out->started_us = (int64_t)rd_u64(&in);
    out->part = rd_u32(&in);
    uint32_t crc = rd_u32(&in);
    if (in.bad)
        return err_set(e, ERR_CONFIG, "offset 0: the header is cut off: %zu bytes of %d are there", file.n,
                       CAPTURE_HEADER);
    if (crc != crc32c(0, slice_of(file.p, CAPTURE_HEADER - 4)))
        return err_set(e, ERR_CONFIG, "offset 0: the header's checksum does not match");
    return out->started_us < 0 || out->started_us > INT64_MAX / 2
               ? err_set(e, ERR_CONFIG, "offset 0: the header has a time that cannot be")
               : 0;
}

static struct slice get_string(struct rd *in) {
    uint64_t n = rd_uvarint(in);
    return rd_bytes(in, n);
}

/* Counters of a sound capture stay far below this limit. With it, sums of counters that a reader
 * adds up cannot overflow. */
enum { FIGURE_BITS = 48 };

static uint64_t get_figure(struct rd *in) {
    uint64_t n = rd_uvarint(in);
    if (n >> FIGURE_BITS) in->bad = true;
    return n;
}

static void get_request(struct rd *in, const struct capture_header *h, struct capture_request *q) {
    uint64_t began = rd_uvarint(in);
    if (began > INT64_MAX / 4) in->bad = true;
    q->began_us = h->started_us + (int64_t)(in->bad ? 0 : began);
    q->took_us = get_figure(in);
    q->connection = rd_uvarint(in);
    q->version = rd_u8(in);
    q->flags = rd_u8(in);
    q->opcode = rd_u8(in);
    q->marks = rd_u8(in);
    uint64_t outcome = rd_uvarint(in);
    if (outcome > UINT32_MAX) in->bad = true;
    q->outcome = (uint32_t)outcome;
    uint64_t *const figures[] = {&q->read_halves,  &q->write_halves, &q->static_halves, &q->row_bytes,
                                 &q->static_bytes, &q->rows_read,    &q->rows_returned};
    for (size_t i = 0; i < ARRAY_LEN(figures); i++) *figures[i] = get_figure(in);
    q->keyspace = get_string(in);
    q->body = get_string(in);
}

/* Returns false when the payload's kind is unknown, or its length does not fit. */
static bool get_payload(struct slice payload, const struct capture_header *h, struct capture_record *out) {
    struct rd in = rd_of(payload);
    out->kind = (enum capture_kind)rd_u8(&in);
    switch (out->kind) {
    case CAPTURE_STATEMENT:
        out->statement.id = rd_bytes(&in, CAPTURE_ID);
        out->statement.keyspace = get_string(&in);
        out->statement.text = get_string(&in);
        break;
    case CAPTURE_REQUEST: get_request(&in, h, &out->request); break;
    case CAPTURE_DROPPED: out->dropped = get_figure(&in); break;
    case CAPTURE_END: out->reason = get_string(&in); break;
    default: return false;
    }
    return !in.bad && !rd_left(&in);
}

ssize_t capture_get_record(struct slice file, uint64_t at, const struct capture_header *h, struct capture_record *out,
                           struct err *e) {
    struct rd in = rd_of(slice_of(file.p + at, file.n - at));
    uint32_t n = rd_u32(&in), crc = rd_u32(&in);
    *out = (struct capture_record){.at = at};
    if (in.bad)
        return err_set(e, ERR_CONFIG, "offset %llu: a record is cut off: %zu bytes of its head are there",
                       (unsigned long long)at, (size_t)(file.n - at));
    if (n > CAPTURE_RECORD_MAX)
        return err_set(e, ERR_CONFIG, "offset %llu: a record of %u bytes cannot be", (unsigned long long)at, n);
    if (rd_left(&in) < n)
        return err_set(e, ERR_CONFIG, "offset %llu: a record is cut off: %zu bytes of %u are there",
                       (unsigned long long)at, rd_left(&in), n);
    struct slice payload = rd_bytes(&in, n);
    if (crc != checksum(file.p + at, payload))
        return err_set(e, ERR_CONFIG, "offset %llu: a record's checksum does not match", (unsigned long long)at);
    if (!get_payload(payload, h, out))
        return err_set(e, ERR_CONFIG, "offset %llu: a record of kind %u cannot be read", (unsigned long long)at,
                       n ? payload.p[0] : 0);
    return (ssize_t)(CAPTURE_RECORD_HEADER + n);
}
