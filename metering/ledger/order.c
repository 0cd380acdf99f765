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

/* How many first columns of two keys have the same bytes. */
static uint32_t columns_alike(const struct key_types *of, struct slice a, struct slice b) {
    struct rd x = rd_of(a), y = rd_of(b);
    uint32_t alike = 0;
    while (alike < of->n && slice_eq(next_value(of, &x), next_value(of, &y))) alike++;
    return alike;
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

/* Within a row of growing windows the first key counts as a new extreme only above the greatest key
 * of the windows before; without such a row it always counts. The same for falling keys and the
 * least. */
static int begin_window(struct order_lead *l, const struct key_types *of, uint32_t columns, struct slice key) {
    l->up = !l->up_row || compare(of, columns, key, buf_slice(&l->most)) > 0;
    l->down = !l->down_row || compare(of, columns, key, buf_slice(&l->least)) < 0;
    l->n = 1;
    return (l->up && keep(&l->most, key)) || (l->down && keep(&l->least, key)) ? -1 : 0;
}

/* Whether the running window can still become one-way. If not, its extremes no longer matter: the
 * next window begins a new row. */
static bool may_be_one_way(const struct order_lead *l) {
    uint8_t most = l->up > l->down ? l->up : l->down;
    return most + (ORDER_WINDOW - l->n) >= ORDER_NEEDED;
}

static int note_extreme(struct order_lead *l, const struct key_types *of, uint32_t columns, struct slice key) {
    if (compare(of, columns, key, buf_slice(&l->most)) > 0) {
        l->up++;
        return keep(&l->most, key);
    }
    if (compare(of, columns, key, buf_slice(&l->least)) >= 0) return 0;
    l->down++;
    return keep(&l->least, key);
}

static int add(struct order_lead *l, const struct key_types *of, uint32_t columns, struct slice key) {
    if (l->n == 0) return begin_window(l, of, columns, key);
    if (may_be_one_way(l) && note_extreme(l, of, columns, key)) return -1;
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
    uint32_t alike = 0;
    int rc = 0;
    if (key.n > ORDER_KEY || (o->begun && o->last_token == token)) return; /* the key of the write before */
    o->begun = true;
    o->last_token = token;
    if (n > 1) {
        alike = o->last.n ? columns_alike(&of, key, buf_slice(&o->last)) : 0;
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
