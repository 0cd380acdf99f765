/* A person at a terminal: lines are edited and remembered by libedit, TAB completes (complete.h),
 * Ctrl-C gives up what is typed or under way, Ctrl-D at an empty prompt ends.
 *
 * The history is .tally_cql_history in the home folder, readable by its owner alone; statements and
 * commands with passwords are not kept.
 */
#pragma once

#include "tools/tally/cql/shell.h"

int terminal_run(struct shell *s, struct err *e) MUST_CHECK;
/* Does a statement or command hold a password? */
bool terminal_is_secret(struct slice text);
