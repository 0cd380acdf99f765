#include "system_schema/recovery/named_ids.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "system_schema/objects/record.h"

void named_ids_init(struct named_ids *all) { *all = (struct named_ids){.n = 0}; }

void named_ids_fini(struct named_ids *all) {
    free(all->ids);
    named_ids_init(all);
}

void named_ids_add(struct named_ids *all, uint32_t id) {
    if (all->n == all->cap) {
        uint32_t cap = all->cap ? all->cap * 2 : 64, *ids = realloc(all->ids, cap * sizeof *ids);
        if (!ids) {
            all->unknown = true;
            return;
        }
        all->ids = ids;
        all->cap = cap;
    }
    all->ids[all->n++] = id;
    all->sorted = false;
}

/* True if the key consists of the prefix and an id. */
static bool is_id_of(struct slice key, const char *prefix) {
    size_t n = strlen(prefix);
    return key.n == n + 4 && memcmp(key.p, prefix, n) == 0;
}

void named_ids_take(struct named_ids *all, struct slice key, struct slice value) {
    struct record r;
    struct err e = {0};
    if (is_id_of(key, "recovery/") || is_id_of(key, "spare/")) {
        named_ids_add(all, load_u32(key.p + key.n - 4));
    } else if (key.n == RECORD_KEY_SIZE && memcmp(key.p, "catalog/", 8) == 0 && key.p[9] == '/') {
        if (record_decode(key, value, &r, &e)) all->unknown = true;
        else named_ids_add(all, r.storage);
    }
}

bool named_ids_has(struct named_ids *all, uint32_t id) {
    if (all->unknown) return true;
    if (!all->sorted && all->n) qsort(all->ids, all->n, sizeof *all->ids, array_u32_order);
    all->sorted = true;
    return all->n && bsearch(&id, all->ids, all->n, sizeof *all->ids, array_u32_order);
}
