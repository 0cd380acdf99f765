#include "server/config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <yaml.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/nearest.h"

enum shown { COMMON, RARE };
struct option_row {
    const char *flag, *argument, *text, *help;
    enum shown shown;
};

static const struct option_row rows[CONFIG_OPTIONS] = {
#define GROUP(title)
#define OPTION(id, flag_, argument_, default_text, shown_, help_) \
    {.flag = flag_, .argument = argument_, .text = default_text, .help = help_, .shown = shown_},
#include "server/config.def"
#undef OPTION
#undef GROUP
};

/* The title of the group that begins with an option; NULL if the option belongs to the group before
 * it. */
static const char *const groups[] = {
#define GROUP(title) title,
#define OPTION(...) NULL,
#include "server/config.def"
#undef OPTION
#undef GROUP
};

const char *config_flag(enum config_option o) { return rows[o].flag; }

static int set_value(struct config *c, int o, const char *text, struct err *e) {
    char *copy = strdup(text);
    if (!copy) return err_nomem(e);
    free(c->values[o]);
    c->values[o] = copy;
    return 0;
}

/* Finds an option by its flag; - and _ are the same. n: length of name. */
static int find_option(const char *name, size_t n) {
    for (int o = 0; o < CONFIG_OPTIONS; o++) {
        const char *flag = rows[o].flag;
        size_t i = 0;
        while (i < n && flag[i] && (name[i] == '_' ? '-' : name[i]) == flag[i]) i++;
        if (i == n && !flag[i]) return o;
    }
    return -1;
}

/* " (did you mean --port?)", or "" when no flag is similar. prefix: what precedes the flag,
 * "--". */
static const char *meant(const char *name, size_t n, const char *prefix, char *room, size_t size) {
    const char *flags[CONFIG_OPTIONS];
    for (int o = 0; o < CONFIG_OPTIONS; o++) flags[o] = rows[o].flag;
    const char *near = nearest_name(slice_of((const uint8_t *)name, n), flags, CONFIG_OPTIONS);
    *room = 0;
    if (near) snprintf(room, size, " (did you mean %s%s?)", prefix, near);
    return room;
}

/* ---- environment ---- */

/* Returns true for variables that begin with TALLY_ and are no settings of tallyd: those of the command
 * tally, of the example of a Python test, and those that Kubernetes sets for a Service named tally. */
static bool is_of_others(const char *name, const char *value) {
    static const char *const others[] = {"CQL_WAIT=", "PASSWORD=", "ADDRESS=", "SERVICE_", "PORT_"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (!strncmp(name, others[i], strlen(others[i]))) return true;
    return !strncmp(name, "PORT=", 5) && !strncmp(value, "tcp://", 6);
}

static int load_environment(struct config *c, struct err *e) {
    static const char prefix[] = "TALLY_";
    for (char **v = environ; *v; v++) {
        const char *name = *v + sizeof(prefix) - 1, *eq = strchr(*v, '=');
        char flag[64], near[96];
        if (strncmp(*v, prefix, sizeof(prefix) - 1) || !eq || is_of_others(name, eq + 1)) continue;
        size_t n = (size_t)(eq - name) < sizeof(flag) ? (size_t)(eq - name) : sizeof(flag);
        for (size_t i = 0; i < n; i++) flag[i] = (char)tolower((unsigned char)name[i]);
        int o = find_option(flag, n);
        if (o < 0)
            return err_set(e, ERR_CONFIG, "the environment has %.*s, which is no setting%s; see tallyd --help",
                           (int)(eq - *v), *v, meant(flag, n, "--", near, sizeof(near)));
        if (set_value(c, o, eq + 1, e)) return -1;
    }
    return 0;
}

/* ---- flags ---- */

static int take_flag(struct config *c, int argc, char **argv, int *at, struct err *e) {
    const char *arg = argv[*at];
    bool help = !strcmp(arg, "--help") || !strcmp(arg, "-h");
    bool all = (help && *at + 1 < argc && !strcmp(argv[*at + 1], "all")) || !strcmp(arg, "--help=all");
    int format = help || all ? USAGE_HELP : !strncmp(arg, "--help=", 7) ? usage_format_of(arg + 7) : -1;
    if (format >= 0) {
        c->help = true;
        c->help_all = all || format != USAGE_HELP;
        c->format = (enum usage_format)format;
        *at += help && all;
        return 0;
    }
    if (!strcmp(arg, "--version")) return c->version = true, 0;
    if (!strcmp(arg, "--check-config")) return c->check = true, 0;
    if (!strcmp(arg, "--print-config")) return c->print = true, 0;
    if (strncmp(arg, "--", 2)) return err_set(e, ERR_CONFIG, "unexpected argument '%s'; see tallyd --help", arg);
    const char *name = arg + 2, *eq = strchr(name, '=');
    size_t n = eq ? (size_t)(eq - name) : strlen(name);
    char near[96];
    int o = find_option(name, n);
    if (o < 0)
        return err_set(e, ERR_CONFIG, "unknown flag '%s'%s; see tallyd --help", arg,
                       meant(name, n, "--", near, sizeof(near)));
    if (eq) return set_value(c, o, eq + 1, e);
    if (*at + 1 >= argc) return err_set(e, ERR_CONFIG, "flag --%s needs a value: %s", rows[o].flag, rows[o].argument);
    return set_value(c, o, argv[++*at], e);
}

static int load_flags(struct config *c, int argc, char **argv, struct err *e) {
    for (int i = 1; i < argc; i++)
        if (take_flag(c, argc, argv, &i, e)) return -1;
    return 0;
}

/* ---- YAML: one flat mapping of keys to scalars ---- */

struct config_yaml {
    struct config *c;
    const char *path;
    bool inside; /* the mapping */
    yaml_event_t key; /* without a value so far; of no type: there is none */
};

static int yaml_pair(struct config_yaml *y, const yaml_event_t *value, struct err *e) {
    const char *name = (const char *)y->key.data.scalar.value;
    char near[96];
    int o = find_option(name, y->key.data.scalar.length);
    if (o < 0 || o == CONFIG_CONFIG)
        return err_set(e, ERR_CONFIG, "%s line %zu: unknown setting '%s'%s", y->path, y->key.start_mark.line + 1, name,
                       meant(name, y->key.data.scalar.length, "", near, sizeof(near)));
    return set_value(y->c, o, (const char *)value->data.scalar.value, e);
}

static int yaml_event(struct config_yaml *y, yaml_event_t *event, struct err *e) {
    bool scalar = event->type == YAML_SCALAR_EVENT && y->inside, begins = event->type == YAML_MAPPING_START_EVENT;
    int rc = 0;
    if (scalar && y->key.type == YAML_NO_EVENT) {
        y->key = *event;
        *event = (yaml_event_t){0};
    } else if (scalar) {
        rc = yaml_pair(y, event, e);
        yaml_event_delete(&y->key);
    } else if (event->type == YAML_SCALAR_EVENT || event->type == YAML_ALIAS_EVENT ||
               event->type == YAML_SEQUENCE_START_EVENT || (begins && y->inside)) {
        rc = err_set(e, ERR_CONFIG, "%s: settings are pairs of a key and a plain value", y->path);
    }
    y->inside = y->inside || begins;
    return rc;
}

/* Reads events instead of a document, so that a nested value ends it at once. */
static int load_yaml(struct config *c, const char *path, struct err *e) {
    enum { BYTES_MAX = 1 << 20 };
    struct config_yaml y = {.c = c, .path = path};
    struct buf text;
    yaml_parser_t parser;
    buf_init(&text, 0);
    int rc = file_append_to(path, BYTES_MAX, &text, e);
    if (rc || !yaml_parser_initialize(&parser)) {
        buf_fini(&text);
        return rc ? -1 : err_nomem(e);
    }
    yaml_parser_set_input_string(&parser, text.p, text.n);
    for (bool ends = false; !rc && !ends;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            rc = err_set(e, ERR_CONFIG, "%s line %zu: %s", path, parser.problem_mark.line + 1,
                         parser.problem ? parser.problem : "not YAML");
            break;
        }
        ends = event.type == YAML_DOCUMENT_END_EVENT || event.type == YAML_STREAM_END_EVENT;
        rc = yaml_event(&y, &event, e);
        yaml_event_delete(&event);
    }
    yaml_event_delete(&y.key);
    yaml_parser_delete(&parser);
    buf_fini(&text);
    return rc;
}

/* ---- all ---- */

static int load_defaults(struct config *c, struct err *e) {
    for (int o = 0; o < CONFIG_OPTIONS; o++)
        if (set_value(c, o, rows[o].text, e)) return -1;
    return 0;
}

int config_load(struct config *c, int argc, char **argv, struct err *e) {
    *c = (struct config){0};
    /* The first pass learns the file's name. After the file, environment and flags are read again,
     * because they override it. */
    if (load_defaults(c, e) || load_environment(c, e) || load_flags(c, argc, argv, e)) return -1;
    if (!*c->values[CONFIG_CONFIG]) return 0;
    char *path = strdup(c->values[CONFIG_CONFIG]);
    if (!path) return err_nomem(e);
    int rc = load_defaults(c, e) || load_yaml(c, path, e) || load_environment(c, e) || load_flags(c, argc, argv, e) ? -1
                                                                                                                    : 0;
    free(path);
    return rc;
}

void config_fini(struct config *c) {
    for (int o = 0; o < CONFIG_OPTIONS; o++) free(c->values[o]);
}

void config_print(const struct config *c) {
    for (int o = 0; o < CONFIG_OPTIONS; o++) {
        if (o == CONFIG_CONFIG) continue; /* a file does not name itself */
        printf("# %s\n%s: '", rows[o].help, rows[o].flag);
        for (const char *p = c->values[o]; *p; p++) printf(*p == '\'' ? "''" : "%c", *p);
        printf("'\n\n");
    }
}

/* ---- help ---- */

static const struct usage_exit exits[] = {{0, "stopped by a signal"},
                                          {1, "the data folder, a port or a file cannot be used"},
                                          {2, "a setting is wrong"}};
static const struct usage_flag others[] = {{.name = "check-config",
                                            .help = "check the settings and exit"},
                                           {.name = "print-config",
                                            .help = "print all settings in force as a YAML file and exit"},
                                           {.name = "version", .help = "print the version and exit"}};

void config_print_help(enum usage_format format, bool all) {
    struct usage_flag flags[CONFIG_OPTIONS + ARRAY_LEN(others)];
    uint32_t n = 0, n_others = ARRAY_LEN(others);
    const struct usage_program program = {
        .name = "tallyd",
        .what = "a server that speaks CQL, behaves like Amazon Keyspaces and reports what every statement costs",
        .version = TALLY_VERSION,
        .section = "8",
        .notes = "Each flag is also a variable of the environment, TALLY_<FLAG>, and a key of the YAML file that "
                 "--config names. Flags take precedence over the environment, and the environment over the file.",
        .n_exits = ARRAY_LEN(exits),
        .exits = exits};
    struct buf out;
    const char *group = NULL;
    for (uint32_t at = 0, o = 0; at < ARRAY_LEN(groups); at++) {
        if (groups[at]) {
            group = groups[at];
            continue;
        }
        const struct option_row *row = &rows[o++];
        if (!all && row->shown != COMMON) continue;
        flags[n++] = (struct usage_flag){.name = row->flag,
                                         .argument = row->argument,
                                         .help = row->help,
                                         .otherwise = row->text,
                                         .group = all ? group : NULL};
        group = NULL;
    }
    memcpy(flags + n, others, sizeof(others));
    if (all) flags[n].group = "Other flags";
    const struct usage_command command = {.name = "", .n_flags = n + n_others, .flags = flags};
    buf_init(&out, 0);
    if (format == USAGE_HELP) {
        buf_printf(&out, "tallyd %s: %s\n\nusage: tallyd [--flag value]...\n\n%s\n\n", program.version, program.what,
                   program.notes);
        if (!all)
            buf_printf(&out, "Common flags (tallyd --help all lists the other %u, too):\n\n",
                       (unsigned)(CONFIG_OPTIONS - n));
    }
    usage_begin(&out, format, &program);
    usage_command(&out, format, &program, &command);
    usage_end(&out, format, &program);
    fwrite(out.p, 1, out.n, stdout);
    buf_fini(&out);
}
