#include "access/sigv4.h"

#include <string.h>
#include <time.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/buf.h"
#include "base/random.h"

enum { DIGEST = 32, DAY = 8, KEY_MAX = 256, DATE_MAX = 32 };

static const char hello[] = "SigV4\0"; /* and the terminator: seven bytes */

bool sigv4_is_hello(struct slice token) { return slice_eq(token, slice_of(hello, sizeof(hello))); }

static void hex(const uint8_t *bytes, size_t n, char *out) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
}

int sigv4_nonce(char nonce[SIGV4_NONCE], struct err *e) {
    uint8_t random[SIGV4_NONCE / 2];
    if (random_bytes(random, sizeof(random), e)) return -1;
    hex(random, sizeof(random), nonce);
    return 0;
}

/* ---- the response ---- */

int sigv4_parse(struct slice token, struct sigv4_response *out, struct err *e) {
    const struct {
        const char *name;
        struct slice *value;
    } fields[] = {{"signature=", &out->signature},
                  {"access_key=", &out->access_key},
                  {"amzdate=", &out->date},
                  {"session_token=", &out->session_token}};
    *out = (struct sigv4_response){0};
    while (token.n) {
        const uint8_t *comma = memchr(token.p, ',', token.n);
        struct slice part = slice_of(token.p, comma ? (size_t)(comma - token.p) : token.n);
        token = slice_of(part.p + part.n, token.n - part.n);
        if (token.n) token.p++, token.n--;
        for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
            size_t n = strlen(fields[i].name);
            if (part.n >= n && !memcmp(part.p, fields[i].name, n)) *fields[i].value = slice_of(part.p + n, part.n - n);
        }
    }
    if (out->signature.n == SIGV4_SIGNATURE && out->access_key.n && out->access_key.n <= KEY_MAX && out->date.n)
        return 0;
    return err_set(e, ERR_BAD_CREDENTIALS,
                   "Authentication failure: the response must be signature=,access_key=,amzdate=[,session_token=]");
}

static int number(const uint8_t *p, int digits) {
    int n = 0;
    for (int i = 0; i < digits; i++) {
        if (p[i] < '0' || p[i] > '9') return -1;
        n = n * 10 + p[i] - '0';
    }
    return n;
}

/* The fraction may have any number of digits: Python's plugin sometimes prints four. */
int64_t sigv4_time(struct slice date) {
    static const char form[] = "dddd-dd-ddTdd:dd:dd.";
    if (date.n < sizeof(form) + 1 || date.n > DATE_MAX || date.p[date.n - 1] != 'Z') return -1;
    for (size_t i = 0; i < date.n - 1; i++) {
        char want = i < sizeof(form) - 1 ? form[i] : 'd';
        if (want == 'd' ? date.p[i] < '0' || date.p[i] > '9' : date.p[i] != (uint8_t)want) return -1;
    }
    struct tm tm = {.tm_year = number(date.p, 4) - 1900,
                    .tm_mon = number(date.p + 5, 2) - 1,
                    .tm_mday = number(date.p + 8, 2),
                    .tm_hour = number(date.p + 11, 2),
                    .tm_min = number(date.p + 14, 2),
                    .tm_sec = number(date.p + 17, 2)};
    return timegm(&tm);
}

/* ---- the signature ---- */

static bool hmac(const void *key, size_t n_key, struct slice text, uint8_t out[DIGEST]) {
    unsigned n = DIGEST;
    return HMAC(EVP_sha256(), key, (int)n_key, text.p, text.n, out, &n) != NULL;
}

static bool sha256_hex(struct slice text, char out[2 * DIGEST]) {
    uint8_t digest[DIGEST];
    if (EVP_Digest(text.p, text.n, digest, NULL, EVP_sha256(), NULL) != 1) return false;
    hex(digest, sizeof(digest), out);
    return true;
}

/* Escapes the characters that scope and date contain. The access key is not escaped. */
static void put_escaped(struct buf *out, struct slice s) {
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '/') buf_put_str(out, "%2F");
        else if (s.p[i] == ':') buf_put_str(out, "%3A");
        else buf_u8(out, s.p[i]);
    }
}

static void put_canonical(struct buf *out, struct slice date, struct slice access_key, struct slice scope,
                          const char nonce_hash[2 * DIGEST]) {
    buf_put_str(out, "PUT\n/authenticate\nX-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=");
    buf_put_slice(out, access_key);
    buf_put_str(out, "%2F");
    put_escaped(out, scope);
    buf_put_str(out, "&X-Amz-Date=");
    put_escaped(out, date);
    buf_put_str(out, "&X-Amz-Expires=900\nhost:cassandra\n\nhost\n");
    buf_put(out, nonce_hash, 2 * DIGEST);
}

static bool signing_key(const char *secret, struct slice day, struct slice region, struct slice service,
                        uint8_t key[DIGEST]) {
    struct buf first;
    buf_init(&first, 0);
    buf_put_str(&first, "AWS4");
    buf_put_str(&first, secret);
    bool ok = !buf_failed(&first) && hmac(first.p, first.n, day, key) && hmac(key, DIGEST, region, key) &&
              hmac(key, DIGEST, service, key) && hmac(key, DIGEST, slice_str("aws4_request"), key);
    if (first.p) OPENSSL_cleanse(first.p, first.n);
    buf_fini(&first);
    return ok;
}

bool sigv4_hash(struct slice text, char out[SIGV4_SIGNATURE]) { return sha256_hex(text, out); }

int sigv4_sign_canonical(const char *secret, struct slice date, struct slice scope, struct slice canonical,
                         char out[SIGV4_SIGNATURE]) {
    struct slice part[4] = {{0}}; /* of the scope: day/region/service/aws4_request */
    size_t n = 0, from = 0;
    for (size_t i = 0; i <= scope.n && n < ARRAY_LEN(part); i++) {
        if (i < scope.n && scope.p[i] != '/') continue;
        part[n++] = slice_of(scope.p + from, i - from);
        from = i + 1;
    }
    if (n != ARRAY_LEN(part) || from <= scope.n || part[0].n != DAY || !slice_is(part[3], "aws4_request")) return -1;
    char hash[2 * DIGEST];
    uint8_t key[DIGEST], signature[DIGEST];
    struct buf to_sign;
    buf_init(&to_sign, 0);
    buf_printf(&to_sign, "AWS4-HMAC-SHA256\n%.*s\n%.*s\n", SLICE_FMT(date), SLICE_FMT(scope));
    bool ok = sha256_hex(canonical, hash);
    if (ok) buf_put(&to_sign, hash, sizeof(hash));
    ok = ok && !buf_failed(&to_sign) && signing_key(secret, part[0], part[1], part[2], key) &&
         hmac(key, DIGEST, buf_slice(&to_sign), signature);
    if (ok) hex(signature, DIGEST, out);
    OPENSSL_cleanse(key, sizeof(key));
    buf_fini(&to_sign);
    return ok ? 0 : -1;
}

int sigv4_sign(struct slice date, struct slice access_key, const char *secret, const char *region,
               const char nonce[SIGV4_NONCE], char out[SIGV4_SIGNATURE]) {
    char hash[2 * DIGEST];
    struct buf scope, text;
    if (sigv4_time(date) < 0) return -1;
    buf_init(&scope, 0), buf_init(&text, 0);
    buf_printf(&scope, "%.4s%.2s%.2s/%s/cassandra/aws4_request", date.p, date.p + 5, date.p + 8, region);
    bool ok = !buf_failed(&scope) && sha256_hex(slice_of(nonce, SIGV4_NONCE), hash);
    if (ok) put_canonical(&text, date, access_key, buf_slice(&scope), hash);
    ok = ok && !buf_failed(&text) && !sigv4_sign_canonical(secret, date, buf_slice(&scope), buf_slice(&text), out);
    buf_fini(&scope), buf_fini(&text);
    return ok ? 0 : -1;
}
