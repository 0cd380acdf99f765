#include "native_protocol/peers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { KEY = 9 }; /* 4 or 6, then the address or its prefix */

struct np_peer {
    struct np_peer *next;
    uint8_t key[KEY];
    uint32_t n; /* connections */
};

void npi_peers_init(struct np_peers *p, uint32_t max, uint32_t max_each) {
    *p = (struct np_peers){.max = max, .max_each = max_each};
    pthread_mutex_init(&p->lock, NULL);
}

void npi_peers_fini(struct np_peers *p) {
    assert(!p->n);
    pthread_mutex_destroy(&p->lock);
}

static struct np_peer **find(struct np_peers *p, const uint8_t key[KEY]) {
    /* FNV-1a. An attacker with enough addresses to make the lookups slow could fill the table as
     * well. */
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < KEY; i++) h = (h ^ key[i]) * 16777619u;
    struct np_peer **at = &p->slots[h % NP_PEER_SLOTS];
    while (*at && memcmp((*at)->key, key, KEY)) at = &(*at)->next;
    return at;
}

struct np_peer *npi_peers_enter(struct np_peers *p, const struct ip_address *address) {
    bool v6 = address->n == 16;
    uint8_t key[KEY] = {v6 ? 6 : 4};
    memcpy(key + 1, address->bytes, v6 ? 8 : 4);
    pthread_mutex_lock(&p->lock);
    struct np_peer **at = find(p, key), *peer = NULL;
    if (p->n < p->max) {
        if (!*at && (*at = calloc(1, sizeof(**at)))) memcpy((*at)->key, key, KEY);
        if (*at && (*at)->n < p->max_each) {
            peer = *at;
            peer->n++;
            p->n++;
        }
    }
    pthread_mutex_unlock(&p->lock);
    return peer;
}

void npi_peers_leave(struct np_peers *p, struct np_peer *peer) {
    pthread_mutex_lock(&p->lock);
    assert(peer->n && p->n);
    p->n--;
    if (!--peer->n) {
        struct np_peer **at = find(p, peer->key);
        assert(*at == peer);
        *at = peer->next;
        free(peer);
    }
    pthread_mutex_unlock(&p->lock);
}
