#include "server/fleet_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void fleet_head_key(uint64_t id, char out[FLEET_HEAD_KEY]) {
    snprintf(out, FLEET_HEAD_KEY, FLEET_HEADS "%016" PRIx64, id);
}
void fleet_table_key(uint64_t id, uint32_t object, char out[FLEET_TABLE_KEY]) {
    snprintf(out, FLEET_TABLE_KEY, FLEET_TABLES "%016" PRIx64 "/%08x", id, object);
}

void fleet_folded_key(uint64_t id, char out[FLEET_FOLDED_KEY]) {
    snprintf(out, FLEET_FOLDED_KEY, FLEET_FOLDED "%016" PRIx64, id);
}

int fleet_folded_take(struct slice value, int64_t *folded_us, struct slice *receipt) {
    struct rd r = rd_of(value);
    *folded_us = (int64_t)rd_u64(&r);
    *receipt = rd_bytes(&r, rd_left(&r));
    return r.bad ? -1 : 0;
}

void fleet_head_put(struct buf *out, const struct fleet_head *h) {
    buf_u64(out, h->incarnation);
    buf_u64(out, h->sequence);
    buf_u64(out, h->tables);
    buf_put_slice(out, h->demands);
}

int fleet_head_take(struct slice value, struct fleet_head *h) {
    struct rd r = rd_of(value);
    h->incarnation = rd_u64(&r);
    h->sequence = rd_u64(&r);
    h->tables = rd_u64(&r);
    h->demands = rd_bytes(&r, rd_left(&r));
    return r.bad ? -1 : 0;
}

int fleet_number(struct slice name, size_t at, size_t digits, uint64_t *out) {
    char text[17], *end;
    if (name.n < at + digits) return -1;
    snprintf(text, sizeof(text), "%.*s", (int)digits, (const char *)name.p + at);
    *out = strtoull(text, &end, 16);
    return end == text + digits ? 0 : -1;
}
