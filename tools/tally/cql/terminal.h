/* The shell at a terminal: libedit edits lines and keeps the history, TAB completes (complete.h),
 * Ctrl-C cancels the typed line or the current request, Ctrl-D at an empty prompt ends the shell.
 *
 * The history is .tally_cql_history in the home folder, readable by its owner alone. Statements and
 * commands with passwords are not kept.
 */
#pragma once

#include "tools/tally/cql/shell.h"

int terminal_run(struct shell *s, struct err *e) MUST_CHECK;
/* Does a statement or command hold a password? */
bool terminal_is_secret(struct slice text);
