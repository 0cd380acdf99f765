#include "metering/ledger/order.h"

#include "base/hot.h"

struct key_types {
    const struct cql_type *const *types;
    uint32_t n;
};

void order_fini(struct order *o) {
    buf_fini(&o->last);
    for (int i = 0; i < ORDER_LEADS; i++) {
        buf_fini(&o->leads[i].least);
        buf_fini(&o->leads[i].most);
    }
    *o = (struct order){0};
}

/* The next column's value. */
static struct slice next_value(const struct key_types *of, struct rd *key) {
    struct slice value = rd_bytes(key, of->n == 1 ? rd_left(key) : rd_u16(key));
    if (of->n > 1) rd_u8(key);
    return value;
}

/* Compares the first columns of two keys. */
static int compare(const struct key_types *of, uint32_t columns, struct slice a, struct slice b) {
    struct rd x = rd_of(a), y = rd_of(b);
    int c = 0;
    for (uint32_t i = 0; i < columns && c == 0; i++) {
        struct slice p = next_value(of, &x), q = next_value(of, &y);
        if (x.bad || y.bad) return 0;
        c = cql_value_compare(of->types[i], p, q);
    }
    return c;
}

static int keep(struct buf *b, struct slice key) {
    if (!b->p) buf_init(b, ORDER_KEY);
    b->n = 0;
    uint8_t *to = buf_reserve(b, key.n);
    if (!to) return -1;
    copy_short(to, key.p, key.n);
    buf_advance(b, key.n);
    return 0;
}

/* Adds a lead, the first columns of the key, to its window. Returns -1 if memory is exhausted. */
static int add(struct order_lead *l, const struct key_types *of, uint32_t columns, struct slice key) {
    uint8_t best = l->up > l->down ? l->up : l->down;
    if (l->n == 0) {
        /* After a growing window the first key counts as a new extreme only above the greatest key of the
         * windows of that row; otherwise it always counts. Likewise for falling keys and the least. */
        l->up = !l->up_row || compare(of, columns, key, buf_slice(&l->most)) > 0;
        l->down = !l->down_row || compare(of, columns, key, buf_slice(&l->least)) < 0;
        if ((l->up && keep(&l->most, key)) || (l->down && keep(&l->least, key))) return -1;
    } else if (best + (ORDER_WINDOW - l->n) >= ORDER_NEEDED) {
        /* The window can still become one-way. Otherwise its extremes do not matter: the next window begins
         * a new row. */
        if (compare(of, columns, key, buf_slice(&l->most)) > 0) {
            l->up++;
            if (keep(&l->most, key)) return -1;
        } else if (compare(of, columns, key, buf_slice(&l->least)) < 0) {
            l->down++;
            if (keep(&l->least, key)) return -1;
        }
    }
    if (++l->n == ORDER_WINDOW) {
        bool up = l->up >= ORDER_NEEDED, down = l->down >= ORDER_NEEDED;
        l->up_row = up ? l->up_row + (l->up_row < ORDER_IN_A_ROW) : 0;
        l->down_row = down ? l->down_row + (l->down_row < ORDER_IN_A_ROW) : 0;
        l->windows++;
        l->one_way += up || down;
        l->n = 0;
    }
    return 0;
}

void order_add(struct order *o, const struct cql_type *const *types, uint32_t n, struct slice key, int64_t token) {
    const struct key_types of = {.types = types, .n = n};
    uint32_t alike = 0; /* the first columns that have the same bytes as in the previous key */
    int rc = 0;
    if (key.n > ORDER_KEY || (o->begun && o->last_token == token)) return; /* the key of the previous write */
    o->begun = true;
    o->last_token = token;
    if (n > 1) {
        struct rd x = rd_of(key), y = rd_of(buf_slice(&o->last));
        while (o->last.n && alike < n && slice_eq(next_value(&of, &x), next_value(&of, &y))) alike++;
        rc = keep(&o->last, key);
    }
    for (uint32_t i = 0; i < ORDER_LEADS && i < n && !rc; i++) {
        uint32_t columns = i + 1 == ORDER_LEADS ? n : i + 1;
        if (columns > alike) rc = add(&o->leads[i], &of, columns, key);
    }
    if (rc) order_fini(o);
}

enum order_pattern order_pattern(const struct order *o) {
    for (int i = 0; i < ORDER_LEADS; i++) {
        if (o->leads[i].up_row >= ORDER_IN_A_ROW) return ORDER_APPEND_ONLY;
        if (o->leads[i].down_row >= ORDER_IN_A_ROW) return ORDER_PREPEND_ONLY;
    }
    return ORDER_NONE;
}

const char *order_pattern_name(enum order_pattern p) {
    static const char *const names[] = {
        [ORDER_NONE] = "", [ORDER_APPEND_ONLY] = "append-only", [ORDER_PREPEND_ONLY] = "prepend-only"};
    return names[p];
}
