/* After a start the recovery worker finds rows that belong to no object of the catalogue and frees
 * them, one id at a time.
 *
 * The engine refuses writes to freed ids (engine/front/table.h, invariant 8), but stores of older servers
 * may hold such rows. If a record of the catalogue cannot be read nothing is freed, because the
 * rows may belong to it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "engine/history.h"
#include "engine/table.h"
#include "system_schema/recovery/recovery.h"
#include "system_schema/recovery/named_ids.h"

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

/* ---- freeing ---- */

static int take_stored(void *arg, uint32_t id, struct err *e) {
    struct named_ids *all = arg;
    named_ids_add(all, id);
    return all->unknown ? err_nomem(e) : 0;
}

static int take_name(void *arg, struct slice key, struct slice value, struct err *e) {
    (void)e;
    named_ids_take(arg, key, value);
    return 0;
}

/* Finds ids that hold rows both before and after the records are read, and that no record names.
 * An object that is created meanwhile has its record before its rows; one that is freed
 * meanwhile loses its rows before its record. No lock is held. */
static int find_strays(struct eng *eng, struct named_ids *out, struct err *e) {
    struct named_ids named, before;
    named_ids_init(&named);
    named_ids_init(&before);
    int rc = eng_each_stored(eng, take_stored, &before, e);
    if (!rc) rc = eng_meta_scan(eng, slice_str(""), take_name, &named, e);
    if (!rc && named.unknown)
        log_warn("catalog: rows that no object has are not looked for, because a record cannot be read");
    bool any = false;
    for (uint32_t i = 0; i < before.n && !any; i++) any = !named_ids_has(&named, before.ids[i]);
    if (!rc && any) rc = eng_each_stored(eng, take_stored, out, e);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < out->n; i++)
        if (!named_ids_has(&named, out->ids[i]) && named_ids_has(&before, out->ids[i])) out->ids[kept++] = out->ids[i];
    out->n = kept;
    named_ids_fini(&before);
    named_ids_fini(&named);
    return rc;
}

void strays_reset(struct strays *s) {
    free(s->ids);
    *s = (struct strays){.n = 0};
}

int strays_free_one(struct recovery *r) {
    struct objects *o = r->objects;
    struct strays *s = &r->strays;
    struct err e = {0};
    if (!eng_one_writer(o->eng)) return 0; /* another server may have written the rows and their record */
    if (!s->looked) {
        struct named_ids found;
        named_ids_init(&found);
        pthread_mutex_unlock(&o->lock);
        int failed = find_strays(o->eng, &found, &e);
        pthread_mutex_lock(&o->lock);
        if (failed) {
            log_error("catalog: rows that no object has cannot be looked for: %s", e.text);
            named_ids_fini(&found);
            return -1;
        }
        *s = (struct strays){.looked = true, .n = found.n, .ids = found.ids};
        if (found.n) log_warn("catalog: the store holds rows of %u ids that no object has; they are freed", found.n);
        return 1;
    }
    if (!s->n) return 0;
    uint32_t id = s->ids[s->n - 1];
    pthread_mutex_unlock(&o->lock);
    int rc = eng_history_drop(o->eng, id, &e); /* rows, marks and log */
    pthread_mutex_lock(&o->lock);
    if (rc) {
        log_error("catalog: the rows of id %u, which no object has, are not freed yet: %s", id, e.text);
        return -1;
    }
    log_info("catalog: the rows of id %u, which no object has, are freed", id);
    if (!--s->n) {
        free(s->ids);
        s->ids = NULL;
    }
    return 1;
}
