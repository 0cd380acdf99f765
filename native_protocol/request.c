#include "native_protocol/request.h"

#include <stdio.h>
#include <strings.h>

enum query_flag {
    QUERY_VALUES = 0x01,
    QUERY_SKIP_METADATA = 0x02,
    QUERY_PAGE_SIZE = 0x04,
    QUERY_PAGING_STATE = 0x08,
    QUERY_SERIAL = 0x10,
    QUERY_TIMESTAMP = 0x20,
    QUERY_NAMES = 0x40,
    QUERY_KEYSPACE = 0x80, /* v5, like the next */
    QUERY_NOW = 0x100,
};

struct decode {
    struct rd rd;
    uint8_t version;
    struct arena *arena;
    struct err *err;
};

static int truncated(struct decode *d) {
    return err_set(d->err, ERR_PROTOCOL, "Not enough bytes in the body of the message");
}

static int check(struct decode *d) { return d->rd.bad ? truncated(d) : 0; }

/* [string]; p is never NULL unless rd.bad */
static inline struct slice read_string(struct rd *r) { return rd_bytes(r, rd_u16(r)); }

/* Is the text the word, in any case? For options and events, as Cassandra reads them. */
static bool is_word(struct slice s, const char *word) {
    return s.n == strlen(word) && strncasecmp((const char *)s.p, word, s.n) == 0;
}

/* [bytes]: p NULL when null */
static struct slice read_bytes(struct rd *r) {
    int32_t n = (int32_t)rd_u32(r);
    return n < 0 ? (struct slice){0} : rd_bytes(r, (size_t)n);
}

static int read_query(struct decode *d, struct slice *out) {
    int32_t n = (int32_t)rd_u32(&d->rd);
    if (d->rd.bad || n < 0) return truncated(d);
    *out = rd_bytes(&d->rd, (size_t)n);
    if (check(d)) return -1;
    if (!cql_value_validate(cql_type_scalar(CQL_TEXT), *out, d->err)) return 0;
    err_clear(d->err);
    return err_set(d->err, ERR_PROTOCOL, "Cannot decode string as UTF8");
}

static int check_consistency(struct decode *d, uint16_t cl) {
    if (check(d)) return -1;
    if (cl > CL_LOCAL_ONE) return err_set(d->err, ERR_PROTOCOL, "Unknown code %u for a consistency level", cl);
    return 0;
}

static int read_values(struct decode *d, bool named, uint32_t *n_out, const struct value **values_out,
                       const struct slice **names_out) {
    struct rd rd = d->rd; /* a copy, which can stay in registers */
    uint32_t n = rd_u16(&rd);
    if (rd.bad || n > rd_left(&rd) / 4) return truncated(d);
    struct value *values = arena_alloc(d->arena, n * sizeof(*values) + 1);
    struct slice *names = named ? arena_alloc(d->arena, n * sizeof(*names) + 1) : NULL;
    if (!values || (named && !names)) return err_nomem(d->err);
    for (uint32_t i = 0; i < n; i++) {
        if (named) names[i] = read_string(&rd);
        /* [value]; in v3 it is [bytes], where every negative length is null */
        int32_t size = (int32_t)rd_u32(&rd);
        if (LIKELY(size >= 0)) {
            values[i] = value_of_slice(rd_bytes(&rd, (size_t)size));
        } else {
            values[i] = (struct value){.n = d->version >= 4 ? size : VALUE_NULL};
            if (values[i].n < VALUE_UNSET) return err_set(d->err, ERR_PROTOCOL, "Invalid ByteBuf length %d", size);
        }
        if (UNLIKELY(rd.bad)) return truncated(d);
    }
    d->rd = rd;
    *n_out = n;
    *values_out = values;
    if (named) *names_out = names;
    return 0;
}

/* Reads the common end of BATCH and <query_parameters>. */
static int read_tail(struct decode *d, uint32_t flags, struct cql_params *p) {
    if (flags & QUERY_SERIAL) {
        p->serial_consistency = rd_u16(&d->rd);
        if (check_consistency(d, p->serial_consistency)) return -1;
    }
    if (flags & QUERY_TIMESTAMP) {
        p->has_timestamp = true;
        p->timestamp = (int64_t)rd_u64(&d->rd);
        if (p->timestamp == INT64_MIN)
            return err_set(d->err, ERR_PROTOCOL, "Out of bound timestamp, must be in [%lld, %lld] (got %lld)",
                           (long long)INT64_MIN + 1, (long long)INT64_MAX, (long long)INT64_MIN);
    }
    if (d->version >= 5 && flags & QUERY_KEYSPACE) p->keyspace = read_string(&d->rd);
    if (d->version >= 5 && flags & QUERY_NOW) {
        p->has_now = true;
        p->now_seconds = (int32_t)rd_u32(&d->rd);
    }
    return check(d);
}

static uint32_t read_flags(struct decode *d) { return d->version >= 5 ? rd_u32(&d->rd) : rd_u8(&d->rd); }

static int read_params(struct decode *d, struct cql_params *p, struct np_query_options *o) {
    p->consistency = rd_u16(&d->rd);
    if (check_consistency(d, p->consistency)) return -1;
    uint32_t flags = read_flags(d);
    o->skip_metadata = flags & QUERY_SKIP_METADATA;
    if (flags & QUERY_VALUES && read_values(d, flags & QUERY_NAMES, &p->n_values, &p->values, &p->names)) return -1;
    if (flags & QUERY_PAGE_SIZE) {
        p->page_size = (int32_t)rd_u32(&d->rd);
        if (!d->rd.bad && p->page_size == 0) return err_set(d->err, ERR_PROTOCOL, "The page size cannot be 0");
    }
    if (flags & QUERY_PAGING_STATE) p->paging_state = read_bytes(&d->rd);
    return read_tail(d, flags, p);
}

static int decode_batch(struct decode *d, struct cql_request *r) {
    static const enum ast_batch_kind kinds[] = {BATCH_LOGGED, BATCH_UNLOGGED, BATCH_COUNTER};
    enum { ITEM_MIN = 5 };
    r->kind = REQUEST_BATCH;
    uint8_t type = rd_u8(&d->rd);
    uint32_t n = rd_u16(&d->rd);
    if (check(d)) return -1;
    if (type >= ARRAY_LEN(kinds)) return err_set(d->err, ERR_PROTOCOL, "Invalid BATCH message type %u", type);
    if (n > rd_left(&d->rd) / ITEM_MIN) return truncated(d);
    r->batch_kind = kinds[type];
    r->n_items = n;
    /* zeroed, because the capture reads all items even if decoding stops halfway */
    struct cql_batch_item *items = arena_zalloc(d->arena, n * sizeof(*items) + 1);
    if (!items) return err_nomem(d->err);
    r->items = items;
    for (struct cql_batch_item *item = items; item < items + n; item++) {
        uint8_t kind = rd_u8(&d->rd);
        if (check(d)) return -1;
        if (kind > 1)
            return err_set(d->err, ERR_PROTOCOL, "Invalid query kind in BATCH messages. Must be 0 or 1 but got %u",
                           kind);
        if (kind == 0 && read_query(d, &item->query)) return -1;
        if (kind == 1) item->prepared_id = read_string(&d->rd);
        if (check(d) || read_values(d, false, &item->n_values, &item->values, NULL)) return -1;
    }
    r->params.consistency = rd_u16(&d->rd);
    if (check_consistency(d, r->params.consistency)) return -1;
    return read_tail(d, read_flags(d), &r->params);
}

/* Returns the first fields of a trace context ("Trace Context", section 3.2: version, trace id, parent id and
 * flags, in lower case), or nothing if it is none. Further fields belong to later versions. */
static struct slice trace_context(struct slice value) {
    static const char form[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    enum { LENGTH = sizeof(form) - 1 };
    if (value.n < LENGTH || (value.n > LENGTH && value.p[LENGTH] != '-')) return (struct slice){0};
    for (unsigned i = 0; i < LENGTH; i++) {
        uint8_t c = value.p[i];
        bool is_hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        if (form[i] == '-' ? c != '-' : !is_hex) return (struct slice){0};
    }
    return slice_of(value.p, LENGTH);
}

int np_query_decode(const struct np_envelope *env, struct slice body, struct arena *a, struct cql_request *r,
                    struct np_query_options *o, struct err *e) {
    struct decode d = {.rd = rd_of(body), .version = env->version, .arena = a, .err = e};
    *o = (struct np_query_options){0};
    *r = (struct cql_request){.params.serial_consistency = CL_SERIAL};
    if (env->version >= 4 && env->flags & NP_FLAG_PAYLOAD) {
        /* a [bytes map] before the message */
        uint32_t n = rd_u16(&d.rd);
        for (uint32_t i = 0; i < n && !d.rd.bad; i++) {
            struct slice key = read_string(&d.rd);
            struct slice value = read_bytes(&d.rd);
            if (!key.p) continue;
            if (slice_is(key, "capacity")) o->wants_capacity = true;
            if (slice_is(key, "traceparent")) o->traceparent = trace_context(value);
        }
        if (check(&d)) return -1;
    }
    switch (env->opcode) {
    case NP_QUERY:
        r->kind = REQUEST_QUERY;
        return read_query(&d, &r->query) || read_params(&d, &r->params, o) ? -1 : 0;
    case NP_PREPARE:
        r->kind = REQUEST_PREPARE;
        if (read_query(&d, &r->query)) return -1;
        if (env->version >= 5 && rd_left(&d.rd)) {
            uint32_t flags = rd_u32(&d.rd);
            if (flags & 0x01) r->params.keyspace = read_string(&d.rd);
        }
        return check(&d);
    case NP_EXECUTE:
        r->kind = REQUEST_EXECUTE;
        r->prepared_id = read_string(&d.rd);
        if (env->version >= 5) r->params.result_metadata_id = read_string(&d.rd);
        return check(&d) || read_params(&d, &r->params, o) ? -1 : 0;
    case NP_BATCH: return decode_batch(&d, r);
    default: return err_set(e, ERR_PROTOCOL, "Unknown opcode %u", env->opcode);
    }
}

static int check_cql_version(struct slice s, struct err *e) {
    char text[32] = "", tail = 0;
    unsigned major, minor, patch;
    if (!s.p) return err_set(e, ERR_PROTOCOL, "Missing value CQL_VERSION in STARTUP message");
    if (s.n < sizeof(text)) memcpy(text, s.p, s.n);
    int n = sscanf(text, "%u.%u.%u%c", &major, &minor, &patch, &tail); /* "3.0.0", "3.0.0-beta" */
    if (n < 3 || (n == 4 && tail != '-' && tail != '+' && tail != '.'))
        return err_set(e, ERR_PROTOCOL, "Invalid version value: %.*s", SLICE_FMT(s));
    if (major < 3)
        return err_set(e, ERR_PROTOCOL,
                       "CQL version %.*s is not supported by the binary protocol (supported version are >= 3.0.0)",
                       SLICE_FMT(s));
    return 0;
}

int np_startup_decode(uint8_t version, struct slice body, struct np_startup *out, struct err *e) {
    struct decode d = {.rd = rd_of(body), .err = e};
    struct slice cql_version = {0}, compression = {0};
    *out = (struct np_startup){0};
    uint32_t n = rd_u16(&d.rd);
    for (uint32_t i = 0; i < n && !d.rd.bad; i++) {
        struct slice key = read_string(&d.rd), value = read_string(&d.rd);
        if (d.rd.bad) break;
        if (is_word(key, "CQL_VERSION")) cql_version = value;
        else if (is_word(key, "COMPRESSION")) compression = value;
        else if (is_word(key, "THROW_ON_OVERLOAD")) out->throw_on_overload = slice_is(value, "1");
        else if (is_word(key, "CAPACITY")) out->capacity_full = slice_is(value, "full");
        else if (is_word(key, "DRIVER_NAME")) out->driver_name = value;
        else if (is_word(key, "DRIVER_VERSION")) out->driver_version = value;
    }
    if (check(&d) || check_cql_version(cql_version, e)) return -1;
    if (!compression.n) return 0;
    if (np_compression_find(compression, &out->compression))
        return err_set(e, ERR_PROTOCOL, "Unknown compression algorithm: %.*s", SLICE_FMT(compression));
    if (version >= 5 && out->compression != NP_COMPRESS_LZ4)
        return err_set(e, ERR_PROTOCOL, "Compression algorithm %.*s is not supported by protocol version 5",
                       SLICE_FMT(compression));
    return 0;
}

int np_register_decode(struct slice body, unsigned *events, struct err *e) {
    struct decode d = {.rd = rd_of(body), .err = e};
    uint32_t n = rd_u16(&d.rd);
    *events = 0;
    for (uint32_t i = 0; i < n && !d.rd.bad; i++) {
        struct slice name = read_string(&d.rd);
        if (d.rd.bad) break;
        if (is_word(name, "TOPOLOGY_CHANGE")) *events |= NP_EVENT_TOPOLOGY;
        else if (is_word(name, "STATUS_CHANGE")) *events |= NP_EVENT_STATUS;
        else if (is_word(name, "SCHEMA_CHANGE")) *events |= NP_EVENT_SCHEMA;
        else return err_set(e, ERR_PROTOCOL, "Invalid value '%.*s' for Type", SLICE_FMT(name));
    }
    return check(&d);
}

int np_auth_decode(struct slice body, struct slice *token, struct err *e) {
    struct decode d = {.rd = rd_of(body), .err = e};
    *token = read_bytes(&d.rd);
    return check(&d);
}
