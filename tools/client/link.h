/* Transport between a client and a server: TCP or TLS, with plain envelopes or v5 segments. The
 * same functions serve the blocking client (client.h) and the non-blocking load engine. One thread.
 *
 * Life: link_open connects (and performs the TLS handshake). The caller appends envelopes to out,
 * and link_flush sends them. link_fill reads the bytes that have arrived, link_next returns the
 * responses in them, link_compact drops the returned ones. After a failure only link_close may
 * follow.
 */
#pragma once

#include <openssl/ssl.h>

#include "tools/client/wire.h"

struct link_options {
    const char *host; /* name or address */
    uint16_t port;
    bool tls, insecure;         /* insecure: accept any certificate */
    const char *ca;             /* PEM file of trusted certificates; NULL for the machine's store */
    uint32_t timeout_ms;        /* of every blocking step; 0 means ten seconds */
    uint32_t answer_timeout_ms; /* of each step once connected; 0 means timeout_ms */
};

struct link {
    int fd;
    SSL_CTX *tls_context;
    SSL *tls;
    bool framed;           /* in segments, from the answer to STARTUP on */
    struct buf out;        /* envelopes not sent yet */
    struct buf packed;     /* out as segments */
    struct buf in, plain;  /* received bytes; envelopes unpacked from segments */
    struct buf scratch;
    size_t out_at, packed_at, in_at, plain_at;
    uint32_t left;         /* of np_segment_encode */
};

int link_open(struct link *l, const struct link_options *o, struct err *e) MUST_CHECK;
/* Accepts a link that is all zeros. */
void link_close(struct link *l);
/* link_open leaves the link blocking. */
int link_set_blocking(struct link *l, bool on, struct err *e) MUST_CHECK;

/* Returns 0 if everything was sent, 1 if the socket accepts no more bytes for now, or -1 with e
 * set. */
int link_flush(struct link *l, struct err *e) MUST_CHECK;
/* Performs one read of at most 256 KiB. Returns 1 if more bytes may be readable at once, 0 if not,
 * or -1 with e set, for instance because the server closed the connection. A blocking link waits for
 * the first byte. */
int link_fill(struct link *l, struct err *e) MUST_CHECK;
/* Returns 1 if *out points into the link until link_compact or link_fill, 0 if there is no
 * complete response, or -1 with e set. */
int link_next(struct link *l, struct wire_response *out, struct err *e) MUST_CHECK;
void link_compact(struct link *l);
