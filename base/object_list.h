/* A list of items that belong to objects of the catalogue, at most one per object, in the order of
 * the objects' numbers. An item is a struct that begins with its object's number (uint32_t). The
 * list does not own the items. Not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct object_list {
    uint32_t n, cap;
    void **items;
};

/* The position of the first item whose object is not below this one; n: there is none. */
uint32_t object_list_from(const struct object_list *l, uint32_t object);
/* Returns NULL if the object has no item. */
void *object_list_find(const struct object_list *l, uint32_t object);
/* Adds an item. Its object must not have one yet. Returns -1 if memory is exhausted. */
int object_list_add(struct object_list *l, void *item) MUST_CHECK;
/* Returns the removed item, or NULL if there was none. */
void *object_list_remove(struct object_list *l, uint32_t object);
/* Frees the list, not the items. */
void object_list_fini(struct object_list *l);
