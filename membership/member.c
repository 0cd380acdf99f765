#include "membership/member.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/murmur3.h"

enum { VERSION = 1, DESCRIPTION = 9 /* it begins after version and beat */ };

void member_set_host_id(struct member *m, const char *cluster_name) {
    struct { uint8_t half; char text[MEMBER_NAME + IP_ADDRESS_TEXT + 16]; } name = {0};
    int n = snprintf(name.text, sizeof(name.text), "%s %s %u %u", cluster_name, m->address, m->port, m->tls_port);
    size_t size = 1 + ((size_t)n < sizeof(name.text) ? (size_t)n : sizeof(name.text) - 1);
    for (int i = 0; i < 2; i++) {
        name.half = (uint8_t)i;
        store_u64(m->host_id + 8 * i, murmur3_hash(slice_of(&name, size)));
    }
    m->host_id[6] = (uint8_t)((m->host_id[6] & 0x0f) | 0x30);
    m->host_id[8] = (uint8_t)((m->host_id[8] & 0x3f) | 0x80);
}

static int compare_tokens(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void member_tokens(const uint8_t host_id[MEMBER_ID], int64_t out[MEMBER_TOKENS]) {
    uint8_t seed[MEMBER_ID + 1];
    memcpy(seed, host_id, MEMBER_ID);
    for (int i = 0; i < MEMBER_TOKENS; i++) {
        seed[MEMBER_ID] = (uint8_t)i;
        out[i] = murmur3_token(slice_of(seed, sizeof(seed)));
    }
    qsort(out, MEMBER_TOKENS, sizeof(*out), compare_tokens);
}

static void put_text(struct buf *out, const char *text) {
    buf_u16(out, (uint16_t)strlen(text));
    buf_put_str(out, text);
}

static void get_text(struct rd *rd, char *out, size_t size) {
    struct slice text = rd_bytes(rd, rd_u16(rd));
    if (text.n >= size) rd->bad = true;
    else if (text.n) memcpy(out, text.p, text.n);
}

static void get_id(struct rd *rd, uint8_t out[MEMBER_ID]) {
    struct slice id = rd_bytes(rd, MEMBER_ID);
    if (id.p) memcpy(out, id.p, MEMBER_ID);
}

void member_encode(const struct member *m, struct buf *out) {
    buf_u8(out, VERSION);
    buf_u64(out, m->beat);
    buf_put(out, m->host_id, MEMBER_ID);
    buf_put(out, m->incarnation, MEMBER_ID);
    buf_u16(out, m->port);
    buf_u16(out, m->tls_port);
    buf_u64(out, (uint64_t)m->started_s);
    buf_put(out, m->schema_version, MEMBER_ID);
    put_text(out, m->address);
    put_text(out, m->datacenter);
    put_text(out, m->rack);
    put_text(out, m->release_version);
}

bool member_decode(struct slice record, struct member *out) {
    struct rd rd = rd_of(record);
    struct ip_address address;
    *out = (struct member){0};
    uint8_t version = rd_u8(&rd);
    out->beat = rd_u64(&rd);
    get_id(&rd, out->host_id);
    get_id(&rd, out->incarnation);
    out->port = rd_u16(&rd);
    out->tls_port = rd_u16(&rd);
    out->started_s = (int64_t)rd_u64(&rd);
    get_id(&rd, out->schema_version);
    get_text(&rd, out->address, sizeof(out->address));
    get_text(&rd, out->datacenter, sizeof(out->datacenter));
    get_text(&rd, out->rack, sizeof(out->rack));
    get_text(&rd, out->release_version, sizeof(out->release_version));
    return !rd.bad && version >= VERSION && ip_address_parse(out->address, &address);
}

bool member_same_but_beat(struct slice a, struct slice b) {
    return a.n >= DESCRIPTION && b.n >= DESCRIPTION &&
           slice_eq(slice_of(a.p + DESCRIPTION, a.n - DESCRIPTION), slice_of(b.p + DESCRIPTION, b.n - DESCRIPTION));
}

bool member_is_reachable(const struct member *m, const struct member_client *client) {
    struct ip_address a;
    uint16_t port = client->with_tls ? m->tls_port : m->port;
    if (!port || !ip_address_parse(m->address, &a) || a.n != client->address.n) return false;
    bool same_address = memcmp(a.bytes, client->address.bytes, a.n) == 0;
    return client->knows_ports ? !same_address || port != client->port : !same_address && port == client->port;
}
