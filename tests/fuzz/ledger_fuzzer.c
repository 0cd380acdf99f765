/* Records of the ledger's file: whatever they say, the book takes them or not, and what it took is the same after being written and taken again. */
#include <assert.h>
#include <stdlib.h>

#include "ledger/journal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take_records(struct book *b, const uint8_t *data, size_t size) {
    uint32_t latest = 0;
    while (size > 0) {
        size_t n = data[0] < size - 1 ? data[0] : size - 1;
        if (journal_take_record(b, slice_of(data + 1, n), &latest) < 0) abort();
        data += 1 + n;
        size -= 1 + n;
    }
}

static void check_same(const struct book *a, const struct book *b) {
    assert(a->tables.n == b->tables.n && memcmp(&a->dropped, &b->dropped, sizeof(a->dropped)) == 0);
    for (uint32_t i = 0; i < a->tables.n; i++) {
        const struct book_table *x = book_at(a, i), *y = book_at(b, i);
        assert(x->object == y->object && !strcmp(x->keyspace, y->keyspace) && !strcmp(x->name, y->name));
        assert(memcmp(&x->total, &y->total, sizeof(x->total)) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct book first = {0}, second = {0};
    struct buf whole;
    uint32_t latest = 0;
    take_records(&first, data, size);
    buf_init(&whole, 0);
    journal_put_whole(&whole, &first);
    assert(journal_take(&second, buf_slice(&whole), &latest) == (int64_t)whole.n);
    check_same(&first, &second);
    /* and as a file, torn or not */
    if (journal_take(&second, slice_of(data, size), &latest) < 0) abort();
    buf_fini(&whole);
    book_fini(&first);
    book_fini(&second);
    return 0;
}
