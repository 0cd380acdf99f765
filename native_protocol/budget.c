#include "native_protocol/budget.h"

#include <assert.h>

/* ---- the heaps ---- */

static bool holds_more(const struct np_share *s, const struct np_share *t) {
    return s->bytes > t->bytes || (s->bytes == t->bytes && s->since_us < t->since_us);
}

static bool by_held(const struct heap_node *a, const struct heap_node *b) {
    return holds_more(HEAP_OBJECT(a, struct np_share, held_node), HEAP_OBJECT(b, struct np_share, held_node));
}

static bool by_still(const struct heap_node *a, const struct heap_node *b) {
    return holds_more(HEAP_OBJECT(a, struct np_share, still_node), HEAP_OBJECT(b, struct np_share, still_node));
}

static bool by_grace(const struct heap_node *a, const struct heap_node *b) {
    return HEAP_OBJECT(a, struct np_share, grace_node)->grace_us <
           HEAP_OBJECT(b, struct np_share, grace_node)->grace_us;
}

static bool by_making(const struct heap_node *a, const struct heap_node *b) {
    const struct np_share *s = HEAP_OBJECT(a, struct np_share, making_node);
    const struct np_share *t = HEAP_OBJECT(b, struct np_share, making_node);
    return s->making > t->making || (s->making == t->making && s->since_us < t->since_us);
}

/* The first share of a heap; NULL if the heap is empty. */
#define TOP(heap, node) (heap_top(heap) ? HEAP_OBJECT(heap_top(heap), struct np_share, node) : NULL)

/* The end of the share's grace, if its bytes do not move again. */
static int64_t grace_ends_us(const struct np_share *s) {
    const struct np_budget_options *o = &s->budget->o;
    int64_t still_us = atomic_load_explicit(&s->moved_us, memory_order_relaxed) + o->still_us;
    int64_t long_us = s->since_us + o->long_us;
    return still_us < long_us ? still_us : long_us;
}

static void enter_grace(struct np_share *s) {
    s->grace_us = grace_ends_us(s);
    heap_insert(&s->budget->in_grace, &s->grace_node);
}

/* A share leaves the heaps before its order fields change, and enters them again afterwards. */
static void leave_heaps(struct np_share *s) {
    struct np_budget *b = s->budget;
    heap_remove(&b->held, &s->held_node);
    heap_remove(&b->still, &s->still_node);
    heap_remove(&b->in_grace, &s->grace_node);
    heap_remove(&b->making, &s->making_node);
}

static void enter_heaps(struct np_share *s) { /* B2 */
    struct np_budget *b = s->budget;
    if (s->revoked || atomic_load_explicit(&s->evicted, memory_order_relaxed)) return;
    if (s->making) heap_insert(&b->making, &s->making_node);
    if (s->bytes <= s->making) return;
    heap_insert(&b->held, &s->held_node);
    enter_grace(s); /* its end may have passed already: most_still checks */
}

/* ---- the budget ---- */

void npi_budget_init(struct np_budget *b, const struct np_budget_options *o) {
    *b = (struct np_budget){.o = *o};
    b->held.before = by_held;
    b->still.before = by_still;
    b->in_grace.before = by_grace;
    b->making.before = by_making;
    pthread_mutex_init(&b->lock, NULL);
}

void npi_budget_fini(struct np_budget *b) {
    assert(!b->total && !b->leaving && !heap_top(&b->held) && !heap_top(&b->making)); /* B1, B2, B3 */
    pthread_mutex_destroy(&b->lock);
}

size_t npi_budget_total(struct np_budget *b) {
    pthread_mutex_lock(&b->lock);
    size_t n = b->total;
    pthread_mutex_unlock(&b->lock);
    return n;
}

/* ---- eviction ---- */

/* The largest of the shares that are not spared. */
static struct np_share *most_still(struct np_budget *b, int64_t now_us) {
    struct np_share *s;
    /* A share whose recorded grace has ended gets a new one if it moved since; else it is still. */
    for (; (s = TOP(&b->in_grace, grace_node)) && s->grace_us <= now_us; b->looked++) {
        heap_remove(&b->in_grace, &s->grace_node);
        if (grace_ends_us(s) > now_us) enter_grace(s);
        else heap_insert(&b->still, &s->still_node);
    }
    for (; (s = TOP(&b->still, still_node)) && grace_ends_us(s) > now_us; b->looked++) {
        heap_remove(&b->still, &s->still_node);
        enter_grace(s);
    }
    return s;
}

/* Selects the shares that may be evicted (they hold finished bytes) or revoked (they make
 * answers). */
struct candidates {
    struct np_share *but; /* this share stays; NULL if every share may go */
    size_t holds;         /* evict only shares that hold more */
    size_t makes;         /* revoke only shares that make more; SIZE_MAX: none */
    bool grace;           /* spare the shares whose bytes still move */
};

/* Evicts or revokes the share that gives back the most bytes; of two alike, the one that has held
 * them longer. Returns false if no share qualifies. */
static bool evict_one(struct np_budget *b, const struct candidates *who, int64_t now_us) {
    struct np_share *holder = who->grace ? most_still(b, now_us) : TOP(&b->held, held_node);
    struct np_share *maker = TOP(&b->making, making_node);
    if (holder && holder->bytes <= who->holds) holder = NULL;
    if (maker && maker->making <= who->makes) maker = NULL;
    if (!holder && !maker) return false;
    bool older = holder && maker && holder->bytes == maker->making && holder->since_us <= maker->since_us;
    if (holder && (!maker || holder->bytes > maker->making || older)) {
        assert(holder->bytes > holder->making && !holder->leaving); /* B3 */
        leave_heaps(holder);
        holder->leaving = holder->bytes;
        b->leaving += holder->leaving;
        atomic_store(&holder->evicted, true);
        b->o.notify(holder->owner);
    } else {
        assert(maker->making && !maker->leaving); /* B5 */
        leave_heaps(maker);
        maker->revoked = true;
        b->leaving += maker->making;
    }
    return true;
}

static bool over(const struct np_budget *b, size_t limit) { return b->total - b->leaving > limit; }

static void make_room(struct np_budget *b, size_t limit, const struct candidates *who) {
    if (!over(b, limit)) return;
    int64_t now_us = clock_machine_us(b->o.clock);
    if (who->but) leave_heaps(who->but);
    while (over(b, limit) && evict_one(b, who, now_us)) continue;
    if (who->but) enter_heaps(who->but);
}

/* ---- shares ---- */

void npi_share_init(struct np_share *s, struct np_budget *b, void *owner) {
    *s = (struct np_share){.budget = b, .owner = owner};
}

/* Adds n bytes to the share, `making` of them in the making. */
static void put(struct np_share *s, size_t n, size_t making) {
    struct np_budget *b = s->budget;
    leave_heaps(s);
    if (!s->bytes) {
        s->since_us = clock_machine_us(b->o.clock);
        npi_share_moved(s, s->since_us);
    }
    s->bytes += n;
    s->making += making;
    b->total += n;
    enter_heaps(s);
    if (!s->leaving) return;
    s->leaving += n;
    b->leaving += n;
}

void npi_share_add(struct np_share *s, size_t n) {
    struct np_budget *b = s->budget;
    if (!n) return;
    pthread_mutex_lock(&b->lock);
    put(s, n, 0);
    make_room(b, b->o.limit, &(struct candidates){.grace = true});
    make_room(b, b->o.limit + b->o.limit / 8, &(struct candidates){.grace = false});
    pthread_mutex_unlock(&b->lock);
}

void npi_share_sub(struct np_share *s, size_t n) {
    struct np_budget *b = s->budget;
    if (!n) return;
    pthread_mutex_lock(&b->lock);
    assert(n <= s->bytes && n <= b->total); /* B1 */
    leave_heaps(s);
    s->bytes -= n;
    b->total -= n;
    assert(s->making <= s->bytes); /* B4 */
    enter_heaps(s);
    size_t left = s->leaving < n ? s->leaving : n;
    s->leaving -= left;
    b->leaving -= left;
    pthread_mutex_unlock(&b->lock);
}

size_t npi_share_bytes(struct np_share *s) {
    pthread_mutex_lock(&s->budget->lock);
    size_t n = s->bytes;
    pthread_mutex_unlock(&s->budget->lock);
    return n;
}

/* ---- answers in the making ---- */

static bool is_above_own(const struct np_share *s) { return s->bytes - s->making > NP_SHARE_OWN; }

bool npi_share_has_unread(struct np_share *s) {
    pthread_mutex_lock(&s->budget->lock);
    bool above = is_above_own(s);
    pthread_mutex_unlock(&s->budget->lock);
    return above;
}

static bool is_small(size_t size) { return size <= NP_SHARE_OWN; }

/* Large answers may use three quarters of the limit, so that the rest serves small ones. All of it
 * is for the large answer that has the turn, and for the others of a share above NP_SHARE_OWN: they
 * have begun before it was, and wait at their next part. */
static size_t limit_of(const struct np_share *s, const void *maker, size_t size) {
    const struct np_budget *b = s->budget;
    return is_small(size) || b->turn == maker || is_above_own(s) ? b->o.limit : b->o.limit - b->o.limit / 4;
}

/* Makes room for n more bytes of an answer; size: the answer's size with them. */
static bool find_room(struct np_share *s, const void *maker, size_t size, size_t n) {
    struct np_budget *b = s->budget;
    size_t limit = limit_of(s, maker, size);
    bool small = is_small(size), reserved = small || b->turn == maker;
    const struct candidates who = {.holds = reserved ? 0 : NP_SHARE_OWN,
                               .makes = small ? s->making + n : SIZE_MAX,
                               .grace = true};
    if (n < limit) make_room(b, limit - n, &who);
    return n <= limit && !over(b, limit - n);
}

enum np_may npi_share_make(struct np_share *s, const void *maker, size_t so_far, size_t n) {
    pthread_mutex_lock(&s->budget->lock);
    enum np_may may = is_small(so_far + n) ? NP_MAY_WAIT : NP_MAY_GIVE_UP;
    if (!s->revoked && find_room(s, maker, so_far + n, n)) {
        put(s, n, n);
        may = NP_MAY_GO_ON;
    }
    pthread_mutex_unlock(&s->budget->lock);
    return may;
}

void npi_share_made(struct np_share *s, size_t n) {
    if (!n) return;
    pthread_mutex_lock(&s->budget->lock);
    assert(n <= s->making); /* B4 */
    leave_heaps(s);
    s->making -= n;
    if (s->revoked) {
        s->budget->leaving -= n;
        s->revoked = s->making > 0; /* B5 */
    }
    enter_heaps(s);
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
    else if (!is_small(so_far)) /* waiting for its own reader is no reason to close it */
        make_room(b, soft, &(struct candidates){.but = s, .holds = NP_SHARE_OWN, .makes = SIZE_MAX, .grace = true});
    if (may == NP_MAY_GO_ON && !is_small(so_far) && over(b, soft)) {
        if (!b->turn && !is_above_own(s)) b->turn = maker;
        if (b->turn != maker) may = over(b, limit_of(s, maker, so_far)) ? NP_MAY_GIVE_UP : NP_MAY_WAIT;
    }
    pthread_mutex_unlock(&b->lock);
    return may;
}

void npi_budget_end_turn(struct np_budget *b, const void *maker) {
    pthread_mutex_lock(&b->lock);
    if (b->turn == maker) b->turn = NULL;
    pthread_mutex_unlock(&b->lock);
}
