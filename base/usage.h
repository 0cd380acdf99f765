/* Prints what a program's command line is, from one description: as help for people, or as JSON, of
 * which tools/docs/usage.py makes the man page and the completion for shells.
 *
 * Call usage_begin, then usage_command for each command, then usage_end, all with one buffer. A
 * program without sub-commands is one command whose name is "".
 */
#pragma once

#include "base/buf.h"

/* JSON: one object a line, the program's first, then one for each command. */
enum usage_format { USAGE_HELP, USAGE_JSON, USAGE_FORMATS };

/* argument: NULL when the flag takes none. FILE and DIR are completed with names of files or
 * folders, a|b|c with these words. otherwise: the default value, may be NULL or "". */
struct usage_flag {
    const char *name, *argument, *help, *otherwise;
    const char *group; /* heading of the flags that begin with this one; NULL if none */
};
struct usage_example {
    const char *line, *what;
};
struct usage_exit {
    int code;
    const char *what;
};

struct usage_command {
    const char *name, *what, *arguments;
    uint32_t n_flags, n_examples;
    const struct usage_flag *flags;
    const struct usage_example *examples;
};

struct usage_program {
    const char *name, *what, *version, *section, *notes; /* section of the manual; notes: a paragraph, may be NULL */
    uint32_t n_commands, n_exits;
    const struct usage_command *commands;
    const struct usage_exit *exits;
};

/* "text" and "json", after --help=; -1 if there is no such format. */
int usage_format_of(const char *name);

void usage_begin(struct buf *out, enum usage_format f, const struct usage_program *p);
void usage_command(struct buf *out, enum usage_format f, const struct usage_program *p, const struct usage_command *c);
void usage_end(struct buf *out, enum usage_format f, const struct usage_program *p);
