/* One row: a single pinned get, or a walk over the head of the partition where something was deleted as a whole. */
#include "engine/row_codec.h"
#include "engine/store.h"

enum { KEY_ON_STACK = 512 };

static void *memory(uint8_t *stack, size_t n, struct arena *a) { return n <= KEY_ON_STACK ? stack : arena_alloc(a, n); }

/* The row's key, on the stack when it fits; p NULL on an error. */
static struct slice row_key(uint8_t *stack, const struct eng_part *part, enum eng_row_kind kind, struct slice ck, struct arena *a,
                            struct err *e) {
    size_t n = engi_key_row_size(part, kind, ck);
    if (part->key.n > UINT16_MAX) {
        err_invalid(e, "Key length of %zu is longer than maximum of 65535", part->key.n);
        return (struct slice){0};
    }
    uint8_t *p = memory(stack, n, a);
    if (!p) return err_nomem(e), (struct slice){0};
    engi_key_row_write(p, part, kind, ck);
    return slice_of(p, n);
}

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t newest_of(const struct eng_row *row, int64_t del_ts) {
    int64_t newest = later(later(row->live_ts, row->del_ts), del_ts);
    for (uint32_t i = 0; i < row->n_cells; i++) newest = later(newest, row->cells[i].ts);
    return newest;
}

/* bytes must live as long as the row. */
static int resolve(struct slice bytes, size_t key_n, struct arena *a, int64_t del_ts, int64_t now, struct eng_row *row,
                   struct op_cost *cost, struct err *e) {
    if (eng_row_decode(bytes, a, row, e)) return -1;
    row->newest_ts = newest_of(row, del_ts);
    if (cost) {
        cost->rows_read++;
        cost->bytes_read += key_n + bytes.n;
    }
    return eng_row_resolve(row, del_ts, now, cost ? &cost->tombstones : NULL);
}

/* The newest deletion of the partition or of a range that covers the row, and then the iterator's move to the row. */
static int walk_to_row(struct kv_iter *it, struct slice key, size_t prefix, struct slice ck, int64_t *del_ts, uint64_t *passed,
                       struct err *e) {
    struct slice head = slice_of(key.p, prefix);
    bool is_static = key.p[prefix] == ENGI_STATIC;
    int got = it->ops->iter_move(it, KV_SEEK, head, e);
    for (; got > 0 && it->key.n > prefix && it->key.p[prefix] <= ENGI_RANGE_TOMBSTONE; got = it->ops->iter_move(it, KV_NEXT, head, e)) {
        struct slice rest = slice_of(it->key.p + prefix + 1, it->key.n - prefix - 1);
        struct engi_interval range;
        struct rowi_reader r;
        uint8_t kind = it->key.p[prefix];
        if (kind == ENGI_STATIC) {
            if (is_static) return 1;
            continue;
        }
        if (is_static && kind == ENGI_RANGE_TOMBSTONE) return 0;
        if (rowi_open(&r, it->value)) return err_set(e, ERR_SERVER, "a stored tombstone is damaged");
        if (kind == ENGI_RANGE_TOMBSTONE) {
            if (engi_interval_read(rest, &range)) return err_set(e, ERR_SERVER, "a stored tombstone is damaged");
            if (!engi_interval_covers(&range, ck)) continue;
        }
        ++*passed;
        if (r.head.del_ts > *del_ts) *del_ts = r.head.del_ts;
    }
    if (got <= 0 || is_static) return got < 0 ? got : 0;
    got = it->ops->iter_move(it, KV_SEEK, key, e);
    return got > 0 ? slice_eq(it->key, key) : got;
}

/* Tombstones and row come from one moment of the store, so that a row is never seen without what deleted its past. */
static int get_deleted(struct eng *eng, enum eng_tier tier, struct slice key, struct slice ck, int64_t now, struct arena *a,
                       struct eng_row *row, struct op_cost *cost, struct err *e) {
    size_t prefix = engi_prefix_len(key);
    uint8_t stack[KEY_ON_STACK], *end = memory(stack, prefix + 1, a);
    if (!end) return err_nomem(e);
    memcpy(end, key.p, prefix);
    end[prefix] = ENGI_PAST;
    struct kv_iter_spec spec = {.tier = engi_tier(tier), .one_prefix = true, .upper = slice_of(end, prefix + 1)};
    struct kv_iter *it = eng->kv->ops->iter_new(eng->kv, &spec, e);
    if (!it) return -1;
    int64_t del_ts = ENG_NO_TS;
    uint64_t passed = 0;
    int got = walk_to_row(it, key, prefix, ck, &del_ts, &passed, e);
    row->newest_ts = del_ts;
    if (got > 0) {
        struct slice bytes = arena_dup(a, it->value);
        got = bytes.p ? resolve(bytes, key.n, a, del_ts, now, row, cost, e) : err_nomem(e);
    }
    if (cost && got != ENG_INCOMPLETE) cost->tombstones += passed;
    it->ops->iter_free(it);
    return got;
}

static int get_plain(struct eng *eng, enum eng_tier tier, struct slice key, int64_t now, struct arena *a, struct eng_row *row,
                     struct op_cost *cost, struct err *e) {
    struct kv_value value;
    int got = eng->kv->ops->get(eng->kv, engi_tier(tier), key, &value, e);
    if (got <= 0) return got;
    struct slice bytes = {.p = arena_alloc(a, value.bytes.n), .n = value.bytes.n};
    if (bytes.p) memcpy((uint8_t *)(uintptr_t)bytes.p, value.bytes.p, bytes.n);
    eng->kv->ops->release(eng->kv, &value);
    return bytes.p ? resolve(bytes, key.n, a, ENG_NO_TS, now, row, cost, e) : err_nomem(e);
}

static int get_any(struct eng *eng, enum eng_tier tier, const struct eng_part *part, struct slice key, int64_t now, struct arena *a,
                   struct eng_row *row, struct op_cost *cost, struct err *e) {
    struct eng_row empty = *row;
    struct op_cost before = {0};
    if (cost) before = *cost;
    if (!engi_table_deleted(eng, part->table, part->token)) {
        int got = get_plain(eng, tier, key, now, a, row, cost, e);
        /* A tombstone of this moment may have come with the row just read. */
        if (LIKELY(got < 0 || !engi_table_deleted(eng, part->table, part->token))) return got;
        if (cost) *cost = before;
        *row = empty;
    }
    return get_deleted(eng, tier, key, row->ck, now, a, row, cost, e);
}

int eng_row_get(struct eng *eng, enum eng_tier tier, const struct eng_part *part, enum eng_row_kind kind, struct slice ck,
                int64_t now, struct arena *a, struct eng_row *row, struct op_cost *cost, struct err *e) {
    uint8_t stack[KEY_ON_STACK];
    eng_row_init(row, kind, ck);
    struct slice key = row_key(stack, part, kind, ck, a, e);
    if (!key.p) return -1;
    int got = get_any(eng, tier, part, key, now, a, row, cost, e);
    if (cost && got != ENG_INCOMPLETE) cost->partitions++; /* the blocking tier counts it then */
    return got;
}
