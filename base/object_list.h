/* Things that are kept of objects of the catalogue, one of each, in the order of the objects'
 * numbers. A thing is a struct that begins with its object's uint32_t. Those that are in the list
 * are their owner's. Not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct object_list {
    uint32_t n, cap;
    void **items;
};

/* NULL: there is none of the object. */
void *object_list_find(const struct object_list *l, uint32_t object);
/* Of an object that is not there yet. -1: no memory. */
int object_list_add(struct object_list *l, void *item) MUST_CHECK;
/* Returns what was taken out; NULL: there was none. */
void *object_list_remove(struct object_list *l, uint32_t object);
/* Not the things. */
void object_list_fini(struct object_list *l);
