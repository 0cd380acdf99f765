/* Folding: an old share is added to the common one, in one write. */
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "server/fleet_state.h"

#define MARGIN_US (FLEET_OLD_US / 2) /* more than clocks of servers differ */

/* ---- the fold ---- */

struct fold {
    struct fleet *f;
    uint64_t id;
    struct arena arena;
    size_t n, cap;
    struct eng_meta_change *changes;
};

/* value.p NULL: the record is removed. */
static struct eng_meta_change *add(struct fold *w, const char *key, struct slice value) {
    struct slice name = arena_dup(&w->arena, slice_str(key)),
                 copy = value.p ? arena_dup(&w->arena, value) : slice_of("", 0);
    if (!name.p || !copy.p || array_room(&w->changes, w->n, &w->cap, sizeof(*w->changes))) return NULL;
    w->changes[w->n] = (struct eng_meta_change){.key = name, .value = copy, .deleted = !value.p, .quiet = true};
    return &w->changes[w->n++];
}

/* Moves a table's record: the common share's is written, or removed too, and the old one's is removed. */
static int move_table(void *arg, uint32_t object, struct slice records) {
    struct fold *w = arg;
    char common[FLEET_TABLE_KEY], old[FLEET_TABLE_KEY];
    fleet_table_key(SHARE_COMMON, object, common);
    fleet_table_key(w->id, object, old);
    return add(w, common, records) && add(w, old, (struct slice){0}) ? 0 : -1;
}

/* Adds a head's change, on the condition that it is as it was read. */
static int add_head(struct fold *w, uint64_t id, const struct fleet_head *read, const struct fleet_head *next) {
    char key[FLEET_HEAD_KEY];
    struct buf before, after;
    struct slice *expected = arena_alloc(&w->arena, sizeof(*expected));
    buf_init(&before, 0);
    buf_init(&after, 0);
    fleet_head_key(id, key);
    if (read) fleet_head_put(&before, read);
    if (next) fleet_head_put(&after, next);
    struct eng_meta_change *c = add(w, key, next ? buf_slice(&after) : (struct slice){0});
    int rc = c && expected && !buf_failed(&before) && !buf_failed(&after) ? 0 : -1;
    if (!rc) {
        *expected = arena_dup(&w->arena, buf_slice(&before));
        rc = expected->p ? 0 : -1;
        c->expected = read ? expected : NULL;
        c->conditional = true; /* E3 */
    }
    buf_fini(&before);
    buf_fini(&after);
    return rc;
}

static int add_receipt(struct fold *w, const struct buf *receipt) {
    char key[FLEET_FOLDED_KEY];
    fleet_folded_key(w->id, key);
    return !buf_failed(receipt) && add(w, key, buf_slice(receipt)) ? 0 : -1;
}

static int write_fold(struct fold *w, const struct fleet_head *head, const struct fleet_head *common, struct err *e) {
    struct fleet_head next = {.incarnation = w->f->head.incarnation, .demands = slice_of("", 0)};
    struct buf receipt;
    next.sequence = next.tables = (common ? common->sequence : 0) + 1;
    buf_init(&receipt, 0);
    buf_u64(&receipt, (uint64_t)clock_wall_us(w->f->o.clock));
    int rc = add_head(w, w->id, head, NULL) || add_head(w, SHARE_COMMON, common, &next) ||
             ledger_share_fold(w->f->o.ledger, w->id, move_table, w, &receipt) || add_receipt(w, &receipt);
    rc = rc ? err_nomem(e) : eng_meta_write(w->f->o.eng, (uint32_t)w->n, w->changes, e);
    buf_fini(&receipt);
    if (!rc) log_info("the share %016" PRIx64 ", without charges for a day, is in the common one now", w->id);
    return rc == ENG_CHANGED ? 0 : rc; /* its server is alive, or another one folds */
}

/* ---- the end of receipts ---- */

struct expiry {
    int64_t before_us;
    char key[FLEET_FOLDED_KEY]; /* of the oldest one that was found; empty: there is none */
};

static int look(void *arg, struct slice name, struct slice value, struct err *e) {
    struct expiry *x = arg;
    int64_t folded_us;
    struct slice receipt;
    (void)e;
    if (name.n != FLEET_FOLDED_KEY - 1 || fleet_folded_take(value, &folded_us, &receipt)) return 0;
    if (folded_us >= x->before_us) return 0;
    x->before_us = folded_us;
    memcpy(x->key, name.p, name.n);
    return 0;
}

/* Removes the oldest receipt, if it is old enough. */
static int expire(struct fleet *f, struct err *e) {
    struct expiry x = {.before_us = clock_wall_us(f->o.clock) - FLEET_KEEP_US};
    if (eng_meta_scan(f->o.eng, slice_str(FLEET_FOLDED), look, &x, e)) return -1;
    const struct eng_meta_change change = {.key = slice_str(x.key), .deleted = true, .quiet = true};
    return *x.key ? eng_meta_write(f->o.eng, 1, &change, e) : 0;
}

int fleet_fold(struct fleet *f, uint64_t id, const struct fleet_head *head, const struct fleet_head *common,
               struct err *e) {
    struct fold w = {.f = f, .id = id};
    arena_init(&w.arena, FLEET_CHUNK, 0);
    int rc = write_fold(&w, head, common, e);
    if (!rc) rc = expire(f, e);
    arena_fini(&w.arena);
    free(w.changes);
    return rc;
}

/* ---- a ledger whose share was folded ---- */

struct found {
    bool found;
    struct buf value;
};

static int take_receipt(void *arg, struct slice name, struct slice value, struct err *e) {
    struct found *x = arg;
    (void)name;
    x->found = true;
    buf_put_slice(&x->value, value);
    return buf_failed(&x->value) ? err_nomem(e) : 0;
}

int fleet_resume(struct fleet *f, struct err *e) {
    char key[FLEET_FOLDED_KEY];
    struct found x = {0};
    int64_t folded_us = 0;
    struct slice receipt = {0};
    buf_init(&x.value, 0);
    fleet_folded_key(f->id, key);
    int rc = eng_meta_scan(f->o.eng, slice_str(key), take_receipt, &x, e);
    if (!rc && x.found) {
        bool damaged = fleet_folded_take(buf_slice(&x.value), &folded_us, &receipt) != 0;
        /* The share had no charges for FLEET_OLD_US in front of the fold. */
        uint32_t minute = (uint32_t)((folded_us - MARGIN_US) / FLEET_MINUTE_US);
        rc = damaged ? 1 : ledger_share_forget(f->o.ledger, receipt, minute, &f->id, e);
    } else if (!rc && !f->is_new) {
        int64_t kept_us = clock_wall_us(f->o.clock) - FLEET_KEEP_US + MARGIN_US;
        rc = ledger_share_forget_old(f->o.ledger, (uint32_t)(kept_us / FLEET_MINUTE_US), &f->id, e);
    }
    if (rc > 0) rc = err_set(e, ERR_SERVER, "the record %s in the store is damaged", key);
    buf_fini(&x.value);
    f->n_objects = 0; /* of a share that is not there */
    f->is_new = false;
    return rc;
}
