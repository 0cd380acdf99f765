/* Records of the ledger's file: whatever they say, the statistics takes them or not, and what it took is
 * the same after being written and taken again. */
#include <assert.h>
#include <stdlib.h>

#include "metering/ledger/journal.h"
#include "metering/ledger/usage.h"
#include "metering/ledger/shard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take_records(struct stats *b, const uint8_t *data, size_t size) {
    uint32_t latest = 0;
    while (size > 0) {
        size_t n = data[0] < size - 1 ? data[0] : size - 1;
        if (journal_take_record(b, slice_of(data + 1, n), &latest) < 0) abort();
        data += 1 + n;
        size -= 1 + n;
    }
}

static void check_blob(const struct stats_blob *a, const struct stats_blob *b) {
    assert(slice_eq(stats_blob_bytes(a), stats_blob_bytes(b)));
}

/* What blobs say is taken or not, and what was taken is the same after being put and taken again. */
static void check_blobs(const struct stats *b) {
    static struct roles roles, again;
    struct shard shard, copy;
    struct buf first, second;
    if (shard_init(&shard) || shard_init(&copy)) abort();
    buf_init(&first, 0);
    buf_init(&second, 0);
    for (int i = 0; i < STATS_SHARDS; i++) shard_take(&shard, stats_blob_bytes(&b->shards[i]));
    shard_put(&shard, &first);
    shard_take(&copy, buf_slice(&first));
    shard_put(&copy, &second);
    assert(slice_eq(buf_slice(&first), buf_slice(&second)));
    first.n = second.n = roles.n = again.n = 0;
    roles_take(&roles, stats_blob_bytes(&b->roles));
    roles_put(&roles, &first);
    roles_take(&again, buf_slice(&first));
    roles_put(&again, &second);
    assert(slice_eq(buf_slice(&first), buf_slice(&second)));
    buf_fini(&first);
    buf_fini(&second);
    shard_fini(&shard);
    shard_fini(&copy);
}

static void check_same(const struct stats *a, const struct stats *b) {
    assert(a->tables.n == b->tables.n && memcmp(&a->dropped, &b->dropped, sizeof(a->dropped)) == 0);
    for (uint32_t i = 0; i < a->tables.n; i++) {
        const struct table_stats *x = stats_at(a, i), *y = stats_at(b, i);
        assert(x->object == y->object && !strcmp(x->keyspace, y->keyspace) && !strcmp(x->name, y->name));
        assert(memcmp(&x->total, &y->total, sizeof(x->total)) == 0);
        check_blob(&x->limits, &y->limits);
    }
    assert(a->gone.n == b->gone.n);
    for (uint32_t i = 0; i < a->gone.n; i++)
        for (int m = 0; m < STATS_MINUTES; m++) {
            const struct stats_minute *x = stats_gone_at(a, i)->minutes[m], *y = stats_gone_at(b, i)->minutes[m];
            assert(!x == !y && (!x || (x->minute == y->minute && memcmp(&x->cell, &y->cell, sizeof(x->cell)) == 0)));
        }
    check_blob(&a->roles, &b->roles);
    for (int i = 0; i < STATS_SHARDS; i++) check_blob(&a->shards[i], &b->shards[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct stats first = {0}, second = {0};
    struct buf whole;
    uint32_t latest = 0;
    take_records(&first, data, size);
    buf_init(&whole, 0);
    journal_put_whole(&whole, &first);
    assert(journal_take(&second, buf_slice(&whole), &latest) == (int64_t)whole.n);
    check_same(&first, &second);
    check_blobs(&first);
    /* and as a file, torn or not */
    if (journal_take(&second, slice_of(data, size), &latest) < 0) abort();
    buf_fini(&whole);
    stats_fini(&first);
    stats_fini(&second);
    return 0;
}
