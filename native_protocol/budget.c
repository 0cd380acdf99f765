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

/* Whose bytes may go: of those with something that is made and waits to be read, of those that make. */
struct payers {
    const struct np_share *but; /* stays; NULL: anyone may go */
    size_t holds;               /* who holds more than this */
    size_t makes;               /* who makes more than this; SIZE_MAX: no maker */
    bool spare;
};

/* How much would be there if it went; 0: it does not go. */
static size_t would_pay(const struct np_share *s, const struct payers *who, int64_t now_us) {
    if (s == who->but || s->revoked || atomic_load_explicit(&s->evicted, memory_order_relaxed)) return 0;
    if (s->bytes > s->making && s->bytes > who->holds && !(who->spare && is_spared(s, now_us))) return s->bytes;
    return s->making > who->makes ? s->making : 0;
}

/* Of two that would pay the same, who has held it longer. */
static struct np_share *largest(const struct np_budget *b, const struct payers *who, int64_t now_us) {
    struct np_share *most = NULL;
    size_t most_pays = 0;
    for (struct np_share *s = b->shares; s; s = s->next) {
        size_t pays = would_pay(s, who, now_us);
        if (pays < most_pays || !pays || (pays == most_pays && s->since_us >= most->since_us)) continue;
        most = s;
        most_pays = pays;
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

static void revoke(struct np_share *s) {
    assert(s->making && !s->leaving); /* B5 */
    s->revoked = true;
    s->budget->leaving += s->making;
}

static bool over(const struct np_budget *b, size_t limit) { return b->total - b->leaving > limit; }

static void make_room(struct np_budget *b, size_t limit, const struct payers *who) {
    int64_t now_us = over(b, limit) ? clock_machine_us(b->o.clock) : 0;
    while (over(b, limit)) {
        struct np_share *s = largest(b, who, now_us);
        if (!s) return;
        if (would_pay(s, who, now_us) == s->making) revoke(s);
        else evict(s);
    }
}

static bool has_room(const struct np_budget *b, size_t limit, size_t n) { return !over(b, limit > n ? limit - n : 0) && n <= limit; }

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
    make_room(b, b->o.limit, &(struct payers){.spare = true});
    make_room(b, b->o.limit + b->o.limit / 8, &(struct payers){.spare = false});
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

static bool is_small(size_t size) { return size <= NP_SHARE_OWN; }

/* Large answers leave the last quarter to small ones, and to the one of them whose turn it is. */
static size_t limit_of(const struct np_budget *b, const void *maker, size_t size) {
    return is_small(size) || b->turn == maker ? b->o.limit : b->o.limit - b->o.limit / 4;
}

/* Room for n bytes more of an answer that is of this size then. */
static bool find_room(struct np_share *s, const void *maker, size_t size, size_t n) {
    struct np_budget *b = s->budget;
    size_t limit = limit_of(b, maker, size);
    bool small = is_small(size), reserved = small || b->turn == maker;
    const struct payers who = {.holds = reserved ? 0 : NP_SHARE_OWN, .makes = small ? s->making + n : SIZE_MAX, .spare = true};
    if (n < limit) make_room(b, limit - n, &who);
    return has_room(b, limit, n);
}

enum np_may npi_share_make(struct np_share *s, const void *maker, size_t so_far, size_t n) {
    pthread_mutex_lock(&s->budget->lock);
    enum np_may may = is_small(so_far + n) ? NP_MAY_WAIT : NP_MAY_GIVE_UP;
    if (!s->revoked && find_room(s, maker, so_far + n, n)) {
        put(s, n);
        s->making += n;
        may = NP_MAY_GO_ON;
    }
    pthread_mutex_unlock(&s->budget->lock);
    return may;
}

void npi_share_made(struct np_share *s, size_t n) {
    if (!n) return;
    pthread_mutex_lock(&s->budget->lock);
    assert(n <= s->making); /* B4 */
    s->making -= n;
    if (s->revoked) {
        s->budget->leaving -= n;
        s->revoked = s->making > 0; /* B5 */
    }
    pthread_mutex_unlock(&s->budget->lock);
}

bool npi_share_has_room(struct np_share *s) {
    pthread_mutex_lock(&s->budget->lock);
    size_t limit = s->budget->o.limit, n = limit < NP_SHARE_OWN ? limit : NP_SHARE_OWN;
    bool room = !s->revoked && find_room(s, NULL, n, n);
    pthread_mutex_unlock(&s->budget->lock);
    return room;
}

enum np_may npi_share_may_make(struct np_share *s, const void *maker, size_t so_far) {
    struct np_budget *b = s->budget;
    size_t soft = b->o.limit / 2;
    enum np_may may = NP_MAY_GO_ON;
    pthread_mutex_lock(&b->lock);
    if (s->revoked && so_far) may = NP_MAY_GIVE_UP;
    else if (!is_small(so_far)) /* its own answers wait until it reads: that is no reason to close it */
        make_room(b, soft, &(struct payers){.but = s, .holds = NP_SHARE_OWN, .makes = SIZE_MAX, .spare = true});
    if (may == NP_MAY_GO_ON && !is_small(so_far) && over(b, soft)) {
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
