/* tally: one program with sub-commands, each with a row of subcommand.def and its own file.
 *
 * An error is one line on stderr. With --json the result on stdout is one JSON object, for a
 * failure too. Exit codes: exit_code.def.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/usage.h"

enum exit_code {
#define EXIT_CODE(id, code, what) EXIT_##id = code,
#include "tools/tally/exit_code.def"
#undef EXIT_CODE
};

#define SUBCOMMAND(name, what, arguments) int tally_##name(int argc, char **argv);
#define SUBCOMMAND_OF(name, second, what, arguments) int tally_##name##_##second(int argc, char **argv);
#include "tools/tally/subcommand.def"
#undef SUBCOMMAND
#undef SUBCOMMAND_OF

enum subcommand {
#define SUBCOMMAND(name, what, arguments) SUBCOMMAND_##name,
#define SUBCOMMAND_OF(name, second, what, arguments) SUBCOMMAND_##name##_##second,
#include "tools/tally/subcommand.def"
#undef SUBCOMMAND
#undef SUBCOMMAND_OF
    SUBCOMMANDS
};

/* tally as a whole; commands has room for SUBCOMMANDS, in the order of the table, and lives as long
 * as *out. */
void subcommand_program(struct usage_program *out, struct usage_command *commands);

/* A flag of a sub-command, and where its value goes: text points to the argument, on is set, number
 * is read. */
struct flag {
    const char *name, *argument, *help; /* argument NULL: it takes none */
    char letter;   /* -e CQL is --execute CQL; 0 if the flag has no letter */
    uint8_t position; /* the argument of that number, from 1, that has no flag before it; 0 if none */
    const char **text;
    bool *on;
    uint32_t *number;
};

/* Flags with a text, with a number, and without a value. */
#define FLAG_TEXT(name_, argument_, to, help_) {.name = name_, .argument = argument_, .text = &(to), .help = help_}
#define FLAG_NUMBER(name_, argument_, to, help_) {.name = name_, .argument = argument_, .number = &(to), .help = help_}
#define FLAG_ON(name_, to, help_) {.name = name_, .on = &(to), .help = help_}

/* Reads the arguments after the sub-command's name. Returns EXIT_DONE; EXIT_USAGE after a message
 * on stderr; or -1 after --help was printed. --help=json prints this sub-command's
 * object. */
int flags_read(const char *subcommand, int argc, char **argv, const struct flag *flags, size_t n);
/* Report the error as a line on stderr, or with json as an object on stdout. say_no returns
 * EXIT_NO; say_wrong, for wrong input, returns EXIT_USAGE. */
int say_no(bool json, const char *subcommand, const struct err *e);
int say_wrong(bool json, const char *subcommand, const struct err *e);
