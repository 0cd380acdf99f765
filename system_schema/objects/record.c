#include "system_schema/objects/record.h"

enum { RECORD_WITHOUT_STORAGE = 1, RECORD_WITHOUT_PROGRESS = 2, RECORD_VERSION = 3 };

void record_key(char tag, uint32_t id, uint8_t key[RECORD_KEY_SIZE]) {
    memcpy(key, "catalog/?/", 10);
    key[8] = (uint8_t)tag;
    store_u32(key + 10, id);
}

void record_encode(const struct record *r, struct buf *out) {
    buf_u8(out, r->progress ? RECORD_VERSION : RECORD_WITHOUT_PROGRESS);
    buf_u8(out, (uint8_t)r->status);
    buf_u32(out, r->keyspace_id);
    buf_u32(out, r->storage);
    const struct slice parts[] = {r->name, r->form, r->next};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        buf_uvarint(out, parts[i].n);
        if (parts[i].n) buf_put_slice(out, parts[i]);
    }
    if (r->progress) buf_u32(out, r->progress);
}

static struct slice get_part(struct rd *rd) { return rd_bytes(rd, rd_uvarint(rd)); }

int record_decode(struct slice key, struct slice value, struct record *out, struct err *e) {
    *out = (struct record){.name = slice_str("")};
    if (key.n != RECORD_KEY_SIZE) return err_set(e, ERR_SERVER, "its key is damaged");
    out->tag = (char)key.p[8];
    out->id = load_u32(key.p + 10);
    struct rd rd = rd_of(value);
    uint8_t version = rd_u8(&rd), status = rd_u8(&rd);
    if (version > RECORD_VERSION)
        return err_set(e, ERR_SERVER, "it is of version %d, and this server reads up to %d", version, RECORD_VERSION);
    out->keyspace_id = rd_u32(&rd);
    out->old_keys = version == RECORD_WITHOUT_STORAGE;
    out->storage = version == RECORD_WITHOUT_STORAGE ? out->id : rd_u32(&rd);
    struct slice name = get_part(&rd);
    if (!rd.bad) out->name = name;
    out->form = get_part(&rd);
    out->next = get_part(&rd);
    if (version == RECORD_VERSION) out->progress = rd_u32(&rd);
    bool sound = !rd.bad && rd_left(&rd) == 0 && version > 0 && status < SCHEMA_STATUSES && name.n &&
                 (version == RECORD_VERSION) == (out->progress > 0) && !memchr(name.p, 0, name.n) && out->form.n;
    if (!sound) return err_set(e, ERR_SERVER, "it is damaged");
    out->status = (enum schema_status)status;
    return 0;
}

bool record_eq(const struct record *a, const struct record *b) {
    return a->tag == b->tag && a->status == b->status && a->id == b->id && a->keyspace_id == b->keyspace_id &&
           a->storage == b->storage && slice_eq(a->name, b->name) && slice_eq(a->form, b->form) &&
           slice_eq(a->next, b->next) && a->progress == b->progress;
}

int record_write(const struct record *r, struct buf *out, struct err *e) {
    uint8_t key[RECORD_KEY_SIZE];
    struct record back;
    record_key(r->tag, r->id, key);
    record_encode(r, out);
    if (buf_failed(out)) return err_nomem(e);
    if (record_decode(slice_of(key, sizeof key), buf_slice(out), &back, e)) return -1;
    if (record_eq(r, &back)) return 0;
    return err_set(e, ERR_SERVER, "the record of object %u, %.*s, does not decode to what was encoded", r->id,
                   SLICE_FMT(r->name));
}

int record_check_forms(const struct object_kind *kind, const struct form_context *at, const struct record *r,
                       struct err *e) {
    if (form_check(kind, at, r->form, e)) return -1;
    return r->next.n ? form_check(kind, at, r->next, e) : 0;
}
