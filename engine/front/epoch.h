/* When memory that threads read without a lock may be freed. Private to engine/.
 *
 * A thread that follows such a pointer is in a section from before it loads the pointer until it
 * has used it for the last time. Memory that no new reader can find is retired, and freed once
 * every section that was open then is closed.
 *
 * There are two phases, and sections are counted by the phase in which they were opened. When no
 * section of the other phase is left, memory retired before the last change of phase is freed, and
 * the phase changes. A section that stays open delays the freeing of memory that is retired
 * meanwhile. No thread waits for it.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"

/* First member of every structure that is retired. */
struct engi_retired {
    struct engi_retired *next;
    void (*free)(struct engi_retired *r);
};

enum { ENGI_EPOCH_STRIPES = 16 };

struct engi_epoch {
    _Atomic uint32_t phase; /* 0 or 1 */
    struct {
        _Atomic uint32_t open[2]; /* sections, by phase */
        char apart[56];           /* from the next one's cache line */
    } stripes[ENGI_EPOCH_STRIPES];
    pthread_mutex_t lock; /* guards the lists and changes of the phase */
    struct engi_retired *newer, *older; /* retired in this phase; in the one before */
};

struct engi_section {
    uint32_t stripe, phase;
};

void engi_epoch_init(struct engi_epoch *ep);
/* Frees all retired memory; no section is open. */
void engi_epoch_fini(struct engi_epoch *ep);
/* Sections nest. One may be left by another thread than the one that entered it. */
struct engi_section engi_enter(struct engi_epoch *ep);
void engi_leave(struct engi_epoch *ep, struct engi_section s);
/* No thread that enters a section from now on can find r. */
void engi_retire(struct engi_epoch *ep, struct engi_retired *r);
/* Frees what no section can hold any more. */
void engi_epoch_step(struct engi_epoch *ep);
