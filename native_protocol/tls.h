/* TLS of the listeners: a certificate, its key, and the certificates that clients are checked
 * against, from PEM files. The files can be reloaded while the server runs; existing connections
 * keep the state that they began with. Any thread.
 */
#pragma once

#include <openssl/ssl.h>
#include <sys/types.h>

#include "base/err.h"

enum np_client_cert { NP_CLIENT_CERT_NONE, NP_CLIENT_CERT_OPTIONAL, NP_CLIENT_CERT_REQUIRED };

struct np_tls_options { /* texts must outlive it */
    const char *cert, *key;
    const char *client_ca; /* certificates that clients are checked against; NULL with NONE */
    enum np_client_cert client_cert;
};

struct np_tls;

/* NULL and ERR_CONFIG, with the file's name. */
struct np_tls *np_tls_open(const struct np_tls_options *o, struct err *e) MUST_CHECK;
void np_tls_close(struct np_tls *t);
/* Reads the files for all later connections. Returns -1 if the files cannot be used, and the
 * previous contents stay in effect. */
int np_tls_reload(struct np_tls *t, struct err *e) MUST_CHECK;
/* Whether the files have changed since they were last read, successfully or not. */
bool np_tls_changed(struct np_tls *t);
/* The server's side of a new connection. Returns NULL if memory is exhausted. */
SSL *np_tls_accept(struct np_tls *t);

/* A non-blocking socket, plain or TLS; callers need not know which. */
struct np_transport {
    int fd;
    SSL *ssl; /* NULL means plain */
    bool wants_write; /* TLS cannot continue to read until the socket accepts bytes */
};

enum { NP_IO_AGAIN = -1, NP_IO_ERROR = -2 };

/* Takes over fd. tls NULL: plain. Returns -1 if memory is exhausted; fd is then still the caller's. */
int np_transport_init(struct np_transport *t, int fd, struct np_tls *tls) MUST_CHECK;
void np_transport_fini(struct np_transport *t);
/* Bytes, 0 at the end of the stream, NP_IO_AGAIN, NP_IO_ERROR. */
ssize_t np_transport_read(struct np_transport *t, void *p, size_t n) MUST_CHECK;
ssize_t np_transport_write(struct np_transport *t, const void *p, size_t n) MUST_CHECK;
/* The next read is a step of a handshake, which can cost as much as a hundred requests. */
bool np_transport_shakes_hands(const struct np_transport *t);
/* Bytes are decrypted already, so that the socket alone does not say whether there is more to read. */
bool np_transport_pending(const struct np_transport *t);
/* Written bytes that the peer has not acknowledged yet: they become fewer while it reads, though it
 * makes no room for more. */
size_t np_transport_queued(const struct np_transport *t);
/* No more bytes will be written. */
void np_transport_shutdown(struct np_transport *t);
