/* This node: system.local and its peers. */
#include <stdlib.h>

#include "base/ip_address.h"
#include "base/log.h"
#include "base/murmur3.h"
#include "base/random.h"
#include "engine/named.h"
#include "system_schema/system_tables/system_table.h"

static const char host_id_key[] = "catalog/host_id";

struct host_id {
    uint8_t bytes[16];
    bool sound, damaged; /* neither: there is no record */
};

static int load_host_id(void *arg, struct slice key, struct slice value, struct err *e) {
    struct host_id *id = arg;
    (void)key, (void)e;
    id->sound = value.n == sizeof id->bytes;
    id->damaged = !id->sound;
    if (id->sound) memcpy(id->bytes, value.p, value.n);
    else log_error("catalog: the record of the host id is damaged: this node gets a new one");
    return 0;
}

/* The host id is a random UUID (version 4), made once per store. If two servers start on a new
 * store at the same time, one reads what the other has made. */
static int host_id_init(struct node *n, struct eng *eng, struct err *e) {
    struct host_id id = {.sound = false};
    for (int rc = ENG_CHANGED; rc == ENG_CHANGED;) {
        if (eng_meta_scan(eng, slice_str(host_id_key), load_host_id, &id, e)) return -1;
        if (id.sound) break;
        if (random_uuid(id.bytes, e)) return -1;
        const struct eng_meta_change change = {.key = slice_str(host_id_key),
                                               .value = slice_of(id.bytes, sizeof id.bytes),
                                               .conditional = !id.damaged};
        rc = eng_meta_write(eng, 1, &change, e);
        if (rc && rc != ENG_CHANGED) return -1;
    }
    memcpy(n->host_id, id.bytes, sizeof id.bytes);
    return 0;
}

/* Servers on one store have one record of a host id, so each has that of the membership. */
static void host_id_of_member(struct node *n, struct membership *m) {
    const struct member_list *l = membership_list(m);
    memcpy(n->host_id, l->items[l->self].host_id, sizeof n->host_id);
    membership_unref(l);
}

int node_init(struct node *n, const struct node_info *info, struct membership *membership, struct objects *o,
              struct arena *a, struct err *e) {
    n->started_s = clock_wall_us(o->clock) / 1000000;
    n->info = (struct node_info){.cluster_name = arena_strdup(a, info->cluster_name),
                                 .datacenter = arena_strdup(a, info->datacenter),
                                 .rack = arena_strdup(a, info->rack),
                                 .release_version = arena_strdup(a, info->release_version),
                                 .cql_version = arena_strdup(a, info->cql_version),
                                 .listen_address = arena_strdup(a, info->listen_address),
                                 .port = info->port,
                                 .peers = arena_strdup(a, info->peers ? info->peers : "none"),
                                 .region = arena_strdup(a, info->region ? info->region : info->datacenter),
                                 .account = arena_strdup(a, info->account ? info->account : "111122223333")};
    if (host_id_init(n, o->eng, e)) return -1;
    if (membership && strcmp(n->info.peers, "none") == 0) n->membership = membership;
    if (membership) host_id_of_member(n, membership);
    return 0;
}

/* ---- the ring: this node and its peers ---- */

/* The addresses of this service that --peers gives, in the arena: those of the connection's
 * family, because the client connects to them as it connected to this one. With `keyspaces` this
 * node's own address comes first, followed by its nine peers. */
struct addresses {
    uint32_t n;
    const char **all;
};

void peers_following(const char *listen_address, bool ipv6, uint32_t i, char out[IP_ADDRESS_TEXT]) {
    static const struct ip_address loopback[] = {{4, {127, 0, 0, 1}}, {16, {[15] = 1}}};
    struct ip_address a;
    if (!ip_address_parse(listen_address, &a) || a.n != loopback[ipv6].n) a = loopback[ipv6];
    a = ip_address_after(a, i);
    ip_address_print(&a, out);
}

static const struct node *node_of(const struct row_out *ro) { return &context_of(ro->table)->node; }

/* The address that the client connected to. The server's own sessions have none. */
static const char *address_of(const struct row_out *ro) {
    const char *address = ro->ctx->local_address;
    return address && *address ? address : node_of(ro)->info.listen_address;
}

static int find_peers(struct row_out *ro, struct addresses *out) {
    const struct node_info *info = &node_of(ro)->info;
    const char *setting = info->peers;
    struct ip_address own, a;
    char text[IP_ADDRESS_TEXT];
    bool ipv6 = ip_address_parse(address_of(ro), &own) && own.n == 16;
    *out = (struct addresses){.all = ARENA_ARRAY(ro->ctx->arena, strlen(setting) + KEYSPACES_PEERS + 1, const char *)};
    if (!out->all) return -1;
    if (strcmp(setting, "none") == 0) return 0;
    if (strcmp(setting, "keyspaces") == 0) {
        for (uint32_t i = 0; i <= KEYSPACES_PEERS; i++) {
            peers_following(info->listen_address, ipv6, i, text);
            if (!(out->all[out->n++] = arena_strdup(ro->ctx->arena, text))) return -1;
        }
        return 0;
    }
    char *copy = arena_strdup(ro->ctx->arena, setting), *rest = NULL;
    for (char *p = copy ? strtok_r(copy, ", ", &rest) : NULL; p; p = strtok_r(NULL, ", ", &rest)) {
        if (!ip_address_parse(p, &a) || (a.n == 16) != ipv6) continue;
        ip_address_print(&a, text);
        if (!(out->all[out->n++] = arena_strdup(ro->ctx->arena, text))) return -1;
    }
    return copy ? 0 : -1;
}

/* Derives the host id from this node's id and the address, so that it is the same after a
 * restart. */
static void put_host_id(struct row_out *ro, const char *address) {
    uint8_t id[16];
    struct buf b;
    buf_init(&b, 256);
    for (int i = 0; i < 2; i++) {
        b.n = 0;
        buf_u8(&b, (uint8_t)i);
        buf_put(&b, node_of(ro)->host_id, 16);
        buf_put_str(&b, address);
        store_u64(id + 8 * i, murmur3_hash(buf_slice(&b)));
    }
    ro->failed = ro->failed || buf_failed(&b);
    buf_fini(&b);
    id[6] = (uint8_t)((id[6] & 0x0f) | 0x30);
    id[8] = (uint8_t)((id[8] & 0x3f) | 0x80);
    row_bytes_copy(ro, "host_id", id, sizeof id);
}

/* The index of the address that the client connected to; of->n: none of them. */
static uint32_t reached(const struct row_out *ro, const struct addresses *of) {
    uint32_t i = 0;
    while (i < of->n && (!ro->ctx->local_address || strcmp(of->all[i], ro->ctx->local_address) != 0)) i++;
    return i;
}

/* With `keyspaces` the first address is this node's own. A client that connected to another
 * address sees it as a peer with this node's id. */
static bool is_own(const struct row_out *ro, uint32_t i) {
    return i == 0 && strcmp(node_of(ro)->info.peers, "keyspaces") == 0;
}

enum { OWN = UINT32_MAX };

/* The token at value / 2^64 of the ring: MD5's are those below 2^127. */
static const char *token_text(struct row_out *ro, uint64_t value) {
    char digits[40], *p = digits + sizeof(digits) - 1;
    if (ro->ctx->partitioner == PARTITIONER_MURMUR3)
        return arena_printf(ro->ctx->arena, "%lld", (long long)value);
    *p = 0;
    for (unsigned __int128 left = (unsigned __int128)value << 63; left || !*p; left /= 10)
        *--p = (char)('0' + (int)(left % 10));
    return arena_strdup(ro->ctx->arena, p);
}

/* Writes the token of the i-th address; OWN: that of this node, which is first in the ring. */
static void put_token(struct row_out *ro, const struct addresses *of, uint32_t i) {
    bool own_is_listed = of->n && is_own(ro, 0);
    uint32_t n = own_is_listed ? of->n : of->n + 1, place = i == OWN ? 0 : own_is_listed ? i : i + 1;
    /* Tokens are evenly spaced, from 0 up; Murmur3's wrap around to negative ones. */
    const char *token = token_text(ro, place * (UINT64_MAX / n));
    if (token) row_texts(ro, "tokens", 1, &token);
    else ro->failed = true;
}

/* Writes the tokens of a server on the store: the same ones at every server. */
static void put_member_tokens(struct row_out *ro, const uint8_t host_id[MEMBER_ID]) {
    int64_t tokens[MEMBER_TOKENS];
    const char *texts[MEMBER_TOKENS];
    member_tokens(host_id, tokens);
    for (int i = 0; i < MEMBER_TOKENS; i++)
        if (!(texts[i] = token_text(ro, (uint64_t)tokens[i]))) ro->failed = true;
    if (!ro->failed) row_texts(ro, "tokens", MEMBER_TOKENS, texts);
}

/* ---- system.local: shows the address that the client connected to ---- */

YIELDS(local) {
    const struct system_tables *s = context_of(ro->table);
    const struct node_info *info = &s->node.info;
    struct addresses peers;
    if (!row_out_wants(ro, 0, "local")) return 0;
    if (find_peers(ro, &peers)) return err_nomem(ro->ctx->err);
    const char *address = address_of(ro);
    uint32_t at = reached(ro, &peers);
    row_text(ro, "key", "local");
    row_text(ro, "bootstrapped", "COMPLETED");
    row_inet(ro, "broadcast_address", address);
    row_int(ro, "broadcast_port", 7000);
    row_text(ro, "cluster_name", info->cluster_name);
    row_text(ro, "cql_version", info->cql_version);
    row_text(ro, "data_center", info->datacenter);
    row_int(ro, "gossip_generation", (int32_t)s->node.started_s);
    if (at < peers.n && !is_own(ro, at)) put_host_id(ro, address);
    else row_bytes(ro, "host_id", slice_of(s->node.host_id, 16));
    row_inet(ro, "listen_address", address);
    row_int(ro, "listen_port", 7000);
    row_text(ro, "native_protocol_version", s->catalog->objects->mode == MODE_CASSANDRA ? "5" : "4");
    row_text(ro, "partitioner", partitioner_name(ro->ctx->partitioner));
    row_text(ro, "rack", info->rack);
    row_text(ro, "release_version", info->release_version);
    row_inet(ro, "rpc_address", address);
    row_int(ro, "rpc_port", ro->ctx->local_port ? ro->ctx->local_port : info->port);
    row_bytes(ro, "schema_version", slice_of(ro->ctx->schema->version, 16));
    row_text(ro, "thrift_version", "20.1.0");
    if (s->node.membership) put_member_tokens(ro, s->node.host_id);
    else put_token(ro, &peers, at < peers.n ? at : OWN);
    return row_out_emit(ro);
}

/* Only the partitioner may be written. */
WRITES(local) {
    const struct schema_column *col = schema_column_find(table, "partitioner");
    bool alone = change->kind == VIRTUAL_UPDATE && slice_is(value_slice(change->values[0]), "local");
    for (uint32_t i = 1; i < table->n_columns && alone; i++)
        alone = (i == col->ordinal) == !value_is_unset(change->values[i]);
    if (!alone)
        return err_set(ctx->err, ERR_UNAUTHORIZED, "%s keyspace is not user-modifiable.", table->keyspace->name);
    return partitioner_switch(&context_of(table)->partitioner, value_slice(change->values[col->ordinal]), ctx->err);
}

/* ---- peers ---- */

static int emit_member(struct row_out *ro, const struct member *m, bool with_tls) {
    row_inet(ro, "peer", m->address);
    row_int(ro, "peer_port", 7000);
    row_text_copy(ro, "data_center", m->datacenter);
    row_bytes_copy(ro, "host_id", m->host_id, MEMBER_ID);
    row_inet(ro, "native_address", m->address);
    row_int(ro, "native_port", with_tls ? m->tls_port : m->port);
    row_text_copy(ro, "rack", m->rack);
    row_text_copy(ro, "release_version", m->release_version);
    row_inet(ro, "rpc_address", m->address);
    row_bytes_copy(ro, "schema_version", m->schema_version, MEMBER_ID);
    put_member_tokens(ro, m->host_id);
    return row_out_emit(ro);
}

/* The other servers on the store that are alive. A client with TLS gets their ports with TLS. A table
 * without ports shows those that a client reaches by their address. */
static int yield_members(struct row_out *ro, struct membership *membership) {
    const struct member_list *l = membership_list(membership);
    const struct member *self = &l->items[l->self];
    struct member_client client = {.with_tls = self->tls_port && ro->ctx->local_port == self->tls_port,
                                   .knows_ports = schema_column_find(ro->table, "native_port") != NULL,
                                   .port = ro->ctx->local_port ? ro->ctx->local_port : self->port};
    int rc = 0;
    if (!ip_address_parse(address_of(ro), &client.address)) client.address.n = 0;
    for (uint32_t i = 0; i < l->n && rc == 0; i++)
        if (i != l->self && member_is_reachable(&l->items[i], &client))
            rc = emit_member(ro, &l->items[i], client.with_tls);
    membership_unref(l);
    return rc;
}

/* The addresses belong to the same service, as those that Amazon Keyspaces lists. The peers of a
 * client are all addresses except the one that it connected to; if that is none of them, all
 * except this node's own. */
YIELDS(peers) {
    const struct node_info *info = &context_of(ro->table)->node.info;
    struct addresses peers;
    if (node_of(ro)->membership) return yield_members(ro, node_of(ro)->membership);
    if (find_peers(ro, &peers)) return err_nomem(ro->ctx->err);
    uint32_t at = reached(ro, &peers);
    for (uint32_t i = 0; i < peers.n; i++) {
        if (i == at || (at == peers.n && is_own(ro, i))) continue;
        row_inet(ro, "peer", peers.all[i]);
        row_int(ro, "peer_port", 7000);
        row_text(ro, "data_center", info->datacenter);
        if (is_own(ro, i)) row_bytes(ro, "host_id", slice_of(context_of(ro->table)->node.host_id, 16));
        else put_host_id(ro, peers.all[i]);
        row_inet(ro, "native_address", peers.all[i]);
        row_int(ro, "native_port", info->port);
        row_text(ro, "rack", info->rack);
        row_text(ro, "release_version", info->release_version);
        row_inet(ro, "rpc_address", peers.all[i]);
        row_bytes(ro, "schema_version", slice_of(ro->ctx->schema->version, 16));
        put_token(ro, &peers, i);
        if (row_out_emit(ro)) return -1;
    }
    return 0;
}

int peers_check(const char *setting, struct err *e) {
    struct ip_address a;
    if (strcmp(setting, "none") == 0 || strcmp(setting, "keyspaces") == 0) return 0;
    char *copy = strdup(setting), *rest = NULL;
    if (!copy) return err_nomem(e);
    bool any = false;
    for (char *p = strtok_r(copy, ", ", &rest); p && !e->set; p = strtok_r(NULL, ", ", &rest)) {
        any = true;
        if (!ip_address_parse(p, &a)) err_set(e, ERR_CONFIG, "'%s' is no numeric address", p);
    }
    free(copy);
    if (!any && !e->set) err_set(e, ERR_CONFIG, "there is no address in '%s'", setting);
    return e->set ? -1 : 0;
}
