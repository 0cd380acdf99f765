#include "base/random.h"

#include <sys/random.h>

int random_bytes(void *p, size_t n, struct err *e) {
    uint8_t *at = p;
    while (n) { /* more than 256 bytes may come in parts */
        ssize_t got = getrandom(at, n, 0);
        if (got <= 0) return err_set(e, ERR_SERVER, "The system has no random bytes");
        at += got, n -= (size_t)got;
    }
    return 0;
}

int random_uuid(uint8_t id[16], struct err *e) {
    if (random_bytes(id, 16, e)) return -1;
    id[6] = (uint8_t)((id[6] & 0x0f) | 0x40);
    id[8] = (uint8_t)((id[8] & 0x3f) | 0x80);
    return 0;
}
