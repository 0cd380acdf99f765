/* Any text parses or is refused, as by the grammar alone. The first byte may ask for an allocation
 * to fail: then it is an error and nothing else. */
#include <stdlib.h>

#include "base/fault.h"
#include "cql/syntax/build.h"
#include "tests/unit/cql/same_tree.h"

/* s: what cql_parse made of the text, which told e. */
static void check_grammar(struct arena *a, struct slice text, const struct ast_stmt *s, const struct err *e) {
    struct err *other = calloc(1, sizeof(*other));
    if (!other) return;
    const struct ast_stmt *g = cqli_parse_by_grammar(a, text, true, other);
    bool told = g || !other->no_memory; /* the arena holds the first tree, too */
    bool same = s && g ? same_tree(s, g) : !s && !g && e->code == other->code && !strcmp(e->text, other->text);
    if (told && !same) abort();
    free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    /* a text never begins with a byte below a blank, so smaller ones are the Nth allocation */
    static const uint8_t faults = 0x20;
    struct arena a;
    struct err *e = calloc(1, sizeof(*e));
    if (!e) return 0;
    int64_t nth = size && data[0] && data[0] < faults && data[0] != '\n' && data[0] != '\t' && data[0] != '\r' ? data[0]
                                                                                                               : 0;
    if (nth) data++, size--;
    arena_init(&a, nth ? 64 : 4096, 1 << 22);
    fault_arm(FAULT_ALLOC, nth);
    const struct ast_stmt *s = cql_parse(&a, slice_of(data, size), true, e);
    fault_arm(FAULT_ALLOC, 0);
    if (!s && !e->set) abort();
    if (!nth && (s || !e->no_memory)) check_grammar(&a, slice_of(data, size), s, e);
    arena_fini(&a);
    free(e);
    return 0;
}
