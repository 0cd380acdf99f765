#include "native_protocol/budget.h"

#include <assert.h>

void npi_budget_init(struct np_budget *b, size_t limit, void (*tell)(void *owner)) {
    *b = (struct np_budget){.limit = limit, .tell = tell};
    pthread_mutex_init(&b->lock, NULL);
}

void npi_budget_fini(struct np_budget *b) {
    assert(!b->total && !b->leaving && !b->shares); /* B1, B2 */
    pthread_mutex_destroy(&b->lock);
}

size_t npi_budget_total(struct np_budget *b) {
    pthread_mutex_lock(&b->lock);
    size_t n = b->total;
    pthread_mutex_unlock(&b->lock);
    return n;
}

static void list(struct np_share *s, int64_t now_us) {
    struct np_budget *b = s->budget;
    s->since_us = now_us;
    s->prev = NULL;
    s->next = b->shares;
    if (s->next) s->next->prev = s;
    b->shares = s;
}

static void unlist(struct np_share *s) {
    struct np_budget *b = s->budget;
    if (s->prev) s->prev->next = s->next;
    else b->shares = s->next;
    if (s->next) s->next->prev = s->prev;
    s->next = s->prev = NULL;
}

/* Of two that hold the same, who has held it longer. */
static struct np_share *largest(const struct np_budget *b) {
    struct np_share *most = NULL;
    for (struct np_share *s = b->shares; s; s = s->next) {
        if (atomic_load_explicit(&s->evicted, memory_order_relaxed)) continue;
        if (!most || s->bytes > most->bytes || (s->bytes == most->bytes && s->since_us < most->since_us)) most = s;
    }
    return most;
}

static void evict(struct np_share *s) {
    struct np_budget *b = s->budget;
    assert(s->bytes && !s->leaving); /* B3 */
    s->leaving = s->bytes;
    b->leaving += s->leaving;
    atomic_store(&s->evicted, true);
    b->tell(s->owner);
}

static void keep_within(struct np_budget *b) {
    while (b->total - b->leaving > b->limit) {
        struct np_share *s = largest(b);
        if (!s) return;
        evict(s);
    }
}

void npi_share_init(struct np_share *s, struct np_budget *b, void *owner) { *s = (struct np_share){.budget = b, .owner = owner}; }

static void take_off(struct np_share *s, size_t n) {
    struct np_budget *b = s->budget;
    assert(n <= s->bytes && n <= b->total); /* B1 */
    s->bytes -= n;
    b->total -= n;
    size_t left = s->leaving < n ? s->leaving : n;
    s->leaving -= left;
    b->leaving -= left;
    if (n && !s->bytes) unlist(s);
}

void npi_share_fini(struct np_share *s) {
    if (!s->budget) return;
    pthread_mutex_lock(&s->budget->lock);
    take_off(s, s->bytes);
    pthread_mutex_unlock(&s->budget->lock);
}

void npi_share_add(struct np_share *s, size_t n, int64_t now_us) {
    struct np_budget *b = s->budget;
    if (!n) return;
    pthread_mutex_lock(&b->lock);
    if (!s->bytes) list(s, now_us);
    s->bytes += n;
    b->total += n;
    if (s->leaving) s->leaving += n, b->leaving += n;
    keep_within(b);
    pthread_mutex_unlock(&b->lock);
}

void npi_share_sub(struct np_share *s, size_t n) {
    if (!n) return;
    pthread_mutex_lock(&s->budget->lock);
    take_off(s, n);
    pthread_mutex_unlock(&s->budget->lock);
}
