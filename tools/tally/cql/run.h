/* Runs statements and commands one after the other and shows their results. */
#pragma once

#include "tools/tally/cql/shell.h"

/* Runs the items of a text (split.h) one after the other. Returns how many bytes were consumed;
 * without at_end an unfinished item remains. */
size_t run_text(struct shell *s, struct slice text, bool at_end);
/* Runs the statements of a file; "-" is standard input. Returns -1 if the file cannot be read. */
int run_file(struct shell *s, const char *path, struct err *e) MUST_CHECK;
/* Runs one statement and shows its result. */
void run_statement(struct shell *s, struct slice text);
