#include <assert.h>
#include <errno.h>

#include "base/clock.h"
#include "base/random.h"
#include "engine/rados/fetch.h"
#include "engine/rados/jobs.h"
#include "engine/rados/omap_key.h"
#include "engine/rados/split.h"
#include "engine/rados/write.h"

enum {
    BATCH_KEYS = 1000,        /* keys of an operation with more than one group, at most */
    BATCH_CONDITIONS = 64,    /* groups with ballots of an operation, at most */
    HEAD_EVERY = 256,         /* operations until the other writers' counters are read again */
    BUILD_CHUNK = 16 << 10,
};

/* One operation on a shard, and its groups. */
struct batch {
    struct shard *shard;
    struct write_group *groups;
    struct arena arena;
    struct omap_write op;
    struct shard_counter counter; /* of this store, once the operation has succeeded */
    struct omap_started started;
    int64_t send_until_us; /* the least of its groups */
    bool had_company;      /* it was sent with several groups; a thread that stops waiting removes its group */
    int rc;
    struct batch *next;
};

/* ---- the operation ---- */

static struct slice key_take(struct arena *a, struct buf *key) {
    struct slice taken = arena_dup(a, buf_slice(key));
    if (buf_failed(key)) taken.p = NULL;
    buf_clear(key, SIZE_MAX);
    return taken;
}

static struct slice partition_key(struct arena *a, struct buf *key, struct slice prefix, enum omap_partition_key what) {
    omap_key_partition(key, prefix, what);
    return key_take(a, key);
}

static uint64_t next_sequence(struct shard_counter *c) {
    uint64_t now = (uint64_t)clock_wall_us(&clock_real);
    return c->sequence = now > c->sequence ? now : c->sequence + 1;
}

static void add_operand(struct batch *b, struct buf *key, const struct write_change *c) {
    struct omap_operand_id id = {.kind = OMAP_APPENDED,
                                 .sequence = next_sequence(&b->counter),
                                 .writer = b->counter.writer},
                           first;
    struct buf record;
    if (c->kind == WRITE_REPLACE) {
        buf_init(&record, 0);
        id.kind = OMAP_COMBINED;
        id.oldest = c->n_seen && omap_key_read(c->seen[0].key, &record, &first) == 0 ? first.oldest : id.sequence;
        buf_fini(&record);
    }
    omap_key_escape(key, slice_of(c->key.p + ENGI_KEY_TOKEN, c->key.n - ENGI_KEY_TOKEN));
    buf_u8(key, OMAP_KEY_END);
    omap_key_operand(key, &id);
    struct slice k = key_take(&b->arena, key);
    if (!k.p) b->op.failed = true;
    else omap_write_set(&b->op, k, c->value);
    b->counter.keys++;
    b->counter.bytes += k.n + c->value.n;
}

static void add_group(struct batch *b, struct buf *key, const struct write_group *g) {
    for (size_t i = 0; i < g->n; i++) {
        const struct write_change *c = &g->changes[i];
        for (size_t k = 0; k < c->n_seen; k++) {
            omap_write_remove(&b->op, c->seen[k].key);
            b->counter.keys--;
            b->counter.bytes -= c->seen[k].key.n + c->seen[k].value.n;
        }
        if (c->kind != WRITE_REMOVE) add_operand(b, key, c);
    }
    if (g->removals) {
        omap_write_compare(&b->op, partition_key(&b->arena, key, g->prefix, OMAP_REMOVALS), *g->removals);
        b->counter.removals++;
        omap_key_number(key, next_sequence(&b->counter), OMAP_SEQUENCE_DIGITS);
        omap_key_number(key, b->counter.writer, OMAP_WRITER_DIGITS);
        struct slice mark = key_take(&b->arena, key);
        omap_write_set(&b->op, partition_key(&b->arena, key, g->prefix, OMAP_REMOVALS), mark);
    }
    if (g->pieces) {
        struct slice pieces = partition_key(&b->arena, key, g->prefix, OMAP_PIECES);
        omap_write_compare(&b->op, pieces, *g->pieces);
        omap_write_set(&b->op, pieces, g->next_pieces);
        omap_write_set(&b->op, shard_pieces_key, slice_str("m"));
    }
    for (size_t i = 0; i < g->n_fences; i++) omap_write_set(&b->op, g->fences[i], slice_str("f"));
    for (size_t i = 0; i < g->n_old_fences; i++) omap_write_remove(&b->op, g->old_fences[i]);
    if (g->expected) omap_write_compare(&b->op, partition_key(&b->arena, key, g->prefix, OMAP_BALLOT), *g->expected);
    if (g->ballot.p) omap_write_set(&b->op, partition_key(&b->arena, key, g->prefix, OMAP_BALLOT), g->ballot);
}

/* ---- the queue of a shard ---- */

static void enqueue(struct shard *sh, struct write_group *g) {
    g->phase = WRITE_WAITS;
    g->shard = sh;
    g->next = NULL;
    *sh->last = g;
    sh->last = &g->next;
}

static bool has_condition(const struct write_group *g) {
    return g->expected || g->ballot.p || g->removals || g->pieces;
}

/* With the lock. Ends a group that is not in the queue and was not written. */
static void refuse(struct write_group *g, int rc) {
    g->rc = rc;
    g->result = -1;
    g->phase = WRITE_DONE;
}

/* Whether the group may join: if two groups had a ballot of one partition, the second would be
 * compared with the ballot before the first. */
static bool may_join(const struct batch *b, const struct write_group *g, size_t keys, size_t *conditions) {
    if (!b->groups) return true;
    if (b->groups->alone || g->alone || keys + g->n > BATCH_KEYS) return false;
    if (!has_condition(g)) return true;
    if (++*conditions > BATCH_CONDITIONS) return false;
    for (const struct write_group *other = b->groups; other; other = other->next)
        if (has_condition(other) && slice_eq(other->prefix, g->prefix)) return false;
    return true;
}

static uint64_t keys_of(const struct shard *sh) { return sh->own.keys + sh->other_keys; }
static uint64_t bytes_of(const struct shard *sh) { return sh->own.bytes + sh->other_bytes; }

/* Results in addition to the error numbers of librados. */
enum { DROPPED = -ESTALE, TOO_FULL = -EFBIG, NOT_OPEN = -ECANCELED };

/* Reads the head of the object, and chooses a writer's number for this store there. */
static int read_counters(struct rados *s, struct shard *sh) {
    struct arena a;
    struct shard_head head;
    struct err e = {0};
    arena_init(&a, 1 << 10, 0);
    int rc = head_read(s, sh, true, &a, &head);
    if (rc == 0 && head.state != SHARD_OPEN) rc = NOT_OPEN;
    if (rc == 0 && !sh->own.writer) {
        if (random_bytes(&sh->own.writer, sizeof(sh->own.writer), &e) < 0) rc = -EIO;
        sh->own.writer = sh->own.writer % (OMAP_WRITERS - 1) + 1; /* 0 is what a split has copied */
    }
    if (rc == 0) {
        struct shard_counter sum = shard_sum(&head);
        const struct shard_counter *own = shard_counter_find(&head, sh->own.writer);
        sh->other_keys = sum.keys - (own ? own->keys : 0);
        sh->other_bytes = sum.bytes - (own ? own->bytes : 0);
        sh->since_read = 0;
        sh->known = true;
    }
    arena_fini(&a);
    return rc == -ENOENT ? DROPPED : rc;
}

static int fill_error(struct err *e, const struct write_group *g) {
    const struct shard *sh = g->shard;
    if (g->rc == DROPPED)
        return err_invalid(e, "The table was dropped or emptied through another server; nothing was written, "
                              "try again");
    if (g->rc == TOO_FULL && atomic_load(&sh->is_indivisible) && !atomic_load(&sh->will_split))
        return err_invalid(e, "the partition is too large for this store: an object of the Ceph pool (%s) is full",
                           sh->name);
    if (g->rc == TOO_FULL)
        return err_set(e, ERR_OVERLOADED,
                       "rows are written faster than object %s of the Ceph pool is split; nothing was written, try "
                       "again", sh->name);
    return pool_error(e, g->rc, POOL_WRITES, sh->name);
}

/* ---- one operation, from start to end ---- */

static bool is_full(const struct rados *s, const struct shard *sh) {
    return keys_of(sh) >= s->o.max_keys || bytes_of(sh) >= s->o.max_bytes;
}

static int batch_send(struct rados *s, struct batch *b) {
    struct shard *sh = b->shard;
    struct buf key;
    bool makes_room = true; /* it only combines, removes or moves operands */
    int rc = 0;
    for (const struct write_group *g = b->groups; g; g = g->next) makes_room = makes_room && (g->removals || g->pieces);
    /* Only the thread whose operation is under way touches the counters. */
    if (!sh->known || ++sh->since_read > HEAD_EVERY || is_full(s, sh)) rc = read_counters(s, sh);
    if (rc == 0 && is_full(s, sh) && !makes_room) {
        if (!atomic_load(&sh->is_indivisible)) jobs_add_split(s, sh); /* again, if the one before has failed */
        rc = TOO_FULL;
    }
    if (rc < 0) return rc;
    b->counter = sh->own;
    buf_init(&key, 0);
    omap_write_compare(&b->op, shard_state_key, shard_state_value(SHARD_OPEN)); /* Q3 */
    for (struct write_group *g = b->groups; g; g = g->next) add_group(b, &key, g);
    shard_counter_key(&key, b->counter.writer);
    struct slice counter_key = key_take(&b->arena, &key);
    shard_counter_value(&key, &b->counter);
    struct slice counter = key_take(&b->arena, &key);
    if (!counter.p || !counter_key.p) b->op.failed = true;
    else omap_write_set(&b->op, counter_key, counter);
    buf_fini(&key);
    assert(b->op.failed || slice_eq(b->op.compares.items[0].key, shard_state_key)); /* Q3 */
    if (b->op.failed) return -ENOMEM;
    int64_t now_us = clock_machine_us(&clock_real);
    if (now_us > b->send_until_us) return -EAGAIN; /* the groups whose time has not passed join the next operation */
    for (const struct write_group *g = b->groups; g; g = g->next) assert(now_us <= g->send_until_us); /* Q14, Q26 */
    return omap_write_start(&b->op, &s->pool, sh->name, &b->started);
}

/* Sends the next operation of a shard with the groups that wait. Returns NULL if one is under way,
 * or none waits. */
static struct batch *batch_start(struct rados *s, struct shard *sh) {
    struct batch *b = NULL;
    pthread_mutex_lock(&sh->lock);
    if (!sh->busy && sh->first && (b = calloc(1, sizeof(*b)))) {
        b->shard = sh;
        struct write_group **end = &b->groups;
        size_t keys = 0, conditions = 0;
        sh->busy_since_us = clock_machine_us(&clock_real);
        b->send_until_us = INT64_MAX;
        /* Takes the first groups of the queue that fit in one operation. Groups whose time has passed end. */
        while (sh->first && may_join(b, sh->first, keys, &conditions)) {
            struct write_group *g = sh->first;
            sh->first = g->next;
            g->next = NULL;
            if (g->send_until_us < sh->busy_since_us) {
                refuse(g, -ETIMEDOUT);
                continue;
            }
            if (g->send_until_us < b->send_until_us) b->send_until_us = g->send_until_us;
            g->phase = WRITE_RUNS;
            keys += g->n;
            *end = g;
            end = &g->next;
        }
        if (!sh->first) sh->last = &sh->first;
        sh->busy = b->groups != NULL;
        if (!sh->busy) pthread_cond_broadcast(&sh->turn);
    }
    pthread_mutex_unlock(&sh->lock);
    if (b && !b->groups) {
        free(b);
        b = NULL;
    }
    if (!b) return NULL;
    b->had_company = b->groups->next != NULL;
    arena_init(&b->arena, BUILD_CHUNK, 0);
    b->rc = batch_send(s, b);
    if (!b->started.completion) return b;
    pthread_mutex_lock(&sh->lock);
    sh->sent = &b->groups;
    pthread_mutex_unlock(&sh->lock);
    return b;
}

/* Waits for the operation and updates the shard from its result. Returns the result of the groups: 0, NOT_OPEN if they
 * must move, -EAGAIN if they must try again, or another negative error number. */
static int batch_wait(struct rados *s, struct batch *b) {
    struct shard *sh = b->shard;
    if (!b->started.completion) return b->rc;
    switch (b->rc = omap_write_wait(&s->pool, &b->started)) {
    case 0:
        sh->own = b->counter;
        atomic_store(&sh->shown_keys, keys_of(sh));
        atomic_store(&sh->shown_bytes, bytes_of(sh));
        atomic_fetch_add(&s->n_operations, 1);
        return 0;
    case -ECANCELED: {
        int rc = read_counters(s, sh);
        return rc == 0 ? -EAGAIN : rc;
    }
    case -ENOENT: /* the next try finds whether the table is gone, or creates its first object */
        sh->known = false;
        return -EAGAIN;
    default:
        /* The write may still happen. This store continues under another number, so that the
         * counters of this one are true in either case. */
        sh->own = (struct shard_counter){0};
        sh->known = false;
        return b->rc;
    }
}

/* Queues a split of a large shard. A shard that was not worth splitting is considered again when it has grown by as
 * much again. */
static void split_if_large(struct rados *s, struct shard *sh) {
    if (atomic_exchange(&sh->stays_whole, false)) {
        sh->split_keys = keys_of(sh) + s->o.split_keys;
        sh->split_bytes = bytes_of(sh) + s->o.split_bytes;
    }
    if (keys_of(sh) > (sh->split_keys ? sh->split_keys : s->o.split_keys) ||
        bytes_of(sh) > (sh->split_bytes ? sh->split_bytes : s->o.split_bytes))
        jobs_add_split(s, sh);
}

static void batch_finish(struct rados *s, struct batch *b) {
    struct shard *sh = b->shard;
    int rc = batch_wait(s, b);
    if (rc == 0) split_if_large(s, sh);
    pthread_mutex_lock(&sh->lock);
    sh->sent = NULL;
    for (struct write_group *g = b->groups, *next; g; g = next) {
        next = g->next;
        g->rc = rc;
        g->result = rc < 0 ? -1 : 0;
        g->phase = rc == NOT_OPEN ? WRITE_MOVES : WRITE_DONE;
        if (rc != -EAGAIN) continue;
        if (b->rc == -ECANCELED && has_condition(g) && !b->had_company) {
            g->result = WRITE_CHANGED;
        } else {
            g->alone = has_condition(g);
            enqueue(sh, g);
        }
    }
    sh->silent = rc == -ETIMEDOUT || rc == -EBUSY;
    while (sh->silent && sh->first) { /* Q26 */
        struct write_group *g = sh->first;
        sh->first = g->next;
        refuse(g, -EBUSY);
    }
    if (!sh->first) sh->last = &sh->first;
    sh->busy = false;
    pthread_cond_broadcast(&sh->turn);
    pthread_mutex_unlock(&sh->lock);
    omap_write_fini(&b->op);
    arena_fini(&b->arena);
    free(b);
}

/* ---- the caller's groups ---- */

/* Puts the group in the queue of its shard. */
static int place(struct rados *s, struct write_group *g) {
    struct shard *sh = shard_map_find(&s->shards, load_u32(g->prefix.p), shard_position(g->prefix));
    if (!sh) return -1;
    pthread_mutex_lock(&sh->lock);
    g->shard = sh;
    if (sh->silent && sh->busy) refuse(g, -EBUSY); /* the operation under way finds out whether the OSD answers */
    else enqueue(sh, g);
    pthread_mutex_unlock(&sh->lock);
    return 0;
}

static enum write_phase phase_of(const struct write_group *g) {
    pthread_mutex_lock(&g->shard->lock);
    enum write_phase p = g->phase;
    pthread_mutex_unlock(&g->shard->lock);
    return p;
}

/* Waits until the group's operation has ended or its shard is free for the next. Keeps Q26: a group that may not wait
 * leaves the queue, or the operation that was sent. */
static void await(struct write_group *g) {
    struct shard *sh = g->shard;
    bool patient = false;
    pthread_mutex_lock(&sh->lock);
    while (g->phase == WRITE_RUNS || (g->phase == WRITE_WAITS && sh->busy)) {
        int64_t left_us = sh->busy_since_us + POOL_WAIT_US - clock_machine_us(&clock_real);
        if (patient || (g->phase == WRITE_RUNS && !sh->sent)) {
            pthread_cond_wait(&sh->turn, &sh->lock);
        } else if (left_us > 0) {
            clock_cond_wait(&sh->turn, &sh->lock, left_us);
        } else if (sh->n_patient < WRITE_PATIENT) {
            patient = true;
            sh->n_patient++;
        } else {
            bool queued = g->phase == WRITE_WAITS;
            struct write_group **at = queued ? &sh->first : sh->sent;
            while (*at != g) at = &(*at)->next;
            *at = g->next;
            if (queued && !g->next) sh->last = at;
            refuse(g, queued ? -EBUSY : -ETIMEDOUT);
        }
    }
    if (patient) sh->n_patient--;
    pthread_mutex_unlock(&sh->lock);
}

/* Moves groups of split shards to the halves. */
static void move(struct rados *s, struct write_group *groups, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct write_group *g = &groups[i];
        if (phase_of(g) != WRITE_MOVES) continue;
        g->phase = WRITE_DONE;
        if ((g->rc = split_await(s, g->shard, g->send_until_us)) == 0 && place(s, g) < 0) g->rc = -ENOMEM;
    }
}

int write_groups(struct rados *s, struct write_group *groups, size_t n, struct err *e) {
    int64_t send_until_us = clock_machine_us(&clock_real) + WRITE_SEND_S * 1000000ll;
    size_t placed = 0;
    int rc = 0;
    for (; placed < n; placed++) {
        groups[placed].alone = false;
        groups[placed].send_until_us = send_until_us;
        if (place(s, &groups[placed]) < 0) break;
    }
    for (size_t i = placed; i < n; i++) groups[i].result = -1;
    if (placed < n) rc = err_nomem(e);
    for (size_t i = 0; i < placed; i++) {
        while (phase_of(&groups[i]) != WRITE_DONE) {
            struct batch *started = NULL;
            /* Starts all operations before waiting for the first, so that shards work in parallel. */
            for (size_t k = i; k < placed; k++) {
                struct batch *b = phase_of(&groups[k]) == WRITE_WAITS ? batch_start(s, groups[k].shard) : NULL;
                if (!b) continue;
                b->next = started;
                started = b;
            }
            for (struct batch *next; started; started = next) {
                next = started->next;
                batch_finish(s, started);
            }
            await(&groups[i]);
            move(s, &groups[i], placed - i);
        }
        /* Others of several groups may have been written. */
        if (n > 1 && groups[i].rc == -EBUSY) groups[i].rc = -ETIMEDOUT;
        if (groups[i].result == -1) rc = fill_error(e, &groups[i]);
    }
    atomic_fetch_add(&s->n_groups, n);
    return rc;
}
