#include "tools/tally/subcommand.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { FLAGS_MAX = 64 };

static const struct usage_example examples[] = {
#define EXAMPLE(subcommand, line_, what_) {.line = line_, .what = what_},
#include "tools/tally/example.def"
#undef EXAMPLE
};
static const enum subcommand example_of[] = {
#define EXAMPLE(subcommand, line, what) SUBCOMMAND_##subcommand,
#include "tools/tally/example.def"
#undef EXAMPLE
};
static const struct usage_exit exits[] = {
#define EXIT_CODE(id, code_, what_) {.code = code_, .what = what_},
#include "tools/tally/exit_code.def"
#undef EXIT_CODE
};

/* The flags of cqlsh. */
static const struct usage_exit cql_exits[] = {{0, "every statement was carried out, or a terminal's session ended"},
                                              {1, "there is no connection to the server"},
                                              {2, "a statement failed, or the command line is wrong"}};

/* ---- the program's description ---- */

void subcommand_program(struct usage_program *out, struct usage_command *commands) {
    static const struct usage_command rows[SUBCOMMANDS] = {
#define SUBCOMMAND(name_, what_, arguments_) {.name = #name_, .what = what_, .arguments = arguments_},
#define SUBCOMMAND_OF(name_, second, what_, arguments_) \
    {.name = #name_ " " #second, .what = what_, .arguments = arguments_},
#include "tools/tally/subcommand.def"
#undef SUBCOMMAND
#undef SUBCOMMAND_OF
    };
    memcpy(commands, rows, sizeof(rows));
    for (size_t i = 0; i < ARRAY_LEN(examples); i++) { /* examples of one sub-command are adjacent */
        struct usage_command *c = &commands[example_of[i]];
        if (!c->n_examples++) c->examples = &examples[i];
    }
    *out = (struct usage_program){
        .name = "tally", .what = "works with Tally's servers and their data, and prices statements without one",
        .version = TALLY_VERSION, .section = "1", .n_commands = SUBCOMMANDS, .commands = commands,
        .n_exits = ARRAY_LEN(exits), .exits = exits,
        .notes = "Sub-commands that price statements contain the server's engine, language and charges, so their "
                 "prices are those of a server. --json prints the result as one JSON object. An error in an input "
                 "file is reported with file, line and reason. The exit codes of tally cql are cqlsh's: see "
                 "tally cql --help."};
}

/* ---- help ---- */

static void print_usage(enum usage_format format, const char *subcommand, const struct flag *flags, size_t n) {
    struct usage_command commands[SUBCOMMANDS], *c = commands;
    struct usage_program program;
    struct usage_flag shown[FLAGS_MAX];
    struct buf out;
    assert(n <= FLAGS_MAX);
    subcommand_program(&program, commands);
    while (strcmp(c->name, subcommand)) c++;
    for (size_t i = 0; i < n; i++)
        shown[i] = (struct usage_flag){.name = flags[i].name, .argument = flags[i].argument, .help = flags[i].help};
    c->n_flags = (uint32_t)n;
    c->flags = shown;
    buf_init(&out, 0);
    usage_command(&out, format, &program, c);
    if (!strcmp(subcommand, "cql")) program.exits = cql_exits, program.n_exits = ARRAY_LEN(cql_exits);
    if (format == USAGE_HELP) usage_end(&out, format, &program);
    fwrite(out.p, 1, out.n, stdout);
    buf_fini(&out);
}

static int wrong(const char *subcommand, const char *what, const char *arg) {
    fprintf(stderr, "tally %s: %s '%s'; see tally %s --help\n", subcommand, what, arg, subcommand);
    return EXIT_USAGE;
}

/* Finds the flag of an argument --name, --name=value, -l or -lvalue. *value: the value inside the
 * argument, or NULL. Returns n when no flag matches. */
static size_t find_flag(const char *arg, const struct flag *flags, size_t n, const char **value) {
    size_t f = 0;
    *value = NULL;
    if (arg[1] != '-') {
        while (f < n && (!flags[f].letter || flags[f].letter != arg[1])) f++;
        if (f < n && arg[2]) *value = arg + 2;
        return f;
    }
    const char *name = arg + 2, *eq = strchr(name, '=');
    size_t length = eq ? (size_t)(eq - name) : strlen(name);
    while (f < n && (strlen(flags[f].name) != length || strncmp(flags[f].name, name, length))) f++;
    if (eq) *value = eq + 1;
    return f;
}

int flags_read(const char *subcommand, int argc, char **argv, const struct flag *flags, size_t n) {
    uint8_t words = 0;
    for (int i = 0; i < argc; i++) {
        const char *arg = argv[i], *value = arg;
        size_t f = 0;
        int format = !strncmp(arg, "--help=", 7)                    ? usage_format_of(arg + 7)
                     : !strcmp(arg, "--help") || !strcmp(arg, "-h") ? (int)USAGE_HELP
                                                                    : -1;
        if (format >= 0) {
            print_usage((enum usage_format)format, subcommand, flags, n);
            return -1;
        }
        if (arg[0] != '-' || !arg[1]) {
            words++;
            while (f < n && flags[f].position != words) f++;
            if (f == n) return wrong(subcommand, "unexpected argument", arg);
        } else {
            f = find_flag(arg, flags, n, &value);
            if (f == n) return wrong(subcommand, arg[1] == '-' ? "unknown flag" : "unexpected argument", arg);
        }
        const struct flag *flag = &flags[f];
        if (flag->on) {
            if (value) return wrong(subcommand, "this flag takes no value:", arg);
            *flag->on = true;
            continue;
        }
        if (!value && i + 1 == argc) return wrong(subcommand, "this flag needs a value:", arg);
        if (!value) value = argv[++i];
        if (flag->text) *flag->text = value;
        if (!flag->number) continue;
        char *end;
        unsigned long number = strtoul(value, &end, 10);
        if (*end || end == value || number > UINT32_MAX || *value == '-')
            return wrong(subcommand, "not a number:", value);
        *flag->number = (uint32_t)number;
    }
    return EXIT_DONE;
}

/* ---- errors ---- */

static int say(bool json, const char *subcommand, const struct err *e, enum exit_code code) {
    struct buf out;
    buf_init(&out, 0);
    buf_put_str(&out, "{\"ok\":false,\"error\":");
    buf_json_str(&out, slice_str(e->text));
    buf_put_str(&out, "}");
    if (json) printf("%.*s\n", SLICE_FMT(buf_slice(&out)));
    else fprintf(stderr, "tally %s: %s\n", subcommand, e->text);
    buf_fini(&out);
    return code;
}

int say_no(bool json, const char *subcommand, const struct err *e) { return say(json, subcommand, e, EXIT_NO); }
int say_wrong(bool json, const char *subcommand, const struct err *e) { return say(json, subcommand, e, EXIT_USAGE); }
