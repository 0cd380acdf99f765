/* Entries in memory and their records in the engine. A record's key is "catalog/k/" or "catalog/t/" and the entry's id (u32
 * big-endian); its value, version 1:
 *
 *   version u8 | status u8 | keyspace id u32 | name | form | next (empty: none)       each of the last three: length uvarint | bytes
 */
#include <assert.h>
#include <stdlib.h>

#include "system_schema/catalog_state.h"

enum { RECORD_VERSION = 1 };
static const char counter_key[] = "catalog/next_id";

int form_set(struct slice *form, struct slice bytes, struct err *e) {
    uint8_t *copy = NULL;
    if (bytes.n) {
        copy = malloc(bytes.n);
        if (!copy) return err_nomem(e);
        memcpy(copy, bytes.p, bytes.n);
    }
    free((void *)form->p);
    *form = slice_of(copy, bytes.n);
    return 0;
}

struct entry *entry_add(struct catalog *c, enum entry_kind kind, uint32_t id, const char *name, struct err *e) {
    if (c->n_entries == c->cap_entries) {
        uint32_t cap = c->cap_entries ? c->cap_entries * 2 : 64;
        struct entry **grown = realloc(c->entries, cap * sizeof *grown);
        if (!grown) {
            err_nomem(e);
            return NULL;
        }
        c->entries = grown;
        c->cap_entries = cap;
    }
    struct entry *x = calloc(1, sizeof *x);
    char *copy = strdup(name);
    if (!x || !copy) {
        free(x);
        free(copy);
        err_nomem(e);
        return NULL;
    }
    *x = (struct entry){.kind = kind, .id = id, .name = copy, .status = SCHEMA_CREATING, .due_us = INT64_MAX};
    x->since_us = clock_mono_us(c->clock);
    c->counts[x->status]++;
    c->entries[c->n_entries++] = x;
    return x;
}

void entry_free(struct entry *x) {
    free((void *)x->form.p);
    free((void *)x->next.p);
    free(x->name);
    free(x);
}

void entry_remove(struct catalog *c, struct entry *x) {
    uint32_t i = 0;
    while (c->entries[i] != x) i++;
    memmove(&c->entries[i], &c->entries[i + 1], (c->n_entries - i - 1) * sizeof *c->entries);
    c->n_entries--;
    c->counts[x->status]--;
    entry_free(x);
}

struct entry *entry_by_id(struct catalog *c, enum entry_kind kind, uint32_t id) {
    for (uint32_t i = 0; i < c->n_entries; i++)
        if (c->entries[i]->kind == kind && c->entries[i]->id == id) return c->entries[i];
    return NULL;
}

struct entry *entry_find(struct catalog *c, uint32_t keyspace_id, const char *name) {
    enum entry_kind kind = keyspace_id ? ENTRY_TABLE : ENTRY_KEYSPACE;
    for (uint32_t i = 0; i < c->n_entries; i++) {
        struct entry *x = c->entries[i];
        if (x->kind == kind && x->keyspace_id == keyspace_id && x->status != SCHEMA_DELETING && strcmp(x->name, name) == 0) return x;
    }
    return NULL;
}

void entry_set_status(struct catalog *c, struct entry *x, enum schema_status to) {
    static const bool legal[STATUSES][STATUSES] = {
        [SCHEMA_CREATING] = {[SCHEMA_ACTIVE] = true, [SCHEMA_DELETING] = true},
        [SCHEMA_ACTIVE] = {[SCHEMA_UPDATING] = true, [SCHEMA_DELETING] = true},
        [SCHEMA_UPDATING] = {[SCHEMA_ACTIVE] = true, [SCHEMA_DELETING] = true},
    };
    assert(legal[x->status][to]);
    c->counts[x->status]--;
    c->counts[to]++;
    x->status = to;
    x->since_us = clock_mono_us(c->clock);
}

static void record_key(const struct entry *x, uint8_t key[14]) {
    memcpy(key, "catalog/?/", 10);
    key[8] = (uint8_t)x->kind;
    store_u32(key + 10, x->id);
}

int entry_save(struct catalog *c, const struct entry *x, struct err *e) {
    uint8_t key[14];
    record_key(x, key);
    struct buf b;
    buf_init(&b, 0);
    buf_u8(&b, RECORD_VERSION);
    buf_u8(&b, (uint8_t)x->status);
    buf_u32(&b, x->keyspace_id);
    const struct slice parts[] = {slice_str(x->name), x->form, x->next};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        buf_uvarint(&b, parts[i].n);
        if (parts[i].n) buf_put_slice(&b, parts[i]);
    }
    int rc = buf_failed(&b) ? err_nomem(e) : eng_meta_put(c->eng, slice_of(key, sizeof key), buf_slice(&b), e);
    buf_fini(&b);
    return rc;
}

int entry_erase(struct catalog *c, const struct entry *x, struct err *e) {
    uint8_t key[14];
    record_key(x, key);
    return eng_meta_delete(c->eng, slice_of(key, sizeof key), e);
}

int entry_next_id(struct catalog *c, uint32_t *id, struct err *e) {
    uint8_t value[4];
    store_u32(value, c->next_id + 1);
    if (eng_meta_put(c->eng, slice_str(counter_key), slice_of(value, sizeof value), e)) return -1;
    *id = c->next_id++;
    return 0;
}

static int load_record(void *arg, struct slice key, struct slice value, struct err *e) {
    struct catalog *c = arg;
    struct rd k = rd_of(key), rd = rd_of(value);
    (void)rd_bytes(&k, 8);
    uint8_t kind = rd_u8(&k);
    (void)rd_u8(&k);
    uint32_t id = rd_u32(&k);
    uint8_t version = rd_u8(&rd), status = rd_u8(&rd);
    uint32_t keyspace_id = rd_u32(&rd);
    struct slice parts[3];
    for (int i = 0; i < 3; i++) parts[i] = rd_bytes(&rd, rd_uvarint(&rd));
    if (k.bad || rd.bad || version != RECORD_VERSION || status >= STATUSES) return err_set(e, ERR_SERVER, "a record of the catalogue is damaged");
    char *name = strndup((const char *)parts[0].p, parts[0].n);
    struct entry *x = name ? entry_add(c, (enum entry_kind)kind, id, name, e) : NULL;
    free(name);
    if (!x) return err_nomem(e);
    x->keyspace_id = keyspace_id;
    c->counts[x->status]--;
    x->status = (enum schema_status)status;
    c->counts[x->status]++;
    return form_set(&x->form, parts[1], e) || form_set(&x->next, parts[2], e) ? -1 : 0;
}

static int load_counter(void *arg, struct slice key, struct slice value, struct err *e) {
    (void)key;
    if (value.n != 4) return err_set(e, ERR_SERVER, "a record of the catalogue is damaged");
    *(uint32_t *)arg = load_u32(value.p);
    return 0;
}

int entries_load(struct catalog *c, struct err *e) {
    c->next_id = FIRST_STORAGE_ID;
    if (eng_meta_scan(c->eng, slice_str(counter_key), load_counter, &c->next_id, e)) return -1;
    if (eng_meta_scan(c->eng, slice_str("catalog/k/"), load_record, c, e)) return -1;
    return eng_meta_scan(c->eng, slice_str("catalog/t/"), load_record, c, e);
}
