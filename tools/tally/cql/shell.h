/* A session of tally cql: a connection, and what CONSISTENCY and its like have set.
 *
 * Life: shell_init, shell_connect; run_text (run.h) for each text that a person or a file gives;
 * shell_fini. A connection that fails is given up, and the next request opens another one, in the
 * same keyspace. One thread.
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
    char user[SHELL_NAME], password[SHELL_NAME]; /* of LOGIN; options point to them */
    char keyspace[SHELL_NAME];                   /* of USE; empty: none */
    char cluster[SHELL_NAME], release[32], cql_version[32], partitioner[128];
    bool on_keyspaces;     /* Amazon Keyspaces, or a server that emulates it: DDL is asynchronous */
    bool server_describes; /* DESCRIBE is a statement, since Cassandra 4.0 */
    uint16_t consistency, serial_consistency;
    uint32_t page_size;
    bool paging, expand, tracing, charge, wait;
    bool terminal;      /* somebody reads along: ---MORE--- between pages */
    FILE *out;          /* stdout, or the file of CAPTURE */
    const char *source; /* what errors name: the file; NULL: nothing */
    uint32_t line;      /* and its line */
    uint32_t depth;     /* files that SOURCE has open within each other */
    bool failed;        /* a statement or a command */
    bool leaves;        /* EXIT */
    struct grid grid;
};

void shell_init(struct shell *s);
void shell_fini(struct shell *s);
/* Opens the connection, asks the server what it is, and enters the keyspace, if any. */
int shell_connect(struct shell *s, struct err *e) MUST_CHECK;
/* The next request opens another connection. */
void shell_disconnect(struct shell *s);
/* Has the server refused? Otherwise there was no answer; NP_ERROR is 0, so the opcode alone does
 * not tell. */
static inline bool shell_is_refused(const struct client_answer *a) {
    return a->response.version && a->response.opcode == NP_ERROR;
}
/* One request of the shell itself or of a person; reconnects when that is needed. -1: *answer has
 * an ERROR of the server, or e says why there is none, and the connection is closed. */
int shell_ask(struct shell *s, struct slice text, const struct wire_params *p, struct client_answer *answer,
              struct err *e) MUST_CHECK;
/* One page of at most 5000 rows, at ONE; for questions on system tables. */
int shell_ask_system(struct shell *s, const char *text, struct client_answer *answer, struct err *e) MUST_CHECK;

/* As much as fits, with a NUL behind it. */
void shell_copy(char *to, size_t cap, struct slice s);
/* On stdout, or into the file of CAPTURE. */
void shell_put(struct shell *s, const struct buf *text);
/* On stdout even then. */
void shell_say(const char *format, ...) PRINTF_LIKE(1, 2);
/* On stderr, behind file and line when a file is run; the shell has failed. */
void shell_complain(struct shell *s, const char *format, ...) PRINTF_LIKE(2, 3);
/* As cqlsh words what a server has refused, or why there was no answer. */
void shell_complain_of(struct shell *s, const struct client_answer *a, const struct err *e);
