/* A tool of the build: finds a factor for which no two words of keyword.def have the same slot, and
 * prints the slots as a C header. */
#include <stdio.h>
#include <string.h>

#include "cql/syntax/keyword_slot.h"

static const char *const words[] = {
#define KEYWORD(word, token, reserved) word,
#include "cql/syntax/keyword.def"
#undef KEYWORD
};
enum { N_WORDS = sizeof(words) / sizeof(*words), TRIES = 100000000 };
_Static_assert(N_WORDS < 256, "a slot holds a row in one byte, from 1");

static bool fill(uint64_t factor, uint8_t slots[KEYWORD_SLOTS]) {
    memset(slots, 0, KEYWORD_SLOTS);
    for (unsigned i = 0; i < N_WORDS; i++) {
        uint8_t *slot = &slots[keyword_slot(keyword_key(slice_str(words[i])), factor)];
        if (*slot) return false;
        *slot = (uint8_t)(i + 1);
    }
    return true;
}

int main(void) {
    static uint8_t slots[KEYWORD_SLOTS];
    uint64_t factor = 1;
    unsigned left = TRIES;
    do factor = factor * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    while (--left && !fill(factor | 1, slots));
    if (!left) return fprintf(stderr, "keyword.def: every factor gives two words the same slot\n"), 1;
    printf("#define KEYWORD_FACTOR UINT64_C(0x%016llx)\nstatic const uint8_t keyword_slots[KEYWORD_SLOTS] = {",
           (unsigned long long)(factor | 1));
    for (unsigned i = 0; i < KEYWORD_SLOTS; i++) printf("%s%u,", i % 32 ? "" : "\n    ", slots[i]);
    printf("\n};\n");
    return 0;
}
