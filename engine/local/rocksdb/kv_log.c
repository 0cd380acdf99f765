#include "engine/local/rocksdb/kv_log.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/file.h"

enum { BLOCK = 32768, HEAD = 7, SECTOR = 512, BATCH_HEAD = 12, TAG_NOTE = 3 };
enum { FULL = 1, FIRST, MIDDLE, LAST };

static const char note_magic[8] = {'t', 'a', 'l', 'l', 'y', '-', 'o', 'k'};

static uint32_t le32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static uint64_t le64(const uint8_t *p) { return le32(p) | (uint64_t)le32(p + 4) << 32; }

void kv_log_note(uint8_t note[KV_LOG_NOTE], uint64_t synced) {
    memcpy(note, note_magic, sizeof(note_magic));
    for (int i = 0; i < 8; i++) note[8 + i] = (uint8_t)(synced >> 8 * i);
}

int kv_log_open(struct kv_log *l, const char *path, struct err *e) {
    struct stat st;
    const char *why = NULL;
    *l = (struct kv_log){.fd = file_open_read(path, &why), .path = path, .block_at = UINT64_MAX};
    buf_init(&l->record, 0);
    if (l->fd >= 0 && fstat(l->fd, &st)) why = strerror(errno);
    if (why) {
        kv_log_close(l);
        return err_set(e, ERR_CONFIG, "cannot read %s: %s", path, why);
    }
    l->size = (uint64_t)st.st_size;
    l->block = malloc(BLOCK);
    if (l->block) return 0;
    kv_log_close(l);
    return err_nomem(e);
}

void kv_log_close(struct kv_log *l) {
    if (l->fd >= 0) close(l->fd);
    free(l->block);
    buf_fini(&l->record);
    l->fd = -1;
    l->block = NULL;
}

/* Loads the block at a position into memory. */
static int load(struct kv_log *l, uint64_t at, struct err *e) {
    uint64_t from = at / BLOCK * BLOCK;
    if (l->block_at == from) return 0;
    l->block_at = UINT64_MAX;
    l->block_n = 0;
    while (l->block_n < BLOCK && from + l->block_n < l->size) {
        ssize_t n = pread(l->fd, l->block + l->block_n, BLOCK - l->block_n, (off_t)(from + l->block_n));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return err_set(e, ERR_CONFIG, "cannot read %s: %s", l->path, strerror(errno));
        if (n == 0) break;
        l->block_n += (size_t)n;
    }
    l->block_at = from;
    return 0;
}

struct piece {
    uint8_t type;
    struct slice bytes;
};

/* Reads the piece at a position whose block is in memory. */
static bool piece_at(const struct kv_log *l, uint64_t at, struct piece *piece) {
    size_t o = (size_t)(at - l->block_at), room = l->block_n > o ? l->block_n - o : 0;
    if (room < HEAD) return false;
    const uint8_t *p = l->block + o;
    size_t n = (size_t)p[4] | (size_t)p[5] << 8;
    if (p[6] < FULL || p[6] > LAST || n > room - HEAD) return false;
    uint32_t crc = crc32c(0, slice_of(p + 6, n + 1));
    if (le32(p) != (crc >> 15 | crc << 17) + 0xa282ead8u) return false;
    *piece = (struct piece){.type = p[6], .bytes = slice_of(p + HEAD, n)};
    return true;
}

static enum kv_log_got next_piece(struct kv_log *l, struct piece *piece, struct err *e) {
    if (BLOCK - l->at % BLOCK < HEAD) l->at = (l->at / BLOCK + 1) * BLOCK;
    if (l->at >= l->size) return KV_LOG_END;
    if (load(l, l->at, e)) return KV_LOG_FAILED;
    if (!piece_at(l, l->at, piece)) {
        l->bad_at = l->at;
        return KV_LOG_BAD;
    }
    l->at += HEAD + piece->bytes.n;
    return KV_LOG_RECORD;
}

enum kv_log_got kv_log_next(struct kv_log *l, struct kv_log_record *r, struct err *e) {
    enum { TAIL = KV_LOG_NOTE + 2 };
    struct piece piece;
    bool inside = false;
    r->at = l->at;
    l->record.n = 0;
    for (;;) {
        uint64_t at = l->at;
        enum kv_log_got got = next_piece(l, &piece, e);
        if (got == KV_LOG_END && inside) l->bad_at = l->at, got = KV_LOG_BAD; /* torn between two pieces */
        if (got != KV_LOG_RECORD) return got;
        if (inside != (piece.type == MIDDLE || piece.type == LAST)) {
            l->bad_at = l->at = at;
            return KV_LOG_BAD;
        }
        inside = true;
        buf_put_slice(&l->record, piece.bytes);
        if (piece.type == FULL || piece.type == LAST) break;
    }
    if (buf_failed(&l->record)) return err_nomem(e), KV_LOG_FAILED;
    struct slice s = r->bytes = buf_slice(&l->record);
    r->end = l->at;
    r->first = r->last = r->synced = 0;
    if (s.n < BATCH_HEAD) return KV_LOG_RECORD;
    uint32_t count = le32(s.p + 8);
    r->first = le64(s.p);
    r->last = r->first + count - (count > 0);
    const uint8_t *tail = s.p + s.n - TAIL;
    if (s.n >= BATCH_HEAD + TAIL && tail[0] == TAG_NOTE && tail[1] == KV_LOG_NOTE &&
        !memcmp(tail + 2, note_magic, sizeof(note_magic)))
        r->synced = le64(tail + 10);
    return KV_LOG_RECORD;
}

/* Whether the rest of the first sector or all of another is zeros. Synced data ends with a record,
 * mostly in the middle of a sector. When a crash loses the next write of that sector but not of
 * later ones, the rest of the sector stays zero. */
static bool zero_sector(const struct kv_log *l, uint64_t from, uint64_t to) {
    static const uint8_t zeros[SECTOR];
    for (uint64_t at = from, end; at < to; at = end) {
        end = (at / SECTOR + 1) * SECTOR;
        size_t o = (size_t)(at - l->block_at), n = (size_t)(end - at);
        if (o + n <= l->block_n && !memcmp(l->block + o, zeros, n)) return true;
    }
    return false;
}

/* Within the bad piece's block a whole piece may begin anywhere; in later blocks the first one
 * begins at the start. */
int kv_log_resync(struct kv_log *l, bool *hole, struct err *e) {
    struct piece piece;
    uint64_t end = (l->bad_at / BLOCK + 1) * BLOCK;
    *hole = false;
    if (load(l, l->bad_at, e)) return -1;
    uint64_t at = l->bad_at;
    /* the bad position may hold a whole piece that is out of sequence */
    while (at < end && !piece_at(l, at, &piece)) at++;
    *hole = zero_sector(l, l->bad_at, at);
    for (; at >= end && at < l->size; at += BLOCK) {
        if (load(l, at, e)) return -1;
        if (piece_at(l, at, &piece)) break;
        *hole = *hole || zero_sector(l, at, at + BLOCK);
    }
    l->at = at;
    if (at >= l->size) return 0;
    /* pieces of a record whose beginning is lost */
    while (piece.type == MIDDLE || piece.type == LAST) {
        enum kv_log_got got = next_piece(l, &piece, e);
        if (got == KV_LOG_FAILED) return -1;
        if (got != KV_LOG_RECORD) break;
        if (piece.type == FULL || piece.type == FIRST) l->at -= HEAD + piece.bytes.n;
    }
    return 1;
}
