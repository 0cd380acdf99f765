#include "tools/tally/stress/dist.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ZIPF_MAX = 10000000, LENGTH_MAX = 16 << 20, TEXT_MAX = 200 };

/* ---- parsing ---- */

static int wrong(const char *text, struct err *e) {
    return err_set(e, ERR_CONFIG, "'%s' is no distribution: see tally stress --help", text);
}

/* "LOW..HIGH", followed by the parameters of the kind; "N" for one value; "LOW.." for an
 * endless sequence; and the closing bracket. */
static bool parse_arguments(const char *at, struct dist *d) {
    double *const parameters[] = {&d->p, &d->q};
    int n = 0, wanted = d->kind == DIST_NORMAL ? 2 : d->kind == DIST_ZIPF ? 1 : 0;
    bool range = sscanf(at, "%" SCNd64 "%n", &d->low, &n) == 1 && !strncmp(at + n, "..", 2);
    if (!n || (wanted && !range)) return false;
    at += n;
    d->high = d->low;
    if (range) {
        at += 2;
        n = 0;
        if (sscanf(at, "%" SCNd64 "%n", &d->high, &n) != 1) {
            if (d->kind != DIST_SEQUENCE) return false;
            d->high = INT64_MAX;
        }
        at += n;
    }
    for (int i = 0; i < wanted; i++) {
        if (sscanf(at, " , %lf%n", parameters[i], &n) != 1) return false;
        at += n;
    }
    n = 0;
    (void)sscanf(at, " )%n", &n);
    return n && !at[n];
}

static const struct {
    const char *name;
    enum dist_kind kind;
} kinds[] = {{"fixed(", DIST_FIXED},       {"uniform(", DIST_UNIFORM}, {"zipf(", DIST_ZIPF},  {"normal(", DIST_NORMAL},
             {"sequence(", DIST_SEQUENCE}, {"text(", DIST_TEXT},       {"bytes(", DIST_BYTES}};

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
        if (!parse_arguments(text + n, out)) return wrong(text, e);
        bool lengths = out->kind == DIST_TEXT || out->kind == DIST_BYTES;
        if (out->low > out->high)
            return err_set(e, ERR_CONFIG, "'%s': the first number is greater than the last", text);
        if (lengths && (out->low < 0 || out->high > LENGTH_MAX))
            return err_set(e, ERR_CONFIG, "'%s': a length is from 0 to %d", text, LENGTH_MAX);
        if (out->kind != DIST_ZIPF) return 0;
        size_t width = (size_t)(out->high - out->low) + 1;
        double sum = 0;
        if (out->high - out->low >= ZIPF_MAX)
            return err_set(e, ERR_CONFIG, "zipf has at most %d values", ZIPF_MAX);
        if (!(out->p > 0 && out->p < 100)) return err_set(e, ERR_CONFIG, "the exponent of zipf must be above 0");
        out->sums = calloc(width, sizeof(*out->sums));
        if (!out->sums) return err_nomem(e);
        for (size_t k = 0; k < width; k++) out->sums[k] = sum += pow((double)(k + 1), -out->p);
        for (size_t k = 0; k < width; k++) out->sums[k] /= sum;
        return 0;
    }
    return wrong(text, e);
}

void dist_fini(struct dist *d) { free(d->sums); }

/* ---- sampling ---- */

static int64_t between(int64_t low, int64_t high, uint64_t random) {
    uint64_t width = (uint64_t)high - (uint64_t)low + 1;
    return width ? (int64_t)((uint64_t)low + random % width) : (int64_t)random;
}

int64_t dist_sample(const struct dist *d, struct chance *r, const struct dist_moment *m) {
    switch (d->kind) {
    case DIST_FIXED: return d->low;
    case DIST_UNIFORM:
    case DIST_TEXT:
    case DIST_BYTES: return between(d->low, d->high, chance_next(r));
    case DIST_SEQUENCE: return between(d->low, d->high, m->sequence);
    case DIST_NOW: return m->wall_ms;
    case DIST_NORMAL: {
        double x = round(d->p + d->q * chance_normal(r));
        if (x < (double)d->low) return d->low;
        return x > (double)d->high ? d->high : (int64_t)x;
    }
    case DIST_ZIPF: break;
    }
    double share = chance_unit(r);
    size_t low = 0, high = (size_t)(d->high - d->low);
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (d->sums[mid] > share) high = mid;
        else low = mid + 1;
    }
    return d->low + (int64_t)low;
}

/* ---- values ---- */

/* Puts n random letters and digits, valid for text, ascii and blob. */
static void put_filler(int64_t n, struct chance *r, struct buf *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    buf_u32(out, (uint32_t)n);
    uint8_t *p = buf_reserve(out, (size_t)n);
    if (!p) return;
    uint64_t bits = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i % 10 == 0) bits = chance_next(r);
        p[i] = (uint8_t)digits[bits & 63];
        bits >>= 6;
    }
    buf_advance(out, (size_t)n);
}

static void put_bytes(uint64_t n, unsigned bytes, struct buf *out) {
    buf_u32(out, bytes);
    for (unsigned i = bytes; i--;) buf_u8(out, (uint8_t)(n >> 8 * i));
}

/* Puts a version 4 UUID made of n, or with timed a version 1 UUID whose time is n milliseconds
 * since 1970. */
static void put_uuid(int64_t n, bool timed, struct chance *r, struct buf *out) {
    struct chance own = {.state = (uint64_t)n};
    uint64_t high = chance_next(&own), low = chance_next(timed ? r : &own);
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

int dist_put(const struct dist *d, const struct cql_type *type, struct chance *r, const struct dist_moment *m,
             struct buf *out, struct err *e) {
    char digits[32];
    int64_t n = dist_sample(d, r, m);
    int length = snprintf(digits, sizeof(digits), "%" PRId64, n);
    bool filler = d->kind == DIST_TEXT || d->kind == DIST_BYTES,
         texts = type->id == CQL_TEXT || type->id == CQL_ASCII || type->id == CQL_BLOB;
    if (filler && !texts)
        return err_set(e, ERR_CONFIG, "text() and bytes() are for columns of type text, ascii and blob");
    switch (type->id) {
    case CQL_TEXT:
    case CQL_ASCII:
        if (filler) {
            put_filler(n, r, out);
        } else {
            buf_u32(out, (uint32_t)length);
            buf_put(out, digits, (size_t)length);
        }
        break;
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
    default: {
        struct buf words;
        buf_init(&words, 0);
        buf_put_str(&words, "no value of type ");
        cql_type_print(type, &words);
        buf_put_str(&words, " can be made of a distribution");
        return err_set_buf(e, ERR_CONFIG, &words);
    }
    }
    return 0;
}
