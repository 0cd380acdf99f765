/* Counts and bounds the connections, in all and of each address. Any thread.
 *
 * An address is an IPv4 address, or the first 64 bits of an IPv6 one, because one host owns all
 * addresses that share them.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/ip_address.h"

enum { NP_PEER_SLOTS = 1024 };

struct np_peer; /* an address that has connections */

struct np_peers {
    pthread_mutex_t lock;
    uint32_t n, max, max_each;
    struct np_peer *slots[NP_PEER_SLOTS];
};

void npi_peers_init(struct np_peers *p, uint32_t max, uint32_t max_each);
void npi_peers_fini(struct np_peers *p);
/* Returns NULL if there are too many connections, or memory is exhausted. */
struct np_peer *npi_peers_enter(struct np_peers *p, const struct ip_address *address);
void npi_peers_leave(struct np_peers *p, struct np_peer *peer);
