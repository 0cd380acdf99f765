/* Saved states of the whole server, or of a keyspace (system_control.snapshots): stops everything,
 * has the engine take another store, or the catalogue other records; the catalogue and the roles
 * read it, and everything goes on. Connections stay; prepared statements are compiled anew where
 * their tables are others. */
#pragma once

#include <pthread.h>

#include "access/access.h"
#include "control_plane/control_plane.h"
#include "native_protocol/front.h"

struct states {
    struct eng *eng;
    struct catalog *catalog;
    struct access_control *access; /* NULL: nobody is asked for a login */
    /* its threads may save states as soon as they run, so states are there before it is */
    struct np_front *const *front;
    pthread_mutex_t turn;
    struct control_plane *control_plane; /* NULL: there is none, or not yet; whose turn it is may look */
    struct catalog_states ops;
};

/* *front is read when a state is saved or put back. */
void states_init(struct states *s, struct eng *eng, struct catalog *c, struct access_control *access,
                 struct np_front *const *front);
/* It, too, stops from now on; NULL: it is going, and is not touched any more. */
void states_set_control_plane(struct states *s, struct control_plane *cp);
