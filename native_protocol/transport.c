#include "native_protocol/transport.h"

#include <errno.h>
#include <linux/sockios.h>
#include <openssl/err.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

int np_transport_init(struct np_transport *t, int fd, SSL_CTX *ctx) {
    *t = (struct np_transport){.fd = fd};
    if (!ctx) return 0;
    t->ssl = SSL_new(ctx);
    if (!t->ssl) return -1;
    if (!SSL_set_fd(t->ssl, fd)) {
        SSL_free(t->ssl);
        t->ssl = NULL;
        return -1;
    }
    SSL_set_accept_state(t->ssl);
    return 0;
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

SSL_CTX *np_tls_context(const char *cert, const char *key, struct err *e) {
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (!ctx) return err_nomem(e), NULL;
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (SSL_CTX_use_certificate_chain_file(ctx, cert) == 1 && SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) == 1 &&
        SSL_CTX_check_private_key(ctx) == 1)
        return ctx;
    const char *why = ERR_reason_error_string(ERR_get_error());
    err_set(e, ERR_CONFIG, "cannot use the TLS certificate %s with the key %s: %s", cert, key, why ? why : "unknown reason");
    SSL_CTX_free(ctx);
    return NULL;
}
