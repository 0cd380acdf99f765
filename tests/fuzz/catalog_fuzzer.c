/* Records of the catalogue from hostile bytes: [u8 kind][the record's value]. What decodes is a
 * record that encodes to itself, and a form that passes its check is a definition within the limits
 * that encodes to itself, or to a form that does when its settings were spelled otherwise. */
#include <stdlib.h>

#include "system_schema/objects/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_form(const struct object_kind *kind, struct slice form) {
    const struct form_context at = {.keyspace = "ks", .name = "name"};
    struct err e = {0};
    struct arena a;
    struct buf out, again;
    if (form.n == 0 || form_check(kind, &at, form, &e)) return;
    arena_init(&a, 4096, 0);
    buf_init(&out, 0);
    buf_init(&again, 0);
    const void *definition = kind->decode(form, &at, &a, &e);
    if (!definition || definition_form(kind, &at, definition, &out, &e)) abort();
    bool respelled = kind->is_respelled && kind->is_respelled(definition);
    if (!respelled && !slice_eq(buf_slice(&out), form)) abort();
    if (respelled) definition = kind->decode(buf_slice(&out), &at, &a, &e);
    if (!definition || definition_form(kind, &at, definition, &again, &e) ||
        !slice_eq(buf_slice(&out), buf_slice(&again)))
        abort();
    buf_fini(&again);
    buf_fini(&out);
    arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct object_kind *const kinds[] = {&keyspace_kind, &table_kind, &type_kind};
    struct err e = {0};
    struct record r, back;
    struct buf out;
    uint8_t key[RECORD_KEY_SIZE];
    if (size < 1) return 0;
    const struct object_kind *kind = kinds[data[0] % ARRAY_LEN(kinds)];
    record_key(kind->tag, 17, key);
    if (record_decode(slice_of(key, sizeof key), slice_of(data + 1, size - 1), &r, &e)) return 0;
    buf_init(&out, 0);
    record_encode(&r, &out);
    if (record_decode(slice_of(key, sizeof key), buf_slice(&out), &back, &e) || !record_eq(&r, &back)) abort();
    buf_fini(&out);
    check_form(kind, r.form);
    check_form(kind, r.next);
    return 0;
}
