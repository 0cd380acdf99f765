/* The verification of a pool while servers use it (engine/verify.h).
 *
 * Every write of operands changes a counter of its object's head, and the head and a page of
 * keys are read in one operation. So pages whose heads are equal form a consistent snapshot; an object that changes
 * meanwhile is read again. A drop is recorded before the table's objects are removed
 * (Q6), and states only advance (Q3). So an object counts as missing only if its table has no such
 * record afterwards, and a state is compared with one that is read later.
 */
#include "engine/verify.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "engine/rados/batchlog.h"
#include "engine/rados/fetch.h"
#include "engine/rados/named.h"
#include "engine/rados/omap_key.h"
#include "engine/rados/pieces.h"
#include "engine/rows/tombstone.h"

enum { TRIES = 10, CHUNK = 64 << 10, KEY_SHOWN = 48 };

/* An object of rows: a shard's or, with is_piece, a piece of a wide partition. */
struct object {
    bool is_piece;
    struct shard_id shard;      /* only its table for a piece */
    uint64_t id, number;        /* for a piece */
};

struct verify {
    struct eng_verify *v;
    struct rados s; /* only its pool is used */
    struct arena arena; /* of one page or one head */
    size_t n, cap;
    struct object *objects;
};

static void object_name(const struct object *o, char out[PIECE_NAME]) {
    if (o->is_piece) piece_name(o->shard.table, o->id, o->number, out);
    else shard_name(&o->shard, out);
}

static void report(struct verify *v, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void report(struct verify *v, const char *fmt, ...) {
    char words[ERR_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    v->v->found(v->v->arg, words);
}

/* ---- one object ---- */

struct contents {
    struct shard_head head;
    uint64_t operands, operand_bytes; /* counted here, to compare with the counters */
    uint64_t own_keys;                /* partitions' own keys */
};

/* Counts a pair, and checks it if it is an operand. */
static void take_pair(struct verify *v, const struct object *o, const struct omap_pair *p, struct contents *c) {
    char name[PIECE_NAME], shown[2 * KEY_SHOWN + 1] = "";
    struct omap_operand_id operand;
    struct buf key;
    struct err e = {0};
    if (omap_key_of_partition(p->key)) {
        c->own_keys++;
        return;
    }
    c->operands++;
    c->operand_bytes += p->key.n + p->value.n;
    buf_init(&key, 0);
    buf_u32(&key, o->shard.table);
    if (omap_key_read(p->key, &key, &operand) < 0) {
        err_set(&e, ERR_SERVER, "its key is none of an operand");
    } else if (engi_check_record(buf_slice(&key), p->value, &v->arena, &e) == 0 && !o->is_piece) {
        uint64_t position = shard_position(buf_slice(&key));
        if (position < o->shard.bits || position > shard_last(&o->shard))
            err_set(&e, ERR_SERVER, "its token is none of this object's");
    }
    buf_fini(&key);
    if (!e.set) return;
    object_name(o, name);
    for (size_t i = 0; i < p->key.n && i < KEY_SHOWN; i++) snprintf(shown + 2 * i, 3, "%02x", p->key.p[i]);
    report(v, "object %s: the key 0x%s%s: %s", name, shown, p->key.n > KEY_SHOWN ? "..." : "", e.text);
}

/* Reads the page after start, and the head. *more: there is another page. */
static int read_page(struct verify *v, const char *name, const char *start, struct omap_pairs *head,
                     struct omap_pairs *page, bool *more) {
    struct omap_read r = {.pool = &v->s.pool};
    head->n = page->n = 0;
    omap_read_add(&r, "", SHARD_HEAD_PREFIX, OMAP_READ_MAX);
    omap_read_add(&r, start, "", OMAP_READ_MAX);
    int rc = omap_read_run(&r, name);
    if (rc == 0) rc = omap_read_take(&r, 0, &v->arena, head);
    if (rc == 0) rc = omap_read_take(&r, 1, &v->arena, page);
    *more = rc == 0 && r.parts[1].more && page->n;
    omap_read_fini(&r);
    return rc;
}

/* Returns 0, -EAGAIN if the object changed, -EBADMSG if its head is damaged, or another negative error number. */
static int read_object(struct verify *v, const struct object *o, struct arena *first_arena, struct contents *c) {
    struct omap_pairs first = {0}, head = {0}, page = {0};
    char name[PIECE_NAME];
    struct buf start;
    bool more = true;
    int rc = 0;
    *c = (struct contents){0};
    object_name(o, name);
    buf_init(&start, 0);
    buf_put_str(&start, SHARD_HEAD_LAST);
    buf_u8(&start, 0);
    while (rc == 0 && more) {
        arena_reset(&v->arena);
        if (buf_failed(&start)) rc = -ENOMEM;
        if (rc == 0) rc = read_page(v, name, (const char *)start.p, &head, &page, &more);
        for (size_t i = 0; rc == 0 && i < page.n; i++) take_pair(v, o, &page.items[i], c);
        if (rc == 0 && first.n && first.n != head.n) rc = -EAGAIN;
        for (size_t i = 0; rc == 0 && i < first.n; i++)
            if (!slice_eq(first.items[i].key, head.items[i].key) ||
                !slice_eq(first.items[i].value, head.items[i].value))
                rc = -EAGAIN;
        for (size_t i = 0; rc == 0 && !first.n && i < head.n; i++) {
            head.items[i].key = arena_dup(first_arena, head.items[i].key);
            head.items[i].value = arena_dup(first_arena, head.items[i].value);
            if (!head.items[i].key.p || !head.items[i].value.p) rc = -ENOMEM;
        }
        if (rc == 0 && !first.n) {
            first = head;
            head = (struct omap_pairs){0};
        }
        buf_clear(&start, SIZE_MAX);
        if (more) buf_put_slice(&start, page.items[page.n - 1].key);
        buf_u8(&start, 0);
    }
    if (rc == 0 && shard_head_read(&first, first_arena, &c->head) < 0) rc = -EBADMSG;
    omap_pairs_fini(&first);
    omap_pairs_fini(&head);
    omap_pairs_fini(&page);
    buf_fini(&start);
    return rc;
}

/* ---- an object's halves and its whole ---- */

/* Returns the state of a shard's object, or a negative error number. */
static int state_of(struct verify *v, const struct shard_id *id) {
    struct shard sh = {.id = *id};
    struct shard_head head;
    shard_name(id, sh.name);
    int rc = head_read(&v->s, &sh, false, &v->arena, &head);
    return rc < 0 ? rc : (int)head.state;
}

/* Returns 1 if an object is missing although its table was not dropped, 0, or a negative error number. */
static int is_missing(struct verify *v, const struct shard_id *id, int state) {
    if (state != -ENOENT) return state < 0 && state != -EBADMSG ? state : 0;
    int dropped = head_was_dropped(&v->s, id->table, &v->arena);
    return dropped < 0 ? dropped : !dropped;
}

/* Checks the counters and the state, and its halves or its whole. The counters of a piece are bounds: a row that is
 * moved again counts again. */
static int check_state(struct verify *v, const struct object *o, const char *name, const struct contents *c) {
    const struct shard_id *id = &o->shard;
    const enum shard_state state = c->head.state;
    struct shard_counter sum = shard_sum(&c->head);
    int rc = 0;
    if (o->is_piece) {
        if (state != SHARD_OPEN) report(v, "object %s is in no state", name);
        return 0;
    }
    switch (state) {
    case SHARD_OPEN:
    case SHARD_FROZEN:
        if (sum.keys != c->operands || sum.bytes != c->operand_bytes)
            report(v, "object %s has %llu operands of %llu bytes, and counts %llu of %llu", name,
                   (unsigned long long)c->operands, (unsigned long long)c->operand_bytes, (unsigned long long)sum.keys,
                   (unsigned long long)sum.bytes);
        break;
    case SHARD_SPLIT:
        if (c->operands + c->own_keys)
            report(v, "object %s is split and still has %llu keys", name,
                   (unsigned long long)(c->operands + c->own_keys));
        for (unsigned bit = 0; rc >= 0 && bit < 2; bit++) {
            struct shard_id half = shard_half(id, bit);
            rc = is_missing(v, &half, state_of(v, &half));
            if (rc > 0) report(v, "object %s is split, and the object of its half %u is missing", name, bit);
        }
        break;
    case SHARD_COPIED: break;
    default: report(v, "object %s is in no state", name);
    }
    if (state == SHARD_OPEN && id->depth) {
        struct shard_id whole = {.table = id->table, .depth = (uint8_t)(id->depth - 1)};
        whole.bits = whole.depth ? id->bits & ~(~(uint64_t)0 >> whole.depth) : 0;
        int of_whole = state_of(v, &whole);
        rc = is_missing(v, &whole, of_whole);
        if (rc > 0) report(v, "object %s is a half, and the object of the whole is missing", name);
        if (of_whole == SHARD_OPEN || of_whole == SHARD_COPIED)
            report(v, "object %s is an open half of a shard that is not split", name);
    }
    return rc < 0 ? rc : 0;
}

static int check_object(struct verify *v, const struct object *o) {
    struct arena head_arena;
    struct contents c;
    char name[PIECE_NAME];
    int rc = -EAGAIN;
    object_name(o, name);
    arena_init(&head_arena, CHUNK, 0);
    for (int i = 0; rc == -EAGAIN && i < TRIES; i++) {
        arena_reset(&head_arena);
        rc = read_object(v, o, &head_arena, &c);
    }
    v->v->objects++;
    v->v->rows += c.operands;
    arena_reset(&v->arena);
    switch (rc) {
    case 0: rc = check_state(v, o, name, &c); break;
    case -EAGAIN: v->v->busy++, rc = 0; break;
    case -EBADMSG: report(v, "object %s: its head is damaged", name), rc = 0; break;
    case -ENOENT: rc = 0; break; /* its table was dropped meanwhile, or the piece was replaced */
    default: break;
    }
    arena_fini(&head_arena);
    return rc;
}

/* ---- named records, the log of batches, tables ---- */

static int take_named(void *arg, struct slice name, struct slice value, struct err *e) {
    struct verify *v = arg;
    struct err why = {0};
    (void)e;
    v->v->records++;
    if (v->v->named(v->v->arg, name, value, &why) < 0)
        report(v, "the named record %.*s: %s", SLICE_FMT(name), why.text);
    return 0;
}

static int check_log(void *arg, const struct batchlog *log) {
    struct verify *v = arg;
    struct omap_pairs head = {0}, page = {0};
    struct buf start;
    bool more = true;
    int rc = 0;
    buf_init(&start, 0);
    buf_put_str(&start, BATCHLOG_MARK);
    buf_u8(&start, 0);
    while (rc == 0 && more && !buf_failed(&start)) {
        arena_reset(&v->arena);
        rc = read_page(v, log->object, (const char *)start.p, &head, &page, &more);
        for (size_t i = 0; rc == 0 && i < page.n; i++) {
            struct err e = {0};
            size_t n;
            if (batchlog_check(page.items[i].value, &n, &e) < 0) report(v, "object %s: %s", log->object, e.text);
        }
        buf_clear(&start, SIZE_MAX);
        if (more) buf_put_slice(&start, page.items[page.n - 1].key);
        buf_u8(&start, 0);
    }
    omap_pairs_fini(&head);
    omap_pairs_fini(&page);
    buf_fini(&start);
    return rc == -ENOENT ? 0 : rc;
}

/* Runs after the named records were read: an object whose table is not among them has no owner. A drop
 * erases the table's record last, so the objects of a recorded table are removed by the server that executes the
 * drop, or by another one after its start. */
static int check_owner(struct verify *v, const struct object *o) {
    struct omap_pairs head = {0}, page = {0};
    char name[PIECE_NAME];
    bool more;
    uint32_t table = o->shard.table;
    if (v->v->has(v->v->arg, table)) return 0;
    object_name(o, name);
    arena_reset(&v->arena);
    int dropped = head_was_dropped(&v->s, table, &v->arena);
    if (dropped < 0) return dropped;
    int rc = read_page(v, name, SHARD_HEAD_LAST, &head, &page, &more);
    omap_pairs_fini(&head);
    omap_pairs_fini(&page);
    if (rc < 0) return rc == -ENOENT ? 0 : rc;
    if (dropped) report(v, "object %s is left of the table of id %u, which was dropped", name, table);
    else
        report(v, "object %s has rows of id %u, which no object of the catalogue has; a server frees them after its "
                "start", name, table);
    return 0;
}

/* ---- the whole ---- */

static int note_object(void *arg, const char *name) {
    struct verify *v = arg;
    struct object o = {0};
    if (shard_name_read(name, &o.shard) < 0) {
        o.shard = (struct shard_id){0};
        o.is_piece = piece_name_read(name, &o.shard.table, &o.id, &o.number) == 0;
        if (!o.is_piece) return 0;
    }
    if (array_room(&v->objects, v->n, &v->cap, sizeof(v->objects[0])) < 0) return -ENOMEM;
    v->objects[v->n++] = o;
    return 0;
}

int eng_verify_rados(struct eng_verify *o, const struct eng_rados *where, struct err *e) {
    struct verify v = {.v = o};
    const struct pool_options pool = {.conf = where->conf, .pool = where->pool};
    struct err why = {0};
    bool failed = false;
    if (pool_open(&v.s.pool, &pool, e) < 0) return -1;
    arena_init(&v.arena, CHUNK, 0);
    int rc = pool_each_object(&v.s.pool, note_object, &v);
    for (size_t i = 0; rc == 0 && i < v.n; i++) rc = check_object(&v, &v.objects[i]);
    if (rc == 0) rc = batchlog_each(&v.s, 0, check_log, &v);
    if (rc == 0) {
        o->next_store(o->arg);
        failed = named_scan(&v.s, slice_of("", 0), take_named, &v, &why) < 0;
    }
    if (failed && why.code == ERR_SERVER) {
        report(&v, "%s", why.text);
        failed = false;
    }
    for (size_t i = 0; rc == 0 && !failed && i < v.n; i++) rc = check_owner(&v, &v.objects[i]);
    if (failed) *e = why;
    if (rc < 0) rc = pool_error(e, rc, POOL_READS, "of the pool");
    arena_fini(&v.arena);
    free(v.objects);
    pool_close(&v.s.pool);
    return failed ? -1 : rc;
}
