/* The heaviest partitions of a table over time, in the rings of ring.h, and the names of their keys.
 *
 * An open slot counts up to PARTS_OPEN partitions; a further one replaces the lightest. A
 * closed slot keeps the PARTS_KEPT heaviest:
 *
 *     the head of ring.h, seconds: number of rows | rows
 *
 * The table keeps the keys of PART_KEYS partitions: those that had the most load in a second since
 * the oldest slot. Not thread-safe.
 */
#pragma once

#include "metering/ledger/shard.h"
#include "server/page/ring.h"

enum { PARTS_OPEN = 48, PARTS_KEPT = 16, PART_KEYS = 256 };

/* Figures of a partition in a second, or over a slot: read units in halves, write units, throttles,
 * entities. */
struct hot_partition {
    int64_t token;
    float mean[RANGE_FIGURES], most[RANGE_FIGURES];
};
struct part_row { /* in an image: codes of two bytes */
    int64_t token;
    uint16_t mean[RANGE_FIGURES], most[RANGE_FIGURES];
};
struct part_key {
    int64_t token;
    uint32_t seen, n; /* seen: the second; 0 if the entry is free. n: bytes of the whole key */
    float most;       /* the greatest share of a second, throttles included */
    uint8_t key[SHARD_KEY];
};

struct parts {
    struct parts_open {
        uint32_t slot, n;
        struct hot_partition rows[PARTS_OPEN]; /* mean is the sum */
    } open[RINGS];
    uint8_t *image;
    struct part_key *keys; /* PART_KEYS; the owner's, as the image */
    /* The ledger's sums of each key's partition at the last sample; not in the image. second 0: not yet. */
    struct part_counts {
        uint32_t second;
        uint64_t n[RANGE_FIGURES];
    } counts[PART_KEYS];
    bool keys_changed;
};

enum { PARTS_SLOT_BYTES = sizeof(struct ring_head) + PARTS_KEPT * sizeof(struct part_row) };

/* The limits of a partition, per second. entities 0: there is no such limit, because the guidance is off. */
struct part_limits {
    float read_units, write_units, entities;
};
/* Units and entities as shares of the limits of a partition: the greatest of them. */
float part_share(const float figures[RANGE_FIGURES], const struct part_limits *limits);
/* Adds a partition's figures of a second. */
void parts_add(struct parts *p, uint32_t second, int64_t token, struct slice key, const float figures[RANGE_FIGURES]);
/* parts_add with the use since the last call for the partition; sums: all that the ledger has
 * counted of it, last_second: in the last second, which is taken when there was no call before. */
void parts_count(struct parts *p, uint32_t second, int64_t token, struct slice key, const uint64_t sums[RANGE_FIGURES],
                 const float last_second[RANGE_FIGURES]);
/* Reads a slot into out, heaviest first; returns their number. now: as in rings_read. */
uint32_t parts_read(const struct parts *p, unsigned ring, uint32_t slot, uint32_t now,
                    struct hot_partition out[PARTS_OPEN]);
void parts_store(struct parts *p);
/* Returns NULL if the key is not known any more. */
const struct part_key *parts_key(const struct parts *p, int64_t token);
