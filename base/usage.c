#include "base/usage.h"

#include <stdio.h>

int usage_format_of(const char *name) {
    static const char *const names[USAGE_FORMATS] = {
        [USAGE_HELP] = "text", [USAGE_MAN] = "man", [USAGE_BASH] = "bash", [USAGE_ZSH] = "zsh", [USAGE_FISH] = "fish"};
    for (int f = 0; f < USAGE_FORMATS; f++)
        if (!strcmp(names[f], name)) return f;
    return -1;
}

/* ---- what is completed ---- */

static bool is_path(const struct usage_flag *f) {
    return f->argument && (!strcmp(f->argument, "FILE") || !strcmp(f->argument, "DIR"));
}

/* Is the argument a choice of lower-case words with | between them, unlike NAME or
 * KS.TABLE=MODE? */
static bool is_choice(const struct usage_flag *f) {
    if (!f->argument || !strchr(f->argument, '|')) return false;
    for (const char *p = f->argument; *p; p++)
        if (*p >= 'A' && *p <= 'Z') return false;
    return true;
}

static void put_words(struct buf *out, const char *choices) {
    for (const char *p = choices; *p; p++) buf_u8(out, *p == '|' ? ' ' : (uint8_t)*p);
}

/* Prints the words that may follow those of a command: "size" after "capacity", when there is a
 * command "capacity size". */
static void put_next_words(struct buf *out, const struct usage_program *p, const char *command) {
    size_t n = strlen(command);
    for (uint32_t i = 0; i < p->n_commands; i++) {
        const char *name = p->commands[i].name;
        if (strncmp(name, command, n) || (n && name[n] != ' ')) continue;
        const char *word = name + n + (n > 0);
        if (*word && !strchr(word, ' ')) buf_printf(out, "%s ", word);
    }
}

/* ---- help ---- */

static void help_command(struct buf *out, const struct usage_program *p, const struct usage_command *c) {
    if (*c->name)
        buf_printf(out, "%s %s: %s\n\nusage: %s %s %s\n\n", p->name, c->name, c->what, p->name, c->name, c->arguments);
    for (uint32_t i = 0; i < c->n_flags; i++) {
        const struct usage_flag *f = &c->flags[i];
        if (f->group) buf_printf(out, "%s%s:\n", i ? "\n" : "", f->group);
        buf_printf(out, "  --%s%s%s\n        %s", f->name, f->argument ? " " : "", f->argument ? f->argument : "",
                   f->help);
        buf_printf(out, f->otherwise && *f->otherwise ? " (%s)\n" : "%s\n", f->otherwise ? f->otherwise : "");
    }
    if (*c->name) buf_put_str(out, "  --help\n        this text\n");
    else
        buf_put_str(out, "  --help[=text|man|bash|zsh|fish]\n        this text, a man page, or completion for a "
                         "shell\n");
    if (c->n_examples) buf_put_str(out, "\nexamples:\n");
    for (uint32_t i = 0; i < c->n_examples; i++)
        buf_printf(out, "  %s\n        %s\n", c->examples[i].line, c->examples[i].what);
}

/* ---- man page ---- */

static void put_roff(struct buf *out, const char *text) {
    if (*text == '.' || *text == '\'') buf_put_str(out, "\\&");
    for (const char *p = text; *p; p++) {
        if (*p == '\\') buf_put_str(out, "\\e");
        else if (*p == '-') buf_put_str(out, "\\-");
        else buf_u8(out, (uint8_t)*p);
    }
}

static void roff_line(struct buf *out, const char *before, const char *text) {
    buf_put_str(out, before);
    put_roff(out, text);
    buf_u8(out, '\n');
}

static void man_begin(struct buf *out, const struct usage_program *p) {
    buf_printf(out, ".TH %s %s \"\" \"Tally %s\" \"Tally\"\n.SH NAME\n", p->name, p->section, p->version);
    buf_printf(out, "%s \\- ", p->name);
    roff_line(out, "", p->what);
    buf_put_str(out, ".SH SYNOPSIS\n");
    if (!p->n_commands) buf_printf(out, ".B %s\n[\\-\\-flag value]...\n", p->name);
    for (uint32_t i = 0; i < p->n_commands; i++) {
        buf_printf(out, "%s.B %s %s\n", i ? ".br\n" : "", p->name, p->commands[i].name);
        roff_line(out, "", p->commands[i].arguments);
    }
    if (p->notes) roff_line(out, ".SH DESCRIPTION\n", p->notes);
    if (p->n_commands) buf_put_str(out, ".SH COMMANDS\n");
}

static void man_command(struct buf *out, const struct usage_program *p, const struct usage_command *c) {
    if (*c->name) {
        buf_printf(out, ".SS %s %s\n", p->name, c->name);
        roff_line(out, "", c->what);
    } else buf_put_str(out, ".SH OPTIONS\n");
    for (uint32_t i = 0; i < c->n_flags; i++) {
        const struct usage_flag *f = &c->flags[i];
        if (f->group) roff_line(out, ".SS ", f->group);
        buf_put_str(out, ".TP\n.B \\-\\-");
        put_roff(out, f->name);
        if (f->argument) {
            buf_put_str(out, " \\fI");
            put_roff(out, f->argument);
            buf_put_str(out, "\\fR");
        }
        roff_line(out, "\n", f->help);
        if (f->otherwise && *f->otherwise) roff_line(out, "Default: ", f->otherwise);
    }
    for (uint32_t i = 0; i < c->n_examples; i++) {
        roff_line(out, i ? ".PP\n" : ".PP\nExamples:\n.PP\n", c->examples[i].what);
        roff_line(out, ".PP\n.RS\n.nf\n", c->examples[i].line);
        buf_put_str(out, ".fi\n.RE\n");
    }
}

/* ---- bash: a case of all commands, which sets the words that may follow ---- */

static void bash_begin(struct buf *out, const struct usage_program *p) {
    buf_printf(out, "# Completion of %s for bash, as %s --help=bash prints it.\n_%s() {\n", p->name, p->name, p->name);
    buf_put_str(out, "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= words= "
                     "values= paths= word i\n"
                     "    [ \"$before\" = = ] && before=${COMP_WORDS[COMP_CWORD-2]}\n"
                     "    [ \"$current\" = = ] && current=\n"
                     "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                     "        word=${COMP_WORDS[i]}\n"
                     "        [[ $word == -* ]] && break\n"
                     "        command=\"${command:+$command }$word\"\n"
                     "    done\n"
                     "    case $command in\n");
    if (!p->n_commands) return;
    buf_put_str(out, "    '') words=\"");
    put_next_words(out, p, "");
    buf_put_str(out, "--help --version\" ;;\n");
}

static void bash_command(struct buf *out, const struct usage_program *p, const struct usage_command *c) {
    buf_printf(out, "    '%s')\n        words=\"", c->name);
    if (*c->name) put_next_words(out, p, c->name);
    for (uint32_t i = 0; i < c->n_flags; i++) buf_printf(out, "--%s ", c->flags[i].name);
    buf_put_str(out, "--help\"\n        case $before in\n");
    for (uint32_t i = 0; i < c->n_flags; i++) {
        const struct usage_flag *f = &c->flags[i];
        if (!f->argument) continue;
        buf_printf(out, "        --%s) ", f->name);
        if (is_path(f)) buf_put_str(out, "paths=1");
        else {
            buf_put_str(out, "words= values=\"");
            if (is_choice(f)) put_words(out, f->argument);
            buf_put_str(out, "\"");
        }
        buf_put_str(out, " ;;\n");
    }
    buf_put_str(out, "        esac ;;\n");
}

/* ---- zsh ---- */

/* Prints text for the '[...]' of a specification. */
static void put_zsh(struct buf *out, const char *text) {
    for (const char *p = text; *p; p++) {
        if (*p == '\'') buf_put_str(out, "'\\''");
        else if (strchr("[]:\\", *p)) buf_printf(out, "\\%c", *p);
        else buf_u8(out, (uint8_t)*p);
    }
}

static void zsh_begin(struct buf *out, const struct usage_program *p) {
    buf_printf(out, "#compdef %s\n# Completion of %s for zsh, as %s --help=zsh prints it.\n_%s() {\n", p->name, p->name,
               p->name, p->name);
    buf_put_str(
        out,
        "    local command= next= i\n    for ((i = 2; i < CURRENT; i++)); do\n        [[ $words[i] == -* ]] && break\n"
        "        command=\"${command:+$command }$words[i]\"\n    done\n    case $command in\n");
    if (!p->n_commands) return;
    buf_put_str(out, "    '') compadd -- ");
    put_next_words(out, p, "");
    buf_put_str(out, "--help --version ;;\n");
}

static void zsh_command(struct buf *out, const struct usage_program *p, const struct usage_command *c) {
    buf_printf(out, "    '%s')\n", c->name);
    if (*c->name) {
        buf_put_str(out, "        next=\"");
        put_next_words(out, p, c->name);
        buf_put_str(out, "\"\n        [[ -n $next && $words[CURRENT] != -* ]] && compadd -- ${=next}\n");
    }
    buf_put_str(out, "        _arguments '*:: :' ");
    for (uint32_t i = 0; i < c->n_flags; i++) {
        const struct usage_flag *f = &c->flags[i];
        buf_printf(out, "\\\n            '--%s%s[", f->name, f->argument ? "=" : "");
        put_zsh(out, f->help);
        buf_put_str(out, "]");
        if (f->argument) {
            buf_put_str(out, ":");
            put_zsh(out, is_choice(f) ? "value" : f->argument);
            buf_put_str(out, ":");
            if (is_path(f)) buf_put_str(out, "_files");
            if (is_choice(f)) {
                buf_put_str(out, "(");
                put_words(out, f->argument);
                buf_put_str(out, ")");
            }
        }
        buf_put_str(out, "' ");
    }
    buf_put_str(out, "\\\n            '--help[what it does]' ;;\n");
}

/* ---- fish: a line for each flag ---- */

static void put_fish(struct buf *out, const char *text) {
    for (const char *p = text; *p; p++) {
        if (*p == '\'' || *p == '\\') buf_u8(out, '\\');
        buf_u8(out, (uint8_t)*p);
    }
}

/* Prints the condition that the words of a command are on the line. */
static void put_fish_seen(struct buf *out, const char *command) {
    const char *and = "";
    while (*command) {
        size_t n = strcspn(command, " ");
        buf_printf(out, "%s__fish_seen_subcommand_from %.*s", and, (int)n, command);
        command += n + (command[n] == ' ');
        and = "; and ";
    }
}

static void fish_begin(struct buf *out, const struct usage_program *p) {
    buf_printf(out, "# Completion of %s for fish, as %s --help=fish prints it.\ncomplete -c %s -f\n", p->name, p->name,
               p->name);
    for (uint32_t i = 0; i < p->n_commands; i++) {
        const char *name = p->commands[i].name, *space = strrchr(name, ' ');
        buf_printf(out, "complete -c %s -n '", p->name);
        if (space) {
            char first[64];
            snprintf(first, sizeof(first), "%.*s", (int)(space - name), name);
            put_fish_seen(out, first);
        } else buf_put_str(out, "__fish_use_subcommand");
        buf_printf(out, "' -a %s -d '", space ? space + 1 : name);
        put_fish(out, p->commands[i].what);
        buf_put_str(out, "'\n");
    }
}

static void fish_command(struct buf *out, const struct usage_program *p, const struct usage_command *c) {
    for (uint32_t i = 0; i < c->n_flags; i++) {
        const struct usage_flag *f = &c->flags[i];
        buf_printf(out, "complete -c %s ", p->name);
        if (*c->name) {
            buf_put_str(out, "-n '");
            put_fish_seen(out, c->name);
            buf_put_str(out, "' ");
        }
        buf_printf(out, "-l %s %s", f->name, !f->argument ? "" : is_path(f) ? "-r -F " : "-x ");
        if (is_choice(f)) {
            buf_put_str(out, "-a '");
            put_words(out, f->argument);
            buf_put_str(out, "' ");
        }
        buf_put_str(out, "-d '");
        put_fish(out, f->help);
        buf_put_str(out, "'\n");
    }
}

/* ---- entry points ---- */

void usage_begin(struct buf *out, enum usage_format f, const struct usage_program *p) {
    switch (f) {
    case USAGE_HELP: break;
    case USAGE_MAN: man_begin(out, p); break;
    case USAGE_BASH: bash_begin(out, p); break;
    case USAGE_ZSH: zsh_begin(out, p); break;
    case USAGE_FISH: fish_begin(out, p); break;
    case USAGE_FORMATS: break;
    }
}

void usage_command(struct buf *out, enum usage_format f, const struct usage_program *p, const struct usage_command *c) {
    switch (f) {
    case USAGE_HELP: help_command(out, p, c); break;
    case USAGE_MAN: man_command(out, p, c); break;
    case USAGE_BASH: bash_command(out, p, c); break;
    case USAGE_ZSH: zsh_command(out, p, c); break;
    case USAGE_FISH: fish_command(out, p, c); break;
    case USAGE_FORMATS: break;
    }
}

void usage_end(struct buf *out, enum usage_format f, const struct usage_program *p) {
    switch (f) {
    case USAGE_HELP:
        buf_put_str(out, "\nexit code:");
        for (uint32_t i = 0; i < p->n_exits; i++)
            buf_printf(out, "%s %d %s", i ? "," : "", p->exits[i].code, p->exits[i].what);
        buf_put_str(out, "\n");
        break;
    case USAGE_MAN:
        buf_put_str(out, ".SH EXIT STATUS\n");
        for (uint32_t i = 0; i < p->n_exits; i++) {
            buf_printf(out, ".TP\n.B %d\n", p->exits[i].code);
            roff_line(out, "", p->exits[i].what);
        }
        break;
    case USAGE_BASH:
        buf_printf(out,
                   "    esac\n    if [ -n \"$paths\" ]; then COMPREPLY=($(compgen -f -- \"$current\")); else "
                   "COMPREPLY=($(compgen -W \"$words $values\" -- \"$current\")); fi\n}\n"
                   "complete -o filenames -F _%s %s\n",
                   p->name, p->name);
        break;
    case USAGE_ZSH: buf_printf(out, "    esac\n}\n_%s \"$@\"\n", p->name); break;
    case USAGE_FISH: break;
    case USAGE_FORMATS: break;
    }
}
