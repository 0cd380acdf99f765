#include "native_protocol/budget.h"

#include <assert.h>

void npi_budget_init(struct np_budget *b, const struct np_budget_options *o) {
    *b = (struct np_budget){.o = *o};
    pthread_mutex_init(&b->lock, NULL);
}

void npi_budget_fini(struct np_budget *b) {
    assert(!b->total && !b->leaving && !b->shares); /* B1, B2, B3 */
    pthread_mutex_destroy(&b->lock);
}

size_t npi_budget_total(struct np_budget *b) {
    pthread_mutex_lock(&b->lock);
    size_t n = b->total;
    pthread_mutex_unlock(&b->lock);
    return n;
}

/* ---- who goes ---- */

static bool is_spared(const struct np_share *s, int64_t now_us) {
    const struct np_budget_options *o = &s->budget->o;
    int64_t moved_us = atomic_load_explicit(&s->moved_us, memory_order_relaxed);
    return now_us - moved_us < o->still_us && now_us - s->since_us < o->long_us;
}

/* Of two that hold the same, who has held it longer. */
static struct np_share *largest(const struct np_budget *b, const struct np_share *but, bool spare, int64_t now_us) {
    struct np_share *most = NULL;
    for (struct np_share *s = b->shares; s; s = s->next) {
        if (s == but || s->bytes == s->making || atomic_load_explicit(&s->evicted, memory_order_relaxed)) continue;
        if (spare && is_spared(s, now_us)) continue;
        if (!most || s->bytes > most->bytes || (s->bytes == most->bytes && s->since_us < most->since_us)) most = s;
    }
    return most;
}

static void evict(struct np_share *s) {
    struct np_budget *b = s->budget;
    assert(s->bytes > s->making && !s->leaving); /* B3 */
    s->leaving = s->bytes;
    b->leaving += s->leaving;
    atomic_store(&s->evicted, true);
    b->o.tell(s->owner);
}

static bool over(const struct np_budget *b, size_t limit) { return b->total - b->leaving > limit; }

/* but: stays; NULL: anyone may go. */
static void evict_down_to(struct np_budget *b, size_t limit, const struct np_share *but, bool spare) {
    int64_t now_us = over(b, limit) ? clock_machine_us(b->o.clock) : 0;
    while (over(b, limit)) {
        struct np_share *s = largest(b, but, spare, now_us);
        if (!s) return;
        evict(s);
    }
}

/* ---- shares ---- */

void npi_share_init(struct np_share *s, struct np_budget *b, void *owner) { *s = (struct np_share){.budget = b, .owner = owner}; }

static void begin(struct np_share *s) {
    struct np_budget *b = s->budget;
    s->since_us = clock_machine_us(b->o.clock);
    npi_share_moved(s, s->since_us);
    s->prev = NULL;
    s->next = b->shares;
    if (s->next) s->next->prev = s;
    b->shares = s;
}

static void end(struct np_share *s) {
    if (s->prev) s->prev->next = s->next;
    else s->budget->shares = s->next;
    if (s->next) s->next->prev = s->prev;
    s->next = s->prev = NULL;
}

static void put(struct np_share *s, size_t n) {
    struct np_budget *b = s->budget;
    if (!s->bytes) begin(s);
    s->bytes += n;
    b->total += n;
    if (!s->leaving) return;
    s->leaving += n;
    b->leaving += n;
}

static void take(struct np_share *s, size_t n) {
    struct np_budget *b = s->budget;
    assert(n <= s->bytes && n <= b->total); /* B1 */
    s->bytes -= n;
    b->total -= n;
    assert(s->making <= s->bytes); /* B4 */
    size_t left = s->leaving < n ? s->leaving : n;
    s->leaving -= left;
    b->leaving -= left;
    if (!s->bytes) end(s);
}

void npi_share_add(struct np_share *s, size_t n) {
    struct np_budget *b = s->budget;
    if (!n) return;
    pthread_mutex_lock(&b->lock);
    put(s, n);
    evict_down_to(b, b->o.limit, NULL, true);
    evict_down_to(b, b->o.limit + b->o.limit / 8, NULL, false);
    pthread_mutex_unlock(&b->lock);
}

void npi_share_sub(struct np_share *s, size_t n) {
    if (!n) return;
    pthread_mutex_lock(&s->budget->lock);
    take(s, n);
    pthread_mutex_unlock(&s->budget->lock);
}

size_t npi_share_bytes(struct np_share *s) {
    pthread_mutex_lock(&s->budget->lock);
    size_t n = s->bytes;
    pthread_mutex_unlock(&s->budget->lock);
    return n;
}

/* ---- what is being made ---- */

bool npi_share_is_behind(struct np_share *s) {
    pthread_mutex_lock(&s->budget->lock);
    bool behind = s->bytes - s->making > NP_SHARE_OWN;
    pthread_mutex_unlock(&s->budget->lock);
    return behind;
}

/* Large answers leave the last quarter to small ones, and to the one of them whose turn it is. */
static size_t limit_of(const struct np_budget *b, const void *maker, size_t size) {
    return size <= NP_SHARE_OWN || b->turn == maker ? b->o.limit : b->o.limit - b->o.limit / 4;
}

int npi_share_make(struct np_share *s, const void *maker, size_t so_far, size_t n) {
    struct np_budget *b = s->budget;
    pthread_mutex_lock(&b->lock);
    size_t limit = limit_of(b, maker, so_far + n);
    evict_down_to(b, limit > n ? limit - n : 0, NULL, true);
    bool room = b->total - b->leaving + n <= limit;
    if (room) {
        put(s, n);
        s->making += n;
    }
    pthread_mutex_unlock(&b->lock);
    return room ? 0 : -1;
}

void npi_share_made(struct np_share *s, size_t n) {
    if (!n) return;
    pthread_mutex_lock(&s->budget->lock);
    assert(n <= s->making); /* B4 */
    s->making -= n;
    pthread_mutex_unlock(&s->budget->lock);
}

enum np_may npi_share_may_make(struct np_share *s, const void *maker, size_t so_far) {
    struct np_budget *b = s->budget;
    size_t soft = b->o.limit / 2;
    enum np_may may = NP_MAY_GO_ON;
    if (so_far <= NP_SHARE_OWN) return may;
    pthread_mutex_lock(&b->lock);
    evict_down_to(b, soft, s, true); /* its own answers wait until it reads: that is no reason to close it */
    if (over(b, soft)) {
        if (!b->turn && s->bytes - s->making <= NP_SHARE_OWN) b->turn = maker;
        if (b->turn != maker) may = over(b, limit_of(b, maker, so_far)) ? NP_MAY_GIVE_UP : NP_MAY_WAIT;
    }
    pthread_mutex_unlock(&b->lock);
    return may;
}

void npi_budget_end_turn(struct np_budget *b, const void *maker) {
    pthread_mutex_lock(&b->lock);
    if (b->turn == maker) b->turn = NULL;
    pthread_mutex_unlock(&b->lock);
}
