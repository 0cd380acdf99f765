#include "tools/client/flight.h"

#include <assert.h>
#include <stdlib.h>

int flight_init(struct flight *f, uint32_t n) {
    *f = (struct flight){.n = n,
                         .slots = calloc(n, sizeof(*f->slots)), .free = calloc(n, sizeof(*f->free)),
                         .waiting = calloc(n, sizeof(*f->waiting))};
    if (!f->slots || !f->free || !f->waiting) {
        flight_fini(f);
        return -1;
    }
    for (uint32_t i = 0; i < n; i++) flight_put_back(f, &f->slots[n - 1 - i]); /* slot 0 is taken first */
    return 0;
}

void flight_fini(struct flight *f) {
    free(f->slots);
    free(f->free);
    free(f->waiting);
    *f = (struct flight){0};
}

static struct flight_slot *begin(struct flight_slot *s, uint64_t due_ns) {
    s->tries = 0;
    s->due_ns = due_ns;
    return s;
}

struct flight_slot *flight_take(struct flight *f, uint64_t due_ns) {
    return f->n_free ? begin(&f->slots[f->free[--f->n_free]], due_ns) : NULL;
}

struct flight_slot *flight_take_of(struct flight *f, uint32_t first, uint32_t n, uint64_t due_ns) {
    for (uint32_t i = first; i < first + n; i++) {
        struct flight_slot *s = &f->slots[i];
        if (s->state != SLOT_FREE) continue;
        uint32_t last = f->free[--f->n_free];
        f->free[s->place] = last;
        f->slots[last].place = s->place;
        return begin(s, due_ns);
    }
    return NULL;
}

void flight_put_back(struct flight *f, struct flight_slot *s) {
    s->place = f->n_free;
    f->free[f->n_free++] = flight_number(f, s);
}

void flight_sent(struct flight *f, struct flight_slot *s, uint64_t now_ns) {
    assert(s->state != SLOT_FLYING);
    s->state = SLOT_FLYING;
    s->tries++;
    s->sent_ns = now_ns;
    f->n_flying++;
}

static void land(struct flight *f, struct flight_slot *s) {
    assert(s->state == SLOT_FLYING);
    f->n_flying--;
}

uint64_t flight_done(struct flight *f, struct flight_slot *s, uint64_t now_ns) {
    land(f, s);
    s->state = SLOT_FREE;
    flight_put_back(f, s);
    return now_ns > s->due_ns ? now_ns - s->due_ns : 0;
}

/* ---- the heap of waiting slots ---- */

static uint64_t key_of(const struct flight *f, uint32_t at) { return f->slots[f->waiting[at]].again_ns; }

static void swap(struct flight *f, uint32_t i, uint32_t k) {
    uint32_t t = f->waiting[i];
    f->waiting[i] = f->waiting[k];
    f->waiting[k] = t;
}

void flight_again(struct flight *f, struct flight_slot *s, uint64_t at_ns) {
    land(f, s);
    s->state = SLOT_WAITING;
    s->again_ns = at_ns;
    uint32_t i = f->n_waiting++;
    f->waiting[i] = flight_number(f, s);
    for (; i && key_of(f, (i - 1) / 2) > key_of(f, i); i = (i - 1) / 2) swap(f, i, (i - 1) / 2);
}

uint64_t flight_next(const struct flight *f) { return f->n_waiting ? key_of(f, 0) : FLIGHT_NEVER; }

struct flight_slot *flight_due(struct flight *f, uint64_t now_ns) {
    if (!f->n_waiting || flight_next(f) > now_ns) return NULL;
    struct flight_slot *s = &f->slots[f->waiting[0]];
    f->waiting[0] = f->waiting[--f->n_waiting];
    for (uint32_t i = 0, k; (k = 2 * i + 1) < f->n_waiting; i = k) {
        if (k + 1 < f->n_waiting && key_of(f, k + 1) < key_of(f, k)) k++;
        if (key_of(f, i) <= key_of(f, k)) break;
        swap(f, i, k);
    }
    return s;
}
