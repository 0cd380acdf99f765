#include "system_schema/objects/meta_batch.h"

#include <stdlib.h>

#include "engine/named.h"

void meta_batch_init(struct meta_batch *b) {
    *b = (struct meta_batch){0};
    arena_init(&b->arena, 4096, 0);
}

void meta_batch_fini(struct meta_batch *b) {
    free(b->changes);
    arena_fini(&b->arena);
}

static int add(struct meta_batch *b, struct slice key, const struct slice *value, struct err *e) {
    if (b->n == b->cap) {
        uint32_t cap = b->cap ? b->cap * 2 : 8;
        struct eng_meta_change *all = realloc(b->changes, cap * sizeof *all);
        if (!all) return err_nomem(e);
        b->changes = all;
        b->cap = cap;
    }
    struct eng_meta_change *c = &b->changes[b->n];
    *c = (struct eng_meta_change){.key = arena_dup(&b->arena, key), .deleted = !value};
    if (value) c->value = arena_dup(&b->arena, *value);
    if (!c->key.p || (value && !c->value.p)) return err_nomem(e);
    b->n++;
    return 0;
}

int meta_batch_put(struct meta_batch *b, struct slice key, struct slice value, struct err *e) {
    return add(b, key, &value, e);
}
int meta_batch_delete(struct meta_batch *b, struct slice key, struct err *e) { return add(b, key, NULL, e); }
