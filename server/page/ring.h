/* Rings of increasing coarseness: the history of some figures in fixed memory. Each ring keeps the
 * mean and the maximum of each figure by slots of a fixed number of seconds.
 *
 * Life of a second: rings_add adds its figures to the open slot of each ring. When a later slot
 * opens, the one before is written to its position in the ring as codes, logarithms of one or two
 * bytes (an error of 3.2 % or 0.03 % at most). Seconds in which nothing happened are not added, and
 * count as zeros in the mean of a rate; the mean of a gauge is that of the seconds that were added.
 *
 * The closed slots of all rings are one block of bytes, the image, which the owner keeps and may
 * write to a file. Each slot has a checksum:
 *
 *     u32 crc of the rest | u32 slot, its first second / seconds of a slot | u32 seconds added |
 *     u32 unused | codes of the means | codes of the maxima
 *
 * Not thread-safe.
 */
#pragma once

#include "base/err.h"

/* TiDB's rings, and one of seconds before them. The first is not written to files. */
enum { RINGS = 6, RING_SLOTS = 120 + 60 + 210 + 160 + 288 + 168, RING_SLOTS_MOST = 288 };
struct ring_shape {
    uint32_t seconds, slots;
};
static const struct ring_shape ring_shapes[RINGS] = {
    {1, 120}, {60, 60}, {120, 210}, {360, 160}, {1800, 288}, {14400, 168}};

/* The head of a slot of an image, here and in parts.h. */
struct ring_head {
    uint32_t crc, slot, seconds, dirty; /* dirty: changed since it was last written; not in the checksum */
};

struct rings {
    uint32_t n;      /* figures */
    uint32_t width;  /* bytes of a code: 1 or 2 */
    uint64_t gauges; /* bit set of figures that are gauges, of the first 64 */
    struct ring_open {
        uint32_t slot, seconds; /* slot 0: none is open */
        float *sum, *most;
    } open[RINGS];
    uint8_t *image;
};

uint32_t ring_code(double v, uint32_t width);
double ring_value(uint32_t code, uint32_t width);
/* The number of the first slot of ring i in an image, and of the slot with that number. */
uint32_t ring_first(unsigned i);
static inline uint32_t ring_at(unsigned i, uint32_t slot) { return ring_first(i) + slot % ring_shapes[i].slots; }

size_t rings_slot_bytes(uint32_t n, uint32_t width);
static inline size_t rings_bytes(uint32_t n, uint32_t width) { return RING_SLOTS * rings_slot_bytes(n, width); }
/* The image, of rings_bytes, outlives the rings. It is zero, or one that ring_check_slots has seen. */
int rings_init(struct rings *r, uint32_t n, uint32_t width, uint64_t gauges, uint8_t *image, struct err *e) MUST_CHECK;
void rings_fini(struct rings *r);
/* Adds the figures of a second. A second before the open slot of a ring is left out there. */
void rings_add(struct rings *r, uint32_t second, const float *values);
/* Reads a slot; false: nothing happened in it, or it is too old. now: the running second, which ends
 * an open slot. */
bool rings_read(const struct rings *r, unsigned ring, uint32_t slot, uint32_t now, float *mean, float *most);
/* Writes the open slots to the image, too, where they stay open. */
void rings_store(struct rings *r);

/* Slots of any size: their seal, and the check of an image that was read from a file. Zeroes
 * damaged slots and returns their number. */
void ring_seal(uint8_t *slot, size_t bytes);
uint32_t ring_check_slots(uint8_t *image, size_t slot_bytes);
