#include "tools/tally/stress/dist.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ZIPF_MAX = 10000000, LENGTH_MAX = 16 << 20, TEXT_MAX = 200 };

/* ---- chance ---- */

/* SplitMix64, a published generator with 64 bits of state. */
uint64_t dist_random_next(struct dist_random *r) {
    uint64_t z = r->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

double dist_random_share(struct dist_random *r) { return (double)(dist_random_next(r) >> 11) * 0x1p-53; }

/* ---- parsing ---- */

static int wrong(const char *text, struct err *e) {
    return err_set(e, ERR_CONFIG, "'%s' is no distribution: see tally stress --help", text);
}

static int fill_zipf(struct dist *d, struct err *e) {
    size_t n = (size_t)(d->high - d->low) + 1;
    double sum = 0;
    if (d->high - d->low >= ZIPF_MAX) return err_set(e, ERR_CONFIG, "zipf is of at most %d values", ZIPF_MAX);
    if (!(d->p > 0 && d->p < 100)) return err_set(e, ERR_CONFIG, "the exponent of zipf must be above 0");
    d->sums = calloc(n, sizeof(*d->sums));
    if (!d->sums) return err_nomem(e);
    for (size_t k = 0; k < n; k++) d->sums[k] = sum += pow((double)(k + 1), -d->p);
    for (size_t k = 0; k < n; k++) d->sums[k] /= sum;
    return 0;
}

static int check_range(const struct dist *d, const char *text, struct err *e) {
    bool lengths = d->kind == DIST_TEXT || d->kind == DIST_BYTES;
    if (d->low > d->high) return err_set(e, ERR_CONFIG, "'%s': the first number is greater than the last", text);
    return lengths && (d->low < 0 || d->high > LENGTH_MAX)
               ? err_set(e, ERR_CONFIG, "'%s': a length is from 0 to %d", text, LENGTH_MAX)
               : 0;
}

/* Whether sscanf read all wanted arguments and the whole text. */
static bool is_all(const char *rest, int n, int want, int end) { return n == want && end > 0 && !rest[end]; }

static bool parse_range(const char *args, struct dist *d) {
    int end = 0;
    int n = sscanf(args, "%" SCNd64 "..%" SCNd64 " )%n", &d->low, &d->high, &end);
    if (is_all(args, n, 2, end)) return true;
    end = 0;
    n = sscanf(args, "%" SCNd64 " )%n", &d->low, &end);
    d->high = d->low;
    return is_all(args, n, 1, end);
}

static bool parse_sequence(const char *args, struct dist *d) {
    int end = 0;
    int n = sscanf(args, "%" SCNd64 ".. )%n", &d->low, &end);
    d->high = INT64_MAX;
    return is_all(args, n, 1, end) || parse_range(args, d);
}

static bool parse_zipf(const char *args, struct dist *d) {
    int end = 0;
    int n = sscanf(args, "%" SCNd64 "..%" SCNd64 " , %lf )%n", &d->low, &d->high, &d->p, &end);
    return is_all(args, n, 3, end);
}

static bool parse_normal(const char *args, struct dist *d) {
    int end = 0;
    int n = sscanf(args, "%" SCNd64 "..%" SCNd64 " , %lf , %lf )%n", &d->low, &d->high, &d->p, &d->q, &end);
    return is_all(args, n, 4, end);
}

static const struct {
    const char *name;
    enum dist_kind kind;
    bool (*parse)(const char *args, struct dist *d);
} kinds[] = {
    {"fixed(", DIST_FIXED, parse_range},
    {"uniform(", DIST_UNIFORM, parse_range},
    {"zipf(", DIST_ZIPF, parse_zipf},
    {"normal(", DIST_NORMAL, parse_normal},
    {"sequence(", DIST_SEQUENCE, parse_sequence},
    {"text(", DIST_TEXT, parse_range},
    {"bytes(", DIST_BYTES, parse_range},
};

int dist_parse(struct slice s, struct dist *out, struct err *e) {
    char text[TEXT_MAX], *end;
    *out = (struct dist){0};
    snprintf(text, sizeof(text), "%.*s", (int)(s.n < TEXT_MAX ? s.n : TEXT_MAX), (const char *)s.p);
    if (!strcmp(text, "now")) {
        out->kind = DIST_NOW;
        return 0;
    }
    out->low = out->high = strtoll(text, &end, 10);
    if (*text && !*end) return 0;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        size_t n = strlen(kinds[i].name);
        if (strncmp(text, kinds[i].name, n)) continue;
        out->kind = kinds[i].kind;
        if (!kinds[i].parse(text + n, out)) return wrong(text, e);
        if (check_range(out, text, e)) return -1;
        return out->kind == DIST_ZIPF ? fill_zipf(out, e) : 0;
    }
    return wrong(text, e);
}

void dist_fini(struct dist *d) { free(d->sums); }

/* ---- sampling ---- */

static int64_t between(int64_t low, int64_t high, uint64_t random) {
    uint64_t width = (uint64_t)high - (uint64_t)low + 1;
    return width ? (int64_t)((uint64_t)low + random % width) : (int64_t)random;
}

static int64_t sample_zipf(const struct dist *d, double share) {
    size_t low = 0, high = (size_t)(d->high - d->low);
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (d->sums[mid] > share) high = mid;
        else low = mid + 1;
    }
    return d->low + (int64_t)low;
}

static int64_t sample_normal(const struct dist *d, struct dist_random *r) {
    double u = 1 - dist_random_share(r), v = dist_random_share(r);
    double normal = sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v); /* Box-Muller transform */
    double x = round(d->p + d->q * normal);
    if (x < (double)d->low) return d->low;
    return x > (double)d->high ? d->high : (int64_t)x;
}

int64_t dist_sample(const struct dist *d, struct dist_random *r, const struct dist_moment *m) {
    switch (d->kind) {
    case DIST_FIXED: return d->low;
    case DIST_UNIFORM:
    case DIST_TEXT:
    case DIST_BYTES: return between(d->low, d->high, dist_random_next(r));
    case DIST_ZIPF: return sample_zipf(d, dist_random_share(r));
    case DIST_NORMAL: return sample_normal(d, r);
    case DIST_SEQUENCE: return between(d->low, d->high, m->sequence);
    case DIST_NOW: return m->wall_ms;
    }
    return 0;
}

/* ---- values ---- */

/* Puts n random letters and digits, valid for text, ascii and blob. */
static void put_filler(int64_t n, struct dist_random *r, struct buf *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    buf_u32(out, (uint32_t)n);
    uint8_t *p = buf_reserve(out, (size_t)n);
    if (!p) return;
    uint64_t bits = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i % 10 == 0) bits = dist_random_next(r);
        p[i] = (uint8_t)digits[bits & 63];
        bits >>= 6;
    }
    buf_advance(out, (size_t)n);
}

static void put_digits(int64_t n, struct buf *out) {
    char text[32];
    int length = snprintf(text, sizeof(text), "%" PRId64, n);
    buf_u32(out, (uint32_t)length);
    buf_put(out, text, (size_t)length);
}

static void put_bytes(uint64_t n, unsigned bytes, struct buf *out) {
    buf_u32(out, bytes);
    for (unsigned i = bytes; i--;) buf_u8(out, (uint8_t)(n >> 8 * i));
}

/* Puts a version 4 UUID made of n, or with timed a version 1 UUID whose time is n milliseconds
 * since 1970. */
static void put_uuid(int64_t n, bool timed, struct dist_random *r, struct buf *out) {
    struct dist_random own = {.state = (uint64_t)n};
    uint64_t high = dist_random_next(&own), low = dist_random_next(timed ? r : &own);
    if (timed) {
        uint64_t t = ((uint64_t)n * 10000) + UINT64_C(0x01B21DD213814000);
        high = t << 32 | (t >> 32 & 0xFFFF) << 16 | 0x1000 | t >> 48;
    } else {
        high = (high & ~UINT64_C(0xF000)) | 0x4000;
    }
    buf_u32(out, 16);
    buf_u64(out, high);
    buf_u64(out, (low & ~(UINT64_C(3) << 62)) | UINT64_C(1) << 63);
}

static void put_real(double x, bool single, struct buf *out) {
    float f = (float)x;
    uint32_t b32;
    uint64_t b64;
    memcpy(&b32, &f, 4);
    memcpy(&b64, &x, 8);
    put_bytes(single ? b32 : b64, single ? 4 : 8, out);
}

static int refuse(const struct cql_type *type, struct err *e) {
    struct buf name;
    buf_init(&name, 0);
    buf_put_str(&name, "no value of type ");
    cql_type_print(type, &name);
    buf_put_str(&name, " can be made of a distribution");
    return err_set_buf(e, ERR_CONFIG, &name);
}

int dist_put(const struct dist *d, const struct cql_type *type, struct dist_random *r, const struct dist_moment *m,
             struct buf *out, struct err *e) {
    int64_t n = dist_sample(d, r, m);
    bool filler = d->kind == DIST_TEXT || d->kind == DIST_BYTES,
         texts = type->id == CQL_TEXT || type->id == CQL_ASCII || type->id == CQL_BLOB;
    if (filler && !texts)
        return err_set(e, ERR_CONFIG, "text() and bytes() are for columns of type text, ascii and blob");
    switch (type->id) {
    case CQL_TEXT:
    case CQL_ASCII: filler ? put_filler(n, r, out) : put_digits(n, out); break;
    case CQL_BLOB: filler ? put_filler(n, r, out) : put_bytes((uint64_t)n, 8, out); break;
    case CQL_TINYINT: put_bytes((uint64_t)n, 1, out); break;
    case CQL_SMALLINT: put_bytes((uint64_t)n, 2, out); break;
    case CQL_INT: put_bytes((uint64_t)n, 4, out); break;
    case CQL_BIGINT:
    case CQL_COUNTER:
    case CQL_TIMESTAMP:
    case CQL_VARINT: put_bytes((uint64_t)n, 8, out); break;
    case CQL_TIME: put_bytes((uint64_t)(n % 86400000) * 1000000, 8, out); break;
    case CQL_DATE: put_bytes((uint64_t)((d->kind == DIST_NOW ? n / 86400000 : n) + (INT64_C(1) << 31)), 4, out); break;
    case CQL_BOOLEAN: put_bytes((uint64_t)n & 1, 1, out); break;
    case CQL_FLOAT: put_real((double)n, true, out); break;
    case CQL_DOUBLE: put_real((double)n, false, out); break;
    case CQL_UUID: put_uuid(n, false, r, out); break;
    case CQL_TIMEUUID: put_uuid(n, true, r, out); break;
    default: return refuse(type, e);
    }
    return 0;
}
