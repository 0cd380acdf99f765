/* What a wrong word was meant to be. */
#pragma once

#include "base/slice.h"

/* Of n names the one that takes the fewest changes of a letter (one more, one less, another, two
 * swapped) to become the word; NULL: none is near. */
const char *nearest_name(struct slice word, const char *const *names, size_t n);
