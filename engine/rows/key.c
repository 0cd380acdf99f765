#include "engine/rows/key.h"

#include "base/hot.h"

void engi_key_table(struct buf *out, uint32_t table) { buf_u32(out, table); }

/* The layout itself, to memory that has the room; returns the following bytes. */
static uint8_t *write_token(uint8_t *p, uint32_t table, int64_t token) {
    store_u32(p, table);
    store_u64(p + ENGI_KEY_TOKEN, (uint64_t)token ^ (1ull << 63));
    return p + ENGI_KEY_LENGTH;
}

static uint8_t *write_prefix(uint8_t *p, const struct eng_part *part) {
    p = write_token(p, part->table, part->token);
    store_u16(p, (uint16_t)part->key.n);
    copy_short(p + 2, part->key.p, part->key.n);
    return p + 2 + part->key.n;
}

void engi_key_token(struct buf *out, uint32_t table, int64_t token) {
    uint8_t *p = buf_reserve(out, ENGI_KEY_LENGTH);
    if (!p) return;
    write_token(p, table, token);
    buf_advance(out, ENGI_KEY_LENGTH);
}

void engi_key_prefix(struct buf *out, const struct eng_part *part) {
    size_t n = ENGI_KEY_PREFIX_MIN + part->key.n;
    uint8_t *p = buf_reserve(out, n);
    if (!p) return;
    write_prefix(p, part);
    buf_advance(out, n);
}

void engi_key_kind(struct buf *out, const struct eng_part *part, enum engi_kind kind) {
    engi_key_prefix(out, part);
    buf_u8(out, (uint8_t)kind);
}

size_t engi_key_row_size(const struct eng_part *part, enum eng_row_kind kind, struct slice ck) {
    return ENGI_KEY_PREFIX_MIN + part->key.n + 1 + (kind == ENG_ROW ? ck.n : 0);
}

void engi_key_row_write(uint8_t *p, const struct eng_part *part, enum eng_row_kind kind, struct slice ck) {
    p = write_prefix(p, part);
    *p = kind == ENG_STATIC ? ENGI_STATIC : ENGI_ROW;
    if (kind == ENG_ROW) copy_short(p + 1, ck.p, ck.n);
}

void engi_key_row(struct buf *out, const struct eng_part *part, enum eng_row_kind kind, struct slice ck) {
    size_t n = engi_key_row_size(part, kind, ck);
    uint8_t *p = buf_reserve(out, n);
    if (!p) return;
    engi_key_row_write(p, part, kind, ck);
    buf_advance(out, n);
}

size_t engi_prefix_len(struct slice key) {
    if (key.n < ENGI_KEY_PREFIX_MIN || load_u32(key.p) < ENGI_TABLE_FIRST) return 0;
    size_t n = ENGI_KEY_PREFIX_MIN + (size_t)load_u16(key.p + ENGI_KEY_LENGTH);
    return n <= key.n ? n : 0;
}

struct eng_part engi_prefix_part(struct slice prefix) {
    return (struct eng_part){.table = load_u32(prefix.p),
                             .token = (int64_t)(load_u64(prefix.p + ENGI_KEY_TOKEN) ^ (1ull << 63)),
                             .key = slice_of(prefix.p + ENGI_KEY_PREFIX_MIN, prefix.n - ENGI_KEY_PREFIX_MIN)};
}

void engi_keys_of(struct engi_keys *keys, uint32_t lead, uint32_t id) {
    size_t skip = lead ? 0 : 4;
    for (uint32_t i = 0; i < 2; i++) {
        store_u32(keys->ends[i], lead);
        store_u32(keys->ends[i] + 4, id + i);
    }
    keys->from = slice_of(keys->ends[0] + skip, 8 - skip);
    keys->to = slice_of(keys->ends[1] + skip, 8 - skip);
}

/* The first byte string after every one that begins with key; *none when there is no such. */
static int after_all(struct slice key, struct arena *a, struct slice *out, bool *none) {
    while (key.n && key.p[key.n - 1] == 0xff) key.n--;
    *none = key.n == 0;
    *out = slice_of("", 0);
    if (*none) return 0;
    *out = arena_dup(a, key);
    if (!out->p) return -1;
    ((uint8_t *)(uintptr_t)out->p)[out->n - 1]++;
    return 0;
}

int engi_interval_of(const struct eng_slice *s, struct arena *a, struct engi_interval *out) {
    bool nothing = false;
    *out = (struct engi_interval){.from = s->from.key, .to = s->to.key};
    if (!out->from.p) out->from = slice_of("", 0);
    if (s->from.after && after_all(s->from.key, a, &out->from, &nothing)) return -1;
    if ((s->to.after || !s->to.key.n) && after_all(s->to.key, a, &out->to, &out->no_end)) return -1;
    if (nothing) *out = (struct engi_interval){.from = slice_of("", 0), .to = slice_of("", 0)};
    return 0;
}

static void put_range_kind(struct buf *out, struct slice prefix, enum engi_range_form form) {
    buf_put_slice(out, prefix);
    buf_u8(out, ENGI_RANGE_TOMBSTONE);
    buf_u8(out, (uint8_t)form);
}

void engi_key_loose(struct buf *out, struct slice prefix, const struct engi_interval *range, int64_t ts) {
    put_range_kind(out, prefix, ENGI_LOOSE);
    buf_u64(out, (uint64_t)ts ^ (1ull << 63));
    buf_u32(out, (uint32_t)range->from.n);
    buf_put_slice(out, range->from);
    buf_u8(out, range->no_end);
    if (!range->no_end) buf_put_slice(out, range->to);
}

void engi_key_loose_after(struct buf *out, struct slice prefix, int64_t ts) {
    put_range_kind(out, prefix, ENGI_LOOSE);
    buf_u64(out, ((uint64_t)ts ^ (1ull << 63)) + (ts != INT64_MAX));
    if (ts == INT64_MAX) buf_u8(out, 0xff); /* no start has this length */
}

void engi_key_fragment(struct buf *out, struct slice prefix, const struct engi_interval *range) {
    put_range_kind(out, prefix, ENGI_FRAGMENT);
    buf_u8(out, range->no_end);
    if (!range->no_end) buf_put_slice(out, range->to);
}

void engi_key_fragment_after(struct buf *out, struct slice prefix, struct slice ck) {
    put_range_kind(out, prefix, ENGI_FRAGMENT);
    buf_u8(out, false);
    buf_put_slice(out, ck);
    buf_u8(out, 0); /* the next possible end */
}

int engi_range_read(struct slice rest, struct engi_interval *out) {
    struct rd r = rd_of(rest);
    enum engi_range_form form = rest.n ? rest.p[0] : ENGI_LOOSE_OLD;
    if (form != ENGI_LOOSE_OLD) rd_u8(&r); /* the first byte of an old one's length is 0 */
    if (form == ENGI_LOOSE) rd_u64(&r);
    if (form != ENGI_FRAGMENT) out->from = rd_bytes(&r, rd_u32(&r));
    out->no_end = rd_u8(&r);
    out->to = rd_bytes(&r, rd_left(&r));
    return r.bad || form > ENGI_FRAGMENT ? -1 : 0;
}

static bool begins_with(struct slice s, struct slice prefix) {
    return s.n >= prefix.n && slice_eq(slice_of(s.p, prefix.n), prefix);
}

bool eng_slice_has(const struct eng_slice *s, struct slice ck) {
    const struct eng_bound *from = &s->from, *to = &s->to;
    bool begins = begins_with(ck, from->key), ends = begins_with(ck, to->key);
    if (begins ? from->after : slice_cmp(ck, from->key) < 0) return false;
    return ends ? to->after : slice_cmp(ck, to->key) < 0;
}
