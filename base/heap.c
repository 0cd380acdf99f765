#include "base/heap.h"

#include <assert.h>

/* Makes one tree of two; either may be NULL. */
static struct heap_node *meld(struct heap *h, struct heap_node *a, struct heap_node *b) {
    if (!a || !b) return a ? a : b;
    h->compared++;
    if (h->before(b, a)) {
        struct heap_node *first = b;
        b = a;
        a = first;
    }
    b->prev = a;
    b->next = a->child;
    if (b->next) b->next->prev = b;
    a->child = b;
    return a;
}

static struct heap_node *alone(struct heap_node *n) {
    n->next = n->prev = NULL;
    return n;
}

/* Makes one tree of siblings: melds neighbours in pairs from the left, then the pairs from the
 * right. */
static struct heap_node *meld_siblings(struct heap *h, struct heap_node *n) {
    struct heap_node *pairs = NULL, *tree = NULL;
    while (n) {
        struct heap_node *a = n, *b = a->next, *rest = b ? b->next : NULL;
        alone(a);
        struct heap_node *pair = b ? meld(h, a, alone(b)) : a;
        pair->next = pairs;
        pairs = pair;
        n = rest;
    }
    while (pairs) {
        struct heap_node *pair = pairs;
        pairs = pair->next;
        tree = meld(h, tree, alone(pair));
    }
    return tree;
}

void heap_insert(struct heap *h, struct heap_node *n) {
    assert(!n->is_in); /* H2 */
    n->child = NULL;
    n->is_in = true;
    h->root = meld(h, h->root, alone(n));
}

void heap_remove(struct heap *h, struct heap_node *n) {
    if (!n->is_in) return;
    assert((h->root == n) == !n->prev); /* H2 */
    assert(!n->prev || !h->before(n, h->root)); /* H1 */
    struct heap_node *below = meld_siblings(h, n->child);
    if (h->root == n) h->root = below;
    else {
        if (n->prev->child == n) n->prev->child = n->next;
        else n->prev->next = n->next;
        if (n->next) n->next->prev = n->prev;
        h->root = meld(h, h->root, below);
    }
    *n = (struct heap_node){0};
}
