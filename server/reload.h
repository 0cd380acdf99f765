/* Settings while the server runs: SIGHUP reads them again, as at the start, and puts in force what
 * can change (live.def); certificates are read again then, and when their files change. The main
 * thread. */
#pragma once

#include "server/instance.h"

struct reload {
    struct instance *in;
    int argc;
    char **argv;
    const struct config *first; /* its texts are the instance's settings' */
    struct config latest;
    bool again; /* latest is there */
};

/* What is wrong is logged, and everything stays as it was. */
void reload_all(struct reload *r);
/* Once a second: what changes without being told. */
void reload_files(struct instance *in);
void reload_fini(struct reload *r);
