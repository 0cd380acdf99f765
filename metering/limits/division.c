#include "metering/limits/division.h"

#include "base/array.h"

uint32_t division_fraction(uint64_t mine, uint64_t others, uint32_t n) {
    const uint64_t most = UINT64_C(1) << 40; /* of a demand, so that products fit */
    if (!n) return DIVISION_WHOLE;
    while (mine + others > most) mine >>= 1, others >>= 1;
    uint64_t sum = mine + others;
    uint32_t equal = DIVISION_EQUAL / (n + 1);
    return equal + (uint32_t)(sum ? (DIVISION_WHOLE - DIVISION_EQUAL) * mine / sum : 0) + (equal ? 0 : 1);
}

int limit_demands_add(struct limit_demands *to, const struct limit_demand *d) {
    if (array_room(&to->items, to->n, &to->cap, sizeof(*to->items))) return -1;
    to->items[to->n++] = *d;
    return 0;
}

void limit_demands_put(const struct limit_demands *d, struct buf *out) {
    buf_uvarint(out, d->n);
    for (size_t i = 0; i < d->n; i++) {
        const struct limit_demand *x = &d->items[i];
        buf_u32(out, x->object);
        buf_u8(out, x->of_partition);
        if (x->of_partition) buf_u64(out, (uint64_t)x->token);
        buf_uvarint(out, x->read);
        buf_uvarint(out, x->write);
        buf_uvarint(out, x->read_used);
        buf_uvarint(out, x->write_used);
    }
}

int limit_demands_take(struct limit_demands *to, struct rd *in) {
    const uint64_t most = UINT64_C(1) << 40; /* no server has more, and sums must not overflow */
    for (uint64_t n = rd_uvarint(in); n && !in->bad; n--) {
        struct limit_demand x = {.object = rd_u32(in), .of_partition = rd_u8(in)};
        if (x.of_partition) x.token = (int64_t)rd_u64(in);
        x.read = rd_uvarint(in);
        x.write = rd_uvarint(in);
        x.read_used = rd_uvarint(in);
        x.write_used = rd_uvarint(in);
        if (x.read > most || x.write > most || in->bad || limit_demands_add(to, &x)) return -1;
    }
    return in->bad ? -1 : 0;
}

int limit_demand_order(const void *a, const void *b) {
    const struct limit_demand *x = a, *y = b;
    if (x->object != y->object) return x->object < y->object ? -1 : 1;
    if (x->of_partition != y->of_partition) return x->of_partition - y->of_partition;
    return (x->token > y->token) - (x->token < y->token);
}
