#include "base/nearest.h"

#include "base/compiler.h"

enum { LENGTH_MAX = 63 };

static unsigned least(unsigned a, unsigned b) { return a < b ? a : b; }

/* The number of changes between two words of at most LENGTH_MAX letters. rows: the current row of
 * the table of distances between prefixes, and the two rows before it. */
static unsigned distance(struct slice a, struct slice b) {
    unsigned rows[3][LENGTH_MAX + 1];
    for (size_t j = 0; j <= b.n; j++) rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a.n; i++) {
        unsigned *now = rows[i % 3], *before = rows[(i + 2) % 3], *swapped = rows[(i + 1) % 3];
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= b.n; j++) {
            now[j] = least(least(before[j], now[j - 1]) + 1, before[j - 1] + (a.p[i - 1] != b.p[j - 1]));
            if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1])
                now[j] = least(now[j], swapped[j - 2] + 1);
        }
    }
    return rows[a.n % 3][b.n];
}

const char *nearest_name(struct slice word, const char *const *names, size_t n) {
    const char *best = NULL;
    unsigned least_far = 0;
    if (word.n > LENGTH_MAX) return NULL;
    for (size_t i = 0; i < n; i++) {
        struct slice name = slice_str(names[i]);
        if (name.n > LENGTH_MAX) continue;
        unsigned far = distance(word, name);
        if (far > 1 + name.n / 4 || (best && far >= least_far)) continue; /* 1, and a quarter of the name */
        best = names[i];
        least_far = far;
    }
    return best;
}
