#include "metering/ledger/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/crc32c.h"
#include "base/log.h"

enum {
    KIND_MINUTE = 1,
    KIND_BASE = 2,
    KIND_DROP = 3,
    KIND_DROPPED = 4,
    KIND_LIMITS = 5,
    KIND_ROLES = 6,
    KIND_SHARD = 7,
    KIND_ID = 8,
};
enum { HEAD = 8, RECORD_MAX = 1 << 20, FILE_MAX = 256 << 20, GROWN = 4 << 20 };
enum { OPERATION_BASE = 1000, OPERATION_STEP = 100, SPAN_BASE = 10000, SPAN_STEP = 4 };

/* ---- one record ---- */

static void put_count(struct buf *b, uint64_t number, uint64_t count) {
    if (!count) return;
    buf_uvarint(b, number);
    buf_uvarint(b, count);
}

static void put_name(struct buf *b, const char *name) {
    size_t n = strlen(name);
    buf_u8(b, (uint8_t)n);
    buf_put(b, name, n);
}

/* Between begin_record and end_record the caller appends the record's content. */
static size_t begin_record(struct buf *b, int kind, uint32_t object, uint32_t minute, const struct table_stats *t) {
    size_t start = b->n;
    buf_u32(b, 0);
    buf_u32(b, 0);
    buf_u8(b, (uint8_t)kind);
    buf_u32(b, object);
    buf_u32(b, minute);
    put_name(b, t ? t->keyspace : "");
    put_name(b, t ? t->name : "");
    return start;
}

static void end_record(struct buf *b, size_t start) {
    if (buf_failed(b)) return;
    struct slice payload = slice_of(b->p + start + HEAD, b->n - start - HEAD);
    buf_patch_u32(b, start, (uint32_t)payload.n);
    buf_patch_u32(b, start + 4, crc32c(0, payload));
}

static void put_figures(struct buf *b, const struct figures *f) {
    for (unsigned i = 0; i < FIGURES; i++) put_count(b, i, f->n[i]);
    for (unsigned o = 0; o < OPERATIONS; o++)
        for (unsigned i = 0; i < OPERATION_FIGURES; i++)
            put_count(b, OPERATION_BASE + OPERATION_STEP * o + i, f->of[o][i]);
}

/* f NULL: the record has no figures. */
static void put_record(struct buf *b, int kind, const struct table_stats *t, const struct figures *f) {
    size_t start = begin_record(b, kind, t ? t->object : 0, 0, t);
    if (f) put_figures(b, f);
    end_record(b, start);
}

/* all: puts the blob also when it has not changed. */
static void put_blob(struct buf *b, int kind, uint32_t object, const struct table_stats *t, struct stats_blob *m,
                     bool all) {
    if (!m->changed && !(all && m->n)) return;
    size_t start = begin_record(b, kind, object, 0, t);
    buf_put(b, m->p, m->n);
    end_record(b, start);
    m->changed = false;
}

static void put_blobs(struct buf *b, struct stats *of, bool all) {
    for (uint32_t i = 0; i < of->tables.n; i++) {
        struct table_stats *t = stats_at(of, i);
        put_blob(b, KIND_LIMITS, t->object, t, &t->limits, all);
    }
    put_blob(b, KIND_ROLES, 0, NULL, &of->roles, all);
    put_blob(b, KIND_ID, 0, NULL, &of->id, all);
    for (uint32_t i = 0; i < STATS_SHARDS; i++) put_blob(b, KIND_SHARD, i, NULL, &of->shards[i], all);
}

static void set_count(struct cell *cell, uint64_t number, uint64_t count) {
    struct figures *f = &cell->f;
    uint64_t o = (number - OPERATION_BASE) / OPERATION_STEP, i = (number - OPERATION_BASE) % OPERATION_STEP,
             s = (number - SPAN_BASE) / SPAN_STEP;
    if (number < FIGURES) {
        f->n[number] = count;
    } else if (number >= SPAN_BASE && s < SPANS) {
        uint64_t part = (number - SPAN_BASE) % SPAN_STEP;
        if (part == 0) cell->spans[s].min = count;
        if (part == 1) cell->spans[s].max = count;
        if (part == 2) cell->spans[s].n = count;
    } else if (number >= OPERATION_BASE && o < OPERATIONS && i < OPERATION_FIGURES) {
        f->of[o][i] = count;
    }
}

static void get_name(struct rd *r, char name[STATS_NAME]) {
    struct slice s = rd_bytes(r, rd_u8(r));
    snprintf(name, STATS_NAME, "%.*s", (int)s.n, s.p ? (const char *)s.p : "");
}

struct record_head {
    int kind;
    uint32_t object, minute;
    char keyspace[STATS_NAME], name[STATS_NAME];
};

static int take_figures(struct stats *b, const struct record_head *h, struct rd *r, uint32_t *latest) {
    struct cell cell = {0};
    while (rd_left(r) && !r->bad) {
        uint64_t number = rd_uvarint(r), count = rd_uvarint(r);
        if (!r->bad) set_count(&cell, number, count);
    }
    if (r->bad) return 1;
    if (h->kind == KIND_DROPPED) {
        b->dropped = cell.f;
        return 0;
    }
    struct table_stats *t = stats_open(b, h->object, h->keyspace, h->name);
    if (!t) return -1;
    if (h->kind == KIND_BASE) {
        figures_add(&t->total, &cell.f);
        return 0;
    }
    if (h->minute > *latest) *latest = h->minute;
    return stats_put_minute(t, h->minute, &cell);
}

int journal_take_record(struct stats *b, struct slice payload, uint32_t *latest) {
    struct rd r = rd_of(payload);
    struct record_head h;
    h.kind = rd_u8(&r);
    h.object = rd_u32(&r);
    h.minute = rd_u32(&r);
    get_name(&r, h.keyspace);
    get_name(&r, h.name);
    if (r.bad) return 1;
    switch (h.kind) {
    case KIND_DROP: stats_drop(b, h.object); return 0;
    case KIND_ROLES: return stats_blob_set(&b->roles, rd_bytes(&r, rd_left(&r)));
    case KIND_ID: return stats_blob_set(&b->id, rd_bytes(&r, rd_left(&r)));
    case KIND_SHARD:
        return h.object < STATS_SHARDS ? stats_blob_set(&b->shards[h.object], rd_bytes(&r, rd_left(&r))) : 1;
    case KIND_LIMITS: {
        struct table_stats *t = stats_open(b, h.object, h.keyspace, h.name);
        return t ? stats_blob_set(&t->limits, rd_bytes(&r, rd_left(&r))) : -1;
    }
    case KIND_MINUTE:
    case KIND_BASE:
    case KIND_DROPPED: return take_figures(b, &h, &r, latest);
    default: return 1;
    }
}

/* ---- reading ---- */

int64_t journal_take(struct stats *b, struct slice all, uint32_t *latest) {
    size_t at = 0;
    while (all.n - at > HEAD) {
        uint32_t n = load_u32(all.p + at);
        if (n > RECORD_MAX || n > all.n - at - HEAD ||
            crc32c(0, slice_of(all.p + at + HEAD, n)) != load_u32(all.p + at + 4))
            break;
        int rc = journal_take_record(b, slice_of(all.p + at + HEAD, n), latest);
        if (rc < 0) return -1;
        if (rc) break;
        at += HEAD + n;
    }
    return (int64_t)at;
}

static int cannot(struct err *e, const char *what, const char *path) {
    return err_set(e, ERR_CONFIG, "cannot %s the ledger %s: %s", what, path, strerror(errno));
}

/* Reads the file into the statistics, and cuts off the records after the first damage. */
static int load(struct journal *j, size_t size, struct stats *b, uint32_t *latest, struct err *e) {
    uint8_t *all = malloc(size ? size : 1);
    if (!all) return err_nomem(e);
    ssize_t got = pread(j->fd, all, size, 0);
    int64_t sound = got == (ssize_t)size ? journal_take(b, slice_of(all, size), latest) : 0;
    free(all);
    if (got != (ssize_t)size) return cannot(e, "read", j->path);
    if (sound < 0) return err_nomem(e);
    if ((size_t)sound < size) {
        log_warn("the ledger %s is torn or damaged at byte %lld of %zu: the bytes after it are cut off", j->path,
                 (long long)sound, size);
        if (ftruncate(j->fd, sound)) return cannot(e, "cut", j->path);
    }
    j->bytes = (uint64_t)sound;
    return 0;
}

int journal_open(struct journal *j, const char *path, struct stats *b, uint32_t *latest, struct err *e) {
    struct stat st;
    *j = (struct journal){.fd = -1};
    *latest = 0;
    if (snprintf(j->path, sizeof(j->path), "%s", path) >= (int)sizeof(j->path))
        return err_set(e, ERR_CONFIG, "the path of the ledger is too long");
    j->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (j->fd < 0 || fstat(j->fd, &st)) return cannot(e, "open", path);
    if (st.st_size > FILE_MAX)
        return err_set(e, ERR_CONFIG, "the ledger %s has %lld bytes, which it never has by itself", path,
                       (long long)st.st_size);
    if (load(j, (size_t)st.st_size, b, latest, e)) return -1;
    struct buf whole;
    buf_init(&whole, FILE_MAX);
    journal_put_whole(&whole, b);
    journal_replace(j, &whole);
    buf_fini(&whole);
    return 0;
}

void journal_close(struct journal *j) {
    if (j->fd < 0) return;
    journal_sync(j);
    close(j->fd);
    j->fd = -1;
}

/* ---- writing ---- */

static void warn_failure(struct journal *j) {
    if (!j->failing)
        log_warn("cannot write the ledger %s: %s; it is tried again every second", j->path, strerror(errno));
    j->failing = true;
}

void journal_append(struct journal *j, const struct buf *records) {
    if (!records->n || j->fd < 0) return;
    ssize_t n = buf_failed(records) ? -1 : write(j->fd, records->p, records->n);
    if (n == (ssize_t)records->n) {
        j->bytes += records->n;
        j->failing = false;
        return;
    }
    warn_failure(j);
    if (n > 0 && ftruncate(j->fd, (off_t)j->bytes)) log_warn("cannot cut the ledger %s: %s", j->path, strerror(errno));
}

void journal_sync(struct journal *j) {
    if (j->fd >= 0 && fdatasync(j->fd)) warn_failure(j);
}

static void put_minute(struct buf *out, const struct table_stats *t, const struct stats_minute *m) {
    size_t start = begin_record(out, KIND_MINUTE, t->object, m->minute, t);
    put_figures(out, &m->cell.f);
    for (unsigned k = 0; k < SPANS; k++) {
        const struct span *s = &m->cell.spans[k];
        put_count(out, SPAN_BASE + SPAN_STEP * k, s->min);
        put_count(out, SPAN_BASE + SPAN_STEP * k + 1, s->max);
        put_count(out, SPAN_BASE + SPAN_STEP * k + 2, s->n);
    }
    end_record(out, start);
}

static void put_minutes(struct buf *out, const struct table_stats *t, bool all) {
    for (int i = 0; i < STATS_MINUTES; i++) {
        struct stats_minute *m = t->minutes[i];
        if (!m || !(all || m->changed)) continue;
        put_minute(out, t, m);
        m->changed = false;
    }
}

void journal_put_totals(struct buf *out, const struct table_stats *t) {
    struct figures base = t->total;
    uint32_t newest = 0;
    for (int i = 0; i < STATS_MINUTES; i++)
        if (t->minutes[i] && t->minutes[i]->minute > newest) newest = t->minutes[i]->minute;
    for (int i = 0; i < STATS_MINUTES; i++) {
        const struct stats_minute *m = t->minutes[i];
        if (!m || m->minute + JOURNAL_TOTALS_MINUTES <= newest) continue;
        figures_sub(&base, &m->cell.f);
        put_minute(out, t, m);
    }
    put_record(out, KIND_BASE, t, &base);
}

void journal_put_dropped_totals(struct buf *out, const struct stats *b) {
    put_record(out, KIND_DROPPED, NULL, &b->dropped);
}

void journal_put_changes(struct buf *out, struct stats *b, bool all) {
    for (uint32_t i = 0; i < b->tables.n; i++) {
        struct table_stats *t = stats_at(b, i);
        if (all || t->changed) put_minutes(out, t, all);
        t->changed = false;
    }
    put_blobs(out, b, all);
}

void journal_put_drop(struct buf *out, const struct stats *b, uint32_t object) {
    const struct table_stats *t = stats_find(b, object);
    if (!t) return;
    put_minutes(out, t, false);
    put_record(out, KIND_DROP, t, NULL);
}

/* ---- rewriting ---- */

/* Reading a DROP record adds to the sum of dropped tables, so the record of that sum follows all DROP
 * records and sets it. */
void journal_put_whole(struct buf *out, struct stats *b) {
    for (uint32_t i = 0; i < b->gone.n; i++) {
        put_minutes(out, stats_gone_at(b, i), true);
        put_record(out, KIND_DROP, stats_gone_at(b, i), NULL);
    }
    put_record(out, KIND_DROPPED, NULL, &b->dropped);
    for (uint32_t i = 0; i < b->tables.n; i++) {
        const struct table_stats *t = stats_at(b, i);
        struct figures base = t->total; /* of the time before the minutes */
        for (int k = 0; k < STATS_MINUTES; k++)
            if (t->minutes[k]) figures_sub(&base, &t->minutes[k]->cell.f);
        put_record(out, KIND_BASE, t, &base);
        put_minutes(out, t, true);
    }
    put_blobs(out, b, true);
}

bool journal_is_large(const struct journal *j) { return j->fd >= 0 && j->bytes > GROWN + 2 * j->fresh_bytes; }

void journal_replace(struct journal *j, const struct buf *whole) {
    char fresh[sizeof(j->path) + 8], copy[sizeof(j->path)];
    snprintf(fresh, sizeof(fresh), "%s.new", j->path);
    snprintf(copy, sizeof(copy), "%s", j->path);
    int fd = buf_failed(whole) ? -1 : open(fresh, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600), folder = -1;
    bool replaced = fd >= 0 && write(fd, whole->p, whole->n) == (ssize_t)whole->n && !fdatasync(fd) &&
                    !rename(fresh, j->path) &&
                    (folder = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0 && !fsync(folder);
    if (folder >= 0) close(folder);
    if (!replaced) {
        warn_failure(j);
        if (fd >= 0) close(fd);
        return;
    }
    close(j->fd);
    j->fd = fd;
    j->bytes = j->fresh_bytes = whole->n;
    j->failing = false;
}
