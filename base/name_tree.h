/* Finds a name among those put in before: a crit-bit tree in an arena.
 *
 * A client decides how many names its statements, options and bound values contain, and each name
 * must be compared with all before it. The cost of a search depends on the length of the name and
 * not on the other names. No choice of names makes it slow, unlike collisions in a hash table.
 * Names are bytes, and may be empty. One thread; the tree lives as long as the arena, and the names
 * put in must live as long.
 */
#pragma once

#include "base/arena.h"

struct name_node;

struct name_tree {
    struct arena *arena;
    struct name_node *root;
};

/* The value that was put with the name; NULL if there is none. Valid until the arena ends. */
const uint32_t *name_tree_find(const struct name_tree *t, struct slice name);
/* Puts a value with the name. Returns 1 if the name already has a value, and nothing changes.
 * Returns -1 if memory is exhausted. */
int name_tree_put(struct name_tree *t, struct slice name, uint32_t value) MUST_CHECK;
