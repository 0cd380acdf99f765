#include "native_protocol/tls.h"

#include <errno.h>
#include <linux/sockios.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { FILES = 3 };

/* Identifies a file as of its last read: a file that replaces it has another inode number, a
 * rewritten file another time. */
struct seen {
    ino_t number;
    struct timespec changed;
    off_t size;
};

struct np_tls {
    struct np_tls_options o;
    pthread_mutex_t lock;
    SSL_CTX *ctx;            /* under the lock; connections count it, too */
    struct seen seen[FILES]; /* under the lock */
};

/* ---- files ---- */

static void see(const struct np_tls_options *o, struct seen seen[FILES]) {
    const char *const files[FILES] = {o->cert, o->key, o->client_ca};
    memset(seen, 0, FILES * sizeof(*seen));
    for (int i = 0; i < FILES; i++) {
        struct stat s;
        if (files[i] && !stat(files[i], &s)) seen[i] = (struct seen){s.st_ino, s.st_ctim, s.st_size};
    }
}

/* ---- contexts ---- */

static const char *reason(void) {
    const char *why = ERR_reason_error_string(ERR_get_error());
    return why ? why : "unknown reason";
}

/* A BIO over the bytes of a file, which text holds until the BIO is freed. */
static BIO *read_pem(const char *path, struct buf *text, struct err *e) {
    enum { PEM_MAX = 4 << 20 };
    buf_init(text, 0);
    if (file_append_to(path, PEM_MAX, text, e)) return NULL;
    struct slice s = buf_slice(text);
    BIO *bio = BIO_new_mem_buf(s.p, (int)s.n);
    if (!bio) err_nomem(e);
    return bio;
}

static void drop_pem(BIO *bio, struct buf *text) {
    BIO_free(bio);
    if (text->p) OPENSSL_cleanse(text->p, text->n);
    buf_fini(text);
}

/* Without this, OpenSSL would ask for the passphrase of an encrypted key at the terminal, and
 * wait. */
static int no_passphrase(char *to, int size, int writes, void *arg) {
    (void)to, (void)size, (void)writes, (void)arg;
    return -1;
}

/* Calls take for each certificate of the text; take returns 1 when it took one. false if there is
 * none, a certificate is damaged, or take failed. */
static bool each_certificate(BIO *bio, int (*take)(SSL_CTX *ctx, X509 *certificate, bool first), SSL_CTX *ctx) {
    bool first = true, fine = true;
    for (X509 *x; fine && (x = PEM_read_bio_X509_AUX(bio, NULL, no_passphrase, NULL)); first = false) {
        fine = take(ctx, x, first) == 1;
        X509_free(x);
    }
    if (first || !fine) return false;
    fine = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE; /* the end of the text */
    if (fine) ERR_clear_error();
    return fine;
}

static int take_own(SSL_CTX *ctx, X509 *x, bool first) {
    return (int)(first ? SSL_CTX_use_certificate(ctx, x) : SSL_CTX_add1_chain_cert(ctx, x));
}

static int take_trusted(SSL_CTX *ctx, X509 *x, bool first) {
    (void)first;
    return X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), x) == 1 && SSL_CTX_add_client_CA(ctx, x) == 1;
}

static int trust_clients(SSL_CTX *ctx, const struct np_tls_options *o, struct err *e) {
    static const unsigned char name[] = "tally";
    struct buf text;
    if (o->client_cert == NP_CLIENT_CERT_NONE) return 0;
    BIO *bio = read_pem(o->client_ca, &text, e);
    bool fine = bio && each_certificate(bio, take_trusted, ctx);
    drop_pem(bio, &text);
    if (!fine) return err_set(e, ERR_CONFIG, "cannot use the certificates of %s to check clients by: %s", o->client_ca,
                              reason());
    SSL_CTX_set_verify(
        ctx, SSL_VERIFY_PEER | (o->client_cert == NP_CLIENT_CERT_REQUIRED ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), NULL);
    /* a resumed session was checked under this name */
    SSL_CTX_set_session_id_context(ctx, name, sizeof(name) - 1);
    return 0;
}

static int take_files(SSL_CTX *ctx, const struct np_tls_options *o, struct err *e) {
    struct buf cert_text, key_text;
    BIO *cert = read_pem(o->cert, &cert_text, e), *key = read_pem(o->key, &key_text, e);
    bool fine = cert && key && each_certificate(cert, take_own, ctx);
    EVP_PKEY *pair = fine ? PEM_read_bio_PrivateKey(key, NULL, no_passphrase, NULL) : NULL;
    fine = pair && SSL_CTX_use_PrivateKey(ctx, pair) == 1 && SSL_CTX_check_private_key(ctx) == 1;
    EVP_PKEY_free(pair);
    drop_pem(key, &key_text);
    drop_pem(cert, &cert_text);
    return fine ? 0 : err_set(e, ERR_CONFIG, "cannot use the TLS certificate %s with the key %s: %s", o->cert, o->key,
                              reason());
}

/* ---- life ---- */

int np_tls_reload(struct np_tls *t, struct err *e) {
    struct seen seen[FILES];
    see(&t->o, seen); /* before the files are read, so that a change meanwhile is detected */
    ERR_clear_error();
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (!ctx) return err_nomem(e);
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION); /* or a client could ask for handshake after handshake */
    SSL_CTX_set_mode(ctx,
                     SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    int rc = take_files(ctx, &t->o, e) || trust_clients(ctx, &t->o, e) ? -1 : 0;
    pthread_mutex_lock(&t->lock);
    SSL_CTX *unused = rc ? ctx : t->ctx;
    if (!rc) t->ctx = ctx;
    memcpy(t->seen, seen, sizeof(seen));
    pthread_mutex_unlock(&t->lock);
    SSL_CTX_free(unused);
    return rc;
}

bool np_tls_changed(struct np_tls *t) {
    struct seen now[FILES];
    see(&t->o, now);
    pthread_mutex_lock(&t->lock);
    bool changed = false;
    for (int i = 0; i < FILES; i++) {
        const struct seen *a = &now[i], *b = &t->seen[i];
        changed |= a->number != b->number || a->size != b->size || a->changed.tv_sec != b->changed.tv_sec ||
                   a->changed.tv_nsec != b->changed.tv_nsec;
    }
    pthread_mutex_unlock(&t->lock);
    return changed;
}

SSL *np_tls_accept(struct np_tls *t) {
    pthread_mutex_lock(&t->lock);
    SSL *ssl = SSL_new(t->ctx);
    pthread_mutex_unlock(&t->lock);
    if (ssl) SSL_set_accept_state(ssl);
    return ssl;
}

struct np_tls *np_tls_open(const struct np_tls_options *o, struct err *e) {
    struct np_tls *t = calloc(1, sizeof(*t));
    if (!t) return err_null(err_nomem(e));
    t->o = *o;
    pthread_mutex_init(&t->lock, NULL);
    if (!np_tls_reload(t, e)) return t;
    np_tls_close(t);
    return NULL;
}

void np_tls_close(struct np_tls *t) {
    if (!t) return;
    SSL_CTX_free(t->ctx);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

int np_transport_init(struct np_transport *t, int fd, struct np_tls *tls) {
    *t = (struct np_transport){.fd = fd};
    if (!tls) return 0;
    t->ssl = np_tls_accept(tls);
    if (t->ssl && SSL_set_fd(t->ssl, fd)) return 0;
    SSL_free(t->ssl);
    t->ssl = NULL;
    return -1;
}

void np_transport_fini(struct np_transport *t) {
    if (t->ssl) SSL_free(t->ssl);
    if (t->fd >= 0) close(t->fd);
    *t = (struct np_transport){.fd = -1};
}

static ssize_t plain_result(ssize_t n) {
    if (n >= 0) return n;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? NP_IO_AGAIN : NP_IO_ERROR;
}

static ssize_t tls_result(struct np_transport *t, int n) {
    if (n > 0) return n;
    int why = SSL_get_error(t->ssl, n);
    ERR_clear_error();
    if (why == SSL_ERROR_ZERO_RETURN) return 0;
    t->wants_write = why == SSL_ERROR_WANT_WRITE;
    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? NP_IO_AGAIN : NP_IO_ERROR;
}

ssize_t np_transport_read(struct np_transport *t, void *p, size_t n) {
    if (!t->ssl) return plain_result(recv(t->fd, p, n, 0));
    ERR_clear_error();
    t->wants_write = false;
    return tls_result(t, SSL_read(t->ssl, p, n > INT32_MAX ? INT32_MAX : (int)n));
}

ssize_t np_transport_write(struct np_transport *t, const void *p, size_t n) {
    if (!t->ssl) return plain_result(send(t->fd, p, n, MSG_NOSIGNAL));
    ERR_clear_error();
    return tls_result(t, SSL_write(t->ssl, p, n > INT32_MAX ? INT32_MAX : (int)n));
}

bool np_transport_shakes_hands(const struct np_transport *t) { return t->ssl && !SSL_is_init_finished(t->ssl); }

bool np_transport_pending(const struct np_transport *t) { return t->ssl && SSL_pending(t->ssl) > 0; }

size_t np_transport_queued(const struct np_transport *t) {
    int n = 0;
    return ioctl(t->fd, SIOCOUTQ, &n) || n < 0 ? 0 : (size_t)n;
}

void np_transport_shutdown(struct np_transport *t) {
    if (t->ssl) SSL_shutdown(t->ssl);
    ERR_clear_error();
    shutdown(t->fd, SHUT_WR);
}
