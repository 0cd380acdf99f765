/* A heap whose nodes are fields of the objects that it orders, so that it allocates nothing. A
 * pairing heap (Fredman, Sedgewick, Sleator and Tarjan, 1986).
 *
 * An object that is in several heaps has a node for each. The key of an object must not change
 * while it is in a heap: remove the object, change the key, insert it again. heap_insert takes
 * constant time, heap_remove amortised logarithmic time. Not thread-safe.
 *
 *   H1  no node comes before its parent
 *   H2  a node is in at most one heap, and records whether it is
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_node {
    struct heap_node *child, *next;
    struct heap_node *prev; /* the sibling before it; of a first child the parent, of the root NULL */
    bool is_in;
};

/* Whether a comes before b. */
typedef bool (*heap_before_fn)(const struct heap_node *a, const struct heap_node *b);

struct heap {
    struct heap_node *root;
    heap_before_fn before;
    uint64_t compared; /* number of comparisons so far */
};

/* The object that contains the node. */
#define HEAP_OBJECT(node, type, field) ((type *)(void *)((char *)(node) - offsetof(type, field)))

void heap_insert(struct heap *h, struct heap_node *n);
/* Does nothing when the node is in no heap. */
void heap_remove(struct heap *h, struct heap_node *n);
/* The first node; NULL if the heap is empty. */
static inline struct heap_node *heap_top(const struct heap *h) { return h->root; }
