#include "base/crc32c.h"

#include <pthread.h>
#include <string.h>

enum { LANES = 8 };

static uint32_t table[LANES][256]; /* table[i][b]: of byte b followed by i zeros */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_table(void) {
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
        table[0][b] = crc;
    }
    for (int i = 1; i < LANES; i++)
        for (uint32_t b = 0; b < 256; b++) table[i][b] = table[i - 1][b] >> 8 ^ table[0][table[i - 1][b] & 0xff];
}

uint32_t crc32c(uint32_t crc, struct slice s) {
    pthread_once(&once, fill_table);
    const uint8_t *p = s.p, *end = s.p + s.n;
    crc = ~crc;
    for (; end - p >= LANES; p += LANES) {
        uint32_t low = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
        crc = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^ table[4][low >> 24] ^
              table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
    }
    for (; p < end; p++) crc = crc >> 8 ^ table[0][(crc ^ *p) & 0xff];
    return ~crc;
}
