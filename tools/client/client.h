/* A client of any server of the native protocol, v3 to v5: connects (TLS when asked), logs in
 * (password, or AWS SigV4), and asks one question after the other, waiting for each answer. The
 * load engine begins with such clients and then no longer waits (load.h). One thread.
 *
 * Life of a question: client_query and its like fill a client_answer, which points into the
 * client's arena and stays until the next question.
 */
#pragma once

#include "tools/client/link.h"
#include "tools/client/result.h"

struct client_options { /* what it points to must outlive the clients */
    struct link_options link;
    uint8_t version;                   /* of the protocol; 0: the newest that both speak */
    const char *user, *password;       /* NULL: no password */
    const char *access_key, *secret_key, *session_token, *region; /* SigV4; access_key NULL: no such login */
    bool bare;                         /* no STARTUP, for a server of a benchmark that needs none; with a version */
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
    double charge; /* units; below 0: the server does not tell */
};

int client_open(struct client *c, const struct client_options *o, struct err *e) MUST_CHECK;
/* Also of one that is zeros. */
void client_close(struct client *c);

/* -1: refused, or the connection failed (then client_close only): e has the server's code and words. */
int client_query(struct client *c, struct slice text, const struct wire_params *p, struct client_answer *out,
                 struct err *e) MUST_CHECK;
/* At LOCAL_QUORUM, without values, in pages of 5000. */
int client_ask(struct client *c, const char *text, struct client_answer *out, struct err *e) MUST_CHECK;
/* What it gives lives in keep. */
int client_prepare(struct client *c, struct slice text, struct slice keyspace, struct arena *keep,
                   struct client_prepared *out, struct err *e) MUST_CHECK;
int client_execute(struct client *c, const struct client_prepared *s, const struct wire_params *p,
                   struct client_answer *out, struct err *e) MUST_CHECK;
/* Whatever was written to c->link.out as one request of stream 0: its answer. */
int client_exchange(struct client *c, struct client_answer *out, struct err *e) MUST_CHECK;

/* Every row of a SELECT, page by page; row returns non-zero to end, which is what is returned then. */
typedef int (*client_row_fn)(void *arg, struct client *c, const struct client_rows *row);
int client_each(struct client *c, const char *text, client_row_fn row, void *arg, struct err *e) MUST_CHECK;

/* "HOST:PORT", "HOST", "[::1]:9042"; the port as it was when it is not given. host: at least 256
 * bytes. -1: ERR_CONFIG. */
int client_address(const char *text, char host[256], uint16_t *port, struct err *e) MUST_CHECK;
