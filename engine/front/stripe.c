#include "engine/front/stripe.h"

#include <assert.h>
#include <stdlib.h>

#include "engine/front/eng.h"
#include "engine/front/lock_order.h"
#include "engine/rows/key.h"
#include "engine/rows/partition.h"

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

/* The ballot of a locked partition; in the list of its stripe, which only the stripe's owner uses. */
struct engi_ballot {
    struct engi_ballot *next;
    bool known; /* the partition was read under the lock */
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

/* If the ballot cannot be read or kept, the lock has one that no partition has, so that the commit fails. */
bool engi_ballot(struct store *s, struct slice prefix, uint64_t *ballot) {
    struct eng *eng = (struct eng *)s;
    struct eng_part part = engi_prefix_part(prefix);
    struct engi_ballot *b = find_ballot(eng, prefix);
    struct err e = {0};
    if (b && !b->known && engi_ballot_fetch(s, &part, &b->ballot, &e)) b->ballot = UINT64_MAX;
    if (b) b->known = true;
    *ballot = b ? b->ballot : UINT64_MAX;
    return b || (eng_holds(eng, &part) && eng->stripes[stripe(&part)].ballots_lost);
}

void engi_ballot_read(struct store *s, struct slice prefix, uint64_t ballot) {
    struct engi_ballot *b = find_ballot((struct eng *)s, prefix);
    if (!b || b->known) return;
    b->known = true;
    b->ballot = ballot;
}

void engi_ballot_moved(struct store *s, struct slice prefix, uint64_t ballot) {
    struct engi_ballot *b = find_ballot((struct eng *)s, prefix);
    if (b) b->ballot = ballot;
}

/* Takes the stripe if it is free and no thread waits for it. */
static bool try_take(struct eng *eng, uint32_t i, pthread_t owner) {
    struct engi_stripe *s = &eng->stripes[i];
    engi_mutex_lock(&s->lock, ENGI_RANK_LEAF);
    bool is_free = !owner_of(s) && !s->n_waiting;
    if (is_free) give_to(s, owner);
    engi_mutex_unlock(&s->lock, ENGI_RANK_LEAF);
    return is_free;
}

/* Waits for one stripe of the set and tries the others. Returns ENGI_STRIPES, or one that is not free; then none is
 * taken. */
static uint32_t take_or_leave(struct eng *eng, const struct engi_stripe_set *set, uint32_t first) {
    uint32_t i = next_of(set, 0);
    take(eng, first);
    for (; i < ENGI_STRIPES; i = next_of(set, i + 1)) {
        if (i == first) continue;
        if (!try_take(eng, i, pthread_self())) break;
        engi_order_holds(ENGI_RANK_STRIPE, i);
    }
    for (uint32_t k = next_of(set, 0); i < ENGI_STRIPES && k < ENGI_STRIPES; k = next_of(set, k + 1)) {
        if (k != first && k >= i) continue;
        leave(eng, k, pthread_self());
        engi_order_leaves(ENGI_RANK_STRIPE);
    }
    return i;
}

/* Takes all stripes of the set. With a store that may hang, a thread that waits for one holds no others, except
 * after many tries. */
static void take_all(struct eng *eng, const struct engi_stripe_set *set) {
    enum { TRIES = 64 };
    uint32_t busy = next_of(set, 0);
    for (int i = 0; !eng_one_writer(eng) && busy < ENGI_STRIPES && i < TRIES; i++) busy = take_or_leave(eng, set, busy);
    if (busy == ENGI_STRIPES) return;
    for (uint32_t i = next_of(set, 0); i < ENGI_STRIPES; i = next_of(set, i + 1)) take(eng, i);
}

void eng_lock_many(struct eng *eng, const struct eng_part *const *parts, uint32_t n) {
    struct engi_stripe_set set = set_of(parts, n);
    take_all(eng, &set);
    for (uint32_t i = 0; i < n && !eng_one_writer(eng); i++) {
        struct engi_stripe *s = &eng->stripes[stripe(parts[i])];
        size_t n_prefix = ENGI_KEY_PREFIX_MIN + parts[i]->key.n;
        struct engi_ballot *b = malloc(sizeof(*b) + n_prefix + 1);
        s->ballots_lost = s->ballots_lost || !b;
        if (!b) continue;
        *b = (struct engi_ballot){.next = s->ballots, .n = n_prefix};
        engi_key_row_write(b->prefix, parts[i], ENG_STATIC, slice_of("", 0));
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
    if (engi_stripes_have(set, part)) return 0;
    if (!try_take(eng, i, ENGI_STRIPE_OF_BATCH)) return -1;
    set->bits[i / 64] |= bit_of(i);
    set->any = true;
    return 1;
}

void engi_stripes_remove(struct eng *eng, struct engi_stripe_set *set, const struct eng_part *part) {
    set->bits[stripe(part) / 64] &= ~bit_of(stripe(part));
    leave(eng, stripe(part), ENGI_STRIPE_OF_BATCH);
}

void engi_stripes_leave(struct eng *eng, struct engi_stripe_set *set) {
    if (!set->any) return;
    for (uint32_t i = next_of(set, 0); i < ENGI_STRIPES; i = next_of(set, i + 1)) leave(eng, i, ENGI_STRIPE_OF_BATCH);
    *set = (struct engi_stripe_set){0};
}
