/* A port that answers HTTP. libmicrohttpd's thread reads a request whole and hands it to one
 * function; a second thread closes connections that take too long.
 *
 * Life of a request: the listener reads its body up to a bound. It refuses a request that a browser
 * sends for a foreign web page (server/http/origin.h). For any other request the function fills the
 * answer, and the listener sends it. A body above the bound is answered 413.
 *
 * A connection is closed when the body of its request is not complete after request_s seconds,
 * after request_s seconds without a byte, and when the next request has not ended 2 * request_s
 * seconds after the one before. When too many connections are open, the listener closes the oldest
 * that has sent no whole request, or else the one that has been idle longest, so that connections
 * without requests can neither lock out new ones nor end those in use.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/ip_address.h"
#include "server/http/origin.h"

struct http_listener;

struct http_request {
    const char *method, *path;
    struct slice body;
    void *connection; /* libmicrohttpd's */
    struct http_held *state; /* the listener's */
};
/* The value of a header, or NULL. */
const char *http_header(const struct http_request *q, const char *name);
const char *http_argument(const struct http_request *q, const char *name); /* of the query string */
struct ip_address http_client(const struct http_request *q);

enum { HTTP_HEADERS = 8, HTTP_COOKIE = 160 };
struct http_answer {
    unsigned status;
    const char *type; /* of the content; a literal */
    struct buf body;  /* empty at first; the listener frees it */
    char cookie[HTTP_COOKIE]; /* the header Set-Cookie; "": none */
    uint32_t n_headers;
    struct {
        const char *name, *value; /* literals */
    } headers[HTTP_HEADERS];
};

/* A request whose answer comes later, so that the listener's thread is free meanwhile. The handler
 * calls http_hold and returns; its answer is not sent. Another thread then fills http_held_answer
 * and calls http_release, once, and http_stop must not begin before. The request's texts stay
 * valid until http_release. */
struct http_held;
struct http_held *http_hold(const struct http_request *q);
struct http_answer *http_held_answer(struct http_held *h);
void http_release(struct http_held *h);

/* Fills the answer: its status and, unless it is "text/plain", its type. Before the call the
 * body is empty and there are no headers. On the listener's thread. */
typedef void (*http_handler_fn)(void *arg, const struct http_request *q, struct http_answer *out);

struct http_options {
    const char *address; /* numeric; ::, all addresses of both families */
    uint16_t port;       /* 0 if any free one */
    const char *what; /* the port's name in errors: "the admin port" */
    size_t body_max;  /* bytes; 0 if requests with a body are refused */
    int request_s;    /* see above; 0 if ten, which is also the most */
    const char *tls_cert, *tls_key; /* files, PEM; NULL for no TLS */
    struct http_hosts hosts;        /* its texts must outlive the listener */
    http_handler_fn handle;
    /* Fills the answer to a request that is refused for its origin; its status is 403 already. NULL
     * if the answer is the words as plain text. */
    void (*refuse)(void *arg, const struct http_request *q, const char *words, struct http_answer *out);
    void *arg;
};
int http_start(struct http_listener **out, const struct http_options *o, struct err *e) MUST_CHECK;
void http_stop(struct http_listener *l);
/* Reads the certificate's files again; new connections use the result. Returns -1 if the files
 * cannot be read or do not fit, and the current certificate stays. Without TLS it returns 0. */
int http_reload_certificate(struct http_listener *l, struct err *e) MUST_CHECK;
uint16_t http_port(const struct http_listener *l);
