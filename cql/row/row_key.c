#include "cql/row/row_key.h"

#include "base/murmur3.h"

enum { KEY_MAX = 65535 };

static int check_component(const struct schema_column *c, struct value v, struct err *e) {
    if (value_is_unset(v)) return err_invalid(e, "Invalid unset value for column %s", c->name);
    if (value_is_null(v)) return err_invalid(e, "Invalid null value in condition for column %s", c->name);
    return 0;
}

static int too_long(size_t bytes, struct err *e) {
    return err_invalid(e, "Key length of %zu is longer than maximum of %d", bytes, KEY_MAX);
}

int row_key_check(const struct row_key *key, struct err *e) {
    return key->bytes > KEY_MAX ? too_long(key->bytes, e) : 0;
}

int row_key_partition(const struct schema_table *t, const struct value *values, struct arena *a, struct eng_part *out,
                      struct err *e) {
    size_t size = 0, values_size = 0;
    for (uint32_t i = 0; i < t->n_partition_key; i++) {
        const struct schema_column *c = schema_partition_key(t, i);
        if (check_component(c, values[i], e)) return -1;
        /* A literal of bytes may be none of its class: of a partition key it is to be one. */
        if (cql_type_is_custom(c->type) && cql_value_validate(c->type, value_slice(values[i]), e)) return -1;
        size += (size_t)values[i].n + (t->n_partition_key > 1 ? 3 : 0);
        values_size += (size_t)values[i].n;
    }
    if (size == 0) return err_invalid(e, "Key may not be empty");
    if (values_size > KEY_MAX) return too_long(values_size, e); /* what Cassandra counts */
    if (size > KEY_MAX) return too_long(size, e);
    out->table = t->storage;
    if (t->n_partition_key == 1) {
        out->key = value_slice(values[0]);
    } else {
        uint8_t *p = arena_alloc(a, size);
        if (!p) return err_nomem(e);
        out->key = slice_of(p, size);
        for (uint32_t i = 0; i < t->n_partition_key; i++) { /* [u16 length][value][0] each */
            store_u16(p, (uint16_t)values[i].n);
            if (values[i].n) memcpy(p + 2, values[i].p, (size_t)values[i].n);
            p += 2 + values[i].n;
            *p++ = 0;
        }
    }
    out->token = murmur3_token(out->key);
    return 0;
}

static int keep(struct arena *a, struct buf *b, struct slice *out, struct err *e) {
    int rc = -1;
    if (!buf_failed(b)) *out = arena_dup(a, buf_slice(b));
    if (buf_failed(b) || !out->p) err_nomem(e);
    else rc = 0;
    buf_fini(b);
    return rc;
}

static int make_image(const struct value *values, uint32_t n, struct arena *a, struct row_key *out, struct err *e) {
    struct buf b;
    buf_init(&b, 0);
    for (uint32_t i = 0; i < n; i++) cql_elem_put(values[i], &b);
    return keep(a, &b, &out->image, e);
}

/* Keys are short: a buffer on the stack takes nearly all of them, and fails (rather than grows) on the others. */
enum { KEY_ROOM = 256, KEY_SPARE = 64 };
static int encode_key(const struct schema_table *t, const struct value *values, uint32_t n, struct buf *b, bool *exact,
                      struct err *e) {
    for (uint32_t i = 0; i < n; i++) {
        const struct schema_column *c = schema_clustering(t, i);
        if (cql_key_encode(c->type, c->desc, value_slice(values[i]), b, exact, e) && !buf_failed(b)) return -1;
    }
    return 0;
}

int row_key_clustering(const struct schema_table *t, const struct value *values, uint32_t n, struct arena *a,
                       struct row_key *out, struct err *e) {
    *out = (struct row_key){.ck = slice_of("", 0)};
    if (n == 0) return 0;
    size_t total = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (check_component(schema_clustering(t, i), values[i], e)) return -1;
        total += (size_t)values[i].n;
    }
    out->bytes = total;
    bool exact = true;
    uint8_t room[KEY_ROOM];
    struct buf b = {.p = room, .cap = KEY_ROOM, .limit = KEY_ROOM};
    if (total < KEY_ROOM / 4) {
        if (encode_key(t, values, n, &b, &exact, e)) return -1;
        if (!buf_failed(&b)) {
            out->ck = arena_dup(a, buf_slice(&b));
            if (!out->ck.p) return err_nomem(e);
            return exact ? 0 : make_image(values, n, a, out, e);
        }
    }
    err_clear(e); /* too long for the stack is no error */
    buf_init(&b, 0);
    exact = true;
    if (encode_key(t, values, n, &b, &exact, e)) {
        buf_fini(&b);
        return -1;
    }
    if (keep(a, &b, &out->ck, e)) return -1;
    return exact ? 0 : make_image(values, n, a, out, e);
}

static int damaged(struct err *e) { return err_set(e, ERR_SERVER, "A stored key is damaged"); }

int row_key_split(const struct schema_table *t, struct slice key, struct value *values, struct err *e) {
    if (t->n_partition_key == 1) {
        values[0] = value_of_slice(key);
        return 0;
    }
    struct rd r = rd_of(key);
    for (uint32_t i = 0; i < t->n_partition_key; i++) {
        struct slice s = rd_bytes(&r, rd_u16(&r));
        rd_u8(&r);
        if (r.bad) return damaged(e);
        values[i] = value_of_slice(s);
    }
    return 0;
}

/* Sizes go to values, bytes to b. */
static int decode_key(const struct schema_table *t, struct slice ck, struct buf *b, struct value *values) {
    struct rd r = rd_of(ck);
    for (uint32_t i = 0; i < t->n_clustering; i++) {
        const struct schema_column *c = schema_clustering(t, i);
        size_t at = b->n;
        if (cql_key_decode(c->type, c->desc, &r, b) || buf_failed(b)) return -1;
        values[i] = value_of(NULL, b->n - at);
    }
    return 0;
}

int row_key_decode(const struct schema_table *t, struct slice ck, struct slice image, struct arena *a,
                   struct value *values, struct err *e) {
    if (t->n_clustering == 0) return 0;
    if (image.p) {
        struct rd r = rd_of(image);
        for (uint32_t i = 0; i < t->n_clustering; i++) {
            struct slice s = rd_bytes(&r, rd_u32(&r));
            if (r.bad) return damaged(e);
            values[i] = value_of_slice(s);
        }
        return 0;
    }
    /* Into the arena where it stays; few types are longer than their key form. */
    size_t room = ck.n + KEY_SPARE;
    struct buf b = {.p = arena_alloc(a, room), .cap = room, .limit = room};
    struct slice all = {.p = b.p};
    if (!b.p) return err_nomem(e);
    if (decode_key(t, ck, &b, values)) {
        if (!buf_failed(&b)) return damaged(e);
        buf_init(&b, 0);
        if (decode_key(t, ck, &b, values)) {
            buf_fini(&b);
            return damaged(e);
        }
        if (keep(a, &b, &all, e)) return -1;
    }
    for (uint32_t i = 0; i < t->n_clustering; all.p += values[i].n, i++) values[i].p = all.p;
    return 0;
}
