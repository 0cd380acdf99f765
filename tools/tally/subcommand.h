/* tally: one program with sub-commands, each a row of subcommand.def and a file of its own.
 *
 * Exit codes: 0 it is done, 1 the answer is no (something is refused, missing or damaged), 2 the command line is wrong. What went wrong is one line on stderr;
 * with --json the result on stdout is one JSON object, also of a failure.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

enum exit_code { EXIT_DONE = 0, EXIT_NO = 1, EXIT_USAGE = 2 };

#define SUBCOMMAND(name, what, arguments) int tally_##name(int argc, char **argv);
#include "tools/tally/subcommand.def"
#undef SUBCOMMAND

/* A flag of a sub-command, and where its value goes: text points to the argument, on is set, number is read. */
struct flag {
    const char *name, *argument, *help; /* argument NULL: it takes none */
    const char **text;
    bool *on;
    uint32_t *number;
};

/* Reads the arguments behind the sub-command's name. EXIT_DONE, EXIT_USAGE (said on stderr), or -1: --help was given and answered. */
int flags_read(const char *subcommand, int argc, char **argv, const struct flag *flags, size_t n);
/* One line on stderr, or with json an object on stdout; EXIT_NO. */
int say_no(bool json, const char *subcommand, const struct err *e);
