/* A file of CQL, statement by statement, as cqlsh would run it: each ends with a semicolon, a batch
 * with that behind APPLY BATCH. */
#pragma once

#include "cql/syntax/token.h"

struct script {
    const char *path;
    struct slice text; /* owned */
    const uint8_t *counted; /* the text before it has been counted into line; it never moves back */
    uint32_t line;
    struct token_reader reader;
    struct err scratch; /* of the reader, whose errors the parser words better */
};

struct script_statement {
    struct slice text; /* without the semicolon */
    uint32_t line;     /* where it begins, from 1 */
    bool ended;        /* by a semicolon; false: the text ends within the statement */
};

enum { SCRIPT_MAX = 256 << 20 };

/* Reads the file; "-" is standard input. -1: ERR_CONFIG. */
int script_open(struct script *s, const char *path, struct err *e) MUST_CHECK;
/* A text that the caller keeps. */
void script_of(struct script *s, const char *path, struct slice text);
/* false: there is none left. */
bool script_next(struct script *s, struct script_statement *out);
void script_close(struct script *s);
