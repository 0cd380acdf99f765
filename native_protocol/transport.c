#include "native_protocol/transport.h"

#include <errno.h>
#include <linux/sockios.h>
#include <openssl/err.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

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
