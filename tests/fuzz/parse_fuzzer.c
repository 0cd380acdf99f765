/* Any text parses or is refused, as by the grammar alone; what parses prints, and the print parses
 * to the same print. The first byte may ask for an allocation to fail: then it is an error and
 * nothing else. */
#include <stdlib.h>

#include "base/fault.h"
#include "cql/syntax/build.h"

/* s: what cql_parse made of the text, which told e. */
static void check_grammar(struct arena *a, struct slice text, const struct ast_stmt *s, const struct err *e) {
    struct err *other = calloc(1, sizeof(*other));
    if (!other) return;
    const struct ast_stmt *g = cqli_parse_by_grammar(a, text, other);
    struct buf one, two;
    buf_init(&one, 0);
    buf_init(&two, 0);
    if (s) ast_print(s, &one);
    if (g) ast_print(g, &two);
    bool told = g || !other->no_memory; /* the arena holds the first tree, too */
    if (told && (!s != !g || !slice_eq(buf_slice(&one), buf_slice(&two)) ||
                 (!s && (e->code != other->code || strcmp(e->text, other->text)))))
        abort();
    buf_fini(&one);
    buf_fini(&two);
    free(other);
}

static void check_print(struct arena *a, const struct ast_stmt *s, struct err *e) {
    struct buf once, twice;
    buf_init(&once, 0);
    buf_init(&twice, 0);
    ast_print(s, &once);
    const struct ast_stmt *again = cql_parse(a, buf_slice(&once), e);
    if (!again) abort();
    ast_print(again, &twice);
    if (!slice_eq(buf_slice(&once), buf_slice(&twice))) abort();
    buf_fini(&once);
    buf_fini(&twice);
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
    const struct ast_stmt *s = cql_parse(&a, slice_of(data, size), e);
    fault_arm(FAULT_ALLOC, 0);
    if (!s && !e->set) abort();
    if (!nth && (s || !e->no_memory)) check_grammar(&a, slice_of(data, size), s, e);
    if (s) check_print(&a, s, e);
    arena_fini(&a);
    free(e);
    return 0;
}
