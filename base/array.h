/* An array on the heap that grows by doubling. Its owner keeps the pointer, the number of items and
 * the capacity, begins with NULL and zeros, and frees it. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

/* Makes room for one more item after the first n. array: the address of its pointer.
 * size: of an item, in bytes. Returns -1 if memory is exhausted; nothing has changed. */
static inline MUST_CHECK int array_room(void *array, size_t n, size_t *cap, size_t size) {
    size_t more = *cap ? 2 * *cap : 16;
    void *items;
    if (n < *cap) return 0;
    memcpy(&items, array, sizeof(items));
    items = realloc(items, more * size);
    if (!items) return -1;
    memcpy(array, &items, sizeof(items));
    *cap = more;
    return 0;
}

/* Compares items that are, or begin with, a uint32_t: for qsort and bsearch. */
static inline int array_u32_order(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}
