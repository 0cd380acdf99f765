/* Tokens of logins from hostile bytes: the answer to a SigV4 challenge, its date and signature; and
 * records of roles. The first byte picks. */
#include <stdlib.h>

#include "access/role.h"
#include "access/sigv4.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void responses(struct slice in) {
    static const char nonce[SIGV4_NONCE + 1] = "91703fdc2ef562e19fbdab0f58e42fe5";
    struct sigv4_response r;
    struct err e = {0};
    char made[SIGV4_SIGNATURE];
    if (sigv4_parse(in, &r, &e)) return;
    if ((sigv4_time(r.date) < 0) != (sigv4_sign(r.date, r.access_key, "secret", "us-west-2", nonce, made) < 0)) abort();
}

/* What can be read is written as it was. */
static void roles(struct slice in) {
    struct arena a;
    struct role r;
    struct buf again;
    struct err e = {0};
    arena_init(&a, 4096, 1 << 24);
    buf_init(&again, 0);
    if (!role_decode("r", in, &a, &r, &e)) {
        struct role twice;
        role_encode(&r, &again);
        if (role_decode("r", buf_slice(&again), &a, &twice, &e) || twice.n_grants != r.n_grants ||
            twice.n_member_of != r.n_member_of)
            abort();
    }
    buf_fini(&again);
    arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!size) return 0;
    struct slice in = slice_of(data + 1, size - 1);
    if (data[0] & 1) roles(in);
    else responses(in);
    return 0;
}
