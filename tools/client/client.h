/* A blocking client for any server of the native protocol, v3 to v5. It connects (with TLS when
 * asked), logs in (with a password or AWS SigV4), sends one request at a time and waits for each
 * answer. The load engine (load.h) opens its connections with this client and then switches them
 * to non-blocking. One thread.
 *
 * Life of a request: client_query, client_run or client_execute fills a client_answer. The answer
 * points into the client's arena and stays valid until the next request.
 */
#pragma once

#include "tools/client/link.h"
#include "tools/client/result.h"

struct client_options { /* the strings must outlive the clients */
    struct link_options link;
    uint8_t version;                   /* of the protocol; 0 for the newest that both speak */
    const char *user, *password;       /* NULL for no password */
    const char *access_key, *secret_key, *session_token, *region; /* SigV4; access_key NULL: no such login */
    bool bare; /* send no STARTUP, for a benchmark's server that needs none; requires a version */
};

struct client {
    struct link link;
    const struct client_options *o;
    uint8_t version;
    struct arena arena; /* of the current answer */
};

struct client_answer {
    struct wire_response response;
    bool has_rows;
    struct client_rows rows;
    double charge; /* units; below 0: the server does not report charges */
};

int client_open(struct client *c, const struct client_options *o, struct err *e) MUST_CHECK;
/* Accepts a client that is all zeros. */
void client_close(struct client *c);

/* Returns -1 if the server refused the request, and e has its code and text; or the connection
 * failed, and only client_close may follow. */
int client_query(struct client *c, struct slice text, const struct wire_params *p, struct client_answer *out,
                 struct err *e) MUST_CHECK;
/* Runs a statement without values at LOCAL_QUORUM, with pages of 5000 rows. */
int client_run(struct client *c, const char *text, struct client_answer *out, struct err *e) MUST_CHECK;
/* *out points into the arena keep. */
int client_prepare(struct client *c, struct slice text, struct slice keyspace, struct arena *keep,
                   struct client_prepared *out, struct err *e) MUST_CHECK;
int client_execute(struct client *c, const struct client_prepared *s, const struct wire_params *p,
                   struct client_answer *out, struct err *e) MUST_CHECK;
/* Sends the one request of stream 0 that the caller wrote to c->link.out, and reads its answer. */
int client_exchange(struct client *c, struct client_answer *out, struct err *e) MUST_CHECK;

/* Runs a statement page by page and calls page for each answer; sets the paging state of *p. A
 * non-zero result of page ends the loop and is returned. */
typedef int (*client_page_fn)(void *arg, struct client *c, struct client_answer *a);
int client_pages(struct client *c, struct slice text, struct wire_params *p, client_page_fn page, void *arg,
                 struct err *e) MUST_CHECK;
/* Calls row for every row of a SELECT, page by page. A non-zero result of row ends the loop and is
 * returned. */
typedef int (*client_row_fn)(void *arg, struct client *c, const struct client_rows *row);
int client_each(struct client *c, const char *text, client_row_fn row, void *arg, struct err *e) MUST_CHECK;

/* Parses "HOST:PORT", "HOST" or "[::1]:9042". *port keeps its value when the text has no port.
 * Returns -1 with ERR_CONFIG. */
int client_address(const char *text, char host[256], uint16_t *port, struct err *e) MUST_CHECK;
