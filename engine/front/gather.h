/* How long a thread waits before it syncs the log. Private to engine/, under the caller's lock,
 * pure.
 *
 * Clients that wait for each answer write again a moment after it. A sync that begins at once
 * covers only the clients that wrote during the last sync. A client that the last sync answered
 * comes too late for it, waits until it ends, and then for the next one: two syncs per write. A
 * sync that begins a moment later covers all clients. So after a sync (engi_gather_end) the next
 * one waits until as many requests ask as the last sync answered and as asked during it, for at
 * most the duration of a sync. If they do not come, the next syncs begin at once; their number
 * doubles with each wait in vain.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct engi_gather {
    uint64_t asked;       /* total of requests that had asked for a sync when the last one began */
    uint64_t answered;    /* number of requests that the last sync answered */
    uint64_t enough;      /* total of requests at which the wait ends; 0 if no wait */
    int64_t until_us;     /* time at which the wait ends */
    int64_t sync_us;      /* typical duration of a sync */
    uint32_t rest, rests; /* rest: syncs that still begin without waiting. rests: the number of the last such pause */
};

/* Whether to wait further. asked: total of requests that have asked. */
bool engi_gather_waits(const struct engi_gather *g, uint64_t asked, int64_t now_us);
/* A sync begins, which will answer all requests counted in asked. */
void engi_gather_begin(struct engi_gather *g, uint64_t asked);
/* The sync has ended and took took_us. */
void engi_gather_end(struct engi_gather *g, uint64_t asked, int64_t took_us, int64_t now_us);
