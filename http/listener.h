/* A port that answers HTTP. libmicrohttpd's thread reads a request whole and hands it to one
 * function; a second thread closes connections that take too long.
 *
 * Life of a request: the listener gathers its body up to a bound; refuses it when a browser sends
 * it for a foreign web page (http/origin.h); else the function fills the answer; the listener
 * sends it. A body above the bound is answered 413 at once. A connection is closed when the body
 * of its request is not whole after request_s seconds, after as many seconds without a byte, and
 * when twice as many pass from the end of one request to the end of the next, however its bytes
 * come. With many connections open, the eldest is closed, whatever it still wants: connections
 * that ask nothing keep no others out.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "http/origin.h"

struct http_listener;

struct http_request {
    const char *method, *path;
    struct slice body;
    void *connection; /* libmicrohttpd's */
};
/* NULL: there is none. */
const char *http_header(const struct http_request *q, const char *name);
const char *http_argument(const struct http_request *q, const char *name); /* of the query string */
/* Calls take for each argument of the query string, as it was sent but for its escapes; value may be "". */
void http_each_argument(const struct http_request *q, void (*take)(void *arg, const char *name, const char *value),
                        void *arg);

enum { HTTP_HEADERS = 4 };
struct http_answer {
    unsigned status;
    const char *type; /* of the content; a literal */
    struct buf body;  /* empty at first; the listener frees it */
    uint32_t n_headers;
    struct {
        const char *name, *value; /* literals */
    } headers[HTTP_HEADERS];
};

/* On the listener's thread; fills what is zeroed. */
typedef void (*http_handler_fn)(void *arg, const struct http_request *q, struct http_answer *out);

struct http_options {
    uint16_t port; /* of 127.0.0.1; 0: any free one */
    const char *what; /* of errors: "the admin port" */
    size_t body_max;  /* 0: no request has a body */
    /* seconds that a request's body may take, and a connection without a byte; at most ten, or (0) ten */
    int request_s;
    const char *tls_cert, *tls_key; /* files, PEM; NULL: no TLS */
    struct http_hosts hosts;        /* its texts must outlive the listener */
    http_handler_fn handle;
    /* Fills the answer to a request that is refused for its origin, with status 403, in the form
     * that the port's clients read. NULL: the words as plain text. */
    void (*refuse)(void *arg, const struct http_request *q, const char *words, struct http_answer *out);
    void *arg;
};
int http_start(struct http_listener **out, const struct http_options *o, struct err *e) MUST_CHECK;
void http_stop(struct http_listener *l);
/* Reads the certificate's files again, for connections from now on. -1: they are of no use, and
 * the certificate stays as it was. 0 without TLS, too. */
int http_reload_certificate(struct http_listener *l, struct err *e) MUST_CHECK;
uint16_t http_port(const struct http_listener *l);
