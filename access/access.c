#include "access/access.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "access/password.h"
#include "base/log.h"

struct access_control {
    struct eng *eng;
    struct catalog *catalog;
    struct catalog_listener listener;
    pthread_mutex_t change_lock; /* held by the one thread that changes roles; taken before current_lock */
    pthread_mutex_t current_lock;
    const struct role_set *current;
    const struct role_set *provided; /* the roles of the operator's file, which no record holds */
    const char *first_role, *first_password;
    bool suspended; /* the store is being replaced: changes of its schema do not concern these roles */
    _Atomic uint64_t generation;
};

static const char key_prefix[] = "role/";

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
    const struct role_set *before = a->current; /* NULL: at the start */
    a->current = s;
    pthread_mutex_unlock(&a->current_lock);
    atomic_fetch_add_explicit(&a->generation, 1, memory_order_release);
    role_set_unref(before);
    return s;
}

/* ---- changes ---- */

const struct role_set *access_begin(struct access_control *a) {
    pthread_mutex_lock(&a->change_lock);
    return a->current;
}

void access_end(struct access_control *a) { pthread_mutex_unlock(&a->change_lock); }

static int check_size(const struct role_set *s, const struct role *r, struct err *e) {
    if (!*r->name) return err_invalid(e, "Role name can't be an empty string");
    if (strlen(r->name) > ROLE_NAME_MAX)
        return err_invalid(e, "A role's name may have at most %d bytes", ROLE_NAME_MAX);
    if (r->n_grants > ROLE_GRANTS_MAX)
        return err_invalid(e, "A role may have permissions on at most %d resources", ROLE_GRANTS_MAX);
    if (r->n_member_of > ROLE_MEMBERSHIPS_MAX)
        return err_invalid(e, "A role may be a member of at most %d roles", ROLE_MEMBERSHIPS_MAX);
    if (r->n_identities > ROLE_IDENTITIES_MAX)
        return err_invalid(e, "A role may have at most %d identities", ROLE_IDENTITIES_MAX);
    if (s->n >= ROLES_MAX && !role_find(s, r->name)) return err_invalid(e, "There may be at most %d roles", ROLES_MAX);
    return 0;
}

/* Keeps A1: builds the new set first, then writes the record, and publishes the set last, so
 * that a failure leaves readers and records unchanged. */
static const struct role_set *change_role(struct access_control *a, const char *name, const struct role *r,
                                          struct err *e) {
    const struct role_set *next = role_set_with(a->current, name, r);
    struct buf key, form;
    for (uint32_t i = 0; next && r && i < r->n_member_of; i++)
        assert(role_find(next, r->member_of[i]) && !role_is_member(next, r->member_of[i], name)); /* A2 */
    buf_init(&key, 0);
    buf_init(&form, 0);
    buf_put_str(&key, key_prefix);
    buf_put_str(&key, name);
    if (r) role_encode(r, &form);
    int rc = !next || buf_failed(&key) || buf_failed(&form) ? err_nomem(e)
             : r ? eng_meta_put(a->eng, buf_slice(&key), buf_slice(&form), e)
                 : eng_meta_delete(a->eng, buf_slice(&key), e);
    buf_fini(&form);
    buf_fini(&key);
    if (!rc) return publish(a, next);
    role_set_unref(next);
    return NULL;
}

const struct role_set *access_put(struct access_control *a, const struct role *r, struct err *e) {
    return check_size(a->current, r, e) ? NULL : change_role(a, r->name, r, e);
}

/* Returns the set with that role of the operator's file in it: an existing role gets the hash, a
 * new one all rights. NULL: err. */
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
    access_end(a);
    return next ? 0 : -1;
}

/* ---- removing what refers to a dropped role, table or keyspace ---- */

typedef bool (*match_fn)(const void *arg, const char *resource);

/* Removes from all roles their membership of member_of and their grants on resources that match. */
static int strip(struct access_control *a, const char *member_of, match_fn match, const void *arg, struct err *e) {
    struct arena arena;
    arena_init(&arena, 4096, 0);
    for (uint32_t i = 0; i < a->current->n && !e->set; i++) {
        const struct role *r = role_at(a->current, i);
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

/* Listener: removes the grants on a table or keyspace that is gone. Waits for the disk if there
 * are any. */
static void on_change(void *arg, const struct schema_change *c) {
    struct access_control *a = arg;
    struct err e = {0};
    if (a->suspended) return;
    if (c->kind != CHANGE_GONE || (c->target != TARGET_TABLE && c->target != TARGET_KEYSPACE)) return;
    access_begin(a);
    if (strip(a, NULL, is_in, c, &e))
        log_error("permissions on %s.%s, which is gone, are not taken away: %s", c->keyspace, c->name, e.text);
    access_end(a);
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

static bool is_gone(const void *arg, const char *resource) {
    const struct schema *schema = arg;
    char keyspace[64];
    const char *rest = strncmp(resource, "data/", 5) ? NULL : resource + 5;
    size_t n = rest ? strcspn(rest, "/") : 0;
    if (!n || n >= sizeof(keyspace)) return false;
    memcpy(keyspace, rest, n);
    keyspace[n] = 0;
    if (!schema_keyspace_find(schema, keyspace)) return true;
    return rest[n] == '/' && strcmp(rest + n, "/*") != 0 && !schema_table_any(schema, keyspace, rest + n + 1);
}

/* Builds a set of the recorded roles and of those of the operator's file, and publishes it at
 * once: readers see either the old set or the new one. */
static int read_roles(struct access_control *a, struct err *e) {
    const struct role_set *set = role_set_empty();
    int got = set ? eng_meta_scan(a->eng, slice_str(key_prefix), load_one, &set, e) : err_nomem(e);
    for (uint32_t i = 0; !got && i < a->provided->n; i++) {
        const struct role *r = role_at(a->provided, i);
        got = take(&set, with_provided(set, r->name, r->hash, e), e);
    }
    if (got) {
        role_set_unref(set);
        return -1;
    }
    publish(a, set);
    const struct schema *schema = catalog_schema(a->catalog);
    int rc = strip(a, NULL, is_gone, schema, e); /* objects dropped shortly before a stop */
    schema_unref(schema);
    if (rc) return -1;
    if (!a->first_role || a->current->n) return 0;
    char hash[PASSWORD_HASH_MAX];
    if (password_hash(a->first_password, hash, e)) return -1;
    struct role first = {.name = a->first_role, .hash = hash, .superuser = true, .login = true};
    log_warn("there was no role: %s may log in with its well-known password, which is to be changed", a->first_role);
    return access_put(a, &first, e) ? 0 : -1;
}

void access_suspend(struct access_control *a) {
    access_begin(a);
    a->suspended = true;
    access_end(a);
}

int access_resume(struct access_control *a, bool changed, struct err *e) {
    access_begin(a);
    a->suspended = false;
    int rc = changed ? read_roles(a, e) : 0;
    access_end(a);
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
    if (!(a->provided = role_set_empty()) || read_roles(a, e)) {
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
    role_set_unref(a->current);
    role_set_unref(a->provided);
    pthread_mutex_destroy(&a->change_lock);
    pthread_mutex_destroy(&a->current_lock);
    free(a);
}
