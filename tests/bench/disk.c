#include "tests/bench/disk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct disk {
    char path[300];
    int fd;
};

struct disk *disk_open(const char *dir) {
    struct disk *d = calloc(1, sizeof(*d));
    if (!d) return NULL;
    snprintf(d->path, sizeof(d->path), "%s/fdatasync", dir);
    d->fd = open(d->path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0666);
    if (d->fd >= 0) return d;
    perror(d->path);
    free(d);
    return NULL;
}

int disk_sync(struct disk *d, unsigned appends) {
    enum { BYTES = 400, MOST = 64 };
    static const char bytes[MOST * BYTES];
    bool wrong = false;
    for (unsigned n; appends; appends -= n) {
        n = appends < MOST ? appends : MOST;
        wrong |= write(d->fd, bytes, n * BYTES) != n * BYTES;
    }
    if (!wrong && !fdatasync(d->fd)) return 0;
    perror(d->path);
    return -1;
}

int disk_run(struct disk *d, double seconds, struct drive_result *out) {
    double begun = now_seconds(), ended;
    do {
        uint64_t before = now_ns();
        if (disk_sync(d, 1)) return -1;
        hist_add(&out->latency, now_ns() - before);
        out->requests++;
        ended = now_seconds();
    } while (ended - begun < seconds);
    out->seconds += ended - begun;
    return 0;
}

void disk_close(struct disk *d) {
    close(d->fd);
    unlink(d->path);
    free(d);
}
