/* The persisted forms of definitions. Parts that all of them share:
 *
 *   text: length uvarint | bytes          options: count uvarint, each: name | value          type: text
 */
#include "system_schema/objects/object_kind.h"

void form_put_text(struct buf *out, const char *s) {
    buf_uvarint(out, strlen(s));
    buf_put_str(out, s);
}

const char *form_get_text(struct rd *rd, struct arena *a, struct err *e) {
    uint64_t n = rd_uvarint(rd);
    struct slice s = rd_bytes(rd, n);
    if (rd->bad) return "";
    if (memchr(s.p, 0, s.n)) rd->bad = true;
    struct slice copy = arena_dup(a, s);
    if (copy.p) return (const char *)copy.p;
    rd->bad = true;
    err_nomem(e);
    return "";
}

void form_put_options(struct buf *out, uint32_t n, const struct schema_option *options) {
    buf_uvarint(out, n);
    for (uint32_t i = 0; i < n; i++) {
        form_put_text(out, options[i].name);
        form_put_text(out, options[i].value);
    }
}

const struct schema_option *form_get_options(struct rd *rd, struct arena *a, uint32_t *n, struct err *e) {
    uint64_t count = rd_uvarint(rd);
    if (count > DEFINITION_OPTIONS_MAX || count > rd_left(rd)) rd->bad = true;
    struct schema_option *options = rd->bad || count == 0 ? NULL : ARENA_ARRAY(a, count, struct schema_option);
    if (count && !options && !rd->bad) {
        rd->bad = true;
        err_nomem(e);
    }
    for (uint64_t i = 0; !rd->bad && i < count; i++) {
        options[i].name = form_get_text(rd, a, e);
        options[i].value = form_get_text(rd, a, e);
    }
    *n = rd->bad ? 0 : (uint32_t)count;
    return options;
}

void form_put_settings(struct buf *out, const struct table_settings *s) {
    struct arena a;
    uint32_t n;
    arena_init(&a, 4096, 0);
    const struct schema_option *texts = settings_texts(s, &a, &n);
    if (texts) form_put_options(out, n, texts);
    else out->failed = true;
    arena_fini(&a);
}

void form_get_settings(struct rd *rd, struct arena *a, struct table_settings *s, struct err *e) {
    uint32_t n;
    bool no_memory = false;
    const struct schema_option *texts = form_get_options(rd, a, &n, e);
    if (rd->bad || settings_of_texts(texts, n, a, s, &no_memory)) return;
    rd->bad = true;
    if (no_memory) err_nomem(e);
}

void form_put_type(struct buf *out, const struct cql_type *t) {
    struct buf text;
    buf_init(&text, 0);
    cql_type_print_stored(t, &text);
    if (buf_failed(&text)) out->failed = true;
    buf_uvarint(out, text.n);
    buf_put_slice(out, buf_slice(&text));
    buf_fini(&text);
}

const struct cql_type *form_get_type(struct rd *rd, const struct form_context *at, struct arena *a, struct err *e) {
    struct slice text = rd_bytes(rd, rd_uvarint(rd));
    return rd->bad ? NULL : cql_type_parse(a, text, at->keyspace, at->find ? at->find : cql_udt_by_name, at->arg, e);
}

int form_needs_types(const struct cql_type *t, object_need_fn need, void *arg) {
    if (t->id == CQL_UDT) return need(arg, &type_kind, t->name);
    for (uint32_t i = 0; i < t->n_args; i++)
        if (form_needs_types(t->args[i], need, arg)) return -1;
    return 0;
}

int form_check(const struct object_kind *kind, const struct form_context *at, struct slice form, struct err *e) {
    struct arena a;
    struct buf again;
    int rc = -1;
    arena_init(&a, 16 * 1024, 0);
    buf_init(&again, 0);
    const void *definition = kind->decode(form, at, &a, e);
    if (!definition || kind->check(definition, e)) goto out;
    kind->encode(definition, &again);
    rc = buf_failed(&again) ? err_nomem(e)
         : slice_eq(buf_slice(&again), form) || (kind->is_respelled && kind->is_respelled(definition))
             ? 0
             : err_set(e, ERR_SERVER, "the record of %s %s.%s does not read back as it was written", kind->word,
                       at->keyspace, at->name);
out:
    buf_fini(&again);
    arena_fini(&a);
    return rc;
}

int definition_form(const struct object_kind *kind, const struct form_context *at, const void *definition,
                    struct buf *out, struct err *e) {
    if (kind->check(definition, e)) return -1;
    kind->encode(definition, out);
    if (buf_failed(out)) return err_nomem(e);
    struct err why = {0};
    if (form_check(kind, at, buf_slice(out), &why) == 0) return 0;
    if (why.no_memory) return err_nomem(e);
    return err_invalid(e, "The %s %s cannot be recorded: %.1500s", kind->word, at->name, why.text);
}
