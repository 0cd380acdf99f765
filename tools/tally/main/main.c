/* tally: finds the sub-command and runs it. */
#include <stdio.h>
#include <string.h>

#include "tools/tally/subcommand.h"

static const struct {
    const char *name, *what;
    int (*run)(int argc, char **argv);
} subcommands[] = {
#define SUBCOMMAND(name_, what_, arguments_) {.name = #name_, .what = what_, .run = tally_##name_},
#include "tools/tally/subcommand.def"
#undef SUBCOMMAND
};

static void print_help(FILE *to) {
    fprintf(to, "tally " TALLY_VERSION ": works with Tally's servers and their data\n\nusage: tally SUBCOMMAND [--flag value]...\n\n");
    for (size_t i = 0; i < ARRAY_LEN(subcommands); i++) fprintf(to, "  %-10s %s\n", subcommands[i].name, subcommands[i].what);
    fprintf(to, "\ntally SUBCOMMAND --help says more\n");
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        print_help(stdout);
        return EXIT_DONE;
    }
    if (!strcmp(name, "--version")) {
        printf("tally %s\n", TALLY_VERSION);
        return EXIT_DONE;
    }
    for (size_t i = 0; i < ARRAY_LEN(subcommands); i++)
        if (!strcmp(subcommands[i].name, name)) return subcommands[i].run(argc - 2, argv + 2);
    if (*name) fprintf(stderr, "tally: there is no sub-command '%s'\n\n", name);
    print_help(stderr);
    return EXIT_USAGE;
}
