#include "engine/rados/omap_key.h"

#include "engine/rows/key.h"

enum { TABLE_BYTES = ENGI_KEY_TOKEN }; /* of a record key, which are not in an object's keys */

void omap_key_escape(struct buf *out, struct slice bytes) {
    uint8_t *to = buf_reserve(out, 2 * bytes.n);
    if (!to) return;
    size_t n = 0;
    for (size_t i = 0; i < bytes.n; i++) {
        uint8_t c = bytes.p[i];
        if (c <= OMAP_KEY_ESCAPE) to[n++] = OMAP_KEY_ESCAPE, c++;
        to[n++] = c;
    }
    buf_advance(out, n);
}

const char *omap_key_string(struct arena *a, struct slice record_key, const char *suffix) {
    struct buf b;
    buf_init(&b, 0);
    omap_key_escape(&b, slice_of(record_key.p + TABLE_BYTES, record_key.n - TABLE_BYTES));
    buf_put_str(&b, suffix);
    return (const char *)arena_take(a, &b).p;
}

int omap_key_unescape(struct slice escaped, struct buf *out) {
    uint8_t *to = buf_reserve(out, escaped.n);
    size_t n = 0;
    if (!to) return -1;
    for (size_t i = 0; i < escaped.n; i++) {
        uint8_t c = escaped.p[i];
        if (c < OMAP_KEY_ESCAPE) return -1; /* each string has one escaped form */
        if (c == OMAP_KEY_ESCAPE) {
            if (++i == escaped.n || !escaped.p[i] || escaped.p[i] > OMAP_KEY_ESCAPE + 1) return -1;
            c = (uint8_t)(escaped.p[i] - 1);
        }
        to[n++] = c;
    }
    buf_advance(out, n);
    return 0;
}

void omap_key_partition(struct buf *out, struct slice prefix, enum omap_partition_key what) {
    omap_key_escape(out, slice_of(prefix.p + TABLE_BYTES, prefix.n - TABLE_BYTES));
    buf_put_str(out, OMAP_PARTITION_KEYS);
    buf_u8(out, (uint8_t)what);
}

void omap_key_number(struct buf *out, uint64_t v, unsigned digits) {
    uint8_t *to = buf_reserve(out, digits);
    if (!to) return;
    for (unsigned i = digits; i-- > 0; v /= 255) to[i] = (uint8_t)(v % 255 + 1);
    buf_advance(out, digits);
}

uint64_t omap_number_read(struct slice digits) {
    uint64_t v = 0;
    for (size_t i = 0; i < digits.n; i++) v = v * 255 + (uint64_t)(digits.p[i] - 1);
    return v;
}

void omap_key_operand(struct buf *out, const struct omap_operand_id *id) {
    omap_key_number(out, id->kind == OMAP_COMBINED ? id->oldest : id->sequence, OMAP_SEQUENCE_DIGITS);
    buf_u8(out, (uint8_t)id->kind);
    omap_key_number(out, id->writer, OMAP_WRITER_DIGITS);
    if (id->kind == OMAP_COMBINED) omap_key_number(out, id->sequence, OMAP_SEQUENCE_DIGITS);
}

struct slice omap_key_record_part(struct slice key) {
    size_t i = 0;
    while (i < key.n && key.p[i] != OMAP_KEY_END) i += key.p[i] == OMAP_KEY_ESCAPE ? 2 : 1;
    return slice_of(key.p, i < key.n ? i + 1 : key.n);
}

int omap_key_record(struct slice key, struct buf *record) {
    const size_t prefix_min = ENGI_KEY_PREFIX_MIN - TABLE_BYTES, length = ENGI_KEY_LENGTH - TABLE_BYTES;
    struct slice part = omap_key_record_part(key);
    size_t from = record->n;
    if (!part.n || part.p[part.n - 1] != OMAP_KEY_END) return -1;
    if (omap_key_unescape(slice_of(part.p, part.n - 1), record) < 0) return -1;
    /* The key must contain a whole partition prefix and a kind. */
    struct slice r = slice_of(record->p + from, record->n - from);
    size_t kind = r.n < prefix_min ? r.n : prefix_min + load_u16(r.p + length);
    return kind < r.n && r.p[kind] < ENGI_PAST ? 0 : -1;
}

int omap_key_read(struct slice key, struct buf *record, struct omap_operand_id *id) {
    size_t n = omap_key_record_part(key).n;
    if (omap_key_record(key, record) < 0) return -1;
    struct rd r = rd_of(slice_of(key.p + n, key.n - n));
    uint64_t first = omap_number_read(rd_bytes(&r, OMAP_SEQUENCE_DIGITS));
    uint8_t kind = rd_u8(&r);
    *id = (struct omap_operand_id){.kind = kind, .sequence = first, .oldest = first};
    id->writer = omap_number_read(rd_bytes(&r, OMAP_WRITER_DIGITS));
    if (kind == OMAP_COMBINED) id->sequence = omap_number_read(rd_bytes(&r, OMAP_SEQUENCE_DIGITS));
    return r.bad || r.p != r.end || (kind != OMAP_APPENDED && kind != OMAP_COMBINED) ? -1 : 0;
}

enum omap_partition_key omap_key_of_partition(struct slice key) {
    return omap_key_record_part(key).n + 1 == key.n ? key.p[key.n - 1] : 0;
}
