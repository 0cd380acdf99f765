#include "engine/local/marks.h"

#include "engine/front/lock_order.h"

void engi_commit_locks_init(struct engi_commit_locks *g) {
    for (int i = 0; i < ENGI_COMMIT_LOCKS; i++) pthread_rwlock_init(&g->of[i].lock, NULL);
}

void engi_commit_locks_fini(struct engi_commit_locks *g) {
    for (int i = 0; i < ENGI_COMMIT_LOCKS; i++) pthread_rwlock_destroy(&g->of[i].lock);
}

void engi_commit_locks_take(struct engi_commit_locks *g) {
    for (uint32_t i = 0; i < ENGI_COMMIT_LOCKS; i++) {
        engi_order_will_wait(ENGI_RANK_COMMIT, i);
        pthread_rwlock_wrlock(&g->of[i].lock);
        engi_order_holds(ENGI_RANK_COMMIT, i);
    }
}

void engi_commit_locks_leave(struct engi_commit_locks *g) {
    for (int i = ENGI_COMMIT_LOCKS - 1; i >= 0; i--) {
        pthread_rwlock_unlock(&g->of[i].lock);
        engi_order_leaves(ENGI_RANK_COMMIT);
    }
}
