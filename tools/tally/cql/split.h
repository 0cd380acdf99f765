/* What a person or a file says to the shell, item by item: a CQL statement ends with a semicolon, a
 * batch with the one behind APPLY BATCH, a command of the shell (shell_command.def) with its line
 * or a semicolon.
 */
#pragma once

#include "tools/tally/script.h"

enum split_kind { SPLIT_NOTHING, SPLIT_UNFINISHED, SPLIT_STATEMENT, SPLIT_COMMAND };

struct split_item {
    enum split_kind kind;
    struct slice text; /* without its semicolon */
    size_t at;         /* where it begins in the text that was split */
    size_t used;       /* where the next item may begin */
    int command;       /* its row of shell_command.def, from 0 */
};

/* The first item of the text. at_end: no more text follows, so that a statement without a semicolon
 * is SPLIT_STATEMENT; otherwise it is SPLIT_UNFINISHED. SPLIT_NOTHING: blanks and comments. */
struct split_item split_next(struct slice text, bool at_end);

/* The row of shell_command.def for a word in any case; -1: there is none. */
int split_command(struct slice word);

enum { SPLIT_WORDS = 8 };
/* The words of a command, without their quotes, in the arena. Returns how many; -1: a quote is not
 * closed, there are more than SPLIT_WORDS, or no memory. */
int split_words(struct slice command, struct arena *a, struct slice words[SPLIT_WORDS]) MUST_CHECK;

struct shell_command {
    const char *word, *arguments, *what;
};
extern const struct shell_command shell_commands[];
extern const size_t n_shell_commands;
