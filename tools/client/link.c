#include "tools/client/link.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "native_protocol/segment.h"

enum { READ_CHUNK = 256 * 1024, TIMEOUT_MS = 10000 };

/* ---- connecting ---- */

static int timeout_of(const struct link_options *o) { return o->timeout_ms ? (int)o->timeout_ms : TIMEOUT_MS; }

static int dial(const struct link_options *o, struct err *e) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list;
    char port[8];
    int fd = -1, failure = 0;
    snprintf(port, sizeof(port), "%u", o->port);
    int rc = getaddrinfo(o->host, port, &hints, &list);
    if (rc) return err_set(e, ERR_CONFIG, "cannot find the address of %s: %s", o->host, gai_strerror(rc));
    for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
        socklen_t n = sizeof(failure);
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
        failure = fd < 0 || connect(fd, a->ai_addr, a->ai_addrlen) ? errno : 0;
        if (fd >= 0 && failure == EINPROGRESS) {
            struct pollfd p = {.fd = fd, .events = POLLOUT};
            rc = poll(&p, 1, timeout_of(o));
            failure = rc < 0 ? errno : ETIMEDOUT;
            if (rc > 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &n)) failure = errno;
        }
        if (fd >= 0 && failure) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(list);
    if (fd < 0) return err_set(e, ERR_SERVER, "cannot connect to %s:%u: %s", o->host, o->port, strerror(failure));
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    int one = 1, timeout_ms = o->answer_timeout_ms ? (int)o->answer_timeout_ms : timeout_of(o);
    struct timeval t = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
    return fd;
}

/* OpenSSL's reason for a failure. */
static const char *tls_reason(void) {
    unsigned long code = ERR_peek_last_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return reason ? reason : "the other side has closed, or does not speak TLS";
}

static int greet(struct link *l, const struct link_options *o, struct err *e) {
    l->tls_context = SSL_CTX_new(TLS_client_method());
    if (!l->tls_context || SSL_CTX_set_min_proto_version(l->tls_context, TLS1_2_VERSION) != 1) return err_nomem(e);
    if (!o->insecure) {
        SSL_CTX_set_verify(l->tls_context, SSL_VERIFY_PEER, NULL);
        int ok = o->ca ? SSL_CTX_load_verify_locations(l->tls_context, o->ca, NULL)
                       : SSL_CTX_set_default_verify_paths(l->tls_context);
        if (ok != 1)
            return err_set(e, ERR_CONFIG, "cannot read the certificates in %s: %s",
                           o->ca ? o->ca : "the machine's store", tls_reason());
    }
    SSL_CTX_set_mode(l->tls_context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    l->tls = SSL_new(l->tls_context);
    if (!l->tls || SSL_set_fd(l->tls, l->fd) != 1) return err_nomem(e);
    /* The server's certificate must name the requested host name or address. */
    if (!o->insecure && X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(l->tls), o->host) != 1) {
        SSL_set1_host(l->tls, o->host);
        SSL_set_tlsext_host_name(l->tls, o->host);
    }
    if (SSL_connect(l->tls) == 1) return 0;
    long why = SSL_get_verify_result(l->tls);
    return err_set(e, ERR_SERVER, "no TLS with %s:%u: %s", o->host, o->port,
                   why != X509_V_OK ? X509_verify_cert_error_string(why) : tls_reason());
}

int link_open(struct link *l, const struct link_options *o, struct err *e) {
    *l = (struct link){.fd = -1};
    struct buf *const bufs[] = {&l->out, &l->packed, &l->in, &l->plain, &l->scratch};
    for (size_t i = 0; i < ARRAY_LEN(bufs); i++) buf_init(bufs[i], 0);
    l->fd = dial(o, e);
    if (l->fd >= 0 && (!o->tls || !greet(l, o, e))) return 0;
    link_close(l);
    return -1;
}

void link_close(struct link *l) {
    if (l->tls) SSL_free(l->tls);
    if (l->tls_context) SSL_CTX_free(l->tls_context);
    if (l->fd > 0) close(l->fd);
    struct buf *const bufs[] = {&l->out, &l->packed, &l->in, &l->plain, &l->scratch};
    for (size_t i = 0; i < ARRAY_LEN(bufs); i++) buf_fini(bufs[i]);
    *l = (struct link){.fd = -1};
}

int link_set_blocking(struct link *l, bool on, struct err *e) {
    int flags = fcntl(l->fd, F_GETFL);
    return fcntl(l->fd, F_SETFL, on ? flags & ~O_NONBLOCK : flags | O_NONBLOCK)
               ? err_set(e, ERR_SERVER, "fcntl: %s", strerror(errno))
               : 0;
}

/* ---- bytes ---- */

/* Bytes moved, or WANTS. */
enum { WANTS = -2 };

/* Why a call on the socket or on the TLS session moved no bytes: WANTS, or -1 and e. rc: its result,
 * 0 or less. */
static ssize_t result(const struct link *l, ssize_t rc, const char *what, struct err *e) {
    bool again = !l->tls && errno == EAGAIN;
    int why = l->tls ? SSL_get_error(l->tls, (int)rc) : 0;
    if (l->tls ? why == SSL_ERROR_ZERO_RETURN : !rc) return err_set(e, ERR_SERVER, "the server closed the connection");
    if (!l->tls && errno == EINTR) return WANTS;
    bool blocking = !(fcntl(l->fd, F_GETFL) & O_NONBLOCK);
    if (again || why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
        return blocking ? err_set(e, ERR_SERVER, "%s: no answer in time", what) : WANTS;
    return err_set(e, ERR_SERVER, "%s: %s", what, l->tls ? tls_reason() : strerror(errno));
}

static int flush_from(struct link *l, struct buf *b, size_t *at, struct err *e) {
    while (*at < b->n) {
        size_t left = b->n - *at;
        ssize_t n = l->tls ? SSL_write(l->tls, b->p + *at, left < INT32_MAX ? (int)left : INT32_MAX)
                           : send(l->fd, b->p + *at, left, MSG_NOSIGNAL);
        if (n <= 0) n = result(l, n, "cannot send", e);
        if (n == WANTS) return 1;
        if (n < 0) return -1;
        *at += (size_t)n;
    }
    b->n = *at = 0;
    return 0;
}

int link_flush(struct link *l, struct err *e) {
    if (buf_failed(&l->out) || buf_failed(&l->packed)) return err_nomem(e);
    if (!l->framed) return flush_from(l, &l->out, &l->out_at, e);
    if (l->out.n) {
        np_segment_encode(buf_slice(&l->out), false, &l->left, &l->packed);
        l->out.n = 0;
    }
    return flush_from(l, &l->packed, &l->packed_at, e);
}

int link_fill(struct link *l, struct err *e) {
    uint8_t *to = buf_reserve(&l->in, READ_CHUNK);
    if (!to) return err_nomem(e);
    ssize_t n = l->tls ? SSL_read(l->tls, to, READ_CHUNK) : recv(l->fd, to, READ_CHUNK, 0);
    if (n <= 0) n = result(l, n, "cannot receive", e);
    if (n == WANTS) return 0;
    if (n < 0) return -1;
    buf_advance(&l->in, (size_t)n);
    return l->tls != NULL;
}

/* ---- envelopes ---- */

int link_next(struct link *l, struct wire_response *out, struct err *e) {
    struct buf *b = l->framed ? &l->plain : &l->in;
    size_t *at = l->framed ? &l->plain_at : &l->in_at;
    size_t used = b->n > *at ? wire_parse(slice_of(b->p + *at, b->n - *at), out) : 0;
    if (!used && l->framed && l->in.n > l->in_at) {
        /* unpacks every complete segment of in */
        struct np_segment segment;
        for (ssize_t n;;) {
            n = np_segment_decode(slice_of(l->in.p + l->in_at, l->in.n - l->in_at), false, &l->scratch, &segment, e);
            if (n == NP_NEED_MORE) break;
            if (n < 0) return -1;
            buf_put_slice(&l->plain, segment.payload);
            l->in_at += (size_t)n;
        }
        if (buf_failed(&l->plain)) return err_nomem(e);
        used = b->n > *at ? wire_parse(slice_of(b->p + *at, b->n - *at), out) : 0;
    }
    *at += used;
    return used > 0;
}

static void drop(struct buf *b, size_t *at) {
    if (*at && b->n > *at) memmove(b->p, b->p + *at, b->n - *at);
    b->n -= *at;
    *at = 0;
}

void link_compact(struct link *l) {
    drop(&l->in, &l->in_at);
    drop(&l->plain, &l->plain_at);
}
