/* After a start the recovery worker finds rows that belong to no object of the catalogue and frees
 * them, one id at a time.
 *
 * The engine refuses writes to freed ids (engine/front/table.h, invariant 8), but stores of older servers
 * may hold such rows. If a record of the catalogue cannot be read nothing is freed, because the
 * rows may belong to it.
 */
#include <stdlib.h>

#include "base/log.h"
#include "engine/history.h"
#include "engine/table.h"
#include "system_schema/recovery/recovery.h"
#include "system_schema/recovery/named_ids.h"

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
