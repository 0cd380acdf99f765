/* Records that servers leave for each other in a pool, from hostile bytes: [u8 which][the record]. What a
 * decoder takes is encoded to a record of the same meaning, which is then encoded to itself. */
#include <assert.h>
#include <stdlib.h>

#include "access/role.h"
#include "engine/rados/batchlog.h"
#include "engine/rados/omap_key.h"
#include "engine/rados/pieces.h"
#include "engine/rados/shard.h"
#include "membership/member.h"
#include "metering/ledger/totals.h"
#include "metering/limits/division.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OBJECT = 16, NAME_MAX_SIZE = 200 };

/* Decodes a record and appends its encoding. -1: it is damaged. */
typedef int (*recode_fn)(struct slice in, struct arena *a, struct buf *out);

static int recode_key(struct slice in, struct arena *a, struct buf *out) {
    struct omap_operand_id id;
    struct buf record;
    (void)a;
    if (memchr(in.p, 0, in.n)) return -1; /* no key of an object has one */
    buf_init(&record, 0);
    int rc = omap_key_read(in, &record, &id);
    if (rc == 0) {
        omap_key_escape(out, buf_slice(&record));
        buf_u8(out, OMAP_KEY_END);
        omap_key_operand(out, &id);
        assert(slice_eq(buf_slice(out), in));
    }
    buf_fini(&record);
    return rc;
}

static int recode_names(struct slice in, struct arena *a, struct buf *out) {
    char name[NAME_MAX_SIZE] = {0}, again[PIECE_NAME];
    struct shard_id id;
    uint32_t table;
    uint64_t piece, number;
    (void)a;
    memcpy(name, in.p, in.n < sizeof(name) - 1 ? in.n : sizeof(name) - 1);
    if (shard_name_read(name, &id) == 0) shard_name(&id, again);
    else if (piece_name_read(name, &table, &piece, &number) == 0) piece_name(table, piece, number, again);
    else return -1;
    assert(strcmp(name, again) == 0);
    buf_put_str(out, again);
    return 0;
}

/* The head of an object: [u8 n][key][u8 n][value]... */
static int recode_head(struct slice in, struct arena *a, struct buf *out) {
    struct omap_pair items[16];
    struct omap_pairs pairs = {.items = items};
    struct shard_head head;
    struct rd r = rd_of(in);
    while (rd_left(&r) && pairs.n < ARRAY_LEN(items)) {
        struct slice key = rd_bytes(&r, rd_u8(&r)), value = rd_bytes(&r, rd_u8(&r));
        if (!r.bad) items[pairs.n++] = (struct omap_pair){.key = key, .value = value};
    }
    if (shard_head_read(&pairs, a, &head) < 0) return -1;
    struct shard_counter sum = shard_sum(&head);
    (void)sum;
    buf_put_slice(out, slice_of("\2\1s\1", 4));
    buf_u8(out, (uint8_t)head.state); /* perhaps none that a server knows */
    for (size_t i = 0; i < head.n_counters; i++) {
        buf_u8(out, 2 + OMAP_WRITER_DIGITS);
        shard_counter_key(out, head.counters[i].writer);
        buf_u8(out, 32);
        shard_counter_value(out, &head.counters[i]);
    }
    return 0;
}

static int recode_pieces(struct slice in, struct arena *a, struct buf *out) {
    struct pieces p;
    if (pieces_read(in, a, &p) < 0) return -1;
    assert(pieces_find(&p, slice_str("k")) <= p.n);
    if (in.n) pieces_write(out, &p);
    return 0;
}

static int recode_batch(struct slice in, struct arena *a, struct buf *out) {
    struct err e = {0};
    size_t n;
    (void)a;
    if (batchlog_check(in, &n, &e) < 0) return -1;
    buf_put_slice(out, in);
    return 0;
}

static int recode_member(struct slice in, struct arena *a, struct buf *out) {
    struct member m;
    (void)a;
    if (!member_decode(in, &m)) return -1;
    member_encode(&m, out);
    assert(member_same_but_beat(buf_slice(out), buf_slice(out)));
    return 0;
}

/* A table of another server's totals, from which that server's ledger may also recover. */
static int recode_totals(struct slice in, struct arena *a, struct buf *out) {
    struct store_totals all = {0};
    struct stats own = {0};
    (void)a;
    int rc = totals_put(&all, 1, OBJECT, in);
    assert(rc >= 0 && all.n == 1);
    struct table_stats *t = stats_find(&all.servers[0]->stats, OBJECT), *sum = totals_sum(&all, NULL, OBJECT);
    assert(sum && (rc || t));
    if (rc == 0) journal_put_totals(out, t);
    if (totals_recover(&own, in) < 0) abort();
    stats_table_free(sum);
    stats_fini(&own);
    totals_fini(&all);
    return rc ? -1 : 0;
}

static int recode_demands(struct slice in, struct arena *a, struct buf *out) {
    struct limit_demands d = {0};
    struct rd r = rd_of(in);
    (void)a;
    int rc = limit_demands_take(&d, &r);
    if (rc == 0) limit_demands_put(&d, out);
    free(d.items);
    return rc;
}

static int recode_role(struct slice in, struct arena *a, struct buf *out) {
    struct role r;
    struct err e = {0};
    if (role_decode("role", in, a, &r, &e)) {
        assert(e.text[0]);
        return -1;
    }
    role_encode(&r, out);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const recode_fn records[] = {recode_key,    recode_names, recode_head,    recode_pieces, recode_batch,
                                        recode_member, recode_totals, recode_demands, recode_role};
    struct arena a;
    struct buf once, twice;
    if (size < 1) return 0;
    recode_fn recode = records[data[0] % ARRAY_LEN(records)];
    arena_init(&a, 4096, 16 << 20);
    buf_init(&once, 0);
    buf_init(&twice, 0);
    if (recode(slice_of(data + 1, size - 1), &a, &once) == 0) {
        assert(recode(buf_slice(&once), &a, &twice) == 0);
        assert(slice_eq(buf_slice(&once), buf_slice(&twice)));
    }
    buf_fini(&once);
    buf_fini(&twice);
    arena_fini(&a);
    return 0;
}
