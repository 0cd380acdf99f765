/* Looks an object up in the records of the store, which another server may have changed since the
 * objects were read. */
#include "system_schema/objects/objects.h"

struct lookup {
    const char *name;
    uint32_t keyspace_id, id; /* id: of the object; 0 if none was found */
};

static int look(void *arg, struct slice key, struct slice value, struct err *e) {
    struct lookup *l = arg;
    struct record r;
    struct err damaged = {0};
    (void)e;
    if (record_decode(key, value, &r, &damaged) || r.status == SCHEMA_DELETED) return 0;
    if (r.keyspace_id == l->keyspace_id && slice_is(r.name, l->name)) l->id = r.id;
    return 0;
}

/* 0, and id 0: there is none. */
static int find(struct objects *o, const struct object_kind *kind, uint32_t keyspace_id, const char *name,
                uint32_t *id, struct err *e) {
    const char prefix[] = {'c', 'a', 't', 'a', 'l', 'o', 'g', '/', kind->tag, '/', 0};
    struct lookup l = {.name = name, .keyspace_id = keyspace_id};
    int rc = eng_meta_scan(o->eng, slice_str(prefix), look, &l, e);
    *id = l.id;
    return rc;
}

int objects_recorded(struct objects *o, const char *keyspace, const char *table, bool *recorded, struct err *e) {
    uint32_t id;
    int rc = find(o, &keyspace_kind, 0, keyspace, &id, e);
    if (rc == 0 && id && table) rc = find(o, &table_kind, id, table, &id, e);
    *recorded = rc == 0 && id;
    return rc;
}
