#include "server/page/parts.h"

#include <stdlib.h>
#include <string.h>

#include "metering/limits/limit.h"

float part_share(const float f[RANGE_FIGURES], const struct part_limits *l) {
    float read = f[RANGE_READ_HALVES] / 2 / l->read_units, write = f[RANGE_WRITE_UNITS] / l->write_units;
    float entities = l->entities > 0 ? f[RANGE_ENTITIES] / l->entities : 0;
    float most = read > write ? read : write;
    return most > entities ? most : entities;
}

/* The order of partitions, by the published limits, the guidance's too. A throttle counts as a small part of the
 * limit, so that partitions whose requests are all refused are kept. */
static float weight_of(const float f[RANGE_FIGURES]) {
    const struct part_limits published = {.read_units = (float)limit_info(LIMIT_PARTITION_READ)->value,
                                          .write_units = (float)limit_info(LIMIT_PARTITION_WRITE)->value,
                                          .entities = (float)limit_info(LIMIT_ENTITIES_PARTITION)->value};
    return part_share(f, &published) + f[RANGE_THROTTLES] * 1e-3f;
}
static float weight(const struct hot_partition *p) { return weight_of(p->mean); }

static int heavier(const void *a, const void *b) {
    float x = weight(a), y = weight(b);
    return (x < y) - (x > y);
}

/* ---- slots ---- */

static uint8_t *slot_of(const struct parts *p, unsigned ring, uint32_t slot) {
    return p->image + (size_t)ring_at(ring, slot) * PARTS_SLOT_BYTES;
}

static void store(struct parts *p, unsigned ring) {
    struct parts_open *o = &p->open[ring];
    if (!o->slot) return;
    uint8_t *slot = slot_of(p, ring, o->slot);
    struct part_row *rows = (void *)(slot + sizeof(struct ring_head));
    float width = (float)ring_shapes[ring].seconds;
    memset(slot, 0, PARTS_SLOT_BYTES);
    qsort(o->rows, o->n, sizeof(*o->rows), heavier);
    uint32_t n = o->n < PARTS_KEPT ? o->n : PARTS_KEPT;
    *(struct ring_head *)(void *)slot = (struct ring_head){.slot = o->slot, .seconds = n};
    for (uint32_t i = 0; i < n; i++) {
        rows[i].token = o->rows[i].token;
        for (int f = 0; f < RANGE_FIGURES; f++) {
            rows[i].mean[f] = (uint16_t)ring_code(o->rows[i].mean[f] / width, 2);
            rows[i].most[f] = (uint16_t)ring_code(o->rows[i].most[f], 2);
        }
    }
    ring_seal(slot, PARTS_SLOT_BYTES);
}

static uint32_t load(const struct parts *p, unsigned ring, uint32_t slot, struct hot_partition *out) {
    const uint8_t *at = slot_of(p, ring, slot);
    const struct ring_head *h = (const void *)at;
    const struct part_row *rows = (const void *)(at + sizeof(*h));
    uint32_t n = h->slot == slot && slot ? h->seconds : 0;
    if (n > PARTS_KEPT) n = PARTS_KEPT;
    for (uint32_t i = 0; i < n; i++) {
        out[i].token = rows[i].token;
        for (int f = 0; f < RANGE_FIGURES; f++) {
            out[i].mean[f] = (float)ring_value(rows[i].mean[f], 2);
            out[i].most[f] = (float)ring_value(rows[i].most[f], 2);
        }
    }
    return n;
}

static struct hot_partition *row_of(struct parts_open *o, int64_t token) {
    struct hot_partition *least = &o->rows[0];
    for (struct hot_partition *x = o->rows; x < o->rows + o->n; x++) {
        if (x->token == token) return x;
        if (weight(x) < weight(least)) least = x;
    }
    if (o->n < PARTS_OPEN) least = &o->rows[o->n++];
    *least = (struct hot_partition){.token = token};
    return least;
}

/* ---- keys ---- */

static float worth(const struct part_key *k, uint32_t second) {
    uint32_t oldest = ring_shapes[RINGS - 1].seconds * ring_shapes[RINGS - 1].slots;
    return k->seen && k->seen + oldest > second ? k->most : 0;
}

static void record_key(struct parts *p, uint32_t second, int64_t token, struct slice key, float share) {
    struct part_key *least = p->keys;
    for (struct part_key *k = p->keys; k < p->keys + PART_KEYS; k++) {
        if (k->seen && k->token == token) {
            k->seen = second;
            if (share > k->most) k->most = share;
            return;
        }
        if (worth(k, second) < worth(least, second)) least = k;
    }
    if (worth(least, second) >= share) return;
    *least = (struct part_key){.token = token, .seen = second, .n = (uint32_t)key.n, .most = share};
    if (key.n) memcpy(least->key, key.p, key.n < SHARD_KEY ? key.n : SHARD_KEY);
    p->keys_changed = true;
    p->counts[least - p->keys] = (struct part_counts){0};
}

const struct part_key *parts_key(const struct parts *p, int64_t token) {
    for (const struct part_key *k = p->keys; k < p->keys + PART_KEYS; k++)
        if (k->seen && k->token == token) return k;
    return NULL;
}

/* ---- rings ---- */

void parts_add(struct parts *p, uint32_t second, int64_t token, struct slice key, const float figures[RANGE_FIGURES]) {
    record_key(p, second, token, key, weight_of(figures));
    for (unsigned k = 0; k < RINGS; k++) {
        struct parts_open *o = &p->open[k];
        uint32_t slot = second / ring_shapes[k].seconds;
        if (slot < o->slot) continue;
        if (slot != o->slot) {
            store(p, k);
            o->slot = slot;
            o->n = load(p, k, slot, o->rows);
            for (uint32_t i = 0; i < o->n; i++)
                for (int f = 0; f < RANGE_FIGURES; f++) o->rows[i].mean[f] *= (float)ring_shapes[k].seconds;
        }
        struct hot_partition *row = row_of(o, token);
        for (int f = 0; f < RANGE_FIGURES; f++) {
            row->mean[f] += figures[f];
            if (figures[f] > row->most[f]) row->most[f] = figures[f];
        }
    }
}

/* The ledger forgets a partition that is no longer heavy, and then counts it from zero again. */
void parts_count(struct parts *p, uint32_t second, int64_t token, struct slice key, const uint64_t sums[RANGE_FIGURES],
                 const float last_second[RANGE_FIGURES]) {
    const struct part_key *k = parts_key(p, token);
    struct part_counts *c = k ? &p->counts[k - p->keys] : NULL;
    float figures[RANGE_FIGURES];
    bool any = false;
    for (int f = 0; f < RANGE_FIGURES; f++) {
        figures[f] = c && c->second && sums[f] >= c->n[f] ? (float)(sums[f] - c->n[f]) : last_second[f];
        any = any || figures[f] > 0;
    }
    if (!any) return;
    parts_add(p, second, token, key, figures);
    k = parts_key(p, token);
    if (!k) return;
    c = &p->counts[k - p->keys];
    c->second = second;
    memcpy(c->n, sums, sizeof(c->n));
}

uint32_t parts_read(const struct parts *p, unsigned ring, uint32_t slot, uint32_t now,
                    struct hot_partition out[PARTS_OPEN]) {
    const struct parts_open *o = &p->open[ring];
    uint32_t width = ring_shapes[ring].seconds, passed = now / width == slot ? now % width + 1 : width, n;
    float scale = (float)width / (float)passed;
    if (o->slot == slot && slot) {
        n = o->n;
        memcpy(out, o->rows, n * sizeof(*out));
        scale = 1 / (float)passed;
    } else n = load(p, ring, slot, out);
    for (uint32_t i = 0; i < n; i++)
        for (int f = 0; f < RANGE_FIGURES; f++) out[i].mean[f] *= scale;
    if (n) qsort(out, n, sizeof(*out), heavier);
    return n;
}

void parts_store(struct parts *p) {
    for (unsigned i = 1; i < RINGS; i++) store(p, i);
}
