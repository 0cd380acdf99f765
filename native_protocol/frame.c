#include "native_protocol/frame.h"

#include <stddef.h>

enum direction { RESPONSE, REQUEST };
static const struct {
    const char *name; /* NULL for no such opcode */
    enum direction direction;
} opcodes[UINT8_MAX + 1] = {
#define OPCODE(id, code, name, direction) [code] = {name, direction},
#include "native_protocol/opcode.def"
#undef OPCODE
};

const char *np_opcode_name(uint8_t code) { return opcodes[code].name; }
bool np_opcode_is_request(uint8_t code) { return opcodes[code].direction == REQUEST; }

static bool speaks_beta(uint8_t newest) { return newest == NP_VERSION_MAX; }

bool np_speaks(uint8_t newest, const struct np_envelope *env) {
    if (env->version == NP_VERSION_BETA) return speaks_beta(newest) && env->flags & NP_FLAG_BETA;
    return env->version >= NP_VERSION_MIN && env->version <= newest;
}

ssize_t np_envelope_decode(struct slice in, uint8_t newest, uint32_t max, struct np_envelope *env, struct err *e) {
    *env = (struct np_envelope){0};
    if (!in.n) return NP_NEED_MORE;
    env->version = in.p[0] & 0x7f;
    if (env->version == NP_VERSION_BETA && speaks_beta(newest) && in.n < 2) return NP_NEED_MORE;
    env->flags = in.n > 1 ? in.p[1] : 0;
    if (!np_speaks(newest, env)) {
        if (env->version == NP_VERSION_BETA && speaks_beta(newest))
            return err_set(e, ERR_PROTOCOL,
                           "Beta version of the protocol used (6/v6-beta), but USE_BETA flag is unset");
        return err_set(e, ERR_PROTOCOL, "Invalid or unsupported protocol version (%u); supported versions are (%s)",
                       env->version, newest < NP_VERSION_MAX ? "3/v3, 4/v4" : "3/v3, 4/v4, 5/v5");
    }
    if (in.n < NP_HEADER) return NP_NEED_MORE;
    env->stream = (int16_t)load_u16(in.p + 2);
    env->opcode = in.p[4];
    env->length = load_u32(in.p + 5);
    if (in.p[0] & NP_RESPONSE_BIT) {
        const char *name = np_opcode_name(env->opcode);
        return err_set(e, ERR_PROTOCOL, "Wrong protocol direction (expected REQUEST, got RESPONSE) for opcode %u (%s)",
                       env->opcode, name ? name : "unknown");
    }
    if (env->length > INT32_MAX)
        return err_set(e, ERR_PROTOCOL, "Invalid frame body length (%d)", (int32_t)env->length);
    if (env->length > max) {
        err_set(e, ERR_INVALID, "Request is too big: length %u exceeds maximum allowed length %u.", env->length, max);
        return NP_TOO_BIG;
    }
    if (in.n - NP_HEADER < env->length) return NP_NEED_MORE;
    env->body = slice_of(in.p + NP_HEADER, env->length);
    return (ssize_t)(NP_HEADER + env->length);
}

size_t np_envelope_begin(struct buf *out, uint8_t version, int16_t stream, enum np_opcode opcode) {
    size_t start = out->n;
    uint8_t *p = buf_reserve(out, NP_HEADER);
    if (!p) return start;
    np_envelope_put(p, version, 0, stream, opcode);
    buf_advance(out, NP_HEADER);
    return start;
}

void np_envelope_end(struct buf *out, size_t start, size_t more) {
    if (!buf_failed(out)) buf_patch_u32(out, start + 5, (uint32_t)(out->n - start - NP_HEADER + more));
}

void np_put_string(struct buf *out, const char *s) {
    size_t n = strlen(s);
    if (n > UINT16_MAX) n = UINT16_MAX;
    uint8_t *to = buf_reserve(out, 2 + n);
    if (!to) return;
    store_u16(to, (uint16_t)n);
    memcpy(to + 2, s, n);
    buf_advance(out, 2 + n);
}
