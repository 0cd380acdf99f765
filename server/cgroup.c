#include "server/cgroup.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The least limit of the group and of the groups above it, because a limit applies to all groups
 * below. In a container the root of the mount is the container's own group, so the upper part of
 * the path does not exist there and sets no limit. */
static size_t least_upwards(const char *root, char *group, const char *file) {
    size_t least = SIZE_MAX;
    for (char *slash;; *slash = 0) {
        char path[PATH_MAX];
        unsigned long long limit; /* a file without a number, such as "max", sets no limit */
        FILE *f = snprintf(path, sizeof(path), "%s%s/%s", root, group, file) < (int)sizeof(path) ? fopen(path, "re")
                                                                                                 : NULL;
        if (f && fscanf(f, "%llu", &limit) == 1 && limit && limit < least) least = (size_t)limit;
        if (f) fclose(f);
        if (!(slash = strrchr(group, '/'))) return least;
    }
}

static int names_memory(const char *controllers) {
    for (const char *c = controllers; *c; c += strcspn(c, ","), c += *c == ',')
        if (strcspn(c, ",") == strlen("memory") && !strncmp(c, "memory", strlen("memory"))) return 1;
    return 0;
}

/* The file has lines of "number:controllers:/path"; a line of version 2 names no controllers
 * (cgroups(7), /proc/PID/cgroup). */
size_t cgroup_memory_limit(const char *root, const char *self) {
    char line[PATH_MAX], memory[PATH_MAX];
    size_t least = SIZE_MAX;
    FILE *f = fopen(self, "re");
    snprintf(memory, sizeof(memory), "%s/memory", root);
    while (f && fgets(line, sizeof(line), f)) {
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *group++ = 0;
        group[strcspn(group, "\n")] = 0;
        size_t limit = !controllers[1]                 ? least_upwards(root, group, "memory.max")
                       : names_memory(controllers + 1) ? least_upwards(memory, group, "memory.limit_in_bytes")
                                                       : SIZE_MAX;
        if (limit < least) least = limit;
    }
    if (f) fclose(f);
    return least;
}
