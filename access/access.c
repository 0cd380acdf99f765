#include "access/access.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "access/password.h"
#include "base/log.h"
#include "base/ticker.h"
#include "engine/named.h"

struct access_control {
    struct eng *eng;
    struct catalog *catalog;
    struct catalog_listener listener;
    pthread_mutex_t change_lock; /* held by the one thread that changes roles; taken before current_lock */
    pthread_mutex_t current_lock;
    const struct role_set *current;
    const struct role_set *provided; /* the roles of the operator's file, which no record holds */
    const char *first_role, *first_password;
    uint64_t version; /* of the records that current was read from or written to; 0 if none */
    bool unread;      /* they have changed, and could not be read */
    atomic_bool noticed; /* another server has changed a record, perhaps of a role. Any thread sets it */
    const struct role_set *draft; /* with the changes of the thread that holds change_lock; NULL if there are none */
    struct arena arena;           /* of the changes */
    struct eng_meta_change *changes; /* room for n_changes and one more */
    uint32_t n_changes;
    struct ticker follower;          /* reads what other servers change */
    bool suspended; /* the store is being replaced: changes of its schema do not concern these roles */
    _Atomic uint64_t generation;
};

static const char key_prefix[] = "role/", version_key[] = "access/version";

static void look_again(struct access_control *a);

/* ---- the current set ---- */

const struct role_set *access_roles(struct access_control *a) {
    pthread_mutex_lock(&a->current_lock);
    const struct role_set *s = a->current;
    role_set_ref(s);
    pthread_mutex_unlock(&a->current_lock);
    return s;
}

uint64_t access_generation(const struct access_control *a) {
    return atomic_load_explicit(&a->generation, memory_order_acquire);
}

/* Makes s the current set and takes over the caller's reference to it. */
static const struct role_set *publish(struct access_control *a, const struct role_set *s) {
    pthread_mutex_lock(&a->current_lock);
    const struct role_set *before = a->current; /* NULL means at the start */
    a->current = s;
    pthread_mutex_unlock(&a->current_lock);
    atomic_fetch_add_explicit(&a->generation, 1, memory_order_release);
    role_set_unref(before);
    return s;
}

/* ---- changes ---- */

/* The set with the changes that are not written yet. */
static const struct role_set *draft(const struct access_control *a) { return a->draft ? a->draft : a->current; }

static void forget_draft(struct access_control *a) {
    if (a->draft) role_set_unref(a->draft);
    a->draft = NULL;
    free(a->changes);
    a->changes = NULL;
    a->n_changes = 0;
    arena_reset(&a->arena);
}

const struct role_set *access_begin(struct access_control *a) {
    pthread_mutex_lock(&a->change_lock);
    look_again(a);
    return a->current;
}

/* Keeps A1: the set is published after its records are written, so that a failure leaves readers and
 * records unchanged. */
static int write_draft(struct access_control *a, struct err *e) {
    uint8_t now[8], next[8];
    const struct slice expected = slice_of(now, sizeof(now));
    if (!a->draft) return 0;
    if (a->unread) return err_set(e, ERR_SERVER, "The roles cannot be read");
    store_u64(now, a->version);
    store_u64(next, a->version + 1);
    a->changes[a->n_changes] = (struct eng_meta_change){.key = slice_str(version_key),
                                                        .value = slice_of(next, sizeof(next)),
                                                        .conditional = true, /* A4 */
                                                        .expected = a->version ? &expected : NULL};
    int rc = eng_meta_write(a->eng, a->n_changes + 1, a->changes, e);
    if (rc) atomic_store(&a->noticed, true); /* also after an error, because it may have been written */
    if (rc) return rc == ENG_CHANGED ? ACCESS_AGAIN : -1;
    a->version++;
    publish(a, a->draft);
    a->draft = NULL;
    return 0;
}

int access_end(struct access_control *a, int rc, struct err *e) {
    int written = rc < 0 ? 0 : write_draft(a, e);
    forget_draft(a);
    pthread_mutex_unlock(&a->change_lock);
    return written ? written : rc;
}

int access_no_room(struct err *e) {
    return err_invalid(e, "A role may have permissions on at most %d resources", ROLE_GRANTS_MAX);
}

static int check_size(const struct role_set *s, const struct role *r, struct err *e) {
    if (!*r->name) return err_invalid(e, "Role name can't be an empty string");
    if (strlen(r->name) > ROLE_NAME_MAX)
        return err_invalid(e, "A role's name may have at most %d bytes", ROLE_NAME_MAX);
    if (r->n_grants > ROLE_GRANTS_MAX) return access_no_room(e);
    if (r->n_member_of > ROLE_MEMBERSHIPS_MAX)
        return err_invalid(e, "A role may be a member of at most %d roles", ROLE_MEMBERSHIPS_MAX);
    if (r->n_identities > ROLE_IDENTITIES_MAX)
        return err_invalid(e, "A role may have at most %d identities", ROLE_IDENTITIES_MAX);
    if (s->n >= ROLES_MAX && !role_find(s, r->name)) return err_invalid(e, "There may be at most %d roles", ROLES_MAX);
    return 0;
}

/* Adds the change of a record; r NULL: it is removed. */
static int add_change(struct access_control *a, const char *name, const struct role *r, struct err *e) {
    struct buf key, form;
    struct eng_meta_change *all = realloc(a->changes, (a->n_changes + 2) * sizeof(*all)); /* and that of the version */
    if (!all) return err_nomem(e);
    a->changes = all;
    buf_init(&key, 0);
    buf_init(&form, 0);
    buf_put_str(&key, key_prefix);
    buf_put_str(&key, name);
    if (r) role_encode(r, &form);
    struct eng_meta_change *c = &a->changes[a->n_changes];
    *c = (struct eng_meta_change){.key = arena_take(&a->arena, &key), .deleted = !r};
    c->value = arena_take(&a->arena, &form);
    if (!c->key.p || !c->value.p) return err_nomem(e);
    a->n_changes++;
    return 0;
}

static const struct role_set *change_role(struct access_control *a, const char *name, const struct role *r,
                                          struct err *e) {
    const struct role_set *next = role_set_with(draft(a), name, r);
    for (uint32_t i = 0; next && r && i < r->n_member_of; i++)
        assert(role_find(next, r->member_of[i]) && !role_is_member(next, r->member_of[i], name)); /* A2 */
    if (!next) return err_null(err_nomem(e));
    if (add_change(a, name, r, e)) {
        role_set_unref(next);
        return NULL;
    }
    if (a->draft) role_set_unref(a->draft);
    a->draft = next;
    return next;
}

const struct role_set *access_put(struct access_control *a, const struct role *r, struct err *e) {
    return check_size(draft(a), r, e) ? NULL : change_role(a, r->name, r, e);
}

/* Returns the set with that role of the operator's file in it: an existing role gets the hash, a
 * new one all rights. Returns NULL with e set. */
static const struct role_set *with_provided(const struct role_set *s, const char *name, const char *hash,
                                            struct err *e) {
    const struct role *there = role_find(s, name);
    struct role r = there ? *there : (struct role){.name = name, .superuser = true};
    r.hash = hash;
    r.login = true;
    const struct role_set *next = check_size(s, &r, e) ? NULL : role_set_with(s, name, &r);
    if (!next && !e->set) err_nomem(e);
    return next;
}

int access_provide(struct access_control *a, const char *name, const char *hash, struct err *e) {
    const struct role r = {.name = name, .hash = hash, .login = true};
    const struct role_set *next = NULL;
    access_begin(a);
    const struct role_set *provided = role_set_with(a->provided, name, &r); /* used when the roles are read again */
    if (provided) {
        role_set_unref(a->provided);
        a->provided = provided;
        next = with_provided(a->current, name, hash, e);
    } else {
        err_nomem(e);
    }
    if (next) publish(a, next);
    return access_end(a, next ? 0 : -1, e);
}

/* ---- removing what refers to a dropped role, table or keyspace ---- */

typedef bool (*match_fn)(const void *arg, const char *resource);

/* Removes from all roles their membership of member_of and their grants on resources that match. */
static int strip(struct access_control *a, const char *member_of, match_fn match, const void *arg, struct err *e) {
    struct arena arena;
    arena_init(&arena, 4096, 0);
    for (uint32_t i = 0; i < draft(a)->n && !e->set; i++) {
        const struct role *r = role_at(draft(a), i);
        struct role out = *r;
        struct grant *grants = ARENA_ARRAY(&arena, r->n_grants + 1, struct grant);
        const char **names = ARENA_ARRAY(&arena, r->n_member_of + 1, const char *);
        if (!grants || !names) {
            err_nomem(e);
            break;
        }
        out.grants = grants;
        out.member_of = names;
        out.n_grants = out.n_member_of = 0;
        for (uint32_t k = 0; k < r->n_grants; k++)
            if (!match(arg, r->grants[k].resource)) grants[out.n_grants++] = r->grants[k];
        for (uint32_t k = 0; k < r->n_member_of; k++)
            if (!member_of || strcmp(r->member_of[k], member_of) != 0) names[out.n_member_of++] = r->member_of[k];
        bool changed = out.n_grants != r->n_grants || out.n_member_of != r->n_member_of;
        if (changed && !change_role(a, r->name, &out, e)) break;
        arena_reset(&arena);
    }
    arena_fini(&arena);
    return e->set ? -1 : 0;
}

static bool is_text(const void *arg, const char *resource) { return !strcmp(arg, resource); }

const struct role_set *access_drop(struct access_control *a, const char *name, struct err *e) {
    struct resource on = {.kind = RESOURCE_OF_ROLE, .name = name};
    struct buf text;
    buf_init(&text, 0);
    resource_text(&on, &text);
    buf_u8(&text, 0);
    int rc = buf_failed(&text) ? err_nomem(e) : strip(a, name, is_text, text.p, e);
    buf_fini(&text);
    return rc ? NULL : change_role(a, name, NULL, e);
}

static bool is_in(const void *arg, const char *resource) {
    const struct schema_change *c = arg;
    char keyspace[sizeof(c->keyspace) + 16];
    if (c->target == TARGET_TABLE) {
        char table[sizeof(c->keyspace) + sizeof(c->name) + 8];
        snprintf(table, sizeof(table), "data/%s/%s", c->keyspace, c->name);
        return !strcmp(resource, table);
    }
    int n = snprintf(keyspace, sizeof(keyspace), "data/%s", c->keyspace);
    if (!strncmp(resource, keyspace, (size_t)n) && (!resource[n] || resource[n] == '/')) return true;
    snprintf(keyspace, sizeof(keyspace), "functions/%s", c->keyspace);
    return !strcmp(resource, keyspace);
}

/* Keeps A5. */
static int take_away(struct access_control *a, const struct schema_change *c, struct err *e) {
    bool has_successor = false;
    access_begin(a);
    int rc = strip(a, NULL, is_in, c, e);
    const char *table = c->target == TARGET_TABLE ? c->name : NULL;
    if (!rc && a->draft) rc = catalog_recorded(a->catalog, c->keyspace, table, &has_successor, e);
    if (has_successor) forget_draft(a);
    return access_end(a, rc, e);
}

/* Listener: removes the grants on a table or keyspace that is gone. Waits for the disk if there
 * are any. Each server on a store does so, because the one that has dropped it may die before. The
 * name may have another object by now, which another server has made and granted rights on; the
 * server that dropped the first one has removed the old grants then (A3). */
static void on_change(void *arg, const struct schema_change *c) {
    struct access_control *a = arg;
    struct err e = {0};
    if (a->suspended) return;
    if (c->kind != CHANGE_GONE || (c->target != TARGET_TABLE && c->target != TARGET_KEYSPACE)) return;
    int rc = ACCESS_AGAIN;
    while (rc == ACCESS_AGAIN) rc = take_away(a, c, &e);
    if (rc) log_error("permissions on %s.%s, which is gone, are not taken away: %s", c->keyspace, c->name, e.text);
}

/* ---- start ---- */

/* Replaces the set that is being built with the next one. */
static int take(const struct role_set **set, const struct role_set *next, struct err *e) {
    if (!next) return e->set ? -1 : err_nomem(e);
    role_set_unref(*set);
    *set = next;
    return 0;
}

static int load_one(void *arg, struct slice key, struct slice value, struct err *e) {
    const struct role_set **set = arg;
    struct arena arena;
    struct role r;
    struct err bad = {0};
    arena_init(&arena, 4096, 0);
    char *name = arena_alloc(&arena, key.n);
    int rc = name ? 0 : err_nomem(e);
    if (!rc) {
        size_t n = key.n - strlen(key_prefix);
        memcpy(name, key.p + strlen(key_prefix), n);
        name[n] = 0;
        if (role_decode(name, value, &arena, &r, &bad)) log_error("role %s is left out: %s", name, bad.text);
        else rc = take(set, role_set_with(*set, name, &r), e);
    }
    arena_fini(&arena);
    return rc;
}

struct present {
    const struct schema *schema;
    struct catalog *catalog;
};

/* Keeps A5. */
static bool is_gone(const void *arg, const char *resource) {
    const struct present *p = arg;
    struct err e = {0};
    bool recorded;
    char keyspace[64];
    const char *rest = strncmp(resource, "data/", 5) ? NULL : resource + 5;
    size_t n = rest ? strcspn(rest, "/") : 0;
    if (!n || n >= sizeof(keyspace)) return false;
    memcpy(keyspace, rest, n);
    keyspace[n] = 0;
    const char *table = rest[n] == '/' && strcmp(rest + n, "/*") != 0 ? rest + n + 1 : NULL;
    if (schema_keyspace_find(p->schema, keyspace) && (!table || schema_table_any(p->schema, keyspace, table)))
        return false;
    return catalog_recorded(p->catalog, keyspace, table, &recorded, &e) == 0 && !recorded;
}

static int load_version(void *arg, struct slice key, struct slice value, struct err *e) {
    (void)key;
    if (value.n != 8) return err_set(e, ERR_SERVER, "the record of the roles' version is damaged");
    *(uint64_t *)arg = load_u64(value.p);
    return 0;
}

static int read_version(struct access_control *a, uint64_t *version, struct err *e) {
    *version = 0;
    return eng_meta_scan(a->eng, slice_str(version_key), load_version, version, e);
}

/* Builds a set of the recorded roles and of those of the operator's file, and publishes it at
 * once: readers see either the old set or the new one. The version is read first: if another server
 * changes a record meanwhile, the next write of this one fails, and the records are read again. */
static int load_roles(struct access_control *a, struct err *e) {
    const struct role_set *set = role_set_empty();
    uint64_t version;
    int got = read_version(a, &version, e);
    if (!got) got = set ? eng_meta_scan(a->eng, slice_str(key_prefix), load_one, &set, e) : err_nomem(e);
    for (uint32_t i = 0; !got && i < a->provided->n; i++) {
        const struct role *r = role_at(a->provided, i);
        got = take(&set, with_provided(set, r->name, r->hash, e), e);
    }
    if (got) {
        role_set_unref(set);
        return -1;
    }
    a->version = version;
    publish(a, set);
    return 0;
}

/* Reads the roles again if another server has changed them. change_lock is held. */
static void look_again(struct access_control *a) {
    struct err e = {0};
    uint64_t version;
    if (!atomic_exchange(&a->noticed, false)) return;
    int rc = read_version(a, &version, &e);
    if (!rc && (a->unread || version != a->version)) rc = load_roles(a, &e);
    a->unread = rc;
    if (rc) log_error("what another server has changed of the roles cannot be read: %s", e.text);
    if (rc) atomic_store(&a->noticed, true);
}

int access_catch_up(struct access_control *a, struct err *e) {
    uint64_t version;
    if (eng_one_writer(a->eng)) return 0;
    if (read_version(a, &version, e)) return -1;
    pthread_mutex_lock(&a->change_lock);
    if (a->unread || a->version < version) {
        atomic_store(&a->noticed, true);
        look_again(a);
    }
    int rc = a->unread ? err_set(e, ERR_OVERLOADED, "The roles cannot be read; try again") : 0;
    pthread_mutex_unlock(&a->change_lock);
    return rc;
}

/* Completes the roles that were read at a start: removes the grants on objects that were dropped
 * shortly before a stop, and makes the first role. */
static int complete(struct access_control *a, struct err *e) {
    const struct schema *schema = catalog_schema(a->catalog);
    int rc = strip(a, NULL, is_gone, &(struct present){schema, a->catalog}, e);
    schema_unref(schema);
    if (rc || !a->first_role || a->current->n) return rc;
    char hash[PASSWORD_HASH_MAX];
    if (password_hash(a->first_password, hash, e)) return -1;
    struct role first = {.name = a->first_role, .hash = hash, .superuser = true, .login = true};
    log_warn("there was no role: %s may log in with its well-known password, which is to be changed", a->first_role);
    return access_put(a, &first, e) ? 0 : -1;
}

static int read_roles(struct access_control *a, struct err *e) {
    int rc = ACCESS_AGAIN;
    while (rc == ACCESS_AGAIN) {
        rc = load_roles(a, e) || complete(a, e) ? -1 : write_draft(a, e);
        forget_draft(a);
    }
    return rc;
}

/* ---- what other servers change ---- */

/* The engine calls this on any thread, with the store locked. */
static void note_change(void *arg) {
    struct access_control *a = arg;
    atomic_store(&a->noticed, true);
    ticker_wake(&a->follower);
}

static int64_t follow(void *arg) {
    enum { RETRY_US = 1000000 };
    struct access_control *a = arg;
    pthread_mutex_lock(&a->change_lock);
    look_again(a);
    pthread_mutex_unlock(&a->change_lock);
    return RETRY_US;
}

static int start_following(struct access_control *a, struct err *e) {
    if (eng_one_writer(a->eng)) return 0;
    if (eng_meta_watch(a->eng, note_change, a, e)) return -1;
    atomic_store(&a->noticed, true); /* since they were read */
    return ticker_start(&a->follower, 0, e);
}

void access_suspend(struct access_control *a) {
    pthread_mutex_lock(&a->change_lock);
    a->suspended = true;
    pthread_mutex_unlock(&a->change_lock);
}

int access_resume(struct access_control *a, bool changed, struct err *e) {
    pthread_mutex_lock(&a->change_lock);
    a->suspended = false;
    int rc = changed ? read_roles(a, e) : 0;
    pthread_mutex_unlock(&a->change_lock);
    return rc;
}

struct access_control *access_open(const struct access_options *o, struct err *e) {
    struct access_control *a = calloc(1, sizeof(*a));
    if (!a) return err_null(err_nomem(e));
    a->eng = o->eng;
    a->catalog = o->catalog;
    a->first_role = o->first_role;
    a->first_password = o->first_password;
    pthread_mutex_init(&a->change_lock, NULL);
    pthread_mutex_init(&a->current_lock, NULL);
    ticker_init(&a->follower, follow, a);
    arena_init(&a->arena, 4096, 0);
    if (!(a->provided = role_set_empty()) || read_roles(a, e) || start_following(a, e)) {
        if (!a->provided) err_nomem(e);
        access_close(a);
        return NULL;
    }
    a->listener = (struct catalog_listener){.changed = on_change, .arg = a};
    catalog_on_change(a->catalog, &a->listener);
    return a;
}

void access_close(struct access_control *a) {
    catalog_off_change(a->catalog, &a->listener);
    eng_meta_unwatch(a->eng, a);
    ticker_stop(&a->follower);
    role_set_unref(a->current);
    role_set_unref(a->provided);
    pthread_mutex_destroy(&a->change_lock);
    pthread_mutex_destroy(&a->current_lock);
    ticker_fini(&a->follower);
    arena_fini(&a->arena);
    free(a);
}
