#include "tools/tally/cql/command.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "cql/request/consistency.h"
#include "tools/tally/cql/describe.h"
#include "tools/tally/cql/interrupt.h"
#include "tools/tally/cql/split.h"
#include "tools/tally/cql/steps.h"
#include "tools/tally/show.h"
#include "tools/tally/world.h"

struct command {
    struct shell *s;
    const char *word;   /* name in shell_command.def */
    struct slice text;  /* the whole command */
    struct arena arena; /* of the words */
    int n;              /* words after the name */
    struct slice words[SPLIT_WORDS];
};

static void improper(struct command *c) { shell_complain(c->s, "Improper %s command; see HELP %s.", c->word, c->word); }
static const char *text_of(struct command *c, int word) {
    return arena_printf(&c->arena, "%.*s", SLICE_FMT(c->words[word]));
}

/* ---- settings ---- */

static void run_consistency(struct command *c) {
    int level = c->n ? world_consistency(text_of(c, 0)) : -1;
    if (!c->n) {
        shell_say("Current consistency level is %s.\n", consistency_name(c->s->consistency));
    } else if (c->n > 1 || level < 0) {
        improper(c);
    } else {
        c->s->consistency = (uint16_t)level;
        shell_say("Consistency level set to %s.\n", consistency_name(c->s->consistency));
    }
}

static void run_serial(struct command *c) {
    int level = c->n == 2 ? world_consistency(text_of(c, 1)) : CL_SERIAL;
    uint16_t current = c->s->serial_consistency ? c->s->serial_consistency : CL_SERIAL;
    if (!c->n || c->n > 2 || !script_is_word(c->words[0], "CONSISTENCY") ||
        (level != CL_SERIAL && level != CL_LOCAL_SERIAL)) {
        improper(c);
    } else if (c->n == 1) {
        shell_say("Current serial consistency level is %s.\n", consistency_name(current));
    } else {
        c->s->serial_consistency = (uint16_t)level;
        shell_say("Serial consistency level set to %s.\n", consistency_name(c->s->serial_consistency));
    }
}

/* CHARGE, EXPAND, PAGING, TRACING and WAIT take ON or OFF; without an argument they print the
 * state. */
static void run_switch(struct command *c, bool *on) {
    bool wants = c->n == 1 && script_is_word(c->words[0], "ON");
    if (!c->n) {
        shell_say("%s is %s\n", c->word, *on ? "ON" : "OFF");
    } else if (c->n > 1 || (!wants && !script_is_word(c->words[0], "OFF"))) {
        improper(c);
    } else {
        shell_say("%s %s %s\n", c->word, *on == wants ? "is already" : "set to", wants ? "ON" : "OFF");
        *on = wants;
    }
}

static void run_charge(struct command *c) { run_switch(c, &c->s->charge); }
static void run_expand(struct command *c) { run_switch(c, &c->s->expand); }
static void run_tracing(struct command *c) { run_switch(c, &c->s->tracing); }
static void run_wait(struct command *c) { run_switch(c, &c->s->wait); }

static void run_paging(struct command *c) {
    char *end = NULL;
    const char *word = c->n == 1 ? text_of(c, 0) : NULL;
    unsigned long rows = word ? strtoul(word, &end, 10) : 0;
    if (rows && !*end && rows <= INT32_MAX) {
        c->s->page_size = (uint32_t)rows;
        c->s->paging = true;
    } else {
        run_switch(c, &c->s->paging);
    }
    if (!c->s->paging) c->s->page_size = SHELL_PAGE;
    else shell_say("Page size: %u\n", c->s->page_size);
}

/* ---- files ---- */

/* The path in an argument; ~/ is the user's home folder. */
static const char *path_of(struct command *c, int word) {
    const char *path = text_of(c, word), *home = getenv("HOME");
    return path && home && !strncmp(path, "~/", 2) ? arena_printf(&c->arena, "%s%s", home, path + 1) : path;
}

static void run_source(struct command *c) {
    const char *path = c->n == 1 ? path_of(c, 0) : NULL;
    if (!path) improper(c);
    else if (!(c->s->next_source = strdup(path))) shell_complain(c->s, "out of memory");
}

static void run_capture(struct command *c) {
    const char *path = c->n == 1 ? path_of(c, 0) : NULL;
    bool captures = c->s->out != stdout;
    if (!c->n) {
        shell_say(captures ? "Currently capturing query output.\n" : "Currently not capturing query output.\n");
    } else if (!path) {
        improper(c);
    } else if (script_is_word(c->words[0], "OFF")) {
        if (!captures) shell_complain(c->s, "Not currently capturing output.");
        else if (fclose(c->s->out)) shell_complain(c->s, "The captured output was not written: %s", strerror(errno));
        c->s->out = stdout;
    } else if (captures) {
        shell_complain(c->s, "Already capturing output. Use CAPTURE OFF to disable.");
    } else {
        FILE *f = fopen(path, "ae");
        if (!f) {
            shell_complain(c->s, "Could not open '%s' for append: %s", path, strerror(errno));
            return;
        }
        c->s->out = f;
        shell_say("Now capturing query output to '%s'.\n", path);
    }
}

/* ---- the connection ---- */

static void run_login(struct command *c) {
    struct shell *s = c->s, other;
    struct err e = {0};
    if (c->n < 1 || c->n > 2 || c->words[0].n >= sizeof(s->user)) {
        improper(c);
        return;
    }
    shell_init(&other);
    other.options = s->options;
    snprintf(other.user, sizeof(other.user), "%.*s", SLICE_FMT(c->words[0]));
    if (c->n == 2) snprintf(other.password, sizeof(other.password), "%.*s", SLICE_FMT(c->words[1]));
    else if (interrupt_read_password(other.password, sizeof(other.password), &e)) goto failed;
    other.options.user = other.user;
    other.options.password = other.password;
    if (shell_connect(&other, &e)) goto failed;
    shell_fini(&other);
    memcpy(s->user, other.user, sizeof(s->user));
    memcpy(s->password, other.password, sizeof(s->password));
    s->options.user = s->user;
    s->options.password = s->password;
    s->options.access_key = NULL;
    shell_disconnect(s);
    return;
failed:
    shell_complain(s, "LOGIN failed: %s", e.text);
    shell_fini(&other);
}

static void run_show(struct command *c) {
    const struct shell *s = c->s;
    if (c->n == 1 && script_is_word(c->words[0], "HOST")) {
        shell_say("Connected to %s at %s:%u\n", s->cluster, s->options.link.host, s->options.link.port);
    } else if (c->n == 1 && script_is_word(c->words[0], "VERSION")) {
        shell_say("[tally cql %s | Cassandra %s | CQL spec %s | Native protocol v%u]\n", TALLY_VERSION, s->release,
                  s->cql_version, s->client.version);
    } else if (c->n == 2 && script_is_word(c->words[0], "SESSION")) {
        steps_put_named(c->s, text_of(c, 1));
    } else {
        improper(c);
    }
}

/* ---- the shell ---- */

static void run_describe(struct command *c) { describe(c->s, c->text); }
static void run_exit(struct command *c) { c->s->leaves = true; }
static void run_clear(struct command *c) {
    if (c->s->terminal) fputs("\033[H\033[2J", show_raw(stdout));
}

static void run_help(struct command *c) {
    int row = c->n == 1 ? split_command(c->words[0]) : -1;
    if (c->n && row < 0) {
        shell_complain(c->s, "There is no such command; HELP lists those of the shell. CQL is described at "
                             "https://cassandra.apache.org/doc/latest/cassandra/developing/cql/");
        return;
    }
    for (size_t i = 0; i < n_shell_commands; i++) {
        const struct shell_command *k = &shell_commands[i];
        if (row >= 0 && row != (int)i) continue;
        shell_say("%s%s%s\n        %s\n", k->word, *k->arguments ? " " : "", k->arguments, k->what);
    }
    if (row < 0) shell_say("\nEverything else is CQL and goes to the server; a statement ends with a semicolon.\n");
}

static void (*const runs[])(struct command *) = {
#define SHELL_COMMAND(id, word, arguments, what) run_##id,
#include "tools/tally/cql/shell_command.def"
#undef SHELL_COMMAND
};

void command_run(struct shell *s, int row, struct slice text) {
    struct command c = {.s = s, .word = shell_commands[row].word, .text = text};
    arena_init(&c.arena, 1024, 0);
    c.n = split_words(text, &c.arena, c.words);
    if (c.n < 1) {
        improper(&c);
    } else {
        c.n--;
        memmove(c.words, c.words + 1, (size_t)c.n * sizeof(*c.words));
        runs[row](&c);
    }
    arena_fini(&c.arena);
}
