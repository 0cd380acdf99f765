#include "ledger/order.h"

static struct order_key beginning(struct slice key) {
    struct order_key k = {.n = (uint8_t)(key.n < ORDER_KEY ? key.n : ORDER_KEY)};
    if (k.n) memcpy(k.bytes, key.p, k.n);
    return k;
}

static int compare(const struct order_key *a, const struct order_key *b) { return slice_cmp(slice_of(a->bytes, a->n), slice_of(b->bytes, b->n)); }

static void begin_window(struct order *o, const struct order_key *k) {
    o->least = o->most = *k;
    o->n = o->up = o->down = 1;
}

static void end_window(struct order *o) {
    bool up = o->up >= ORDER_NEEDED, down = o->down >= ORDER_NEEDED;
    o->up_row = up ? o->up_row + (o->up_row < ORDER_IN_A_ROW) : 0;
    o->down_row = down ? o->down_row + (o->down_row < ORDER_IN_A_ROW) : 0;
    o->windows++;
    o->one_way += up || down;
    o->n = 0;
}

void order_add(struct order *o, struct slice key) {
    struct order_key k = beginning(key);
    if ((o->n || o->windows) && compare(&k, &o->last) == 0) return;
    o->last = k;
    if (!o->n) {
        begin_window(o, &k);
        return;
    }
    if (compare(&k, &o->most) > 0) {
        o->most = k;
        o->up++;
    } else if (compare(&k, &o->least) < 0) {
        o->least = k;
        o->down++;
    }
    if (++o->n == ORDER_WINDOW) end_window(o);
}

enum order_pattern order_pattern(const struct order *o) {
    if (o->up_row >= ORDER_IN_A_ROW) return ORDER_APPEND_ONLY;
    return o->down_row >= ORDER_IN_A_ROW ? ORDER_PREPEND_ONLY : ORDER_NONE;
}

const char *order_pattern_name(enum order_pattern p) {
    static const char *const names[] = {[ORDER_NONE] = "", [ORDER_APPEND_ONLY] = "append-only", [ORDER_PREPEND_ONLY] = "prepend-only"};
    return names[p];
}
