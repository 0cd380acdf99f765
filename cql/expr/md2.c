#include "cql/expr/md2.h"

#include <string.h>

enum { ROUNDS = 18, STATE = 3 * MD2_BYTES };

/* A permutation of the bytes, made of the digits of pi. */
static const uint8_t substitute[256] = {
    41,  46,  67,  201, 162, 216, 124, 1,   61,  54,  84,  161, 236, 240, 6,   19,  98,  167, 5,   243, 192, 199,
    115, 140, 152, 147, 43,  217, 188, 76,  130, 202, 30,  155, 87,  60,  253, 212, 224, 22,  103, 66,  111, 24,
    138, 23,  229, 18,  190, 78,  196, 214, 218, 158, 222, 73,  160, 251, 245, 142, 187, 47,  238, 122, 169, 104,
    121, 145, 21,  178, 7,   63,  148, 194, 16,  137, 11,  34,  95,  33,  128, 127, 93,  154, 90,  144, 50,  39,
    53,  62,  204, 231, 191, 247, 151, 3,   255, 25,  48,  179, 72,  165, 181, 209, 215, 94,  146, 42,  172, 86,
    170, 198, 79,  184, 56,  210, 150, 164, 125, 182, 118, 252, 107, 226, 156, 116, 4,   241, 69,  157, 112, 89,
    100, 113, 135, 32,  134, 91,  207, 101, 230, 45,  168, 2,   27,  96,  37,  173, 174, 176, 185, 246, 28,  70,
    97,  105, 52,  64,  126, 15,  85,  71,  163, 35,  221, 81,  175, 58,  195, 92,  249, 206, 186, 197, 234, 38,
    44,  83,  13,  110, 133, 40,  132, 9,   211, 223, 205, 244, 65,  129, 77,  82,  106, 220, 55,  200, 108, 193,
    171, 250, 36,  225, 123, 8,   12,  189, 177, 74,  120, 136, 149, 139, 227, 99,  232, 109, 233, 203, 213, 254,
    59,  0,   29,  57,  242, 239, 183, 14,  102, 88,  208, 228, 166, 119, 114, 248, 235, 117, 75,  10,  49,  68,
    80,  180, 143, 237, 31,  26,  219, 153, 141, 51,  159, 17,  131, 20,
};

static void take_block(uint8_t state[STATE], const uint8_t block[MD2_BYTES]) {
    for (int i = 0; i < MD2_BYTES; i++) {
        state[MD2_BYTES + i] = block[i];
        state[2 * MD2_BYTES + i] = block[i] ^ state[i];
    }
    uint8_t last = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < STATE; i++) last = state[i] ^= substitute[last];
        last = (uint8_t)(last + round);
    }
}

static void take_checksum(uint8_t sum[MD2_BYTES], const uint8_t block[MD2_BYTES]) {
    uint8_t last = sum[MD2_BYTES - 1];
    for (int i = 0; i < MD2_BYTES; i++) last = sum[i] ^= substitute[block[i] ^ last];
}

void md2_digest(struct slice in, uint8_t out[MD2_BYTES]) {
    uint8_t state[STATE] = {0}, sum[MD2_BYTES] = {0}, tail[MD2_BYTES];
    size_t whole = in.n / MD2_BYTES, rest = in.n % MD2_BYTES;
    for (size_t i = 0; i < whole; i++) {
        take_block(state, in.p + i * MD2_BYTES);
        take_checksum(sum, in.p + i * MD2_BYTES);
    }
    memset(tail, (int)(MD2_BYTES - rest), sizeof(tail)); /* 1 to 16 bytes, each saying how many */
    if (rest) memcpy(tail, in.p + whole * MD2_BYTES, rest);
    take_block(state, tail);
    take_checksum(sum, tail);
    take_block(state, sum);
    memcpy(out, state, MD2_BYTES);
}
