#include "native_protocol/metadata.h"

#include "native_protocol/frame.h"

static bool same(const char *a, const char *b) { return a == b || !strcmp(a, b); }

uint32_t np_metadata_flags(const struct result_meta *m) {
    if (!m->n) return 0;
    for (uint32_t i = 1; i < m->n; i++)
        if (!same(m->columns[i].keyspace, m->columns[0].keyspace) || !same(m->columns[i].table, m->columns[0].table))
            return 0;
    return NP_META_GLOBAL;
}

void np_put_columns(struct buf *out, uint8_t version, const struct result_meta *m) {
    bool global = np_metadata_flags(m) & NP_META_GLOBAL;
    if (global) {
        np_put_string(out, m->columns[0].keyspace);
        np_put_string(out, m->columns[0].table);
    }
    for (uint32_t i = 0; i < m->n; i++) {
        const struct result_column *c = &m->columns[i];
        if (!global) {
            np_put_string(out, c->keyspace);
            np_put_string(out, c->table);
        }
        np_put_string(out, c->name);
        cql_type_write_option(c->type, version, out);
    }
}

void np_put_bind_metadata(struct buf *out, uint8_t version, const struct prepared_info *p) {
    buf_u32(out, np_metadata_flags(&p->binds));
    buf_u32(out, p->binds.n);
    if (version >= 4) {
        buf_u32(out, p->n_pk);
        for (uint32_t i = 0; i < p->n_pk; i++) buf_u16(out, p->pk_indexes[i]);
    }
    np_put_columns(out, version, &p->binds);
}

void np_put_result_metadata(struct buf *out, uint8_t version, const struct result_meta *m) {
    buf_u32(out, m->n ? np_metadata_flags(m) : NP_META_NO_METADATA);
    buf_u32(out, m->n);
    np_put_columns(out, version, m);
}
