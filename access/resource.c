#include "access/resource.h"

#include <assert.h>

#define MAY(id) (1u << MAY_##id)

static const struct {
    const char *class, *text, *shown;
    uint32_t permissions;
} kinds[RESOURCE_KINDS] = {
#define RESOURCE(id, class, text, shown, permissions) [RESOURCE_OF_##id] = {class, text, shown, permissions},
#include "access/resource.def"
#undef RESOURCE
};

static const char *const names[PERMISSIONS] = {
#define PERMISSION(id) [MAY_##id] = #id,
#include "access/permission.def"
#undef PERMISSION
};

const char *permission_name(enum permission p) { return names[p]; }
const char *resource_class(const struct resource *r) { return kinds[r->kind].class; }
uint32_t resource_permissions(const struct resource *r) { return kinds[r->kind].permissions; }

static void print(const char *form, const struct resource *r, struct buf *out) {
    for (; *form; form++) {
        if (*form != '%') {
            buf_u8(out, (uint8_t)*form);
            continue;
        }
        const char *part = *++form == 'k' ? r->keyspace : r->name;
        assert(part);
        buf_put_str(out, part);
    }
}

void resource_text(const struct resource *r, struct buf *out) { print(kinds[r->kind].text, r, out); }
void resource_show(const struct resource *r, struct buf *out) { print(kinds[r->kind].shown, r, out); }

void permission_missing(enum permission p, const char *role, const struct resource *on, struct buf *out) {
    buf_printf(out, "User %s has no %s permission on ", role, permission_name(p));
    resource_show(on, out);
    buf_put_str(out, " or any of its parents");
}

/* Parses text by the kind's text form. Returns false if it does not match; else prints the
 * keyspace and name found in the kind's shown form. */
static bool show_as(enum resource_kind kind, const char *text, struct buf *out) {
    const char *form = kinds[kind].text, *keyspace = NULL, *name = NULL;
    size_t keyspace_n = 0, name_n = 0;
    for (; *form; form++) {
        if (*form != '%') {
            if (*text++ != *form) return false;
            continue;
        }
        bool last = !form[2]; /* a name at the end may hold anything; one before it ends at the slash */
        size_t n = last ? strlen(text) : strcspn(text, "/");
        if (!n || (last && *++form == 'k' && strchr(text, '/'))) return false;
        if (!last) form++;
        if (*form == 'k') keyspace = text, keyspace_n = n;
        else name = text, name_n = n;
        text += n;
    }
    if (*text) return false;
    for (const char *f = kinds[kind].shown; *f; f++) {
        if (*f != '%') buf_u8(out, (uint8_t)*f);
        else if (*++f == 'k') buf_put(out, keyspace, keyspace_n);
        else buf_put(out, name, name_n);
    }
    return true;
}

void resource_show_text(const char *text, struct buf *out) {
    for (int kind = 0; kind < RESOURCE_KINDS; kind++)
        if (show_as(kind, text, out)) return;
    buf_put_str(out, text);
}

bool resource_up(struct resource *r) {
    static const int8_t above[RESOURCE_KINDS] = {[RESOURCE_OF_ALL_KEYSPACES] = -1,
                                                 [RESOURCE_OF_KEYSPACE] = RESOURCE_OF_ALL_KEYSPACES,
                                                 [RESOURCE_OF_ALL_TABLES] = RESOURCE_OF_KEYSPACE,
                                                 [RESOURCE_OF_TABLE] = RESOURCE_OF_ALL_TABLES,
                                                 [RESOURCE_OF_ALL_ROLES] = -1,
                                                 [RESOURCE_OF_ROLE] = RESOURCE_OF_ALL_ROLES,
                                                 [RESOURCE_OF_ALL_FUNCTIONS] = -1,
                                                 [RESOURCE_OF_ALL_FUNCTIONS_IN] = RESOURCE_OF_ALL_FUNCTIONS,
                                                 [RESOURCE_OF_ALL_MBEANS] = -1};
    if (above[r->kind] < 0) return false;
    r->kind = (enum resource_kind)above[r->kind];
    return true;
}
