/* A session of tally cql: a connection, and the settings of CONSISTENCY and similar commands.
 *
 * Life: shell_init, shell_connect; run_text (run.h) for each text from a person or a file;
 * shell_fini. When the connection fails, the next request opens another one and enters the same
 * keyspace. One thread.
 */
#pragma once

#include <stdio.h>

#include "tools/client/client.h"
#include "tools/tally/cql/grid.h"

enum { SHELL_PAGE = 100, SHELL_NAME = 256, SHELL_SOURCES = 16 };

struct shell {
    struct client client;
    struct client_options options;
    bool connected;
    char host[SHELL_NAME]; /* options point to it */
    char user[SHELL_NAME], password[SHELL_NAME]; /* of LOGIN; options point to them */
    char keyspace[SHELL_NAME];                   /* of USE; empty: none */
    char cluster[SHELL_NAME], release[32], cql_version[32], partitioner[128];
    bool on_keyspaces;     /* Amazon Keyspaces, or a server that emulates it: DDL is asynchronous */
    bool server_describes; /* DESCRIBE is a statement, since Cassandra 4.0 */
    uint16_t consistency, serial_consistency;
    uint32_t page_size;
    bool paging, expand, tracing, charge, wait;
    bool terminal;      /* print ---MORE--- between pages */
    FILE *out;          /* stdout, or the file of CAPTURE */
    char *next_source;  /* the file that the command SOURCE names, to be run next; malloc'ed; NULL if none */
    const char *source; /* name of the file in errors; NULL if none */
    uint32_t line;      /* line in that file */
    uint32_t depth;     /* nesting of SOURCE */
    bool failed;        /* a statement or a command has failed */
    bool leaves;        /* EXIT was given */
    struct grid grid;
};

void shell_init(struct shell *s);
void shell_fini(struct shell *s);
/* Opens the connection, enters the keyspace, if any, and reads the server's name and version. */
int shell_connect(struct shell *s, struct err *e) MUST_CHECK;
/* The next request opens another connection. */
void shell_disconnect(struct shell *s);
/* After a failed request: did the server refuse it? false: there was no answer. NP_ERROR is 0, so
 * an empty answer differs only in its version. */
static inline bool shell_is_refused(const struct client_answer *a) {
    return a->response.version && a->response.opcode == NP_ERROR;
}
/* Sends a request, and reconnects first if needed. Returns -1 with *answer as the server's ERROR; or
 * there was no answer, e says why, and the connection is closed. */
int shell_query(struct shell *s, struct slice text, const struct wire_params *p, struct client_answer *answer,
              struct err *e) MUST_CHECK;
/* Reads one page of at most 5000 rows of a system table, at ONE, or LOCAL_QUORUM on Keyspaces. */
int shell_query_system(struct shell *s, const char *text, struct client_answer *answer, struct err *e) MUST_CHECK;

/* Copies as much of s as fits, and a final NUL. */
void shell_copy(char *to, size_t cap, struct slice s);
/* Prints to stdout, or to the file of CAPTURE. */
void shell_put(struct shell *s, const struct buf *text);
/* Prints to stdout, even during CAPTURE. */
void shell_say(const char *format, ...) PRINTF_LIKE(1, 2);
/* Prints an error to stderr, after file and line if there is a file, and sets s->failed. */
void shell_complain(struct shell *s, const char *format, ...) PRINTF_LIKE(2, 3);
/* Reports a failed shell_query as cqlsh does. */
void shell_complain_of(struct shell *s, const struct client_answer *a, const struct err *e);
