#include "native_protocol/response.h"

#include <assert.h>

#include "native_protocol/frame.h"

/* A [bytes map] with one entry: the number of entries, the key, and as its value a double, which is
 * filled in at the end. */
#define CHARGE_KEY "RequestCharge"
static const char charge_map[] = "\0\1" "\0\15" CHARGE_KEY "\0\0\0\10" "\0\0\0\0\0\0\0\0";
enum { CHARGE_SLOT = sizeof(charge_map) - 1 };
_Static_assert(sizeof(CHARGE_KEY) - 1 == 13, "its length is written into the map");

void np_reply_init(struct np_reply *r, struct buf *out, uint8_t version, int16_t stream, bool with_charge) {
    *r = (struct np_reply){.version = version, .stream = stream, .has_charge = with_charge && version >= 4};
    np_reply_place(r, out);
}

void np_reply_place(struct np_reply *r, struct buf *out) {
    assert(!r->is_open);
    r->out = out;
    r->start = r->body = out->n;
}

void np_reply_open(struct np_reply *r, enum np_opcode opcode) {
    if (r->is_open) return;
    size_t front = NP_HEADER + (r->has_charge ? CHARGE_SLOT : 0);
    uint8_t *p = buf_reserve(r->out, front);
    if (!p) return;
    np_envelope_put(p, r->version, r->has_charge ? NP_FLAG_PAYLOAD : 0, r->stream, opcode);
    if (r->has_charge) memcpy(p + NP_HEADER, charge_map, CHARGE_SLOT);
    buf_advance(r->out, front);
    r->body = r->out->n;
    r->is_open = true;
}

void np_reply_begin(struct np_reply *r, struct buf *out, uint8_t version, int16_t stream, enum np_opcode opcode,
                    bool with_charge) {
    np_reply_init(r, out, version, stream, with_charge);
    np_reply_open(r, opcode);
}

void np_reply_drop(struct np_reply *r) {
    if (LIKELY(!r->more.n && !r->tail.p && !r->charged)) return;
    np_blocks_fini(&r->more);
    buf_fini(&r->tail);
    if (r->making > NP_SHARE_OWN) npi_budget_end_turn(r->share->budget, r);
    if (r->charged) {
        npi_share_made(r->share, r->making);
        npi_share_sub(r->share, r->charged);
    }
    r->charged = r->making = 0;
}

void np_reply_move(struct np_reply *to, struct np_reply *from) {
    *to = (struct np_reply){.more = from->more, .share = from->share, .charged = from->charged, .making = from->making};
    from->more = (struct np_blocks){0};
    from->charged = from->making = 0;
}

void np_reply_made(struct np_reply *r) {
    if (!r->share) return;
    if (r->making > NP_SHARE_OWN) npi_budget_end_turn(r->share->budget, r);
    npi_share_made(r->share, r->making);
    r->making = 0;
    if (r->out->cap < NP_SHARE_SMALL) return;
    npi_share_add(r->share, r->out->cap);
    r->charged += r->out->cap;
}

int np_reply_flatten(struct np_reply *r) {
    struct buf b;
    if (!buf_reserve(r->out, r->more.n)) return -1;
    while (np_blocks_pop(&r->more, &b)) {
        buf_put_slice(r->out, buf_slice(&b));
        buf_fini(&b);
    }
    return 0;
}

void np_reply_cancel(struct np_reply *r) {
    r->out->n = r->start;
    r->out->failed = false;
    r->is_open = false;
    np_reply_drop(r);
}

void np_reply_restart(struct np_reply *r) {
    r->out->n = r->body;
    r->out->failed = false;
    np_reply_drop(r);
}

int np_err_no_room(struct err *e) {
    return err_set(e, ERR_OVERLOADED, "The server holds too many results that wait to be read; ask for smaller pages");
}

struct buf *np_reply_room(struct np_reply *r, size_t n, struct err *e) {
    if (LIKELY(!r->tail.p && r->out->n - r->start + n <= NP_BLOCK - NP_END_ROOM)) return r->out;
    if (r->tail.p && r->tail.cap - r->tail.n >= n) return &r->tail;
    /* a new block, which is charged before it is allocated */
    size_t cap = NP_BLOCK;
    while (cap < n) cap *= 2; /* the capacity of a buffer of n bytes */
    if (np_blocks_push(&r->more, &r->tail)) return err_null(err_nomem(e));
    if (r->share) {
        enum np_may may = npi_share_make(r->share, r, r->charged, cap);
        r->no_room = may == NP_MAY_WAIT;
        if (may != NP_MAY_GO_ON) return err_null(np_err_no_room(e));
        r->charged += cap;
        r->making += cap;
    }
    buf_init(&r->tail, 0);
    if (buf_reserve(&r->tail, cap)) return &r->tail;
    return err_null(err_nomem(e));
}

/* Replaces the bytes [at, at + old) by what; the bytes behind them move. */
static void replace(struct buf *out, size_t at, size_t old, struct slice what) {
    size_t tail = out->n - at - old;
    if (what.n > old && !buf_reserve(out, what.n - old)) return;
    memmove(out->p + at + what.n, out->p + at + old, tail);
    memcpy(out->p + at, what.p, what.n);
    out->n = at + what.n + tail;
}

static bool warns(const struct np_reply *r, const struct np_reply_extras *x) {
    return x->n_warnings && r->version >= 4;
}

static void put_payload(struct buf *b, const char *key, struct slice value) {
    if (!value.p) return;
    np_put_string(b, key);
    buf_u32(b, (uint32_t)value.n);
    buf_put_slice(b, value);
}

/* A string in which C0 80 is a NUL, as in an error's text (base/err.h). */
static void put_text(struct buf *out, const char *s) {
    size_t start = out->n, kept = start + 2;
    np_put_string(out, s);
    if (buf_failed(out)) return;
    for (size_t i = kept; i < out->n; i++, kept++) {
        bool nul = out->p[i] == 0xC0 && i + 1 < out->n && out->p[i + 1] == 0x80;
        out->p[kept] = nul ? 0 : out->p[i];
        i += nul;
    }
    store_u16(out->p + start, (uint16_t)(kept - start - 2));
    out->n = kept;
}

/* [tracing id][warnings] go before the payload. */
static void fill_front(struct np_reply *r, const struct np_reply_extras *x) {
    bool warn = warns(r, x);
    if (!x->tracing_id && !warn) return;
    struct buf b;
    buf_init(&b, 0);
    uint8_t flags = 0;
    if (x->tracing_id) {
        flags |= NP_FLAG_TRACING;
        buf_put(&b, x->tracing_id, 16);
    }
    if (warn) {
        flags |= NP_FLAG_WARNING;
        uint32_t n = x->n_warnings < UINT16_MAX ? x->n_warnings : UINT16_MAX;
        buf_u16(&b, (uint16_t)n);
        for (uint32_t i = 0; i < n; i++) put_text(&b, x->warnings[i]);
    }
    replace(r->out, r->start + NP_HEADER, 0, buf_slice(&b));
    r->out->p[r->start + 1] |= flags;
    r->out->failed |= b.failed;
    buf_fini(&b);
}

/* Every body is compressed when the client requested compression, however small, as Cassandra does.
 * A body is compressed as a whole, so it is in memory twice for a moment. A body above FLATTEN_MAX
 * is sent uncompressed, as the specification allows for each envelope (v4, section 2.2). */
static void compress(struct np_reply *r, const struct np_reply_extras *x) {
    enum { FLATTEN_MAX = 4 << 20 };
    size_t at = r->start + NP_HEADER;
    if (x->compression == NP_COMPRESS_NONE) return;
    if (r->more.n > FLATTEN_MAX || (r->more.n && np_reply_flatten(r))) return;
    buf_clear(x->scratch, 1 << 17);
    if (!np_body_compress(x->compression, slice_of(r->out->p + at, r->out->n - at), x->scratch)) return;
    r->out->n = at;
    buf_put_slice(r->out, buf_slice(x->scratch));
    r->out->p[r->start + 1] |= NP_FLAG_COMPRESSED;
}

static void fill_extras(struct np_reply *r, const struct np_reply_extras *x) {
    bool payload = r->has_charge && (x->requested || !warns(r, x));
    if (payload && (x->capacity.p || x->throttle.p)) { /* entries behind the charge */
        uint16_t n = (uint16_t)(1 + (x->capacity.p != NULL) + (x->throttle.p != NULL));
        struct buf b;
        buf_init(&b, 0);
        put_payload(&b, "capacity", x->capacity);
        put_payload(&b, "throttle", x->throttle);
        store_u16(r->out->p + r->start + NP_HEADER, n);
        replace(r->out, r->start + NP_HEADER + CHARGE_SLOT, 0, buf_slice(&b));
        r->out->failed |= b.failed;
        buf_fini(&b);
    } else if (r->has_charge && !payload) {
        /* Java's native-protocol up to 1.5.1 (driver 4.19.0) reads the payload before the warnings
         * and then loses the connection. Cassandra sends a payload only on request, so no driver of
         * that time received both. */
        replace(r->out, r->start + NP_HEADER, CHARGE_SLOT, slice_of((const uint8_t *)"", 0));
        r->out->p[r->start + 1] &= (uint8_t)~NP_FLAG_PAYLOAD;
    }
    if (!buf_failed(r->out)) fill_front(r, x);
    if (!buf_failed(r->out)) compress(r, x);
}

int np_reply_end(struct np_reply *r, double charge, const struct np_reply_extras *x) {
    if (buf_failed(r->out) || (r->tail.p && np_blocks_push(&r->more, &r->tail))) return -1;
    if (r->has_charge) {
        uint64_t bits;
        memcpy(&bits, &charge, 8);
        store_u64(r->out->p + r->start + NP_HEADER + CHARGE_SLOT - 8, bits);
    }
    if (UNLIKELY(x != NULL)) fill_extras(r, x);
    np_envelope_end(r->out, r->start, r->more.n);
    return buf_failed(r->out) ? -1 : 0;
}

/* ---- errors ---- */

/* Maps the code to one that the version has (v4 added the failures, v5 the last two). */
static enum err_code code_for(uint8_t version, const struct err *e) {
    if (version < 5 && e->code == ERR_CAS_WRITE_UNKNOWN) return ERR_WRITE_TIMEOUT;
    if (version < 5 && e->code == ERR_CDC_WRITE_FAILURE) return ERR_INVALID;
    if (version >= 4) return e->code;
    switch (e->code) {
    case ERR_READ_FAILURE: return ERR_READ_TIMEOUT;
    case ERR_WRITE_FAILURE: return ERR_WRITE_TIMEOUT;
    case ERR_FUNCTION_FAILURE: return ERR_INVALID;
    default: return e->code;
    }
}

static void put_answers(struct buf *out, const struct err_detail *d) {
    buf_u16(out, d->consistency);
    buf_u32(out, (uint32_t)d->received);
    buf_u32(out, (uint32_t)d->required);
}

/* v4: the number of failures; v5: a reason per endpoint, of which this node is the only one. */
static void put_failures(struct buf *out, uint8_t version, const struct err_detail *d) {
    static const uint8_t endpoint[] = {4, 127, 0, 0, 1};
    uint32_t n = (uint32_t)d->failures;
    if (version < 5) {
        buf_u32(out, n);
        return;
    }
    buf_u32(out, n ? 1 : 0);
    if (!n) return;
    buf_put(out, endpoint, sizeof(endpoint));
    buf_u16(out, 0);
}

static const char *write_type(const struct err *e, enum err_code code) {
    if (e->code == ERR_CAS_WRITE_UNKNOWN && code == ERR_WRITE_TIMEOUT) return "CAS";
    return e->detail.write_type[0] ? e->detail.write_type : "SIMPLE";
}

void np_put_error(struct buf *out, uint8_t version, const struct err *e) {
    enum err_code code = code_for(version, e);
    const struct err_detail *d = &e->detail;
    const char *type = write_type(e, code);
    buf_u32(out, code);
    put_text(out, e->text);
    switch (code) {
    case ERR_UNAVAILABLE:
        buf_u16(out, d->consistency);
        buf_u32(out, (uint32_t)d->required);
        buf_u32(out, (uint32_t)d->received);
        break;
    case ERR_WRITE_TIMEOUT:
        put_answers(out, d);
        np_put_string(out, type);
        if (version >= 5 && !strcmp(type, "CAS")) buf_u16(out, d->contentions);
        break;
    case ERR_READ_TIMEOUT:
        put_answers(out, d);
        buf_u8(out, d->data_present);
        break;
    case ERR_READ_FAILURE:
        put_answers(out, d);
        put_failures(out, version, d);
        buf_u8(out, d->data_present);
        break;
    case ERR_WRITE_FAILURE:
        put_answers(out, d);
        put_failures(out, version, d);
        np_put_string(out, type);
        break;
    case ERR_FUNCTION_FAILURE:
        np_put_string(out, d->keyspace);
        np_put_string(out, d->name);
        buf_u16(out, 0); /* argument types */
        break;
    case ERR_CAS_WRITE_UNKNOWN: put_answers(out, d); break;
    case ERR_ALREADY_EXISTS:
        np_put_string(out, d->keyspace);
        np_put_string(out, d->name);
        break;
    case ERR_UNPREPARED:
        buf_u16(out, sizeof(d->prepared_id));
        buf_put(out, d->prepared_id, sizeof(d->prepared_id));
        break;
    default: break;
    }
}

/* ---- the smaller messages ---- */

void np_put_supported(struct buf *out, uint8_t version, uint8_t newest, const char *cql_version) {
    static const char *const compression[] = {"snappy", "lz4"};
    static const char *const versions[] = {"3/v3", "4/v4", "5/v5", "6/v6-beta"};
    uint16_t n = version == NP_VERSION_BETA ? ARRAY_LEN(versions) : (uint16_t)(newest - NP_VERSION_MIN + 1);
    buf_u16(out, 3);
    np_put_string(out, "PROTOCOL_VERSIONS");
    buf_u16(out, n);
    for (size_t i = 0; i < n; i++) np_put_string(out, versions[i]);
    np_put_string(out, "COMPRESSION");
    buf_u16(out, ARRAY_LEN(compression));
    for (size_t i = 0; i < ARRAY_LEN(compression); i++) np_put_string(out, compression[i]);
    np_put_string(out, "CQL_VERSION");
    buf_u16(out, 1);
    np_put_string(out, cql_version);
}

void np_put_void(struct buf *out) { buf_u32(out, RESULT_VOID); }

void np_put_set_keyspace(struct buf *out, const char *keyspace) {
    buf_u32(out, RESULT_SET_KEYSPACE);
    np_put_string(out, keyspace);
}

static void put_change(struct buf *out, uint8_t version, const struct schema_change *c) {
    static const char *const kinds[] = {
        [CHANGE_CREATED] = "CREATED", [CHANGE_UPDATED] = "UPDATED", [CHANGE_DROPPED] = "DROPPED"};
    static const char *const targets[] = {[TARGET_KEYSPACE] = "KEYSPACE",
                                          [TARGET_TABLE] = "TABLE",
                                          [TARGET_TYPE] = "TYPE",
                                          [TARGET_FUNCTION] = "FUNCTION",
                                          [TARGET_AGGREGATE] = "AGGREGATE"};
    bool routine = c->target == TARGET_FUNCTION || c->target == TARGET_AGGREGATE;
    /* v3 has no functions: reported as a change of their keyspace */
    enum schema_change_target target = routine && version < 4 ? TARGET_KEYSPACE : c->target;
    np_put_string(out, kinds[routine && version < 4 ? CHANGE_UPDATED : c->kind]);
    np_put_string(out, targets[target]);
    np_put_string(out, c->keyspace);
    if (target != TARGET_KEYSPACE) np_put_string(out, c->name);
    if (target == TARGET_FUNCTION || target == TARGET_AGGREGATE) buf_u16(out, 0); /* argument types */
}

void np_put_schema_change(struct buf *out, uint8_t version, const struct schema_change *c) {
    buf_u32(out, RESULT_SCHEMA_CHANGE);
    put_change(out, version, c);
}

void np_event_schema(struct buf *out, uint8_t version, const struct schema_change *c) {
    size_t start = np_envelope_begin(out, version, -1, NP_EVENT);
    np_put_string(out, "SCHEMA_CHANGE");
    put_change(out, version, c);
    np_envelope_end(out, start, 0);
}

void np_event_member(struct buf *out, uint8_t version, enum member_event event, const struct ip_address *address,
                     uint16_t port) {
    static const char *const words[] = {[MEMBER_NEW] = "NEW_NODE",
                                        [MEMBER_UP] = "UP",
                                        [MEMBER_DOWN] = "DOWN",
                                        [MEMBER_REMOVED] = "REMOVED_NODE"};
    size_t start = np_envelope_begin(out, version, -1, NP_EVENT);
    np_put_string(out, event == MEMBER_NEW || event == MEMBER_REMOVED ? "TOPOLOGY_CHANGE" : "STATUS_CHANGE");
    np_put_string(out, words[event]);
    buf_u8(out, address->n);
    buf_put(out, address->bytes, address->n);
    buf_u32(out, port);
    np_envelope_end(out, start, 0);
}

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

void np_put_prepared(struct buf *out, uint8_t version, const struct prepared_info *p) {
    buf_u32(out, RESULT_PREPARED);
    buf_u16(out, sizeof(p->id));
    buf_put(out, p->id, sizeof(p->id));
    if (version >= 5) {
        buf_u16(out, sizeof(p->result.id));
        buf_put(out, p->result.id, sizeof(p->result.id));
    }
    buf_u32(out, np_metadata_flags(&p->binds));
    buf_u32(out, p->binds.n);
    if (version >= 4) {
        buf_u32(out, p->n_pk);
        for (uint32_t i = 0; i < p->n_pk; i++) buf_u16(out, p->pk_indexes[i]);
    }
    np_put_columns(out, version, &p->binds);
    buf_u32(out, p->result.n ? np_metadata_flags(&p->result) : NP_META_NO_METADATA);
    buf_u32(out, p->result.n);
    np_put_columns(out, version, &p->result);
}
