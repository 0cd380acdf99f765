/* Statements, and texts of statements and commands, run one after the other; what comes of them is
 * shown. */
#pragma once

#include "tools/tally/cql/shell.h"

/* Runs the items of a text (split.h) one after the other. Returns how many bytes are done with:
 * without at_end, an item that is not finished remains. */
size_t run_text(struct shell *s, struct slice text, bool at_end);
/* The statements of a file; "-" is standard input. -1: it cannot be read. */
int run_file(struct shell *s, const char *path, struct err *e) MUST_CHECK;
/* Runs one statement and shows what comes of it. */
void run_statement(struct shell *s, struct slice text);
