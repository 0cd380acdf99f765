/* A port that answers HTTP: one thread, libmicrohttpd's, which reads a request whole and hands it to one function; and one that ends connections which take too long.
 *
 * Life of a request: its body is gathered up to a bound; the function fills the answer; the listener sends it. Bounds, and who pays: a body that is larger
 * is answered 413 at once; a request whose body is not whole after some seconds (request_s) ends its connection, as do as many without a byte, and twice as many from one request's end to the next one's, however its
 * bytes come; with many connections open the eldest goes, whatever it
 * still wants, so that who opens connections and asks nothing keeps nobody out.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

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
void http_each_argument(const struct http_request *q, void (*take)(void *arg, const char *name, const char *value), void *arg);

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
    int request_s;    /* seconds that a request's body may take, and a connection without a byte; at most ten, or (0) ten */
    const char *tls_cert, *tls_key; /* files, PEM; NULL: no TLS */
    http_handler_fn handle;
    void *arg;
};
int http_start(struct http_listener **out, const struct http_options *o, struct err *e) MUST_CHECK;
void http_stop(struct http_listener *l);
uint16_t http_port(const struct http_listener *l);
