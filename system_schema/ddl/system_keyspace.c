/* ALTER KEYSPACE of the system keyspaces that Cassandra replicates, in cassandra mode: a usual
 * step when administrators set up a cluster. Replication has no effect on one node; it is
 * recorded and shown. */
#include "base/log.h"
#include "engine/named.h"
#include "system_schema/ddl/apply.h"

static const char prefix[] = "system_keyspace/";

struct space **system_space(const struct objects *o, const char *name) {
    for (uint32_t i = 0; i < o->n_system; i++)
        if (strcmp(o->system[i]->space.keyspace->name, name) == 0) return &o->system[i];
    return NULL;
}

/* Replaces the keyspace by one with this definition and the same tables. */
static int take_form(struct ddl *d, struct space **at, struct slice form, struct err *e) {
    const struct schema_keyspace *old = (*at)->space.keyspace;
    const struct form_context place = {.keyspace = old->name, .name = old->name};
    struct schema_owner *owner = owner_new();
    if (!owner) return err_nomem(e);
    struct schema_keyspace *ks = keyspace_kind.decode(form, &place, &owner->arena, e);
    if (ks) {
        ks->owner = owner;
        ks->is_system = true;
        ks->status = SCHEMA_ACTIVE;
    }
    struct space *space = ks ? space_new(0, ks, *at, e) : NULL;
    owner_unref(owner);
    if (!space) return -1;
    space_unref(*at);
    *at = space;
    d->objects->published.system_altered = true;
    return 0;
}

static int load_one(void *arg, struct slice key, struct slice value, struct err *e) {
    struct ddl *d = arg;
    struct err bad = {0};
    char name[64] = "";
    size_t n = key.n - (sizeof prefix - 1);
    if (n < sizeof name) memcpy(name, key.p + sizeof prefix - 1, n);
    struct space **at = system_space(d->objects, name);
    (void)e;
    if (at && take_form(d, at, value, &bad)) log_error("catalog: how %s was altered is left out: %s", name, bad.text);
    return 0;
}

int system_keyspaces_load(struct ddl *d, struct err *e) {
    return d->objects->mode == MODE_CASSANDRA ? eng_meta_scan(d->objects->eng, slice_str(prefix), load_one, d, e) : 0;
}

int apply_alter_system_keyspace(struct apply *a, struct schema_change *out) {
    const struct catalog_change *ch = a->change;
    struct ddl *d = a->ddl;
    struct objects *o = d->objects;
    struct space **at = system_space(d->objects, ch->keyspace);
    struct schema_keyspace ks = *(*at)->space.keyspace;
    const struct form_context place = {.keyspace = ks.name, .name = ks.name};
    struct buf form, key;
    if (ch->durable_writes >= 0) ks.durable_writes = ch->durable_writes;
    if (ch->n_replication && replication_check(d, ks.name, ch->n_replication, ch->replication, &a->arena, &ks, a->err))
        return -1;
    buf_init(&form, 0);
    buf_init(&key, 0);
    buf_put_str(&key, prefix);
    buf_put_str(&key, ks.name);
    int rc = definition_form(&keyspace_kind, &place, &ks, &form, a->err);
    const struct eng_meta_change change = {.key = buf_slice(&key), .value = buf_slice(&form)};
    if (rc == 0) rc = buf_failed(&key) ? err_nomem(a->err) : objects_write(o, 1, &change, a->err); /* C3 */
    if (rc == 0) rc = take_form(d, at, buf_slice(&form), a->err);
    if (rc == 0) rc = objects_publish(o, a->err);
    buf_fini(&key);
    buf_fini(&form);
    if (rc) return -1;
    *out = (struct schema_change){.kind = CHANGE_UPDATED, .target = TARGET_KEYSPACE};
    strncpy(out->keyspace, ks.name, sizeof out->keyspace - 1);
    a->told = notice_queue(o, out);
    return 0;
}
