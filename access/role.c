#include "access/role.h"

#include <stdlib.h>
#include <string.h>

struct role_cell {
    atomic_uint refs;
    struct arena arena;
    struct role role;
};

enum { WITHOUT_IDENTITIES = 1, WITH_IDENTITIES = 2, SUPERUSER = 1, LOGIN = 2 };

/* ---- records ---- */

static void put_text(struct buf *out, const char *s) {
    buf_uvarint(out, strlen(s));
    buf_put_str(out, s);
}

static void put_names(struct buf *out, uint32_t n, const char *const *names) {
    buf_uvarint(out, n);
    for (uint32_t i = 0; i < n; i++) put_text(out, names[i]);
}

void role_encode(const struct role *r, struct buf *out) {
    buf_u8(out, r->n_identities ? WITH_IDENTITIES : WITHOUT_IDENTITIES);
    buf_u8(out, (uint8_t)((r->superuser ? SUPERUSER : 0) | (r->login ? LOGIN : 0)));
    put_text(out, r->hash);
    put_names(out, r->n_member_of, r->member_of);
    buf_uvarint(out, r->n_grants);
    for (uint32_t i = 0; i < r->n_grants; i++) {
        put_text(out, r->grants[i].resource);
        buf_u32(out, r->grants[i].permissions);
    }
    if (r->n_identities) put_names(out, r->n_identities, r->identities);
}

static const char *get_text(struct rd *rd, struct arena *a) {
    struct slice s = rd_bytes(rd, (size_t)rd_uvarint(rd));
    char *text = s.p && !memchr(s.p, 0, s.n) ? arena_alloc(a, s.n + 1) : NULL;
    if (!text) {
        rd->bad = true;
        return "";
    }
    memcpy(text, s.p, s.n);
    text[s.n] = 0;
    return text;
}

static uint32_t get_count(struct rd *rd, uint32_t max) {
    uint64_t n = rd_uvarint(rd);
    if (n > max || n > rd_left(rd)) rd->bad = true;
    return rd->bad ? 0 : (uint32_t)n;
}

static bool ascending(const char *before, const char *next) { return !before || strcmp(before, next) < 0; }

static const char *const *get_names(struct rd *rd, struct arena *a, uint32_t max, uint32_t *n) {
    *n = get_count(rd, max);
    const char **names = ARENA_ARRAY(a, *n ? *n : 1, const char *);
    if (!names) rd->bad = true;
    for (uint32_t i = 0; i < *n && !rd->bad; i++) {
        names[i] = get_text(rd, a);
        if (!ascending(i ? names[i - 1] : NULL, names[i])) rd->bad = true;
    }
    return names;
}

int role_decode(const char *name, struct slice form, struct arena *a, struct role *out, struct err *e) {
    struct rd rd = rd_of(form);
    uint8_t version = rd_u8(&rd), flags = rd_u8(&rd);
    *out = (struct role){.name = arena_strdup(a, name), .superuser = flags & SUPERUSER, .login = flags & LOGIN};
    out->hash = get_text(&rd, a);
    out->member_of = get_names(&rd, a, ROLE_MEMBERSHIPS_MAX, &out->n_member_of);
    out->n_grants = get_count(&rd, ROLE_GRANTS_MAX);
    struct grant *grants = ARENA_ARRAY(a, out->n_grants ? out->n_grants : 1, struct grant);
    if (!grants) rd.bad = true;
    for (uint32_t i = 0; i < out->n_grants && !rd.bad; i++) {
        grants[i].resource = get_text(&rd, a);
        grants[i].permissions = rd_u32(&rd);
        if (!ascending(i ? grants[i - 1].resource : NULL, grants[i].resource)) rd.bad = true;
        if (!grants[i].permissions || grants[i].permissions & ~(uint32_t)PERMISSIONS_ALL) rd.bad = true;
    }
    out->grants = grants;
    if (version == WITH_IDENTITIES) out->identities = get_names(&rd, a, ROLE_IDENTITIES_MAX, &out->n_identities);
    if (out->name && !rd.bad && !rd_left(&rd) && version && version <= WITH_IDENTITIES &&
        !(flags & ~(SUPERUSER | LOGIN)))
        return 0;
    return err_set(e, ERR_SERVER, "the record of role %s is damaged", name);
}

/* ---- changes ---- */

int role_granted(const struct role *r, const char *resource, uint32_t add, uint32_t take, struct arena *a,
                 struct role *out) {
    struct grant *grants = ARENA_ARRAY(a, r->n_grants + 1, struct grant);
    uint32_t i = 0, n = 0;
    if (!grants) return -1;
    for (; i < r->n_grants && strcmp(r->grants[i].resource, resource) < 0; i++) grants[n++] = r->grants[i];
    bool there = i < r->n_grants && !strcmp(r->grants[i].resource, resource);
    struct grant g = there ? r->grants[i++] : (struct grant){.resource = arena_strdup(a, resource)};
    if (!g.resource) return -1;
    g.permissions = (g.permissions | add) & ~take;
    if (g.permissions) grants[n++] = g;
    for (; i < r->n_grants; i++) grants[n++] = r->grants[i];
    *out = *r;
    out->grants = grants;
    out->n_grants = n;
    return 0;
}

bool role_has_room(const struct role *r, const char *resource) {
    bool there = r->n_grants < ROLE_GRANTS_MAX;
    for (uint32_t i = 0; i < r->n_grants && !there; i++) there = !strcmp(r->grants[i].resource, resource);
    return there;
}

/* Copies the sorted names into the arena with name added (has) or removed. Returns NULL if memory
 * is exhausted. */
static const char *const *names_with(const char *const *of, uint32_t *n_of, const char *name, bool has,
                                     struct arena *a) {
    const char **names = ARENA_ARRAY(a, *n_of + 1, const char *);
    uint32_t i = 0, n = 0;
    if (!names) return NULL;
    for (; i < *n_of && strcmp(of[i], name) < 0; i++) names[n++] = of[i];
    if (i < *n_of && !strcmp(of[i], name)) i++;
    if (has && !(names[n++] = arena_strdup(a, name))) return NULL;
    for (; i < *n_of; i++) names[n++] = of[i];
    *n_of = n;
    return names;
}

int role_joined(const struct role *r, const char *other, bool member, struct arena *a, struct role *out) {
    *out = *r;
    out->member_of = names_with(r->member_of, &out->n_member_of, other, member, a);
    return out->member_of ? 0 : -1;
}

int role_identified(const struct role *r, const char *identity, bool has, struct arena *a, struct role *out) {
    *out = *r;
    out->identities = names_with(r->identities, &out->n_identities, identity, has, a);
    return out->identities ? 0 : -1;
}

/* ---- sets ---- */

static void cell_unref(struct role_cell *c) {
    if (atomic_fetch_sub(&c->refs, 1) != 1) return;
    arena_fini(&c->arena);
    free(c);
}

static struct role_set *set_new(uint32_t n) {
    struct role_set *s = calloc(1, sizeof(*s));
    if (s) s->cells = calloc(n ? n : 1, sizeof(struct role_cell *));
    if (s && s->cells) {
        atomic_init(&s->refs, 1);
        return s;
    }
    free(s);
    return NULL;
}

const struct role_set *role_set_empty(void) { return set_new(0); }
void role_set_ref(const struct role_set *s) { atomic_fetch_add(&((struct role_set *)s)->refs, 1); }

void role_set_unref(const struct role_set *shared) {
    struct role_set *s = (struct role_set *)shared;
    if (!s || atomic_fetch_sub(&s->refs, 1) != 1) return;
    for (uint32_t i = 0; i < s->n; i++) cell_unref(s->cells[i]);
    free(s->cells);
    free(s);
}

/* The index of the name, or where it would be inserted. */
static uint32_t place_of(const struct role_set *s, const char *name) {
    uint32_t low = 0, high = s->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(s->cells[middle]->role.name, name) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

const struct role *role_at(const struct role_set *s, uint32_t i) { return &s->cells[i]->role; }

const struct role *role_find(const struct role_set *s, const char *name) {
    uint32_t at = place_of(s, name);
    return at < s->n && !strcmp(s->cells[at]->role.name, name) ? role_at(s, at) : NULL;
}

const struct role *role_of_identity(const struct role_set *s, const char *identity) {
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = 0; k < role_at(s, i)->n_identities; k++)
            if (!strcmp(role_at(s, i)->identities[k], identity)) return role_at(s, i);
    return NULL;
}

static void take_cell(struct role_set *to, struct role_cell *c) {
    atomic_fetch_add(&c->refs, 1);
    to->cells[to->n++] = c;
}

const struct role_set *role_set_with(const struct role_set *s, const char *name, const struct role *role) {
    uint32_t at = place_of(s, name), behind = at + (role_find(s, name) != NULL);
    struct role_cell *cell = role ? calloc(1, sizeof(*cell)) : NULL;
    if (role && !cell) return NULL;
    int rc = 0;
    if (cell) { /* encoding and decoding the role copies it, and proves that its record is readable */
        struct buf form;
        struct err e = {0};
        atomic_init(&cell->refs, 1);
        arena_init(&cell->arena, 1024, 0);
        buf_init(&form, 0);
        role_encode(role, &form);
        rc = buf_failed(&form) ? -1 : role_decode(role->name, buf_slice(&form), &cell->arena, &cell->role, &e);
        buf_fini(&form);
    }
    struct role_set *to = rc ? NULL : set_new(s->n + 1);
    if (!to) {
        if (cell) cell_unref(cell);
        return NULL;
    }
    for (uint32_t i = 0; i < at; i++) take_cell(to, s->cells[i]);
    if (cell) to->cells[to->n++] = cell;
    for (uint32_t i = behind; i < s->n; i++) take_cell(to, s->cells[i]);
    return to;
}

/* ---- memberships and permissions ---- */

/* A walk over memberships; seen has a bit for each role of the set already visited. */
struct walk {
    const struct role_set *set;
    uint8_t seen[(ROLES_MAX + 7) / 8];
    bool deep, stopped;
    role_take_fn take;
    void *arg;
};

/* Memberships form no cycle and each role is visited once, so the recursion is as deep as the
 * longest chain of roles. */
static void walk_from(struct walk *w, const char *name, bool deeper) {
    const struct role *r = role_find(w->set, name);
    if (!r || w->stopped) return;
    uint32_t at = place_of(w->set, name);
    if (w->seen[at / 8] & 1 << at % 8) return;
    w->seen[at / 8] |= (uint8_t)(1 << at % 8);
    w->stopped = !w->take(w->arg, r);
    for (uint32_t i = 0; deeper && i < r->n_member_of; i++) walk_from(w, r->member_of[i], w->deep);
}

void role_each_granted(const struct role_set *s, const char *name, bool deep, role_take_fn take, void *arg) {
    struct walk w = {.set = s, .deep = deep, .take = take, .arg = arg};
    walk_from(&w, name, true);
}

static bool is_not(void *arg, const struct role *r) {
    const char **name = arg;
    if (strcmp(r->name, *name) != 0) return true;
    *name = NULL;
    return false;
}

bool role_is_member(const struct role_set *s, const char *name, const char *of) {
    role_each_granted(s, name, true, is_not, &of);
    return !of;
}

static bool is_ordinary(void *arg, const struct role *r) {
    *(bool *)arg |= r->superuser;
    return !r->superuser;
}

bool role_is_superuser(const struct role_set *s, const char *name) {
    bool superuser = false;
    role_each_granted(s, name, true, is_ordinary, &superuser);
    return superuser;
}

struct asked {
    const char *text;
    uint32_t permissions;
};

static bool add_granted(void *arg, const struct role *r) {
    struct asked *a = arg;
    uint32_t low = 0, high = r->n_grants;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int c = strcmp(r->grants[middle].resource, a->text);
        if (!c) a->permissions |= r->grants[middle].permissions;
        if (!c) break;
        if (c < 0) low = middle + 1;
        else high = middle;
    }
    return true;
}

uint32_t role_permissions(const struct role_set *s, const char *name, const struct resource *r) {
    struct resource at = *r;
    struct asked asked = {0};
    struct buf text;
    if (role_is_superuser(s, name)) return PERMISSIONS_ALL;
    buf_init(&text, 0);
    do {
        buf_clear(&text, SIZE_MAX);
        resource_text(&at, &text);
        buf_u8(&text, 0);
        if (buf_failed(&text)) break;
        asked.text = (const char *)text.p;
        role_each_granted(s, name, true, add_granted, &asked);
    } while (resource_up(&at));
    buf_fini(&text);
    return asked.permissions;
}
