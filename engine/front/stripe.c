#include "engine/front/stripe.h"

#include <assert.h>
#include <stdlib.h>

#include "engine/front/eng.h"
#include "engine/front/lock_order.h"
#include "engine/rows/key.h"
#include "engine/rows/walk.h"

static uint32_t stripe(const struct eng_part *part) {
    return (uint32_t)((((uint64_t)part->token ^ part->table) * 0x9e3779b97f4a7c15) >> 54) % ENGI_STRIPES;
}

static pthread_t owner_of(const struct engi_stripe *s) { return atomic_load_explicit(&s->owner, memory_order_relaxed); }
static void give_to(struct engi_stripe *s, pthread_t owner) {
    atomic_store_explicit(&s->owner, owner, memory_order_relaxed);
}

static void take(struct eng *eng, uint32_t i) {
    struct engi_stripe *s = &eng->stripes[i];
    engi_order_will_wait(ENGI_RANK_STRIPE, i);
    engi_mutex_lock(&s->lock, ENGI_RANK_LEAF);
    if (owner_of(s)) {
        int64_t since = clock_machine_us(&clock_real);
        s->n_waiting++;
        while (owner_of(s)) pthread_cond_wait(&s->left, &s->lock);
        s->n_waiting--;
        engi_count(eng, ENG_STAT_STRIPE_WAITS);
        atomic_fetch_add_explicit(&eng->stats[ENG_STAT_STRIPE_WAITED],
                                  (uint64_t)(clock_machine_us(&clock_real) - since), memory_order_relaxed);
    }
    give_to(s, pthread_self());
    engi_mutex_unlock(&s->lock, ENGI_RANK_LEAF);
    engi_order_holds(ENGI_RANK_STRIPE, i);
}

static void leave(struct eng *eng, uint32_t i, pthread_t owner) {
    struct engi_stripe *s = &eng->stripes[i];
    assert(pthread_equal(owner_of(s), owner));
    engi_mutex_lock(&s->lock, ENGI_RANK_LEAF);
    give_to(s, 0);
    if (s->n_waiting) pthread_cond_signal(&s->left);
    engi_mutex_unlock(&s->lock, ENGI_RANK_LEAF);
}

bool eng_holds(const struct eng *eng, const struct eng_part *part) {
    return pthread_equal(owner_of(&eng->stripes[stripe(part)]), pthread_self());
}

/* ---- sets ---- */

static uint64_t bit_of(uint32_t i) { return 1ull << (i % 64); }

/* The first stripe of the set from this one on; ENGI_STRIPES: there is none. */
static uint32_t next_of(const struct engi_stripe_set *set, uint32_t from) {
    for (uint32_t i = from; i < ENGI_STRIPES; i = (i / 64 + 1) * 64) {
        uint64_t bits = set->bits[i / 64] & -bit_of(i);
        if (bits) return i / 64 * 64 + (uint32_t)__builtin_ctzll(bits);
    }
    return ENGI_STRIPES;
}

/* Every stripe once, so that they are taken in ascending order, whatever the partitions. */
static struct engi_stripe_set set_of(const struct eng_part *const *parts, uint32_t n) {
    struct engi_stripe_set set = {0};
    for (uint32_t i = 0; i < n; i++) set.bits[stripe(parts[i]) / 64] |= bit_of(stripe(parts[i]));
    return set;
}

/* ---- ballots: only in stores with several writers ---- */

/* The ballot of a partition when it was locked; in the list of its stripe, which only the stripe's
 * owner uses. */
struct engi_ballot {
    struct engi_ballot *next;
    uint64_t ballot;
    size_t n;
    uint8_t prefix[];
};

static struct engi_ballot *find_ballot(struct eng *eng, struct slice prefix) {
    struct eng_part part = engi_prefix_part(prefix);
    struct engi_ballot *b = eng_holds(eng, &part) ? eng->stripes[stripe(&part)].ballots : NULL;
    while (b && !slice_eq(slice_of(b->prefix, b->n), prefix)) b = b->next;
    return b;
}

bool engi_ballot(struct store *s, struct slice prefix, uint64_t *ballot) {
    struct eng *eng = (struct eng *)s;
    struct eng_part part = engi_prefix_part(prefix);
    const struct engi_ballot *b = find_ballot(eng, prefix);
    *ballot = b ? b->ballot : UINT64_MAX;
    return b || (eng_holds(eng, &part) && eng->stripes[stripe(&part)].ballots_lost);
}

void engi_ballot_moved(struct store *s, struct slice prefix) {
    struct engi_ballot *b = find_ballot((struct eng *)s, prefix);
    if (b) b->ballot++;
}

void eng_lock_many(struct eng *eng, const struct eng_part *const *parts, uint32_t n) {
    struct engi_stripe_set set = set_of(parts, n);
    for (uint32_t i = next_of(&set, 0); i < ENGI_STRIPES; i = next_of(&set, i + 1)) take(eng, i);
    /* If the ballot cannot be read or kept, the lock has one that no partition has, so that the
     * commit fails. */
    for (uint32_t i = 0; i < n && !eng_one_writer(eng); i++) {
        struct engi_stripe *s = &eng->stripes[stripe(parts[i])];
        struct err e = {0};
        size_t n_prefix = ENGI_KEY_PREFIX_MIN + parts[i]->key.n;
        struct engi_ballot *b = malloc(sizeof(*b) + n_prefix + 1);
        s->ballots_lost = s->ballots_lost || !b;
        if (!b) continue;
        *b = (struct engi_ballot){.next = s->ballots, .n = n_prefix};
        engi_key_row_write(b->prefix, parts[i], ENG_STATIC, slice_of("", 0));
        if (engi_ballot_read(&eng->store, parts[i], &b->ballot, &e)) b->ballot = UINT64_MAX;
        s->ballots = b;
    }
}

void eng_unlock_many(struct eng *eng, const struct eng_part *const *parts, uint32_t n) {
    struct engi_stripe_set set = set_of(parts, n);
    for (uint32_t i = next_of(&set, 0); i < ENGI_STRIPES; i = next_of(&set, i + 1)) {
        struct engi_stripe *s = &eng->stripes[i];
        for (struct engi_ballot *b; (b = s->ballots);) {
            s->ballots = b->next;
            free(b);
        }
        s->ballots_lost = false;
        leave(eng, i, pthread_self());
        engi_order_leaves(ENGI_RANK_STRIPE);
    }
}

void eng_lock(struct eng *eng, const struct eng_part *part) { eng_lock_many(eng, &part, 1); }
void eng_unlock(struct eng *eng, const struct eng_part *part) { eng_unlock_many(eng, &part, 1); }

/* ---- of a batch ---- */

bool engi_stripes_have(const struct engi_stripe_set *set, const struct eng_part *part) {
    return set->bits[stripe(part) / 64] & bit_of(stripe(part));
}

/* Threads that wait take precedence: the stripe counts as taken while one waits. */
int engi_stripes_try(struct eng *eng, struct engi_stripe_set *set, const struct eng_part *part) {
    uint32_t i = stripe(part);
    struct engi_stripe *s = &eng->stripes[i];
    if (engi_stripes_have(set, part)) return 0;
    engi_mutex_lock(&s->lock, ENGI_RANK_LEAF);
    bool is_free = !owner_of(s) && !s->n_waiting;
    if (is_free) give_to(s, ENGI_STRIPE_OF_BATCH);
    engi_mutex_unlock(&s->lock, ENGI_RANK_LEAF);
    if (!is_free) return -1;
    set->bits[i / 64] |= bit_of(i);
    set->any = true;
    return 1;
}

void engi_stripes_give_back(struct eng *eng, struct engi_stripe_set *set, const struct eng_part *part) {
    set->bits[stripe(part) / 64] &= ~bit_of(stripe(part));
    leave(eng, stripe(part), ENGI_STRIPE_OF_BATCH);
}

void engi_stripes_leave(struct eng *eng, struct engi_stripe_set *set) {
    if (!set->any) return;
    for (uint32_t i = next_of(set, 0); i < ENGI_STRIPES; i = next_of(set, i + 1)) leave(eng, i, ENGI_STRIPE_OF_BATCH);
    *set = (struct engi_stripe_set){0};
}
