/* Bytes between a client and a server: TCP or TLS, envelopes as they are or in v5 segments.
 * Blocking for the calls of client.h, then without waiting for the load engine; the functions are
 * the same. One thread.
 *
 * Life: link_open dials (and greets, with TLS); envelopes are appended to out and leave with
 * link_flush; link_fill reads what is there, link_next gives the responses in it, link_compact
 * forgets those that were given. After a failure only link_close may follow.
 */
#pragma once

#include <openssl/ssl.h>

#include "tools/client/wire.h"

struct link_options {
    const char *host; /* name or address */
    uint16_t port;
    bool tls, insecure;   /* insecure: whoever answers is believed */
    const char *ca;       /* PEM file to believe instead of the machine's; NULL: those */
    uint32_t timeout_ms;  /* of every blocking step; 0: ten seconds */
    uint32_t answer_timeout_ms; /* of each step once the connection stands; 0: timeout_ms */
};

struct link {
    int fd;
    SSL_CTX *tls_context;
    SSL *tls;
    bool framed;           /* in segments, from the answer to STARTUP on */
    struct buf out;        /* envelopes that were not given to the network yet */
    struct buf packed;     /* out as segments */
    struct buf in, plain;  /* bytes as they came; envelopes out of segments */
    struct buf scratch;
    size_t out_at, packed_at, in_at, plain_at;
    uint32_t left;         /* of np_segment_encode */
};

int link_open(struct link *l, const struct link_options *o, struct err *e) MUST_CHECK;
/* Also of one that is zeros. */
void link_close(struct link *l);
/* It is blocking at first. */
int link_set_blocking(struct link *l, bool on, struct err *e) MUST_CHECK;

/* 0: everything has left; 1: the network takes no more for now; -1: e. */
int link_flush(struct link *l, struct err *e) MUST_CHECK;
/* Once reads what there is, at most a few hundred KiB. 1: there may be more right away; 0: no; -1:
 * e, the other side has closed, say. A blocking one waits. */
int link_fill(struct link *l, struct err *e) MUST_CHECK;
/* 1: *out points into the link until link_compact or link_fill; 0: there is none; -1: e. */
int link_next(struct link *l, struct wire_response *out, struct err *e) MUST_CHECK;
void link_compact(struct link *l);
