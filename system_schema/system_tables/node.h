/* The server's description of itself, as system.local and system.peers show it. Inside
 * system_schema only. */
#pragma once

#include "membership/membership.h"
#include "system_schema/objects/objects.h"
#include "system_schema/system_tables/node_info.h"

struct node {
    struct node_info info;
    uint8_t host_id[16]; /* stable over restarts */
    int64_t started_s;   /* since 1970; system.local's gossip_generation */
    struct membership *membership; /* system.peers shows its other servers; NULL if there are none */
};
/* Copies info into the arena, with its defaults; loads or makes the host id. membership may be
 * NULL. */
int node_init(struct node *n, const struct node_info *info, struct membership *membership, struct objects *o,
              struct arena *a, struct err *e) MUST_CHECK;
