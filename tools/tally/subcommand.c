#include "tools/tally/subcommand.h"

#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *name, *what, *arguments;
} rows[] = {
#define SUBCOMMAND(name_, what_, arguments_) {.name = #name_, .what = what_, .arguments = arguments_},
#include "tools/tally/subcommand.def"
#undef SUBCOMMAND
};

static void print_help(const char *subcommand, const struct flag *flags, size_t n) {
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (!strcmp(rows[i].name, subcommand)) printf("tally %s: %s\n\nusage: tally %s %s\n\n", subcommand, rows[i].what, subcommand, rows[i].arguments);
    for (size_t i = 0; i < n; i++) printf("  --%s%s%s\n        %s\n", flags[i].name, flags[i].argument ? " " : "", flags[i].argument ? flags[i].argument : "", flags[i].help);
    printf("  --help\n\nexit code: 0 done, 1 refused, missing or damaged, 2 wrong command line\n");
}

static int wrong(const char *subcommand, const char *what, const char *arg) {
    fprintf(stderr, "tally %s: %s '%s'; see tally %s --help\n", subcommand, what, arg, subcommand);
    return EXIT_USAGE;
}

static int take(const char *subcommand, const struct flag *f, const char *value) {
    char *end;
    if (f->text) *f->text = value;
    if (!f->number) return EXIT_DONE;
    unsigned long n = strtoul(value, &end, 10);
    if (*end || end == value || n > UINT32_MAX || *value == '-') return wrong(subcommand, "not a number:", value);
    *f->number = (uint32_t)n;
    return EXIT_DONE;
}

int flags_read(const char *subcommand, int argc, char **argv, const struct flag *flags, size_t n) {
    for (int i = 0; i < argc; i++) {
        const char *arg = argv[i], *name = arg + 2, *eq = strchr(arg, '=');
        size_t length = eq ? (size_t)(eq - name) : strlen(arg) - 2, f = 0;
        if (!strcmp(arg, "--help") || !strcmp(arg, "-h")) {
            print_help(subcommand, flags, n);
            return -1;
        }
        if (strncmp(arg, "--", 2)) return wrong(subcommand, "unexpected argument", arg);
        while (f < n && (strlen(flags[f].name) != length || strncmp(flags[f].name, name, length))) f++;
        if (f == n) return wrong(subcommand, "unknown flag", arg);
        if (flags[f].on) {
            if (eq) return wrong(subcommand, "this flag takes no value:", arg);
            *flags[f].on = true;
            continue;
        }
        if (!eq && i + 1 == argc) return wrong(subcommand, "this flag needs a value:", arg);
        int rc = take(subcommand, &flags[f], eq ? eq + 1 : argv[++i]);
        if (rc) return rc;
    }
    return EXIT_DONE;
}

int say_no(bool json, const char *subcommand, const struct err *e) {
    struct buf out;
    buf_init(&out, 0);
    buf_put_str(&out, "{\"ok\":false,\"error\":");
    buf_json_str(&out, slice_str(e->text));
    buf_put_str(&out, "}");
    if (json) printf("%.*s\n", SLICE_FMT(buf_slice(&out)));
    else fprintf(stderr, "tally %s: %s\n", subcommand, e->text);
    buf_fini(&out);
    return EXIT_NO;
}
