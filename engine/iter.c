#include "engine/iter.h"

#include <stdlib.h>

#if POISONS
int kv_iter_lend(struct kv_iter *it, int got, struct err *e) {
    uint8_t *before = it->lent;
    it->lent = got > 0 ? malloc(it->key.n + it->value.n + 1) : NULL;
    if (it->lent) {
        memcpy(it->lent, it->key.p, it->key.n);
        memcpy(it->lent + it->key.n, it->value.p, it->value.n);
        it->key.p = it->lent;
        it->value.p = it->lent + it->key.n;
    }
    free(before);
    return got > 0 && !it->lent ? err_nomem(e) : got;
}
#endif
