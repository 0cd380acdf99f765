/* The commands that the shell carries out itself, by their rows of shell_command.def. */
#pragma once

#include "tools/tally/cql/shell.h"

void command_run(struct shell *s, int row, struct slice text);
