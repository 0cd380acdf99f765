/* RocksDB's log files from hostile bytes: records lie in the file and in order, and going on behind
 * each bad place comes to the end. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/local/rocksdb/kv_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(struct kv_log *l) {
    struct kv_log_record r;
    struct err e = {0};
    uint64_t from = 0;
    bool hole;
    for (;;) {
        enum kv_log_got got = kv_log_next(l, &r, &e);
        if (got == KV_LOG_FAILED) abort();
        if (got == KV_LOG_RECORD && (r.at < from || r.end <= r.at || r.end > l->size || r.bytes.n > r.end - r.at))
            abort();
        if (got == KV_LOG_RECORD) from = r.end;
        if (got == KV_LOG_END) return;
        if (got == KV_LOG_BAD && kv_log_resync(l, &hole, &e) <= 0) {
            if (e.set) abort();
            return;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64];
    struct kv_log l;
    struct err e = {0};
    int fd = memfd_create("log", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (kv_log_open(&l, path, &e)) abort();
    walk(&l);
    kv_log_close(&l);
    close(fd);
    return 0;
}
