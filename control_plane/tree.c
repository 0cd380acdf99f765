#include "control_plane/tree.h"

struct ast_stmt *tree_new(struct call *c, enum stmt_kind kind) {
    c->statement = ARENA_NEW(c->arena, struct ast_stmt);
    if (c->statement) c->statement->kind = kind;
    else call_nomem(c);
    return c->statement;
}

struct ast_prop_value *tree_text(struct call *c, const char *text) {
    struct ast_prop_value *v = text ? ARENA_NEW(c->arena, struct ast_prop_value) : NULL;
    if (v) *v = (struct ast_prop_value){.kind = PROP_LITERAL, .literal = LIT_STRING, .text = slice_str(text)};
    else c->make.failed = true;
    return v;
}

struct ast_prop_value *tree_map(struct call *c) {
    struct ast_prop_value *v = ARENA_NEW(c->arena, struct ast_prop_value);
    if (v) v->kind = PROP_MAP;
    else c->make.failed = true;
    return v;
}

/* A copy of the array with room for one more item. Arrays in a request are short. */
static void *longer(struct call *c, const void *items, uint32_t n, size_t size) {
    void *p = arena_array(c->arena, n + 1, size);
    if (p && n) memcpy(p, items, n * size);
    c->make.failed = c->make.failed || !p;
    return p;
}

void tree_put(struct call *c, struct ast_prop_value *map, const char *key, struct ast_prop_value *value) {
    struct ast_prop_value *name = map && value ? tree_text(c, key) : NULL;
    struct ast_prop_value **keys = name ? longer(c, map->keys, map->n, sizeof(*keys)) : NULL;
    struct ast_prop_value **values = keys ? longer(c, map->values, map->n, sizeof(*values)) : NULL;
    if (!values) return;
    keys[map->n] = name;
    values[map->n] = value;
    map->keys = keys;
    map->values = values;
    map->n++;
}

void tree_add_prop(struct call *c, struct ast_props *p, const char *name, struct ast_prop_value *value) {
    struct ast_prop *props = value ? longer(c, p->props, p->n, sizeof(*props)) : NULL;
    if (!props) return;
    props[p->n++] = (struct ast_prop){.name = name, .value = value};
    p->props = props;
}

void tree_add_map(struct call *c, struct ast_props *p, const char *name, struct ast_prop_value *map) {
    if (map && map->n) tree_add_prop(c, p, name, map);
}

struct ast_prop_value *tree_tags(struct call *c, const struct doc *tags) {
    struct ast_prop_value *map = tags ? tree_map(c) : NULL;
    for (const struct doc *t = map ? tags->first : NULL; t; t = t->next)
        tree_put(c, map, doc_text(c->arena, t, "key"), tree_text(c, doc_text(c->arena, t, "value")));
    return map;
}
