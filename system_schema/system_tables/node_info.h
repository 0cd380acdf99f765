/* How the server describes itself to clients. */
#pragma once

#include "base/err.h"
#include "base/ip_address.h"

/* The values that system.local and system.peers show for this node. */
struct node_info {
    const char *cluster_name, *datacenter, *rack, *release_version, *cql_version;
    const char *listen_address; /* numeric; of a server that listens on all addresses, the IPv4 loopback address */
    uint16_t port;
    /* rows of system.peers: "none" (none but the other servers on the store), "keyspaces" (nine
     * addresses; peers_following), or a list of numeric addresses. A connection sees those of its own
     * family, IPv4 or IPv6. NULL means "none" */
    const char *peers;
    const char *region, *account; /* used in ARNs; NULL for the data centre, and the account of AWS's examples */
};
/* Checks a node_info.peers setting. ERR_CONFIG: it has none of the three forms. */
int peers_check(const char *setting, struct err *e) MUST_CHECK;
enum { KEYSPACES_PEERS = 9 };
/* Writes the i-th address after listen_address; after 127.0.0.1 or ::1 when listen_address is of
 * the other family. The setting `keyspaces` shows the first nine to a connection of this family. */
void peers_following(const char *listen_address, bool ipv6, uint32_t i, char out[IP_ADDRESS_TEXT]);
