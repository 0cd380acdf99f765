#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>

#include "base/murmur3.h"
#include "base/random.h"
#include "harness.h"

struct rados *harness_open(uint64_t split_keys, unsigned timeout_s) {
    const char *conf = getenv("TALLY_RADOS_CONF");
    struct err e = {0};
    if (!conf) {
        fprintf(stderr, "TALLY_RADOS_CONF names no cluster: run tests/rados/run.py\n");
        exit(2);
    }
    struct rados_options o = {.pool = {.conf = conf, .pool = "tally", .timeout_s = timeout_s},
                              .merge = harness_merge,
                              .split_keys = split_keys};
    struct rados *s = rados_open(&o, &e);
    if (!s) {
        fprintf(stderr, "%s\n", e.text);
        exit(2);
    }
    return s;
}

uint32_t harness_table(void) {
    struct err e = {0};
    uint32_t id;
    if (random_bytes(&id, sizeof(id), &e) < 0) abort();
    return ENGI_TABLE_FIRST + id % (UINT32_MAX - ENGI_TABLE_FIRST);
}

int harness_osd(int osd) {
    char path[4096];
    int pid = 0;
    const char *conf = getenv("TALLY_RADOS_CONF"), *end = strrchr(conf, '/');
    snprintf(path, sizeof(path), "%.*s/run/osd.%d.pid", (int)(end - conf), conf, osd);
    FILE *f = fopen(path, "r");
    if (!f || fscanf(f, "%d", &pid) != 1) abort();
    fclose(f);
    return pid;
}

/* Whether a thread is stopped, or gone. */
static bool is_stopped(int pid, const char *thread) {
    char path[64], line[512], *state;
    snprintf(path, sizeof(path), "/proc/%d/task/%.20s/stat", pid, thread);
    FILE *f = fopen(path, "r");
    if (!f) return true;
    bool stopped = fgets(line, sizeof(line), f) && (state = strrchr(line, ')')) && state[2] == 'T';
    fclose(f);
    return stopped;
}

static bool all_stopped(int pid) {
    char path[64];
    bool stopped = true;
    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    DIR *threads = opendir(path);
    if (!threads) abort();
    for (struct dirent *d; stopped && (d = readdir(threads));)
        stopped = d->d_name[0] == '.' || is_stopped(pid, d->d_name);
    closedir(threads);
    return stopped;
}

void harness_pause(int osd) {
    int pid = harness_osd(osd);
    if (kill(pid, SIGSTOP) != 0) abort();
    while (!all_stopped(pid)) sched_yield();
}

void harness_resume(int osd) {
    if (kill(harness_osd(osd), SIGCONT) != 0) abort();
}

void harness_prefix(struct buf *out, uint32_t table, uint32_t number) {
    uint8_t key[4];
    store_u32(key, number);
    struct eng_part part = {.table = table, .token = murmur3_token(slice_of(key, 4)), .key = slice_of(key, 4)};
    engi_key_prefix(out, &part);
}

void harness_key(struct buf *out, uint32_t table, uint32_t number, uint8_t kind, struct slice rest) {
    harness_prefix(out, table, number);
    buf_u8(out, kind);
    buf_put_slice(out, rest);
}

int harness_merge(struct slice a, struct slice b, struct buf *out) {
    while (a.n || b.n) {
        struct slice *least = !b.n || (a.n && memcmp(a.p, b.p, 4) < 0) ? &a : &b;
        if (a.n && b.n && memcmp(a.p, b.p, 4) == 0) a.p += 4, a.n -= 4;
        buf_put(out, least->p, 4);
        least->p += 4, least->n -= 4;
    }
    return buf_failed(out) ? -1 : 0;
}

bool harness_has(struct slice set, uint32_t number) {
    for (size_t i = 0; i < set.n; i += 4)
        if (load_u32(set.p + i) == number) return true;
    return false;
}

int harness_append(struct rados *s, uint32_t table, uint32_t partition, const uint32_t *rows, size_t n, uint32_t number,
                   struct err *e) {
    struct write_change changes[16];
    struct buf prefix, keys[16];
    uint8_t value[4];
    store_u32(value, number);
    buf_init(&prefix, 0);
    harness_prefix(&prefix, table, partition);
    for (size_t i = 0; i < n; i++) {
        uint8_t row[4];
        store_u32(row, rows[i]);
        buf_init(&keys[i], 0);
        harness_key(&keys[i], table, partition, ENGI_ROW, slice_of(row, 4));
        changes[i] =
            (struct write_change){.kind = WRITE_APPEND, .key = buf_slice(&keys[i]), .value = slice_of(value, 4)};
    }
    struct write_group g = {.prefix = buf_slice(&prefix), .changes = changes, .n = n};
    int rc = write_groups(s, &g, 1, e);
    buf_fini(&prefix);
    for (size_t i = 0; i < n; i++) buf_fini(&keys[i]);
    return rc;
}
