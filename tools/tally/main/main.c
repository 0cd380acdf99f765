/* tally: finds the sub-command and runs it. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "tools/tally/show.h"
#include "tools/tally/subcommand.h"

static int (*const runs[SUBCOMMANDS])(int argc, char **argv) = {
#define SUBCOMMAND(name, what, arguments) tally_##name,
#define SUBCOMMAND_OF(name, second, what, arguments) tally_##name##_##second,
#include "tools/tally/subcommand.def"
#undef SUBCOMMAND
#undef SUBCOMMAND_OF
};

static void print_help(FILE *to, const struct usage_program *p) {
    fprintf(to, "tally %s: %s\n\nusage: tally SUBCOMMAND [--flag value]...\n\n", p->version, p->what);
    for (uint32_t i = 0; i < p->n_commands; i++) fprintf(to, "  %-14s %s\n", p->commands[i].name, p->commands[i].what);
    fprintf(to, "\ntally SUBCOMMAND --help says more; tally --help=json lists all flags for programs\n\nexit code:");
    for (uint32_t i = 0; i < p->n_exits; i++) fprintf(to, "%s %d %s", i ? "," : "", p->exits[i].code, p->exits[i].what);
    fprintf(to, "\n");
}

static void flush(struct buf *b) {
    fwrite(b->p, 1, b->n, stdout);
    fflush(stdout);
    buf_clear(b, SIZE_MAX);
}

/* Runs each sub-command with the format flag; it prints its own part, because its flags are local
 * to its file. */
static int print_usage(enum usage_format format, const char *argument, const struct usage_program *p) {
    struct buf out;
    char copy[32];
    int rc = EXIT_DONE;
    buf_init(&out, 0);
    usage_begin(&out, format, p);
    flush(&out);
    for (int s = 0; !rc && s < SUBCOMMANDS; s++) {
        char *argv[] = {copy};
        snprintf(copy, sizeof(copy), "%s", argument);
        rc = runs[s](1, argv);
    }
    usage_end(&out, format, p);
    flush(&out);
    buf_fini(&out);
    return rc;
}

int main(int argc, char **argv) {
    /* Under the name cqlsh, which images and scripts use, the program runs tally cql. */
    struct err ignored = {0};
    (void)!log_set_levels("warn", &ignored); /* statements that are priced in memory change a schema, too */
    const char *slash = argc ? strrchr(argv[0], '/') : NULL;
    bool is_cqlsh = argc && !strcmp(slash ? slash + 1 : argv[0], "cqlsh");
    show_open(is_cqlsh || (argc > 1 && !strcmp(argv[1], "cql")));
    if (is_cqlsh) return tally_cql(argc - 1, argv + 1);
    struct usage_command commands[SUBCOMMANDS];
    struct usage_program program;
    const char *name = argc > 1 ? argv[1] : "";
    int format = !strncmp(name, "--help=", 7) ? usage_format_of(name + 7) : -1;
    subcommand_program(&program, commands);
    if (format > USAGE_HELP) return print_usage((enum usage_format)format, name, &program);
    if (format == USAGE_HELP || !strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        print_help(stdout, &program);
        return EXIT_DONE;
    }
    if (!strcmp(name, "--version")) {
        printf("tally %s (%s), RocksDB %s\n", TALLY_VERSION, TALLY_COMMIT, TALLY_ROCKSDB_VERSION);
        return EXIT_DONE;
    }
    /* The sub-command is the row with the most words at the beginning of the line. */
    int found = -1, words = 0;
    for (int i = 0; i < SUBCOMMANDS; i++) {
        const char *row = commands[i].name, *second = strchr(row, ' ');
        size_t first = second ? (size_t)(second - row) : strlen(row);
        int n = second ? 2 : 1;
        if (argc <= n || n <= words || strlen(name) != first || strncmp(name, row, first) ||
            (second && strcmp(argv[2], second + 1)))
            continue;
        found = i;
        words = n;
    }
    if (found >= 0) return runs[found](argc - 1 - words, argv + 1 + words);
    if (*name) fprintf(stderr, "tally: there is no sub-command '%s'\n\n", name);
    print_help(stderr, &program);
    return EXIT_USAGE;
}
