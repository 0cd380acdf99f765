/* The page's cookies, and slots of its history file: whatever a slot holds, with a checksum that is
 * right, every reader of rings and partitions takes it, and a second can be added behind it. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "server/page/history.h"
#include "server/page/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SHOWN = 3, WIDTH = 2, NOW = 1900000000 };

static void check_cookie(const uint8_t *data, size_t size) {
    char token[SESSION_TOKEN + 1] = {0}, *cookie = malloc(size + 1);
    if (!cookie) abort();
    memcpy(cookie, data, size);
    cookie[size] = 0;
    if (session_token(cookie, token)) assert(strlen(token) == SESSION_TOKEN);
    free(cookie);
}

/* An image whose slots repeat the data, sealed. */
static uint8_t *image_of(const uint8_t *data, size_t size, size_t slot_bytes) {
    uint8_t *image = calloc(RING_SLOTS, slot_bytes);
    if (!image) abort();
    for (size_t i = 0; size && i < RING_SLOTS * slot_bytes; i++) image[i] = data[i % size];
    for (uint32_t i = 0; size && i < RING_SLOTS; i++) ring_seal(image + i * slot_bytes, slot_bytes);
    assert(ring_check_slots(image, slot_bytes) == 0);
    return image;
}

static void read_rings(const struct rings *r, const struct parts *p) {
    float mean[SHOWN], most[SHOWN];
    struct hot_partition rows[PARTS_OPEN];
    for (unsigned ring = 0; ring < RINGS; ring++)
        for (uint32_t i = 0; i < ring_shapes[ring].slots; i++) {
            uint32_t slot = NOW / ring_shapes[ring].seconds - i;
            if (rings_read(r, ring, slot, NOW, mean, most))
                for (int f = 0; f < SHOWN; f++) assert(isfinite(mean[f]) && isfinite(most[f]));
            assert(parts_read(p, ring, slot, NOW, rows) <= PARTS_OPEN);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct part_key keys[PART_KEYS];
    const float values[RANGE_FIGURES] = {1, 2, 3, 4};
    struct err e = {0};
    struct rings r;
    struct parts p = {.keys = keys};
    check_cookie(data, size);
    uint8_t *image = image_of(data, size, rings_slot_bytes(SHOWN, WIDTH));
    p.image = image_of(data, size, PARTS_SLOT_BYTES);
    for (size_t i = 0; size && i < sizeof(keys); i++) ((uint8_t *)keys)[i] = data[i % size];
    if (rings_init(&r, SHOWN, WIDTH, 1, image, &e)) abort();
    read_rings(&r, &p);
    rings_add(&r, NOW, values);
    parts_add(&p, NOW, 7, slice_of(data, size), values);
    rings_store(&r);
    parts_store(&p);
    read_rings(&r, &p);
    for (int i = 0; i < PART_KEYS; i++) (void)parts_key(&p, keys[i].token);
    rings_fini(&r);
    free(image);
    free(p.image);
    return 0;
}
