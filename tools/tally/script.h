/* Splits a file of CQL into statements as cqlsh does: a semicolon ends a statement, and the
 * semicolon after APPLY BATCH ends a batch. */
#pragma once

#include "cql/syntax/token.h"

struct script {
    const char *path;
    struct slice text; /* owned */
    const uint8_t *counted; /* line counts the newlines before this byte */
    uint32_t line;
    struct token_reader reader;
    struct err scratch; /* the reader's errors, which are dropped: the parser's are clearer */
};

struct script_statement {
    struct slice text; /* without the semicolon */
    uint32_t line;     /* of the first byte, from 1 */
    bool ended;        /* by a semicolon; false: the text ends inside the statement */
};

enum { SCRIPT_MAX = 256 << 20 };

/* Is the text this word, in any case? */
bool script_is_word(struct slice text, const char *word);
/* Reads the file; "-" is standard input. Returns -1 with ERR_CONFIG. */
int script_open(struct script *s, const char *path, struct err *e) MUST_CHECK;
/* Splits a text that the caller owns; no script_close. */
void script_of(struct script *s, const char *path, struct slice text);
/* false: no statement is left. */
bool script_next(struct script *s, struct script_statement *out);
void script_close(struct script *s);
