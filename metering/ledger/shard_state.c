/* A shard's heaviest partitions and statements as bytes, for the ledger's file: sums, without the
 * running seconds and minutes.
 *
 *   total load | n | (object, token u64, key length, key, load, error, sums)* | total load | n |
 *   (id u64, load, error, sums, rows read, rows returned, object, class and 16 * the guidance's class, text)*
 *
 * Numbers are uvarints where nothing else is said. */
#include <stdlib.h>

#include "metering/ledger/shard.h"

enum { KEY_MAX = sizeof(((struct shard_partition *)0)->key) };

static size_t stored_key(const struct shard_partition *p) { return p->key_n < KEY_MAX ? p->key_n : KEY_MAX; }

static uint32_t count_kept(const struct heavy *h) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->n_sets * HEAVY_WAYS; i++) n += heavy_at(h, i).load != 0;
    return n;
}

static void put_load(const struct heavy_item *item, const struct usage *u, struct buf *out) {
    buf_uvarint(out, item->load);
    buf_uvarint(out, item->error);
    usage_put(u, out);
}

void shard_put(const struct shard *s, struct buf *out) {
    buf_uvarint(out, s->partitions.total);
    buf_uvarint(out, count_kept(&s->partitions));
    for (uint32_t i = 0; i < SHARD_PARTITION_SETS * HEAVY_WAYS; i++) {
        struct heavy_item item = heavy_at(&s->partitions, i);
        const struct shard_partition *p = &s->partition_infos[i];
        if (!item.load) continue;
        buf_uvarint(out, p->object);
        buf_u64(out, (uint64_t)p->token);
        buf_uvarint(out, p->key_n);
        buf_put(out, p->key, stored_key(p));
        put_load(&item, &p->usage, out);
    }
    buf_uvarint(out, s->statements.total);
    buf_uvarint(out, count_kept(&s->statements));
    for (uint32_t i = 0; i < SHARD_STATEMENT_SETS * HEAVY_WAYS; i++) {
        struct heavy_item item = heavy_at(&s->statements, i);
        const struct shard_statement *st = &s->statement_infos[i];
        if (!item.load) continue;
        size_t n = st->text ? strlen(st->text) : 0;
        buf_u64(out, item.key);
        put_load(&item, &st->usage, out);
        buf_uvarint(out, st->rows_read);
        buf_uvarint(out, st->rows_returned);
        buf_uvarint(out, st->object);
        buf_u8(out, (uint8_t)(st->class | st->guidance << 4));
        buf_uvarint(out, n);
        buf_put(out, st->text, n);
    }
}

static uint64_t take_load(struct rd *in, uint64_t *error) {
    uint64_t load = rd_uvarint(in);
    *error = rd_uvarint(in);
    if (!load || *error > load) in->bad = true;
    return load;
}

static void take_partition(struct shard *s, struct rd *in) {
    struct shard_partition p = {.object = (uint32_t)rd_uvarint(in)};
    uint64_t error;
    bool fresh;
    p.token = (int64_t)rd_u64(in);
    p.key_n = (uint32_t)rd_uvarint(in);
    struct slice key = rd_bytes(in, stored_key(&p));
    uint64_t load = take_load(in, &error);
    struct usage_sums all = usage_take(in);
    if (in->bad) return;
    struct shard_partition *to =
        &s->partition_infos[heavy_put(&s->partitions, shard_partition_id(p.object, p.token), load, error, &fresh)];
    if (fresh) *to = p;
    if (fresh && key.n) memcpy(to->key, key.p, key.n);
    usage_sums_add(&to->usage.before, &all);
}

static void take_statement(struct shard *s, struct rd *in) {
    uint64_t error, id = rd_u64(in), load = take_load(in, &error);
    struct usage_sums all = usage_take(in);
    struct shard_statement st = {.rows_read = rd_uvarint(in), .rows_returned = 0};
    bool fresh;
    st.rows_returned = rd_uvarint(in);
    st.object = (uint32_t)rd_uvarint(in);
    uint8_t classes = rd_u8(in), class = classes & 15, guidance = classes >> 4;
    struct slice text = rd_bytes(in, rd_uvarint(in));
    if (class > QUERY_TABLE_SCAN || guidance > GUIDANCE_TABLE_SCAN || text.n > SHARD_TEXT) in->bad = true;
    if (in->bad) return;
    struct shard_statement *to = &s->statement_infos[heavy_put(&s->statements, id, load, error, &fresh)];
    if (fresh) {
        free(to->text);
        *to = (struct shard_statement){.object = st.object,
                                       .class = (enum query_class)class,
                                       .guidance = (enum guidance_class)guidance,
                                       .text = strndup((const char *)text.p, text.n)};
    }
    to->rows_read += st.rows_read;
    to->rows_returned += st.rows_returned;
    usage_sums_add(&to->usage.before, &all);
}

void shard_take(struct shard *s, struct slice bytes) {
    struct rd in = rd_of(bytes);
    s->partitions.total += rd_uvarint(&in);
    for (uint64_t n = rd_uvarint(&in); n && !in.bad; n--) take_partition(s, &in);
    s->statements.total += rd_uvarint(&in);
    for (uint64_t n = rd_uvarint(&in); n && !in.bad; n--) take_statement(s, &in);
}
