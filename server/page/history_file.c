/* The file of the history: a head, then an entry of history_image_bytes for each table.
 *
 *     head    magic (8 bytes) | u32 form | u32 bytes of an entry | zeros up to 4096
 *     entry   struct name | keys of partitions | series | ranges | partitions (ring.h, parts.h)
 *
 * The name and the keys each begin with a checksum. Numbers have the machine's byte order: the file
 * stays on its machine, and form is another number on a machine of the other order. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/log.h"
#include "server/page/history.h"

enum { HEAD = 4096, HISTORY_FORM = 1, SERIES_WIDTH = 2, RANGES_WIDTH = 1 };
static const char magic[8] = "TALLYPG";

/* A part of an entry, with its own checksum. */
struct name {
    uint32_t crc, object;
    char keyspace[STATS_NAME], table[STATS_NAME];
};
struct history_keys {
    uint32_t crc, unused;
    struct part_key keys[PART_KEYS];
};
struct history_head {
    char magic[sizeof(magic)];
    uint32_t form, entry;
};

/* ---- a table's image ---- */

/* Where the parts of an entry begin; rows of partitions hold 8-byte numbers. */
static size_t aligned(size_t n) { return (n + 7) & ~(size_t)7; }
static size_t series_at(void) { return aligned(sizeof(struct name) + sizeof(struct history_keys)); }
static size_t ranges_at(void) { return aligned(series_at() + rings_bytes(SERIES_N, SERIES_WIDTH)); }
static size_t parts_at(void) { return aligned(ranges_at() + rings_bytes(SHARD_RANGES * RANGE_FIGURES, RANGES_WIDTH)); }
size_t history_image_bytes(void) { return parts_at() + (size_t)RING_SLOTS * PARTS_SLOT_BYTES; }

static struct history_keys *keys_of(uint8_t *image) { return (void *)(image + sizeof(struct name)); }

int history_table_open(struct history_table *t, uint8_t *image, struct err *e) {
    uint64_t gauges = 0;
    for (int i = 0; i < SERIES_N; i++) gauges |= (uint64_t)series_info((enum series)i)->gauge << i;
    *t = (struct history_table){0};
    if (rings_init(&t->series, SERIES_N, SERIES_WIDTH, gauges, image + series_at(), e)) return -1;
    if (rings_init(&t->ranges, SHARD_RANGES * RANGE_FIGURES, RANGES_WIDTH, 0, image + ranges_at(), e)) {
        rings_fini(&t->series);
        return -1;
    }
    t->parts.image = image + parts_at();
    t->parts.keys = keys_of(image)->keys;
    t->image = image;
    return 0;
}

void history_table_close(struct history_table *t) {
    rings_fini(&t->series);
    rings_fini(&t->ranges);
    free(t->image);
    *t = (struct history_table){0};
}

static uint32_t checksum(const void *part, size_t bytes) {
    return crc32c(0, slice_of((const uint8_t *)part + sizeof(uint32_t), bytes - sizeof(uint32_t)));
}

static off_t offset_of(uint32_t i) { return HEAD + (off_t)(i * history_image_bytes()); }

/* ---- writing ---- */

static void write_at(struct page_history *h, const void *bytes, size_t n, off_t at) {
    ssize_t done = pwrite(h->fd, bytes, n, at);
    bool failed = done != (ssize_t)n;
    if (failed && !h->failing)
        log_warn("%s cannot be written, and the page's history ends with this run: %s", h->o.path,
                 done < 0 ? strerror(errno) : "the disk is full");
    h->failing = failed;
}

/* Writes the slots of an image that have changed; the first ring stays in memory. */
static void save_slots(struct page_history *h, uint8_t *slots, size_t bytes, off_t at) {
    for (uint32_t i = ring_first(1); i < RING_SLOTS; i++) {
        uint8_t *slot = slots + i * bytes;
        struct ring_head *head = (void *)slot;
        if (!head->dirty) continue;
        write_at(h, slot, bytes, at + (off_t)(i * bytes));
        head->dirty = h->failing; /* tried again */
    }
}

static void save(struct page_history *h, uint32_t i) {
    struct history_table *t = &h->tables[i];
    struct name *name = (void *)t->image;
    struct history_keys *keys = keys_of(t->image);
    bool is_new = name->object != t->object;
    name->object = t->object;
    snprintf(name->keyspace, sizeof(name->keyspace), "%s", t->keyspace);
    snprintf(name->table, sizeof(name->table), "%s", t->name);
    name->crc = checksum(name, sizeof(*name));
    if (is_new) write_at(h, name, sizeof(*name), offset_of(i));
    rings_store(&t->series);
    rings_store(&t->ranges);
    parts_store(&t->parts);
    if (t->parts.keys_changed) {
        keys->crc = checksum(keys, sizeof(*keys));
        write_at(h, keys, sizeof(*keys), offset_of(i) + (off_t)sizeof(*name));
        t->parts.keys_changed = h->failing;
    }
    save_slots(h, t->image + series_at(), rings_slot_bytes(SERIES_N, SERIES_WIDTH), offset_of(i) + (off_t)series_at());
    save_slots(h, t->image + ranges_at(), rings_slot_bytes(SHARD_RANGES * RANGE_FIGURES, RANGES_WIDTH),
               offset_of(i) + (off_t)ranges_at());
    save_slots(h, t->image + parts_at(), PARTS_SLOT_BYTES, offset_of(i) + (off_t)parts_at());
}

/* Tables without a request since the last save have changed nothing. */
void history_file_save(struct page_history *h) {
    for (uint32_t i = 0; h->fd >= 0 && i < HISTORY_TABLES; i++)
        if (h->tables[i].object && h->tables[i].seen + 120 >= h->second) save(h, i);
}

void history_file_forget(struct page_history *h, const struct history_table *t) {
    off_t at = offset_of((uint32_t)(t - h->tables)), end = at + (off_t)history_image_bytes();
    /* An entry that is left as it is would be read as a table that no longer exists. */
    if (h->fd >= 0 && fallocate(h->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, end - at)) {
        const struct name none = {0};
        write_at(h, &none, sizeof(none), at);
    }
}

/* ---- reading ---- */

/* Reads an entry. false: there is no table in it. *damaged: the number of parts that were left out. */
static bool read_image(struct page_history *h, uint32_t i, uint8_t *image, uint32_t *damaged) {
    const struct name *name = (const void *)image;
    struct history_keys *keys = keys_of(image);
    if (pread(h->fd, image, sizeof(*name), offset_of(i)) != (ssize_t)sizeof(*name) || (!name->object && !name->crc))
        return false;
    if (name->crc != checksum(name, sizeof(*name))) {
        *damaged = 1;
        return false;
    }
    ssize_t n = pread(h->fd, image, history_image_bytes(), offset_of(i));
    if (n < (ssize_t)sizeof(*name)) return false;
    bool no_keys = !keys->crc && !keys->keys[0].seen;
    if (!no_keys && keys->crc != checksum(keys, sizeof(*keys))) {
        memset(keys, 0, sizeof(*keys));
        ++*damaged;
    }
    *damaged += ring_check_slots(image + series_at(), rings_slot_bytes(SERIES_N, SERIES_WIDTH));
    *damaged += ring_check_slots(image + ranges_at(), rings_slot_bytes(SHARD_RANGES * RANGE_FIGURES, RANGES_WIDTH));
    *damaged += ring_check_slots(image + parts_at(), PARTS_SLOT_BYTES);
    return true;
}

static void read_table(struct page_history *h, uint32_t i) {
    struct err e = {0};
    uint32_t damaged = 0;
    uint8_t *image = calloc(1, history_image_bytes());
    bool found = image && read_image(h, i, image, &damaged);
    if (damaged)
        log_warn("%s: %u damaged parts of the history of table %u are left out", h->o.path, damaged, i);
    struct history_table *t = &h->tables[i];
    if (!found || history_table_open(t, image, &e)) {
        free(image);
        return;
    }
    const struct name *name = (const void *)image;
    t->object = name->object;
    memcpy(t->keyspace, name->keyspace, sizeof(t->keyspace) - 1);
    memcpy(t->name, name->table, sizeof(t->name) - 1);
    if (h->o.exists && !h->o.exists(h->o.arg, t->object)) {
        history_file_forget(h, t);
        history_table_close(t);
    }
}

void history_file_open(struct page_history *h) {
    struct history_head head = {.form = HISTORY_FORM, .entry = (uint32_t)history_image_bytes()}, found = {0};
    struct stat st;
    memcpy(head.magic, magic, sizeof(magic));
    h->fd = open(h->o.path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (h->fd < 0 || fstat(h->fd, &st) || !S_ISREG(st.st_mode) || fchmod(h->fd, 0600)) {
        log_warn("%s cannot be opened, and the page's history is in memory only: %s", h->o.path,
                 h->fd < 0 ? strerror(errno) : "it is no file of this server");
        if (h->fd >= 0) close(h->fd);
        h->fd = -1;
        return;
    }
    bool whole = pread(h->fd, &found, sizeof(found), 0) == (ssize_t)sizeof(found);
    if (whole && !memcmp(&found, &head, sizeof(head))) {
        for (uint32_t i = 0; i < HISTORY_TABLES; i++) read_table(h, i);
        return;
    }
    if (st.st_size) log_warn("%s is damaged or of another version; the page's history restarts", h->o.path);
    if (ftruncate(h->fd, 0)) log_warn("%s: %s", h->o.path, strerror(errno));
    write_at(h, &head, sizeof(head), 0);
}
