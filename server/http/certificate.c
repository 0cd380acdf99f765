#include "server/http/certificate.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/file.h"

enum { PEM_MAX = 1 << 20 };

struct http_certificate {
    const char *cert_path, *key_path;
    pthread_mutex_t lock;
    gnutls_certificate_credentials_t current; /* under the lock; holds one chain and its key */
};

/* gnutls_certificate_set_x509_key_mem also checks that the key belongs to the certificate. */
static int parse(const struct http_certificate *c, struct buf *cert, struct buf *key,
                 gnutls_certificate_credentials_t *out, struct err *e) {
    const gnutls_datum_t cert_text = {cert->p, (unsigned)cert->n}, key_text = {key->p, (unsigned)key->n};
    *out = NULL;
    if (gnutls_certificate_allocate_credentials(out)) return err_nomem(e);
    int rc = gnutls_certificate_set_x509_key_mem(*out, &cert_text, &key_text, GNUTLS_X509_FMT_PEM);
    if (rc >= 0) return 0;
    gnutls_certificate_free_credentials(*out);
    *out = NULL;
    return err_set(e, ERR_CONFIG, "cannot use the TLS certificate %s with the key %s: %s", c->cert_path, c->key_path,
                   gnutls_strerror(rc));
}

int http_certificate_reload(struct http_certificate *c, struct err *e) {
    gnutls_certificate_credentials_t next = NULL;
    struct buf cert, key;
    buf_init(&cert, 0);
    buf_init(&key, 0);
    int rc = file_append_to(c->cert_path, PEM_MAX, &cert, e) || file_append_to(c->key_path, PEM_MAX, &key, e);
    if (!rc) rc = parse(c, &cert, &key, &next, e);
    if (key.p) gnutls_memset(key.p, 0, key.n);
    buf_fini(&key);
    buf_fini(&cert);
    if (rc) return -1;
    pthread_mutex_lock(&c->lock);
    gnutls_certificate_credentials_t old = c->current;
    c->current = next;
    pthread_mutex_unlock(&c->lock);
    if (old) gnutls_certificate_free_credentials(old);
    return 0;
}

/* ---- copies ---- */

static int copy_key(gnutls_certificate_credentials_t from, gnutls_privkey_t *out) {
    gnutls_x509_privkey_t key;
    if (gnutls_certificate_get_x509_key(from, 0, &key)) return -1;
    int rc = gnutls_privkey_init(out);
    if (!rc && (rc = gnutls_privkey_import_x509(*out, key, GNUTLS_PRIVKEY_IMPORT_COPY))) gnutls_privkey_deinit(*out);
    gnutls_x509_privkey_deinit(key);
    return rc ? -1 : 0;
}

static int copy_chain(gnutls_certificate_credentials_t from, gnutls_pcert_st **out, unsigned *n) {
    gnutls_x509_crt_t *chain;
    unsigned length;
    if (gnutls_certificate_get_x509_crt(from, 0, &chain, &length)) return -1;
    *n = length;
    *out = gnutls_calloc(length, sizeof(**out));
    int rc = *out ? gnutls_pcert_import_x509_list(*out, chain, n, 0) : -1;
    if (rc) gnutls_free(*out);
    for (unsigned i = 0; i < length; i++) gnutls_x509_crt_deinit(chain[i]);
    gnutls_free(chain);
    return rc ? -1 : 0;
}

int http_certificate_copy(struct http_certificate *c, gnutls_pcert_st **chain, unsigned *n, gnutls_privkey_t *key) {
    pthread_mutex_lock(&c->lock);
    int rc = copy_key(c->current, key);
    if (!rc && (rc = copy_chain(c->current, chain, n))) gnutls_privkey_deinit(*key);
    pthread_mutex_unlock(&c->lock);
    return rc;
}

/* ---- life ---- */

struct http_certificate *http_certificate_open(const char *cert, const char *key, struct err *e) {
    struct http_certificate *c = calloc(1, sizeof(*c));
    if (!c) return err_null(err_nomem(e));
    c->cert_path = cert;
    c->key_path = key;
    pthread_mutex_init(&c->lock, NULL);
    if (!http_certificate_reload(c, e)) return c;
    http_certificate_close(c);
    return NULL;
}

void http_certificate_close(struct http_certificate *c) {
    if (!c) return;
    if (c->current) gnutls_certificate_free_credentials(c->current);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
