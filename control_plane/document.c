#include "control_plane/document.h"

#include "types/type.h"

struct doc *doc_new(struct arena *a, enum doc_kind kind) {
    struct doc *d = ARENA_NEW(a, struct doc);
    if (d) d->kind = kind;
    return d;
}

void doc_append(struct doc *to, struct doc *d) {
    if (to->last) to->last->next = d;
    else to->first = d;
    to->last = d;
    to->n++;
}

/* ---- reading ---- */

const struct doc *doc_get(const struct doc *d, const char *name) {
    const struct doc *found = NULL;
    if (!d || d->kind != DOC_MAP) return NULL;
    for (const struct doc *x = d->first; x; x = x->next)
        if (slice_is(x->name, name)) found = x;
    return found && found->kind != DOC_NULL ? found : NULL;
}

const char *doc_text(struct arena *a, const struct doc *d, const char *name) {
    const struct doc *x = doc_get(d, name);
    return x && x->kind == DOC_TEXT ? (const char *)arena_dup(a, x->text).p : NULL;
}

/* ---- making ---- */

struct doc *doc_put(struct doc_maker *m, struct doc *to, const char *name, enum doc_kind kind) {
    struct doc *d = to ? doc_new(m->arena, kind) : NULL;
    char *copy = d && name ? arena_strdup(m->arena, name) : NULL;
    if (!d || (name && !copy)) {
        m->failed = true;
        return NULL;
    }
    if (copy) d->name = slice_str(copy);
    doc_append(to, d);
    return d;
}

void doc_put_text(struct doc_maker *m, struct doc *to, const char *name, const char *text) {
    struct doc *d = text ? doc_put(m, to, name, DOC_TEXT) : NULL;
    char *copy = d ? arena_strdup(m->arena, text) : NULL;
    if (copy) d->text = slice_str(copy);
    else if (d) m->failed = true;
}

void doc_put_whole(struct doc_maker *m, struct doc *to, const char *name, int64_t n) {
    struct doc *d = doc_put(m, to, name, DOC_WHOLE);
    if (d) d->whole = n;
}

void doc_put_real(struct doc_maker *m, struct doc *to, const char *name, double x) {
    struct doc *d = doc_put(m, to, name, DOC_REAL);
    if (d) d->real = x;
}

void doc_put_flag(struct doc_maker *m, struct doc *to, const char *name, bool b) {
    struct doc *d = doc_put(m, to, name, DOC_FLAG);
    if (d) d->flag = b;
}

void doc_put_moment(struct doc_maker *m, struct doc *to, const char *name, int64_t ms) {
    struct doc *d = doc_put(m, to, name, DOC_MOMENT);
    if (d) d->whole = ms;
}

/* ---- building ---- */

struct doc *doc_add(struct doc_builder *b, enum doc_kind kind) {
    struct doc *parent = b->depth ? b->open[b->depth - 1] : NULL;
    bool named = parent && parent->kind == DOC_MAP;
    if ((!parent && b->root) || (named && !b->name.p) || b->n_nodes == DOCUMENT_NODES) return NULL;
    struct doc *d = doc_new(b->arena, kind);
    b->no_memory = b->no_memory || !d;
    if (!d) return NULL;
    b->n_nodes++;
    if (named) d->name = b->name;
    b->name = slice_of(NULL, 0);
    if (parent) doc_append(parent, d);
    else b->root = d;
    return d;
}

/* Is it valid UTF-8? A reader may deliver a text that is not, such as half of a surrogate pair. */
static bool is_text(struct slice s) {
    struct err not_utf8 = {0};
    return cql_value_validate(cql_type_scalar(CQL_TEXT), s, &not_utf8) == 0;
}

bool doc_add_text(struct doc_builder *b, struct slice text) {
    struct doc *d = is_text(text) ? doc_add(b, DOC_TEXT) : NULL;
    if (!d) return false;
    d->text = arena_dup(b->arena, text);
    b->no_memory = b->no_memory || !d->text.p;
    return d->text.p != NULL;
}

struct doc *doc_begin(struct doc_builder *b, enum doc_kind kind) {
    struct doc *d = b->depth < DOCUMENT_DEPTH ? doc_add(b, kind) : NULL;
    if (d) b->open[b->depth++] = d;
    return d;
}

void doc_end(struct doc_builder *b) { b->depth--; }

bool doc_name(struct doc_builder *b, struct slice name) {
    if (!b->depth || b->open[b->depth - 1]->kind != DOC_MAP || b->name.p || !is_text(name)) return false;
    b->name = arena_dup(b->arena, name);
    b->no_memory = b->no_memory || !b->name.p;
    return b->name.p != NULL;
}
