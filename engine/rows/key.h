/* Keys of the store, and intervals of clustering keys as plain byte strings. Private to engine/.
 *
 *   [u32 table][u64 token, sign flipped][u16 n][n bytes partition key] [u8 kind][clustering key]
 *    `------------------------ prefix of the partition ------------'
 *
 * Big-endian, so that byte order is table, token, partition, and in a partition: its ballot (in
 * stores with several writers), its deletion, its static row, its range tombstones, its rows in
 * clustering order. Table 0 holds the catalogue's named records, table 1 marks and horizons
 * (engine/local/marks.h), table 3 the logs of tables with a history (engine/local/history.h).
 */
#pragma once

#include "engine/engine.h"

enum engi_kind { ENGI_BALLOT, ENGI_PARTITION_DELETION, ENGI_STATIC, ENGI_RANGE_TOMBSTONE, ENGI_ROW, ENGI_PAST };
enum { ENGI_TABLE_META = 0, ENGI_TABLE_MARKS = 1, ENGI_TABLE_HISTORY = 3, ENGI_TABLE_FIRST = 16 };
enum { ENGI_KEY_TOKEN = 4, ENGI_KEY_LENGTH = 12, ENGI_KEY_PREFIX_MIN = 14 };
enum { ENGI_MARK_RECORD = 10 /* bytes of a mark's key */ };

void engi_key_table(struct buf *out, uint32_t table);
void engi_key_token(struct buf *out, uint32_t table, int64_t token);
void engi_key_prefix(struct buf *out, const struct eng_part *part);
void engi_key_kind(struct buf *out, const struct eng_part *part, enum engi_kind kind);
void engi_key_row(struct buf *out, const struct eng_part *part, enum eng_row_kind kind, struct slice ck);
/* As above, to memory of engi_key_row_size bytes. */
size_t engi_key_row_size(const struct eng_part *part, enum eng_row_kind kind, struct slice ck);
void engi_key_row_write(uint8_t *p, const struct eng_part *part, enum eng_row_kind kind, struct slice ck);
/* Bytes of a key's partition prefix; 0 when the key is not a partition's. */
size_t engi_prefix_len(struct slice key);
/* Decodes the prefix of a partition; key points into it. */
struct eng_part engi_prefix_part(struct slice prefix);
/* The part of a partition's key after the prefix of n bytes and the kind. */
static inline struct slice engi_rest(struct slice key, size_t n) { return slice_of(key.p + n + 1, key.n - n - 1); }

/* The bucket of a token: one of 256 ranges of tokens, for which engine/local/marks.h keeps what
 * partitions may hold. */
static inline uint16_t engi_bucket(int64_t token) { return (uint16_t)((uint64_t)token >> 56); }
/* The bucket of a key of any of a partition's records. */
static inline uint16_t engi_bucket_of_key(struct slice key) {
    return engi_bucket((int64_t)(load_u64(key.p + ENGI_KEY_TOKEN) ^ (1ull << 63)));
}

/* The keys of a table's records: [from, to). lead 0: of its rows; else of what the store keeps of
 * it under [u32 lead][u32 id]. */
struct engi_keys {
    uint8_t ends[2][8];
    struct slice from, to; /* into ends */
};
void engi_keys_of(struct engi_keys *keys, uint32_t lead, uint32_t id);

/* The number of first bytes of a key that make its insert hint (near_len): its table, and the first
 * byte of its token. A range delete of a whole table begins with fewer bytes, also in the log that
 * an earlier version has left, so that this number may grow but not shrink. */
enum { ENGI_KEY_NEAR = ENGI_KEY_TOKEN + 1 };

/* Rows with from <= clustering key < to; no_end: to the end of the partition. */
struct engi_interval {
    struct slice from, to;
    bool no_end;
};

/* Converts a slice to an interval of key bytes. Memory for changed bounds comes from the arena. 0,
 * or -1: out of memory. */
int engi_interval_of(const struct eng_slice *s, struct arena *a, struct engi_interval *out) MUST_CHECK;
/* Range tombstones, after the kind. Loose, as they were written: [u8 ENGI_LOOSE][u64 ts, sign
 * flipped][u32 n][from][u8 no end][to] (ENGI_LOOSE_OLD: without the timestamp), so that the ones
 * newer than a partition's deletion are adjacent, and writing one again changes nothing. Fragmented
 * and disjoint: [u8 ENGI_FRAGMENT][u8 no end][to] with the start in the value, so that the first
 * one after a position is the only one that may cover it. */
enum engi_range_form { ENGI_LOOSE_OLD, ENGI_LOOSE, ENGI_FRAGMENT };
/* Make the keys of range tombstones. Their value is a row with only a deletion. prefix: the
 * partition's. */
void engi_key_loose(struct buf *out, struct slice prefix, const struct engi_interval *range, int64_t ts);
void engi_key_fragment(struct buf *out, struct slice prefix, const struct engi_interval *range);
/* Make the keys to seek the first loose tombstone newer than ts, and the first fragmented one that
 * ends after ck. */
void engi_key_loose_after(struct buf *out, struct slice prefix, int64_t ts);
void engi_key_fragment_after(struct buf *out, struct slice prefix, struct slice ck);
/* Decodes rest, the bytes after the kind in a range tombstone's key; does not set a fragmented
 * one's from. Returns -1 if damaged. */
int engi_range_read(struct slice rest, struct engi_interval *out) MUST_CHECK;
static inline bool engi_interval_covers(const struct engi_interval *i, struct slice ck) {
    return slice_cmp(ck, i->from) >= 0 && (i->no_end || slice_cmp(ck, i->to) < 0);
}
