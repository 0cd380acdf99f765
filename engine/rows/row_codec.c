#include "engine/rows/row_codec.h"

#include "base/hot.h"

enum {
    VERSION = 1,
    HEAD_LIVE = 1,
    HEAD_LIVE_TTL = 2,
    HEAD_DELETED = 4,
    HEAD_KEY_IMAGE = 8,
    HEAD_ALL = 15,
    HEAD_MIN_BYTES = 10
};
enum { CELL_KINDS = 15, CELL_SAME_TS = 16, CELL_SAME_TTL = 32, CELL_MIN_BYTES = 3 };
enum { UVARINT_MOST = 10 };

/* Differences wrap, so that any two timestamps have one. */
static uint64_t zigzag(int64_t v) { return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63); }
static int64_t unzigzag(uint64_t v) { return (int64_t)((v >> 1) ^ (~(v & 1) + 1)); }
static int64_t minus(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static int64_t plus(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }

static inline uint64_t get_uvarint(struct rd *r) {
    if (LIKELY(r->p < r->end && *r->p < 0x80)) return *r->p++;
    return rd_uvarint(r);
}

static inline struct slice get_bytes(struct rd *r) {
    uint64_t n = get_uvarint(r);
    if (UNLIKELY(n > rd_left(r))) {
        r->bad = true;
        return (struct slice){0};
    }
    struct slice s = slice_of(r->p, (size_t)n);
    r->p += n;
    return s;
}

static int32_t get_ttl(struct rd *r) {
    uint64_t v = get_uvarint(r);
    if (v > INT32_MAX) r->bad = true;
    return r->bad ? 0 : (int32_t)v;
}

int rowi_open(struct rowi_reader *rd, struct slice bytes) {
    struct rd *r = &rd->r;
    struct rowi_head *h = &rd->head;
    *r = rd_of(bytes);
    *h = (struct rowi_head){.live_ts = ENG_NO_TS, .live_expiry = ENG_NO_EXPIRY, .del_ts = ENG_NO_TS};
    rd->column = 0;
    if (bytes.n < HEAD_MIN_BYTES || bytes.p[0] != VERSION || bytes.p[1] & ~HEAD_ALL) return -1;
    uint8_t flags = bytes.p[1];
    h->base = (int64_t)load_u64(bytes.p + 2);
    r->p += HEAD_MIN_BYTES;
    if (flags & HEAD_LIVE) h->live_ts = plus(h->base, unzigzag(get_uvarint(r)));
    if (flags & HEAD_LIVE_TTL) {
        h->live_ttl = get_ttl(r);
        h->live_expiry = unzigzag(get_uvarint(r));
    }
    if (flags & HEAD_DELETED) {
        h->del_ts = plus(h->base, unzigzag(get_uvarint(r)));
        h->del_at = unzigzag(get_uvarint(r));
    }
    if (flags & HEAD_KEY_IMAGE) h->key_image = get_bytes(r);
    uint64_t n = get_uvarint(r);
    if (r->bad || n > rd_left(r) / CELL_MIN_BYTES) return -1;
    h->n_cells = rd->left = (uint32_t)n;
    return 0;
}

uint32_t rowi_plain(struct rowi_reader *rd, struct eng_cell *cells) {
    const uint8_t *p = rd->r.p, *end = rd->r.end;
    uint32_t column = rd->column, left = rd->left, n = 0;
    int64_t ts = rd->head.base;
    for (; n < left && (size_t)(end - p) >= CELL_MIN_BYTES; n++) {
        uint32_t step = p[1], size = p[2];
        if (p[0] != CELL_SAME_TS || (step | size) >= 0x80 || (step == 0 && n) ||
            (size_t)(end - p) - CELL_MIN_BYTES < size || column > UINT32_MAX - step)
            break;
        column += step;
        p += CELL_MIN_BYTES;
        struct eng_cell *c = &cells[n]; /* field by field: an initialiser would clear the padding, too */
        c->column = column;
        c->flags = 0;
        c->ts = ts;
        c->ttl = 0;
        c->expiry = ENG_NO_EXPIRY;
        c->path = (struct slice){0};
        c->value = slice_of(p, size);
        p += size;
    }
    rd->r.p = p;
    rd->column = column;
    rd->left = left - n;
    return n;
}

/* Values of a row that has some, and not one for every column. */
static void clear_values(struct eng_layout *to) {
    for (uint32_t i = to->from; i < to->to; i++) to->values[i] = value_null();
}

/* A cell is looked at with one load: [SAME_TS][step below 128][size below 128] and one byte more;
 * an empty last one is left to others. The shape is the one found, if there is room for
 * it, and every cell has a place. */
static bool lay_out_cells(const uint8_t *p, const uint8_t *end, uint32_t n, struct eng_layout *to,
                          struct rowi_shape *shape) {
    const uint32_t form = 0xFF808000, plain = (uint32_t)CELL_SAME_TS << 24;
    const uint16_t *places = to->places;
    struct value *restrict values = to->values;
    uint32_t column = 0, n_ids = to->n_ids, taken = 0;
    uint64_t bytes = 0;
    shape->n = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (UNLIKELY(end - p <= CELL_MIN_BYTES)) return false;
        uint32_t head = load_u32(p), size = head >> 8 & 0x7F;
        uint32_t step = head >> 16 & 0x7F;
        if (UNLIKELY((head & form) != plain || (!step && i))) return false;
        column += step;
        p += CELL_MIN_BYTES;
        if (UNLIKELY(end - p < (ptrdiff_t)size)) return false;
        uint16_t place = LIKELY(column < n_ids) ? places[column] : UINT16_MAX;
        if (LIKELY(place != UINT16_MAX)) {
            values[place].p = p;
            values[place].n = (int32_t)size;
            bytes += size;
            taken++;
        }
        if (LIKELY(i < ROWI_SHAPE_CELLS)) {
            memcpy(&shape->cells[i].head, p - CELL_MIN_BYTES, sizeof(shape->cells[i].head));
            shape->cells[i].at = (uint16_t)(place * sizeof(*values) / _Alignof(struct value));
        }
        p += size;
    }
    to->n = taken;
    to->bytes = bytes;
    if (p != end) return false;
    shape->n = taken == n && n <= ROWI_SHAPE_CELLS ? n : 0;
    return true;
}

static bool lay_out_any(const uint8_t *p, const uint8_t *end, uint32_t n, struct eng_layout *to,
                        struct rowi_shape *shape) {
    uint32_t columns = to->to - to->from;
    if (n != columns) clear_values(to);
    if (!lay_out_cells(p, end, n, to, shape)) return false;
    if (n != columns || to->n == columns) return true;
    clear_values(to); /* some are of columns that are gone */
    return lay_out_cells(p, end, n, to, shape);
}

/* Any row that is laid out at all. */
SELDOM static bool lay_out(struct slice bytes, struct eng_layout *to, struct rowi_shape *shape, struct eng_row *r) {
    const uint8_t *p = bytes.p, *end = p + bytes.n;
    if (UNLIKELY(bytes.n < HEAD_MIN_BYTES + 2 || p[0] != VERSION || p[1] & ~HEAD_LIVE)) return false;
    bool live = p[1] & HEAD_LIVE;
    int64_t base = (int64_t)load_u64(p + 2);
    p += HEAD_MIN_BYTES;
    if (live && *p++ != 0) return false;
    uint32_t n = *p++;
    if (UNLIKELY(n >= 0x80 || (!live && !n))) return false;
    if (!lay_out_any(p, end, n, to, shape)) return false;
    if (!live) shape->n = 0;
    if (UNLIKELY(!r->laid_out)) {
        eng_row_init(r, r->kind, r->ck);
        r->laid_out = r->plain = true;
    }
    r->live_ts = live ? base : ENG_NO_TS;
    return true;
}

/* A live row of the same columns as the one before, which is what most are: only the sizes are its
 * own. */
static inline bool lay_out_alike(struct slice bytes, struct eng_layout *to, const struct rowi_shape *shape) {
    const uint8_t *p = bytes.p, *end = p + bytes.n, *last = end - CELL_MIN_BYTES; /* where a cell may begin */
    char *values = (char *)to->values;
    uint32_t n = shape->n, sizes = 0;
    if (bytes.n < HEAD_MIN_BYTES + 2 || load_u16(p) != (VERSION << 8 | HEAD_LIVE) || load_u16(p + HEAD_MIN_BYTES) != n)
        return false;
    p += HEAD_MIN_BYTES + 2;
    if (UNLIKELY(n != to->to - to->from)) clear_values(to);
    for (uint32_t i = 0; i < n; i++) {
        uint16_t head;
        if (UNLIKELY(p > last)) return false;
        memcpy(&head, p, sizeof(head));
        uint32_t size = p[2];
        if (UNLIKELY(head != shape->cells[i].head)) return false;
        struct value *v = (struct value *)(values + (size_t)shape->cells[i].at * _Alignof(struct value));
        p += CELL_MIN_BYTES;
        v->p = p;
        v->n = (int32_t)size;
        p += size;
        sizes |= size;
    }
    if (UNLIKELY(sizes >= 0x80)) return false;
    to->n = n;
    to->bytes = bytes.n - HEAD_MIN_BYTES - 2 - (size_t)CELL_MIN_BYTES * n;
    return p == end;
}

bool rowi_lay_out(struct slice bytes, struct eng_layout *to, struct rowi_shape *shape, struct eng_row *r) {
    if (UNLIKELY(!shape->n || !r->laid_out || !lay_out_alike(bytes, to, shape))) return lay_out(bytes, to, shape, r);
    r->live_ts = (int64_t)load_u64(bytes.p + 2);
    return true;
}

/* Returns the position after the number, or NULL if the bytes end within the number. */
static inline const uint8_t *uvarint_at(const uint8_t *p, const uint8_t *end, uint64_t *v) {
    *v = 0;
    for (unsigned shift = 0; p < end && shift < 63; shift += 7) {
        *v |= (uint64_t)(*p & 0x7f) << shift;
        if (!(*p++ & 0x80)) return p;
    }
    return NULL;
}

/* A short value of a column without a path or a TTL, whatever its timestamp: most cells of a row
 * that was updated. Returns false if it is another one, and nothing was read. */
static inline bool next_value(struct rowi_reader *rd, struct eng_cell *c) {
    const uint8_t *p = rd->r.p, *end = rd->r.end;
    if (UNLIKELY(end - p < CELL_MIN_BYTES || p[0] & ~CELL_SAME_TS || p[1] > 0x7f || p[1] > UINT32_MAX - rd->column))
        return false;
    uint32_t column = rd->column + p[1];
    uint64_t since = 0;
    p = *p & CELL_SAME_TS ? p + 2 : uvarint_at(p + 2, end, &since);
    if (UNLIKELY(!p || p == end || *p > 0x7f || end - p - 1 < *p)) return false;
    c->column = rd->column = column; /* field by field: an initialiser would clear the padding, too */
    c->flags = 0;
    c->ts = plus(rd->head.base, unzigzag(since));
    c->ttl = 0;
    c->expiry = ENG_NO_EXPIRY;
    c->path = (struct slice){0};
    c->value = slice_of(p + 1, *p);
    rd->r.p = p + 1 + *p;
    rd->left--;
    return true;
}

int rowi_next(struct rowi_reader *rd, struct eng_cell *cell) {
    struct rd *r = &rd->r;
    if (!rd->left) return rd_left(r) ? -1 : 0;
    if (LIKELY(next_value(rd, cell))) return 1;
    rd->left--;
    uint8_t flags = rd_u8(r);
    uint64_t step = get_uvarint(r);
    if (UNLIKELY(step > UINT32_MAX - rd->column || flags & ~(CELL_KINDS | CELL_SAME_TS | CELL_SAME_TTL))) return -1;
    rd->column += (uint32_t)step;
    *cell = (struct eng_cell){.column = rd->column, .flags = flags & CELL_KINDS, .expiry = ENG_NO_EXPIRY};
    cell->ts = flags & CELL_SAME_TS ? rd->head.base : plus(rd->head.base, unzigzag(get_uvarint(r)));
    if (flags & CELL_SAME_TTL) {
        cell->ttl = rd->head.live_ttl;
        cell->expiry = rd->head.live_expiry;
    } else if (rowi_is_deletion(cell)) {
        cell->expiry = unzigzag(get_uvarint(r));
    } else if (flags & ENG_CELL_EXPIRING) {
        cell->ttl = get_ttl(r);
        cell->expiry = unzigzag(get_uvarint(r));
    }
    if (flags & ENG_CELL_HAS_PATH) cell->path = get_bytes(r);
    if (!rowi_is_deletion(cell)) cell->value = get_bytes(r);
    return r->bad ? -1 : 1;
}

/* To memory that has the room; they return the following position. */
static inline uint8_t *put_uvarint(uint8_t *p, uint64_t v) {
    for (; v > 0x7f; v >>= 7) *p++ = (uint8_t)(v | 0x80);
    *p++ = (uint8_t)v;
    return p;
}

static inline uint8_t *put_bytes(uint8_t *p, struct slice s) {
    p = put_uvarint(p, s.n);
    copy_short(p, s.p, s.n);
    return p + s.n;
}

static void put_head(struct rowi_writer *w) {
    const struct rowi_head *h = &w->head;
    w->head_written = true;
    uint8_t flags = 0, *from = buf_reserve(w->out, HEAD_MIN_BYTES + 7 * UVARINT_MOST + h->key_image.n), *p = from;
    if (!p) return;
    if (h->live_ts != ENG_NO_TS) flags |= HEAD_LIVE | (h->live_expiry != ENG_NO_EXPIRY ? HEAD_LIVE_TTL : 0);
    if (h->del_ts != ENG_NO_TS) flags |= HEAD_DELETED;
    if (h->key_image.p) flags |= HEAD_KEY_IMAGE;
    *p++ = VERSION;
    *p++ = flags;
    store_u64(p, (uint64_t)h->base);
    p += 8;
    if (flags & HEAD_LIVE) p = put_uvarint(p, zigzag(minus(h->live_ts, h->base)));
    if (flags & HEAD_LIVE_TTL) p = put_uvarint(put_uvarint(p, (uint32_t)h->live_ttl), zigzag(h->live_expiry));
    if (flags & HEAD_DELETED) p = put_uvarint(put_uvarint(p, zigzag(minus(h->del_ts, h->base))), zigzag(h->del_at));
    if (flags & HEAD_KEY_IMAGE) p = put_bytes(p, h->key_image);
    w->count_at = w->out->n + (size_t)(p - from);
    w->count_len = 1;
    for (uint32_t n = h->n_cells; n > 0x7f; n >>= 7) w->count_len++;
    for (size_t i = 0; i < w->count_len; i++) p[i] = 0;
    buf_advance(w->out, (size_t)(p - from) + w->count_len);
}

void rowi_begin(struct rowi_writer *w, struct buf *out, const struct rowi_head *head) {
    *w = (struct rowi_writer){.out = out, .head = *head};
    w->head.base = head->live_ts != ENG_NO_TS ? head->live_ts : head->del_ts != ENG_NO_TS ? head->del_ts : 0;
}

static void begin_cells(struct rowi_writer *w, const struct eng_cell *first) {
    struct rowi_head *h = &w->head;
    if (w->head_written) return;
    if (h->live_ts == ENG_NO_TS && h->del_ts == ENG_NO_TS) h->base = first->ts;
    put_head(w);
}

/* The most bytes that put_cell writes. */
static inline size_t cell_most(const struct eng_cell *c) { return 1 + 6 * UVARINT_MOST + c->path.n + c->value.n; }

/* Writes the fields between timestamp and value of a cell that is no plain value. It may set a flag. */
SELDOM static uint8_t *put_kinds(uint8_t *p, const struct rowi_head *h, const struct eng_cell *c, uint8_t *flags) {
    bool deletion = rowi_is_deletion(c), expiring = !deletion && c->flags & ENG_CELL_EXPIRING;
    bool same_ttl = expiring && h->live_ts != ENG_NO_TS && c->ttl == h->live_ttl && c->expiry == h->live_expiry;
    if (same_ttl) *flags |= CELL_SAME_TTL;
    if (expiring && !same_ttl) p = put_uvarint(p, (uint32_t)c->ttl);
    if (deletion || (expiring && !same_ttl)) p = put_uvarint(p, zigzag(c->expiry));
    return c->flags & ENG_CELL_HAS_PATH ? put_bytes(p, c->path) : p;
}

/* column: of the cell before, or 0. Returns the following position. */
static inline uint8_t *put_cell(uint8_t *p, const struct rowi_head *h, uint32_t column, const struct eng_cell *c) {
    bool same_ts = c->ts == h->base;
    uint8_t *flags = p++;
    *flags = (uint8_t)((c->flags & CELL_KINDS) | (same_ts ? CELL_SAME_TS : 0));
    p = put_uvarint(p, c->column - column);
    if (!same_ts) p = put_uvarint(p, zigzag(minus(c->ts, h->base)));
    if (UNLIKELY(c->flags != 0)) p = put_kinds(p, h, c, flags);
    return rowi_is_deletion(c) ? p : put_bytes(p, c->value);
}

void rowi_put(struct rowi_writer *w, const struct eng_cell *c) {
    begin_cells(w, c);
    uint8_t *p = buf_reserve(w->out, cell_most(c));
    if (UNLIKELY(!p)) return;
    buf_advance(w->out, (size_t)(put_cell(p, &w->head, w->column, c) - p));
    w->column = c->column;
    w->written++;
}

/* Cells between two requests of room. */
static int put_some(struct rowi_writer *w, const struct eng_cell *cells, uint32_t n) {
    size_t most = 0;
    uint32_t column = w->column;
    for (uint32_t i = 0; i < n; i++) most += cell_most(&cells[i]);
    uint8_t *from = buf_reserve(w->out, most), *p = from;
    if (UNLIKELY(!p)) return -1;
    for (uint32_t i = 0; i < n; i++) {
        p = put_cell(p, &w->head, column, &cells[i]);
        column = cells[i].column;
    }
    buf_advance(w->out, (size_t)(p - from));
    w->column = column;
    w->written += n;
    return 0;
}

void rowi_put_all(struct rowi_writer *w, const struct eng_cell *cells, uint32_t n) {
    enum { AT_ONCE = 64 };
    if (n) begin_cells(w, cells);
    for (uint32_t i = 0; i < n; i += AT_ONCE)
        if (put_some(w, cells + i, n - i < AT_ONCE ? n - i : AT_ONCE)) return;
}

void rowi_end(struct rowi_writer *w) {
    if (!w->head_written) put_head(w);
    if (buf_failed(w->out)) return;
    uint32_t v = w->written;
    for (size_t i = 0; i < w->count_len; i++, v >>= 7)
        w->out->p[w->count_at + i] = (uint8_t)((v & 0x7f) | (i + 1 < w->count_len ? 0x80 : 0));
}
