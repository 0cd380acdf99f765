#include "control_plane/signature.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "access/sigv4.h"
#include "keyspaces/quota.h"

/* The parts of the Authorization header; the slices point into it. */
struct authorization {
    struct slice key, scope, headers, signature;
};

static const struct access_key *refuse(enum api_error *error, enum api_error why, struct err *e, const char *words) {
    *error = why;
    return err_null(err_invalid(e, "%s", words));
}

static struct slice field(const char *text, const char *name) {
    const char *at = strstr(text, name);
    if (!at) return slice_of(NULL, 0);
    at += strlen(name);
    return slice_of(at, strcspn(at, ", "));
}

static bool take_apart(const char *text, struct authorization *out) {
    if (strncmp(text, "AWS4-HMAC-SHA256 ", 17)) return false;
    struct slice credential = field(text, "Credential=");
    const uint8_t *slash = credential.p ? memchr(credential.p, '/', credential.n) : NULL;
    *out = (struct authorization){.headers = field(text, "SignedHeaders="), .signature = field(text, "Signature=")};
    if (!slash || !out->headers.n || out->signature.n != SIGV4_SIGNATURE) return false;
    out->key = slice_of(credential.p, (size_t)(slash - credential.p));
    out->scope = slice_of(slash + 1, credential.n - out->key.n - 1);
    return true;
}

/* Parses "20260102T030405Z" to seconds since 1970; -1 if the text has another form. */
static int64_t time_of(const char *date) {
    static const char form[] = "ddddddddTddddddZ";
    struct tm tm = {0};
    if (strlen(date) != sizeof(form) - 1) return -1;
    for (size_t i = 0; form[i]; i++)
        if (form[i] == 'd' ? date[i] < '0' || date[i] > '9' : date[i] != form[i]) return -1;
    return strptime(date, "%Y%m%dT%H%M%SZ", &tm) ? timegm(&tm) : -1;
}

/* ---- the canonical request ---- */

/* Puts a value without blanks at its ends, and with one blank for each run of blanks within. */
static void put_trimmed(struct buf *out, const char *value) {
    bool any = false, blank = false;
    for (; *value; value++) {
        if (*value == ' ') {
            blank = any;
            continue;
        }
        if (blank) buf_u8(out, ' ');
        buf_u8(out, (uint8_t)*value);
        any = true;
        blank = false;
    }
}

static bool put_headers(struct buf *out, const struct http_request *q, struct slice names) {
    char name[128];
    while (names.n) {
        const uint8_t *end = memchr(names.p, ';', names.n);
        size_t n = end ? (size_t)(end - names.p) : names.n;
        if (n >= sizeof(name)) return false;
        memcpy(name, names.p, n);
        name[n] = 0;
        const char *value = http_header(q, name);
        if (!value) return false;
        buf_printf(out, "%s:", name);
        put_trimmed(out, value);
        buf_u8(out, '\n');
        names = slice_of(names.p + n + (end != NULL), names.n - n - (end != NULL));
    }
    return true;
}

/* Compares the signature with that of the canonical request, whose query string is empty: requests
 * to the API have none. */
static bool is_signed(const struct http_request *q, const struct authorization *z, const char *date,
                      const char *secret) {
    char hash[SIGV4_SIGNATURE], due[SIGV4_SIGNATURE];
    struct buf canonical;
    buf_init(&canonical, 1 << 20);
    buf_printf(&canonical, "%s\n%s\n\n", q->method, q->path);
    bool ok = sigv4_hash(q->body, hash) && put_headers(&canonical, q, z->headers);
    buf_printf(&canonical, "\n%.*s\n", SLICE_FMT(z->headers));
    if (ok) buf_put(&canonical, hash, sizeof(hash));
    ok = ok && !buf_failed(&canonical) &&
         !sigv4_sign_canonical(secret, slice_str(date), z->scope, buf_slice(&canonical), due);
    buf_fini(&canonical);
    return ok && !CRYPTO_memcmp(due, z->signature.p, sizeof(due));
}

/* ---- the check ---- */

static bool covers(struct slice headers, const char *name) {
    size_t n = strlen(name);
    for (size_t i = 0; i + n <= headers.n; i++) {
        bool begins = i == 0 || headers.p[i - 1] == ';', ends = i + n == headers.n || headers.p[i + n] == ';';
        if (begins && ends && !memcmp(headers.p + i, name, n)) return true;
    }
    return false;
}

const char *signature_region(const struct http_request *q, const char *own, struct arena *a) {
    const char *authorization = http_header(q, "Authorization");
    struct authorization z;
    if (!authorization || !take_apart(authorization, &z)) return own;
    /* The scope is DATE/REGION/SERVICE/aws4_request. */
    const uint8_t *end = z.scope.p + z.scope.n, *from = memchr(z.scope.p, '/', z.scope.n);
    const uint8_t *to = from ? memchr(from + 1, '/', (size_t)(end - from - 1)) : NULL;
    if (!to) return own;
    const char *region = (const char *)arena_dup(a, slice_of(from + 1, (size_t)(to - from - 1))).p;
    return !region || quota_is_region(region) ? region : own;
}

/* An unknown key takes as long as a known one, so that the time does not reveal which keys
 * exist. */
const struct access_key *signature_check(const struct access_keys *keys, const char *region, const char *service,
                                         const struct http_request *q, int64_t now_s, struct arena *a,
                                         enum api_error *error, struct err *e) {
    const char *authorization = http_header(q, "Authorization"), *date = http_header(q, "X-Amz-Date");
    struct authorization z;
    if (!authorization)
        return refuse(error, API_MissingAuthenticationTokenException, e, "Missing Authentication Token");
    /* The signature must cover the headers that decide what the request does. An attacker could
     * change or add a header that is not signed, and so turn the request into another one. */
    if (!take_apart(authorization, &z) || !date || time_of(date) < 0 || !covers(z.headers, "host") ||
        !covers(z.headers, "x-amz-date") ||
        (http_header(q, "X-Amz-Target") && !covers(z.headers, "x-amz-target")))
        return refuse(error, API_IncompleteSignatureException, e,
                      "The Authorization header must be AWS4-HMAC-SHA256 with Credential, SignedHeaders (host, "
                      "x-amz-date and, where it is sent, x-amz-target among them) and Signature, beside X-Amz-Date");
    const struct access_key *key = access_key_find(keys, z.key);
    bool same = is_signed(q, &z, date, key ? key->secret : "");
    const char *token = http_header(q, "X-Amz-Security-Token");
    if (!key || !access_key_takes(key, slice_str(token ? token : "")))
        return refuse(error, API_UnrecognizedClientException, e,
                      "The security token included in the request is invalid.");
    if (!same)
        return refuse(error, API_InvalidSignatureException, e,
                      "The request signature we calculated does not match the signature you provided. Check your AWS "
                      "Secret Access Key and signing method.");
    const char *scope = arena_printf(a, "%.8s/%s/%s/aws4_request", date, region, service);
    if (!scope || !slice_is(z.scope, scope))
        return refuse(error, API_InvalidSignatureException, e,
                      "Credential should be scoped to a valid region and to the service.");
    if (llabs(time_of(date) - now_s) > SIGV4_SKEW_S)
        return refuse(error, API_InvalidSignatureException, e,
                      "Signature expired: X-Amz-Date is more than 15 minutes from the time of the server");
    return key;
}
