/* Type names of Cassandra's classes, as they stand in quotes. Any text is a type or is refused with
 * an error; what is a type prints as CQL, and the print is read as the same type. */
#include <stdlib.h>

#include "types/type.h"

static void check_print(struct arena *a, const struct cql_type *t) {
    struct buf once, twice;
    struct err e = {0};
    buf_init(&once, 0);
    buf_init(&twice, 0);
    cql_type_print_stored(t, &once);
    const struct cql_type *again = cql_type_parse(a, buf_slice(&once), NULL, cql_udt_by_name, NULL, &e);
    if (!again) abort();
    cql_type_print_stored(again, &twice);
    if (!slice_eq(buf_slice(&once), buf_slice(&twice))) abort();
    buf_fini(&once);
    buf_fini(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice text = slice_of(data, size);
    struct arena a;
    struct err e = {0};
    arena_init(&a, 4096, 1 << 20);
    const struct cql_type *t = cql_type_by_class(&a, text, &e);
    if (!t != e.set) abort();
    if (t) check_print(&a, t);
    (void)cql_class_is_reversed(text);
    struct buf class;
    buf_init(&class, 0);
    cql_class_print(text, &class);
    buf_fini(&class);
    arena_fini(&a);
    return 0;
}
