#include "base/object_list.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint32_t object_of(const void *item) { return *(const uint32_t *)item; }

uint32_t object_list_from(const struct object_list *l, uint32_t object) {
    uint32_t low = 0, high = l->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (object_of(l->items[middle]) < object) low = middle + 1;
        else high = middle;
    }
    return low;
}

static bool is_at(const struct object_list *l, uint32_t at, uint32_t object) {
    return at < l->n && object_of(l->items[at]) == object;
}

void *object_list_find(const struct object_list *l, uint32_t object) {
    uint32_t at = object_list_from(l, object);
    return is_at(l, at, object) ? l->items[at] : NULL;
}

int object_list_add(struct object_list *l, void *item) {
    uint32_t at = object_list_from(l, object_of(item));
    assert(!is_at(l, at, object_of(item)));
    if (l->n == l->cap) {
        uint32_t cap = l->cap ? 2 * l->cap : 64;
        void **items = realloc(l->items, cap * sizeof(void *));
        if (!items) return -1;
        l->items = items;
        l->cap = cap;
    }
    memmove(l->items + at + 1, l->items + at, (l->n - at) * sizeof(void *));
    l->items[at] = item;
    l->n++;
    return 0;
}

void *object_list_remove(struct object_list *l, uint32_t object) {
    uint32_t at = object_list_from(l, object);
    if (!is_at(l, at, object)) return NULL;
    void *item = l->items[at];
    memmove(l->items + at, l->items + at + 1, (l->n - at - 1) * sizeof(void *));
    l->n--;
    return item;
}

void object_list_fini(struct object_list *l) {
    free(l->items);
    *l = (struct object_list){0};
}
