/* Finds a name among those put in before: a crit-bit tree in an arena.
 *
 * Statements, options and bound values name things as often as a client likes, and each name has to
 * be told from all before it. A step of the search costs the length of the name, whatever the other
 * names are: no choice of names makes it slow, as collisions do a hash table. Names are bytes, and
 * may be empty. One thread; lives as long as the arena, which also must hold the names put in.
 */
#pragma once

#include "base/arena.h"

struct name_node;

struct name_tree {
    struct arena *arena;
    struct name_node *root;
};

/* What was put with the name; NULL: nothing was. Valid until the arena ends. */
const uint32_t *name_tree_find(const struct name_tree *t, struct slice name);
/* 0 after putting value with the name; 1, and nothing is changed, when the name has one already; -1 without memory. */
int name_tree_put(struct name_tree *t, struct slice name, uint32_t value) MUST_CHECK;
