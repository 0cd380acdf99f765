/* Settings while the server runs. SIGHUP reads all of them again, as at the start, and applies
 * those that can change (live.def). Certificates are read again then, and also when their files
 * change. The main thread runs these functions. */
#pragma once

#include "server/instance.h"

struct reload {
    struct instance *in;
    int argc;
    char **argv;
    const struct config *first; /* of the start; the instance's settings point to its texts */
    struct config latest;       /* of the last SIGHUP */
    bool again;                 /* latest is set */
};

/* On SIGHUP. When a setting is wrong, logs it and keeps all settings. */
void reload_all(struct reload *r);
/* Once a second: reads files that have changed. */
void reload_files(struct instance *in);
void reload_fini(struct reload *r);
