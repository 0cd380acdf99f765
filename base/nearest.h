/* Finds the name that a misspelled word was meant to be. */
#pragma once

#include "base/slice.h"

/* The one of n names that takes the fewest changes of a letter (insert, remove, replace, swap with
 * its neighbour) to become the word. Returns NULL if no name is near. */
const char *nearest_name(struct slice word, const char *const *names, size_t n);
