/* Reads and writes a non-blocking socket, plain or TLS; callers need not know which. */
#pragma once

#include <sys/types.h>

#include "native_protocol/tls.h"

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
