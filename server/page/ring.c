#include "server/page/ring.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/crc32c.h"

/* ---- codes ---- */

/* Code 1 is 2^-low; the number of codes in an octave. */
static const struct {
    double low, steps;
    uint32_t most;
} codes[] = {[1] = {4, 11, UINT8_MAX}, [2] = {10, 1600, UINT16_MAX}};

uint32_t ring_code(double v, uint32_t width) {
    if (!(v > 0)) return 0;
    double c = 1 + (log2(v) + codes[width].low) * codes[width].steps;
    return c < 1 ? 1 : c > codes[width].most ? codes[width].most : (uint32_t)lround(c);
}

double ring_value(uint32_t code, uint32_t width) {
    return code ? exp2((code - 1) / codes[width].steps - codes[width].low) : 0;
}

static void put_code(uint8_t *p, uint32_t i, uint32_t width, double v) {
    uint32_t code = ring_code(v, width);
    if (width == 2) store_u16(p + 2 * i, (uint16_t)code);
    else p[i] = (uint8_t)code;
}

static float get_code(const uint8_t *p, uint32_t i, uint32_t width) {
    return (float)ring_value(width == 2 ? load_u16(p + 2 * i) : p[i], width);
}

/* ---- slots of an image ---- */

uint32_t ring_first(unsigned i) {
    uint32_t first = 0;
    for (unsigned k = 0; k < i; k++) first += ring_shapes[k].slots;
    return first;
}

size_t rings_slot_bytes(uint32_t n, uint32_t width) { return sizeof(struct ring_head) + 2 * (size_t)n * width; }

/* The head without its checksum and its mark, and the bytes after it. */
static uint32_t checksum(const uint8_t *slot, size_t bytes) {
    const struct ring_head *h = (const void *)slot;
    uint32_t crc = crc32c(0, slice_of(&h->slot, 2 * sizeof(h->slot)));
    return crc32c(crc, slice_of(slot + sizeof(*h), bytes - sizeof(*h)));
}

void ring_seal(uint8_t *slot, size_t bytes) {
    struct ring_head *h = (void *)slot;
    h->crc = checksum(slot, bytes);
    h->dirty = 1;
}

uint32_t ring_check_slots(uint8_t *image, size_t slot_bytes) {
    uint32_t damaged = 0;
    for (uint8_t *slot = image; slot < image + RING_SLOTS * slot_bytes; slot += slot_bytes) {
        struct ring_head *h = (void *)slot;
        if (!h->slot && !h->crc) continue;
        h->dirty = 0;
        if (h->crc == checksum(slot, slot_bytes)) continue;
        memset(slot, 0, slot_bytes);
        damaged++;
    }
    return damaged;
}

static uint8_t *slot_of(const struct rings *r, unsigned ring, uint32_t slot) {
    return r->image + ring_at(ring, slot) * rings_slot_bytes(r->n, r->width);
}

static bool is_gauge(const struct rings *r, uint32_t i) { return i < 64 && r->gauges >> i & 1; }

/* The divisor that makes a mean of a sum. */
static float divisor(const struct rings *r, unsigned ring, uint32_t i, uint32_t seconds) {
    return (float)(is_gauge(r, i) ? (seconds ? seconds : 1) : ring_shapes[ring].seconds);
}

static void store(struct rings *r, unsigned ring) {
    const struct ring_open *o = &r->open[ring];
    if (!o->slot) return;
    uint8_t *slot = slot_of(r, ring, o->slot), *means = slot + sizeof(struct ring_head);
    *(struct ring_head *)(void *)slot = (struct ring_head){.slot = o->slot, .seconds = o->seconds};
    for (uint32_t i = 0; i < r->n; i++) {
        put_code(means, i, r->width, o->sum[i] / divisor(r, ring, i, o->seconds));
        put_code(means + (size_t)r->n * r->width, i, r->width, o->most[i]);
    }
    ring_seal(slot, rings_slot_bytes(r->n, r->width));
}

static bool load(const struct rings *r, unsigned ring, uint32_t slot, float *mean, float *most, uint32_t *seconds) {
    const uint8_t *at = slot_of(r, ring, slot), *means = at + sizeof(struct ring_head);
    const struct ring_head *h = (const void *)at;
    if (h->slot != slot || !slot) return false;
    *seconds = h->seconds;
    for (uint32_t i = 0; i < r->n; i++) {
        mean[i] = get_code(means, i, r->width);
        most[i] = get_code(means + (size_t)r->n * r->width, i, r->width);
    }
    return true;
}

/* ---- rings ---- */

int rings_init(struct rings *r, uint32_t n, uint32_t width, uint64_t gauges, uint8_t *image, struct err *e) {
    *r = (struct rings){.n = n, .width = width, .gauges = gauges, .image = image};
    for (unsigned i = 0; i < RINGS; i++) {
        r->open[i].sum = calloc(n, sizeof(float));
        r->open[i].most = calloc(n, sizeof(float));
        if (r->open[i].sum && r->open[i].most) continue;
        rings_fini(r);
        return err_nomem(e);
    }
    return 0;
}

void rings_fini(struct rings *r) {
    for (unsigned i = 0; i < RINGS; i++) {
        free(r->open[i].sum);
        free(r->open[i].most);
    }
    *r = (struct rings){0};
}

void rings_add(struct rings *r, uint32_t second, const float *values) {
    for (unsigned k = 0; k < RINGS; k++) {
        struct ring_open *o = &r->open[k];
        uint32_t slot = second / ring_shapes[k].seconds;
        if (slot < o->slot) continue;
        if (slot != o->slot) { /* opens a slot, which continues the one of an earlier run when the image has it */
            store(r, k);
            *o = (struct ring_open){.slot = slot, .sum = o->sum, .most = o->most};
            bool continues = load(r, k, slot, o->sum, o->most, &o->seconds);
            for (uint32_t i = 0; i < r->n; i++) {
                o->sum[i] = continues ? o->sum[i] * divisor(r, k, i, o->seconds) : 0;
                if (!continues) o->most[i] = 0;
            }
        }
        o->seconds++;
        for (uint32_t i = 0; i < r->n; i++) {
            o->sum[i] += values[i];
            if (values[i] > o->most[i]) o->most[i] = values[i];
        }
    }
}

bool rings_read(const struct rings *r, unsigned ring, uint32_t slot, uint32_t now, float *mean, float *most) {
    const struct ring_open *o = &r->open[ring];
    uint32_t width = ring_shapes[ring].seconds, seconds, passed = now / width == slot ? now % width + 1 : width;
    assert(ring < RINGS);
    if (o->slot >= slot + ring_shapes[ring].slots) return false; /* the open slot has taken its position */
    if (o->slot != slot) {
        if (!load(r, ring, slot, mean, most, &seconds)) return false;
    } else {
        seconds = o->seconds;
        for (uint32_t i = 0; i < r->n; i++) {
            mean[i] = o->sum[i] / divisor(r, ring, i, seconds);
            most[i] = o->most[i];
        }
    }
    for (uint32_t i = 0; passed < width && i < r->n; i++)
        if (!is_gauge(r, i)) mean[i] *= (float)width / (float)passed;
    return true;
}

void rings_store(struct rings *r) {
    for (unsigned i = 1; i < RINGS; i++) store(r, i);
}
