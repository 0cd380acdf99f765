/* Saved states of the whole server, or of a keyspace (system_control.snapshots). To put one
 * back, all requests are paused; the engine switches to another store, or the catalogue to other
 * records; the catalogue and the roles read it; then the requests go on. Connections stay open.
 * Prepared statements whose tables were replaced are compiled again. */
#pragma once

#include <pthread.h>

#include "access/access.h"
#include "control_plane/control_plane.h"
#include "server/page/page.h"
#include "native_protocol/front.h"

struct states {
    struct eng *eng;
    struct catalog *catalog;
    struct access_control *access; /* NULL if the server needs no logins */
    /* a pointer to the front's pointer: the front starts after this, and its threads may then save
     * states at once */
    struct np_front *const *front;
    pthread_mutex_t turn;                /* one state at a time is saved, put back or removed */
    struct control_plane *control_plane; /* read with the turn held; NULL if none, or not yet */
    struct live_page *page;                   /* likewise, the live page */
    struct catalog_states ops;
};

/* *front is read when a state is saved or put back. */
void states_init(struct states *s, struct eng *eng, struct catalog *c, struct access_control *access,
                 struct np_front *const *front);
/* From now on the control plane is paused, too. NULL if it is about to stop, and is not paused
 * again. */
void states_set_control_plane(struct states *s, struct control_plane *cp);
/* The same for the live page. */
void states_set_page(struct states *s, struct live_page *page);
