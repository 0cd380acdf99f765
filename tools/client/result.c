#include "tools/client/result.h"

enum {
    KIND_ROWS = 2,
    KIND_PREPARED = 4,
    GLOBAL_SPEC = 1,
    MORE_PAGES = 2,
    NO_METADATA = 4,
    METADATA_CHANGED = 8,
    COLUMNS_MAX = 65535
};

/* The ids of the [option]s that nest other options. */
enum {
    OPTION_CUSTOM = 0x0000,
    OPTION_LIST = 0x0020,
    OPTION_MAP = 0x0021,
    OPTION_SET = 0x0022,
    OPTION_UDT = 0x0030,
    OPTION_TUPLE = 0x0031
};

struct result_reader {
    struct rd in;
    uint8_t version;
    struct arena *arena;
    struct err *e;
};

static int damaged(struct result_reader *r) {
    return r->e->set ? -1 : err_set(r->e, ERR_PROTOCOL, "the server's answer cannot be read");
}

static const char *read_string(struct result_reader *r) {
    struct slice s = rd_bytes(&r->in, rd_u16(&r->in));
    const char *text = r->in.bad ? NULL : (const char *)arena_dup(r->arena, s).p;
    return text ? text : "";
}

/* ---- types ---- */

static const struct cql_type *read_type(struct result_reader *r, unsigned depth);

static const struct cql_type *read_args(struct result_reader *r, enum cql_type_id id, uint32_t n, unsigned depth) {
    const struct cql_type *args[CQL_TYPE_PARTS_MAX];
    for (uint32_t i = 0; i < n; i++)
        if (!(args[i] = read_type(r, depth + 1)) || !(args[i] = cql_type_freeze(r->arena, args[i]))) return NULL;
    return cql_type_new(r->arena, id, true, args, n, 0, r->e);
}

static const struct cql_type *read_user(struct result_reader *r, unsigned depth) {
    const char *keyspace = read_string(r), *name = read_string(r);
    uint32_t n = rd_u16(&r->in);
    if (r->in.bad || n > CQL_TYPE_PARTS_MAX) return NULL;
    const struct cql_type **fields = arena_alloc(r->arena, (n + 1) * sizeof(*fields));
    const char **names = arena_alloc(r->arena, (n + 1) * sizeof(*names));
    if (!fields || !names) return NULL;
    for (uint32_t i = 0; i < n; i++) {
        names[i] = read_string(r);
        if (!(fields[i] = read_type(r, depth + 1)) || !(fields[i] = cql_type_freeze(r->arena, fields[i]))) return NULL;
    }
    return cql_type_new_user(r->arena, keyspace, name, fields, names, n, r->e);
}

static const struct cql_type *read_type(struct result_reader *r, unsigned depth) {
    static const uint16_t scalars[CQL_TYPES] = {
#define TYPE(id, option_, ...) [CQL_##id] = option_,
#include "types/type.def"
#undef TYPE
    };
    uint16_t option = rd_u16(&r->in), n = 0;
    if (r->in.bad || depth > CQL_TYPE_DEPTH_MAX) return NULL;
    switch (option) {
    case OPTION_CUSTOM: return cql_type_by_class(r->arena, slice_str(read_string(r)), r->e);
    case OPTION_LIST: return read_args(r, CQL_LIST, 1, depth);
    case OPTION_SET: return read_args(r, CQL_SET, 1, depth);
    case OPTION_MAP: return read_args(r, CQL_MAP, 2, depth);
    case OPTION_UDT: return read_user(r, depth);
    case OPTION_TUPLE:
        n = rd_u16(&r->in);
        return n > CQL_TYPE_PARTS_MAX || r->in.bad ? NULL : read_args(r, CQL_TUPLE, n, depth);
    default: break;
    }
    for (int i = 0; i < CQL_LIST; i++)
        if (scalars[i] == option) return cql_type_scalar((enum cql_type_id)i);
    return NULL;
}

/* ---- columns ---- */

static int read_columns(struct result_reader *r, uint32_t flags, uint32_t n, struct client_columns *out) {
    const char *keyspace = NULL, *table = NULL;
    if (n > COLUMNS_MAX || r->in.bad) return damaged(r);
    *out = (struct client_columns){.n = n, .list = arena_alloc(r->arena, (n + 1) * sizeof(*out->list))};
    if (!out->list) return err_nomem(r->e);
    if (flags & GLOBAL_SPEC) keyspace = read_string(r), table = read_string(r);
    for (uint32_t i = 0; i < n; i++) {
        struct client_column *c = &out->list[i];
        c->keyspace = keyspace ? keyspace : read_string(r);
        c->table = table ? table : read_string(r);
        c->name = read_string(r);
        c->type = read_type(r, 0);
        if (!c->type || r->in.bad) return damaged(r);
    }
    return 0;
}

int client_rows_open(const struct wire_response *response, struct arena *a, struct client_rows *out, struct err *e) {
    struct result_reader r = {.in = rd_of(response->body), .version = response->version, .arena = a, .e = e};
    *out = (struct client_rows){0};
    if (response->opcode != NP_RESULT || rd_u32(&r.in) != KIND_ROWS)
        return err_set(e, ERR_PROTOCOL, "the answer has no rows");
    uint32_t flags = rd_u32(&r.in), n = rd_u32(&r.in);
    if (flags & MORE_PAGES) out->paging_state = rd_bytes(&r.in, rd_u32(&r.in));
    if (flags & METADATA_CHANGED) rd_bytes(&r.in, rd_u16(&r.in));
    if (flags & NO_METADATA) out->columns.n = n;
    else if (read_columns(&r, flags, n, &out->columns)) return -1;
    out->n = rd_u32(&r.in);
    out->at = r.in;
    out->values = arena_alloc(a, (n + 1) * sizeof(*out->values));
    return r.in.bad || n > COLUMNS_MAX ? damaged(&r) : out->values ? 0 : err_nomem(e);
}

bool client_rows_next(struct client_rows *r) {
    if (r->given >= r->n) return false;
    for (uint32_t i = 0; i < r->columns.n; i++) {
        int32_t n = (int32_t)rd_u32(&r->at);
        r->values[i] = n < 0 ? value_null() : value_of_slice(rd_bytes(&r->at, (size_t)n));
    }
    r->given++;
    return !r->at.bad;
}

int client_prepared_read(const struct wire_response *response, struct arena *a, struct client_prepared *out,
                         struct err *e) {
    struct result_reader r = {.in = rd_of(response->body), .version = response->version, .arena = a, .e = e};
    *out = (struct client_prepared){0};
    if (response->opcode != NP_RESULT || rd_u32(&r.in) != KIND_PREPARED)
        return err_set(e, ERR_PROTOCOL, "the answer to PREPARE is none");
    out->id = arena_dup(a, rd_bytes(&r.in, rd_u16(&r.in)));
    if (r.version >= 5) out->result_id = arena_dup(a, rd_bytes(&r.in, rd_u16(&r.in)));
    uint32_t flags = rd_u32(&r.in), n = rd_u32(&r.in);
    out->n_pk = r.version >= 4 ? rd_u32(&r.in) : 0;
    if (r.in.bad || out->n_pk > n || n > COLUMNS_MAX) return damaged(&r);
    out->pk = arena_alloc(a, (out->n_pk + 1) * sizeof(*out->pk));
    if (!out->pk) return err_nomem(e);
    for (uint32_t i = 0; i < out->n_pk; i++) out->pk[i] = rd_u16(&r.in);
    return read_columns(&r, flags, n, &out->binds);
}

/* ---- values ---- */

static uint32_t find(const struct client_rows *r, const char *column) {
    uint32_t i = 0;
    while (i < r->columns.n && strcmp(r->columns.list[i].name, column)) i++;
    return i;
}

struct value client_value(const struct client_rows *r, const char *column) {
    uint32_t i = find(r, column);
    return i < r->columns.n ? r->values[i] : value_null();
}

static int64_t integer_of(struct value v) {
    int64_t n = v.n > 0 && v.p[0] & 0x80 ? -1 : 0;
    for (int32_t i = 0; i < v.n && i < 8; i++) n = (int64_t)((uint64_t)n << 8 | v.p[i]);
    return n;
}

int64_t client_int(const struct client_rows *r, const char *column) { return integer_of(client_value(r, column)); }

double client_double(const struct client_rows *r, const char *column) {
    uint32_t i = find(r, column);
    if (i >= r->columns.n || r->values[i].n < 0) return 0;
    struct value v = r->values[i];
    enum cql_type_id id = r->columns.list[i].type->id;
    if (id == CQL_DOUBLE && v.n == 8) {
        uint64_t bits = load_u64(v.p);
        double d;
        memcpy(&d, &bits, sizeof(d));
        return d;
    }
    if (id == CQL_FLOAT && v.n == 4) {
        uint32_t bits = load_u32(v.p);
        float f;
        memcpy(&f, &bits, sizeof(f));
        return (double)f;
    }
    return (double)integer_of(v);
}

const char *client_text(const struct client_rows *r, struct arena *a, const char *column) {
    struct value v = client_value(r, column);
    const char *text = v.n > 0 ? (const char *)arena_dup(a, value_slice(v)).p : NULL;
    return text ? text : "";
}
