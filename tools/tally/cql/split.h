/* Splits the input of the shell into items. A CQL statement ends with a semicolon, a batch with the
 * semicolon after APPLY BATCH, a command of the shell (shell_command.def) with its line or a
 * semicolon.
 */
#pragma once

#include "tools/tally/script.h"

enum split_kind { SPLIT_NOTHING, SPLIT_UNFINISHED, SPLIT_STATEMENT, SPLIT_COMMAND };

struct split_item {
    enum split_kind kind;
    struct slice text; /* without its semicolon */
    size_t at;         /* offset of the item in the text */
    size_t used;       /* offset after the item */
    int command;       /* its row of shell_command.def, from 0 */
};

/* The first item of the text. A statement without a semicolon is SPLIT_UNFINISHED; with at_end,
 * which means that no more text follows, it is SPLIT_STATEMENT. SPLIT_NOTHING: only blanks and
 * comments. */
struct split_item split_next(struct slice text, bool at_end);

/* The row of shell_command.def for a word in any case; -1 if there is none. */
int split_command(struct slice word);

enum { SPLIT_WORDS = 8 };
/* Splits a command into words without quotes, in the arena. Returns how many, or -1 if there is
 * an open quote or more than SPLIT_WORDS words, or memory is exhausted. */
int split_words(struct slice command, struct arena *a, struct slice words[SPLIT_WORDS]) MUST_CHECK;

struct shell_command {
    const char *word, *arguments, *what;
};
extern const struct shell_command shell_commands[];
extern const size_t n_shell_commands;
