#include "engine/marks.h"

void engi_gate_init(struct engi_gate *g) {
    for (int i = 0; i < ENGI_GATES; i++) pthread_rwlock_init(&g->gates[i].lock, NULL);
}

void engi_gate_fini(struct engi_gate *g) {
    for (int i = 0; i < ENGI_GATES; i++) pthread_rwlock_destroy(&g->gates[i].lock);
}

void engi_gate_shut(struct engi_gate *g) {
    for (int i = 0; i < ENGI_GATES; i++) pthread_rwlock_wrlock(&g->gates[i].lock);
}

void engi_gate_open(struct engi_gate *g) {
    for (int i = ENGI_GATES - 1; i >= 0; i--) pthread_rwlock_unlock(&g->gates[i].lock);
}
