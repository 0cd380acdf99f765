/* A server of a store that several servers share, as its record in the store describes it. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/ip_address.h"

enum { MEMBER_ID = 16, MEMBER_NAME = 256, MEMBER_VERSION = 32, MEMBER_TOKENS = 16 };

struct member {
    uint8_t host_id[MEMBER_ID];     /* a UUID; the same after a restart */
    uint8_t incarnation[MEMBER_ID]; /* a random UUID of this run of the server */
    uint64_t beat;                  /* counts the writes of the record */
    char address[IP_ADDRESS_TEXT];  /* where clients reach it */
    uint16_t port, tls_port;        /* without and with TLS; 0 if none */
    int64_t started_s;              /* since 1970, by its own clock */
    uint8_t schema_version[MEMBER_ID];
    char datacenter[MEMBER_NAME], rack[MEMBER_NAME], release_version[MEMBER_VERSION];
};

/* How a client has reached a server, from which follows which others it can reach. */
struct member_client {
    struct ip_address address; /* that it connected to */
    uint16_t port;
    bool with_tls;
    bool knows_ports; /* it learns a server's port, too, as from Cassandra 4 on; others use their own for all */
};
/* Whether the client can tell the server from the one that it is connected to, and reach it: the
 * server is of the same address family, and if the client does not know ports it has another address
 * and the same port. */
bool member_is_reachable(const struct member *m, const struct member_client *client);

/* Sets the host id: a name-based UUID of the cluster's name, the address and the ports. */
void member_set_host_id(struct member *m, const char *cluster_name);
/* The tokens of a host id, ascending. Every server computes the same ones, so that drivers see one
 * ring whichever server they ask. */
void member_tokens(const uint8_t host_id[MEMBER_ID], int64_t out[MEMBER_TOKENS]);

/* version u8 | beat u64 | host id | incarnation | port u16 | TLS port u16 | started u64 | schema
 * version | address, data centre, rack, release version, each [u16 length][bytes]. A later version
 * may append. */
void member_encode(const struct member *m, struct buf *out);
/* Returns false if the record is damaged. */
bool member_decode(struct slice record, struct member *out) MUST_CHECK;
/* Whether two records differ in their beat at most. */
bool member_same_but_beat(struct slice a, struct slice b);
