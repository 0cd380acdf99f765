#include "base/name_tree.h"

/* A leaf holds a name. An inner node holds the place (symbol at, bit) at which the names below it
 * first differ: names with a 0 there are on its left, names with a 1 on its right. A name is a
 * sequence of 9-bit symbols: its bytes with a bit set on top, then zeros without end. */
struct name_node {
    bool is_leaf;
    uint16_t bit;
    uint32_t value;
    size_t at;
    struct slice name;
    struct name_node *side[2];
};

static uint32_t symbol(struct slice s, size_t i) { return i < s.n ? 0x100u | s.p[i] : 0; }

static bool goes_right(const struct name_node *n, struct slice name) { return symbol(name, n->at) & n->bit; }

/* The only leaf that can hold the name. */
static const struct name_node *nearest(const struct name_tree *t, struct slice name) {
    const struct name_node *n = t->root;
    while (n && !n->is_leaf) n = n->side[goes_right(n, name)];
    return n;
}

const uint32_t *name_tree_find(const struct name_tree *t, struct slice name) {
    const struct name_node *n = nearest(t, name);
    return n && slice_eq(n->name, name) ? &n->value : NULL;
}

/* Is node n above the fork of two names that first differ at this place? */
static bool is_above(const struct name_node *n, size_t at, uint32_t bit) {
    return !n->is_leaf && (n->at < at || (n->at == at && n->bit > bit));
}

int name_tree_put(struct name_tree *t, struct slice name, uint32_t value) {
    const struct name_node *near = nearest(t, name);
    if (near && slice_eq(near->name, name)) return 1;
    struct name_node *leaf = ARENA_NEW(t->arena, struct name_node);
    if (!leaf) return -1;
    *leaf = (struct name_node){.is_leaf = true, .name = name, .value = value};
    if (!near) {
        t->root = leaf;
        return 0;
    }
    size_t at = 0;
    while (symbol(near->name, at) == symbol(name, at)) at++;
    uint32_t differs = symbol(near->name, at) ^ symbol(name, at), bit = 1u << (31 - __builtin_clz(differs));
    struct name_node *fork = ARENA_NEW(t->arena, struct name_node), **place = &t->root;
    if (!fork) return -1;
    while (is_above(*place, at, bit)) place = &(*place)->side[goes_right(*place, name)];
    *fork = (struct name_node){.bit = (uint16_t)bit, .at = at};
    fork->side[goes_right(fork, name)] = leaf;
    fork->side[!goes_right(fork, name)] = *place;
    *place = fork;
    return 0;
}
