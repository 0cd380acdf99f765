/* Settings as texts, one for each row of config.def: the default, overridden by the YAML file, then
 * by the environment, then by flags. settings.h turns them into values. */
#pragma once

#include "base/err.h"
#include "base/usage.h"

enum config_option {
#define GROUP(title)
#define OPTION(id, flag, argument, default_text, shown, help) CONFIG_##id,
#include "server/config.def"
#undef OPTION
#undef GROUP
    CONFIG_OPTIONS
};

struct config {
    char *values[CONFIG_OPTIONS]; /* owned */
    bool help, version, check, print; /* --help, --version, --check-config, --print-config was given */
    bool help_all;                    /* --help all: the settings that are not common, too */
    enum usage_format format;         /* of help */
};

/* ERR_CONFIG: an unknown flag or key, a missing argument, an unreadable file. */
int config_load(struct config *c, int argc, char **argv, struct err *e) MUST_CHECK;
void config_fini(struct config *c);
/* Prints all settings with their help, as a YAML file that sets the same values. */
void config_print(const struct config *c);
/* Prints --help from config.def: as text, man page or completion for a shell. all: every setting in groups; otherwise
 * the common ones. */
void config_print_help(enum usage_format format, bool all);
const char *config_flag(enum config_option o);
