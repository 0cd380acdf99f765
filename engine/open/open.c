/* Opening an engine: the only file that refers to every store. */
#include "engine/front/eng.h"
#include "engine/local/local.h"
#include "engine/memory/several.h"
#include "engine/rados/rados.h"

static int open_store(struct eng *eng, const struct eng_options *o, struct err *e) {
    if (o->rados) {
        struct rados_options options = {.pool = {.conf = o->rados->conf, .pool = o->rados->pool},
                                        .split_keys = o->rados->split_keys,
                                        .incarnation = o->rados->incarnation};
        return rados_store_init(&eng->store, &options, e);
    }
    if (o->beside) return several_share(&eng->store, &o->beside->store, o->faults, e);
    if (o->shared) return several_open(&eng->store, o->faults, e);
    return local_open(eng, o, e);
}

struct eng *eng_open(const struct eng_options *o, struct err *e) {
    struct eng *eng = engi_new(o, e);
    if (!eng) return NULL;
    if (!open_store(eng, o, e) && !engi_start(eng, e)) return eng;
    eng_close(eng);
    return NULL;
}
