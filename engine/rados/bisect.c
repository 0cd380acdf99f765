#include <errno.h>

#include "engine/rados/bisect.h"
#include "engine/rados/omap_key.h"

enum {
    POINTS = OMAP_READ_PARTS - 1, /* of one operation; its first part counts keys */
    STEPS = 8,
    FEW = 64,         /* keys; finding a part of them is not worth an operation */
    WINDOW_BITS = 16, /* closer ends get the next window, which begins after the bytes that they share */
    CHUNK = 4 << 10,
};

struct bisection {
    struct rados *s;
    const char *object;
    struct arena arena;
    struct slice end;    /* the range's, as a key of the object */
    struct buf from, to; /* record keys: the last row before the end is between them */
    /* The window: points differ in the eight bytes from this offset on. It restarts where the ends differ. */
    size_t at;
    uint64_t origin; /* from as it was at first */
    bool begun;
};

/* Returns the eight bytes of the key from offset at, padded with zeros. */
static uint64_t number_at(struct slice key, size_t at) {
    uint8_t bytes[8] = {0};
    if (at < key.n) memcpy(bytes, key.p + at, key.n - at < sizeof(bytes) ? key.n - at : sizeof(bytes));
    return load_u64(bytes);
}

/* Returns the offset from the origin of point i of POINTS. a, b: offsets of the ends. */
static uint64_t offset_of(const struct bisection *x, int i, uint64_t a, uint64_t b) {
    static const uint8_t first[POINTS] = {40, 24, 12, 5, 2, 1, 4};
    if (!x->begun) return i < 5 ? b >> first[i] : i == 5 ? b - (b >> 2) - (b >> 3) : b - (b >> first[i]);
    if (a < b >> 4) { /* by powers of two */
        int from = a ? 63 - __builtin_clzll(a) : 0, to = 63 - __builtin_clzll(b);
        return (uint64_t)1 << (from + (to - from + 1) * (i + 1) / (POINTS + 1));
    }
    return a + (b - a) / (POINTS + 1) * (uint64_t)(i + 1);
}

/* Puts ascending points between the ends into out, and returns their number. */
static int choose_points(struct bisection *x, uint64_t out[POINTS]) {
    struct slice from = buf_slice(&x->from), to = buf_slice(&x->to);
    size_t shared = 0;
    int n = 0;
    while (shared < from.n && shared < to.n && from.p[shared] == to.p[shared]) shared++;
    if (!x->begun || (shared > x->at && number_at(to, x->at) - number_at(from, x->at) < 1 << WINDOW_BITS)) {
        x->at = shared;
        x->origin = number_at(from, shared);
        x->begun = false;
    }
    uint64_t a = number_at(from, x->at), b = number_at(to, x->at), last = a;
    for (int i = 0; i < POINTS; i++) {
        uint64_t point = x->origin + offset_of(x, i, a - x->origin, b - x->origin);
        if (point > last && point < b) out[n++] = last = point;
    }
    x->begun = true;
    return n;
}

/* Appends the record key of a point. */
static void put_point(const struct bisection *x, uint64_t point, struct buf *out) {
    buf_put(out, x->from.p, x->at);
    buf_u64(out, point);
}

/* The keys before the range's end that one operation has found. */
struct found {
    uint64_t n;                /* from x->from on, up to the requested number */
    struct slice keys[POINTS]; /* the first key after each point; empty if there is none */
};

static int read_points(struct bisection *x, const uint64_t *points, int n_points, uint64_t max, struct found *out) {
    struct omap_read r = {.pool = &x->s->pool};
    struct omap_pairs got = {0};
    const char *start = omap_key_string(&x->arena, buf_slice(&x->from), "");
    int rc = start ? 0 : -ENOMEM;
    *out = (struct found){0};
    if (start) omap_read_add_keys(&r, start, max);
    for (int i = 0; rc == 0 && i < n_points; i++) {
        struct buf b;
        buf_init(&b, 0);
        put_point(x, points[i], &b);
        if (!buf_failed(&b) && (start = omap_key_string(&x->arena, buf_slice(&b), "")))
            omap_read_add_keys(&r, start, 1);
        else rc = -ENOMEM;
        buf_fini(&b);
    }
    if (rc == 0) rc = omap_read_run(&r, x->object);
    for (int i = 0; rc == 0 && i <= n_points; i++) {
        got.n = 0;
        rc = omap_read_take(&r, (uint32_t)i, &x->arena, &got);
        while (got.n && slice_cmp(got.items[got.n - 1].key, x->end) >= 0) got.n--;
        if (i == 0) out->n = got.n;
        else if (got.n) out->keys[i - 1] = got.items[0].key;
    }
    omap_read_fini(&r);
    omap_pairs_fini(&got);
    return rc;
}

/* Moves the ends to the last point with a key after it and the next point. Returns 1 if x->from has changed, 0, or a
 * negative error number. */
static int narrow(struct bisection *x, const uint64_t *points, int n_points, const struct found *f) {
    int last = n_points - 1;
    while (last >= 0 && !f->keys[last].n) last--;
    if (last + 1 < n_points) {
        struct buf to;
        buf_init(&to, 0);
        put_point(x, points[last + 1], &to);
        buf_fini(&x->to);
        x->to = to;
    }
    /* If no row is between two points, or none after the first point, rows fill the range unevenly: then points near
     * its begin are more useful than points that divide it evenly. */
    bool even = last > 0 ? !slice_eq(f->keys[last], f->keys[last - 1]) : last == 0;
    if (!even) x->begun = false;
    if (last < 0) return buf_failed(&x->to) ? -ENOMEM : 0;
    uint8_t table[ENGI_KEY_TOKEN];
    memcpy(table, x->from.p, sizeof(table));
    buf_clear(&x->from, SIZE_MAX);
    buf_put(&x->from, table, sizeof(table));
    if (omap_key_record(f->keys[last], &x->from) < 0) return -EBADMSG;
    return buf_failed(&x->from) || buf_failed(&x->to) ? -ENOMEM : 1;
}

int bisect_object(struct rados *s, const char *object, const struct bisect_range *range, struct buf *begin,
                  uint64_t *keys) {
    struct bisection x = {.s = s, .object = object};
    uint64_t points[POINTS], most = 2 * range->wanted < FEW ? FEW : 2 * range->wanted;
    struct found f;
    int rc = 1;
    *keys = BISECT_UNKNOWN;
    arena_init(&x.arena, CHUNK, 0);
    buf_init(&x.from, 0);
    buf_init(&x.to, 0);
    buf_put_slice(&x.from, range->from);
    buf_put_slice(&x.to, range->to);
    buf_clear(begin, SIZE_MAX);
    buf_put_slice(begin, range->from);
    const char *end = omap_key_string(&x.arena, range->to, "");
    if (!end || buf_failed(&x.from) || buf_failed(&x.to) || buf_failed(begin)) rc = -ENOMEM;
    else x.end = slice_str(end);
    for (int step = 0; rc >= 0 && step < STEPS; step++) {
        bool counts = step == 0 && range->any;
        int n_points = counts ? 0 : choose_points(&x, points);
        if ((rc = read_points(&x, points, n_points, most + 1, &f)) < 0) break;
        bool all = f.n <= most, first = slice_eq(buf_slice(&x.from), range->from);
        /* Too few follow this key: more than the wanted number follow the one before. */
        if (all && !first && !range->any && 2 * f.n < range->wanted) break;
        if (all) *keys = f.n;
        buf_clear(begin, SIZE_MAX);
        buf_put_slice(begin, buf_slice(&x.from));
        if (counts && !all) continue;
        if (all || !n_points || (rc = narrow(&x, points, n_points, &f)) < 0) break;
    }
    if (rc >= 0) rc = buf_failed(begin) ? -ENOMEM : 0;
    arena_fini(&x.arena);
    buf_fini(&x.from);
    buf_fini(&x.to);
    return rc == -ENOENT ? 0 : rc;
}
