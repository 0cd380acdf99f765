/* tally move: copies a database from a data folder to a pool of a Ceph cluster, or back. No server
 * may use either.
 *
 * The rows come first, each stored record as it reconciles, then the named records: schema and
 * roles. So a destination without them is an incomplete one. Records that begin with
 * ENG_MOVE_RECORDS say in the destination from where the move is and how far it has come; the last
 * step removes them. An interrupted move continues after the last checkpoint. Rows copied after it
 * are copied again, which changes nothing.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/json.h"
#include "base/murmur3.h"
#include "engine/copy.h"
#include "engine/named.h"
#include "engine/table.h"
#include "membership/membership.h"
#include "server/data_dir.h"
#include "system_schema/objects/record.h"
#include "tools/tally/subcommand.h"
#include "tools/tally/table.h"

enum {
    BATCH_BYTES = 1 << 20,
    CHECKPOINT_BYTES = 16 << 20,
    PROGRESS_US = 2000000,
    CHUNK = 64 << 10,
};

#define POOL_WORD "rados:"
#define FROM_RECORD ENG_MOVE_RECORDS "from"
#define AT_RECORDS ENG_MOVE_RECORDS "at/"
enum { AT_KEY = sizeof(AT_RECORDS) + 8 };

/* Where a database lies. */
struct place {
    const char *name; /* as it was given */
    char folder[PATH_MAX];
    struct eng_rados rados; /* pool NULL: a folder */
    char words[PATH_MAX];
    int lock;               /* of the folder; -1 if none */
    struct eng *eng;
};

struct move_sums {
    uint64_t records, bytes, checksum; /* the checksum does not depend on the order */
};

struct moved_table {
    uint32_t storage, keyspace;
    const char *name; /* with its keyspace */
    bool done;
    struct move_sums copied; /* up to the checkpoint, then up to the end */
    struct slice at;    /* the checkpoint's place; empty: the table has not begun */
};

struct keyspace {
    uint32_t id;
    const char *name;
};

struct database_move {
    struct place from, to;
    bool json;
    bool continues; /* the destination has a part of it */
    bool occupied;  /* the destination has a database */
    struct arena arena; /* names, checkpoints */
    struct moved_table *tables;
    size_t n_tables, cap_tables;
    struct keyspace *keyspaces;
    size_t n_keyspaces, cap_keyspaces;
    uint64_t named;
    uint64_t bytes; /* copied by this run */
    int64_t began_us, shown_us;
};

/* Named records that stay: servers and their shares of charges, histories, moves. */
static const char *const stays[] = {"membership/", "share/", "recovery/", "restore/", "spare/", ENG_MOVE_RECORDS};
/* Named records that a server writes when it starts on an empty store. */
static const char *const of_empty[] = {"catalog/host_id", "catalog/partitioner", "catalog/version"};

static bool begins(struct slice s, const char *with) {
    return s.n >= strlen(with) && !memcmp(s.p, with, strlen(with));
}

static bool begins_with_one(struct slice s, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (begins(s, list[i])) return true;
    return false;
}

/* ---- the two places ---- */

static int name_place(struct place *p, const char *conf, bool is_source, struct err *e) {
    char stamp[PATH_MAX + 16];
    p->lock = -1;
    if (!strncmp(p->name, POOL_WORD, strlen(POOL_WORD))) {
        p->rados = (struct eng_rados){.conf = conf, .pool = p->name + strlen(POOL_WORD)};
        snprintf(p->words, sizeof(p->words), "pool %s of the cluster of %s", p->rados.pool, conf);
        return 0;
    }
    if (!is_source) {
        p->lock = data_dir_open(p->name, e);
        if (p->lock < 0) return -1;
    }
    if (!realpath(p->name, p->folder)) return err_set(e, ERR_CONFIG, "there is no data folder %s", p->name);
    snprintf(stamp, sizeof(stamp), "%s/tally.stamp", p->folder);
    if (is_source && access(stamp, F_OK))
        return err_set(e, ERR_CONFIG, "%s is not the data folder of a database", p->name);
    if (snprintf(p->words, sizeof(p->words), "data folder %s", p->folder) >= (int)sizeof(p->words))
        return err_set(e, ERR_CONFIG, "the path of the data folder is too long");
    if (is_source) p->lock = data_dir_open(p->folder, e);
    return p->lock < 0 ? -1 : 0;
}

static int take_bytes(void *arg, struct slice key, struct slice value, struct err *e) {
    struct buf *all = arg;
    buf_put_slice(all, key);
    buf_put_slice(all, value);
    return buf_failed(all) ? err_nomem(e) : 0;
}

/* A server that runs renews its record in the pool. */
static int refuse_used_pool(const struct place *p, struct err *e) {
    struct buf before, after;
    buf_init(&before, 0);
    buf_init(&after, 0);
    int rc = eng_meta_scan(p->eng, slice_str("membership/of/"), take_bytes, &before, e);
    if (!rc && before.n) {
        fprintf(stderr, "servers have used %s; looking for %d s whether one still does\n", p->words,
                MEMBERSHIP_EXPIRE_US / 1000000);
        sleep(MEMBERSHIP_EXPIRE_US / 1000000);
        rc = eng_meta_scan(p->eng, slice_str("membership/of/"), take_bytes, &after, e);
        if (!rc && !slice_eq(buf_slice(&before), buf_slice(&after)))
            rc = err_set(e, ERR_CONFIG, "a server uses %s; stop it first", p->words);
    }
    buf_fini(&before);
    buf_fini(&after);
    return rc;
}

static int open_place(struct place *p, struct err *e) {
    struct eng_options o = {.clock = &clock_real, .durability = ENG_FSYNC};
    if (p->rados.pool) o.rados = &p->rados;
    else o.data_dir = p->folder;
    p->eng = eng_open(&o, e);
    if (!p->eng) return -1;
    return p->rados.pool ? refuse_used_pool(p, e) : 0;
}

static void close_place(struct place *p) {
    if (p->eng) eng_close(p->eng);
    if (p->lock >= 0) close(p->lock);
}

/* ---- what there is to move ---- */

static int take_object(struct database_move *m, struct slice key, struct slice value, struct err *e) {
    struct record r;
    if (record_decode(key, value, &r, e)) return -1;
    const char *name = arena_printf(&m->arena, "%.*s", SLICE_FMT(r.name));
    if (!name) return err_nomem(e);
    if (r.tag == keyspace_kind.tag) {
        if (array_room(&m->keyspaces, m->n_keyspaces, &m->cap_keyspaces, sizeof(*m->keyspaces))) return err_nomem(e);
        m->keyspaces[m->n_keyspaces++] = (struct keyspace){.id = r.id, .name = name};
    } else if (r.tag == table_kind.tag) {
        if (array_room(&m->tables, m->n_tables, &m->cap_tables, sizeof(*m->tables))) return err_nomem(e);
        m->tables[m->n_tables++] =
            (struct moved_table){.storage = r.storage, .keyspace = r.keyspace_id, .name = name, .at = slice_of("", 0)};
    }
    return 0;
}

/* recovery.h draws the record of a history. */
static int refuse_history(struct slice value, struct err *e) {
    struct arena a;
    struct rd rd = rd_of(value);
    uint8_t version = rd_u8(&rd);
    rd_u8(&rd);
    uint32_t table = rd_u32(&rd);
    rd_u64(&rd);
    if (version >= 2) rd_u32(&rd);
    if (!table) return 0;
    arena_init(&a, 256, 0);
    const char *keyspace = form_get_text(&rd, &a, e), *name = form_get_text(&rd, &a, e);
    err_set(e, ERR_INVALID,
            "%s.%s has point-in-time recovery, whose history cannot be moved; switch it off first: ALTER TABLE %s.%s "
            "WITH custom_properties = {'point_in_time_recovery': {'status': 'disabled'}}",
            keyspace, name, keyspace, name);
    arena_fini(&a);
    return -1;
}

static int take_source(void *arg, struct slice key, struct slice value, struct err *e) {
    struct database_move *m = arg;
    if (begins(key, ENG_MOVE_RECORDS))
        return err_set(e, ERR_CONFIG, "a move to %s is not complete, so it is no source", m->from.words);
    if (begins(key, "recovery/")) return refuse_history(value, e);
    bool is_object = begins(key, "catalog/") && key.n == RECORD_KEY_SIZE && key.p[9] == '/';
    return is_object ? take_object(m, key, value, e) : 0;
}

static int take_checkpoint(struct database_move *m, struct slice key, struct slice value, struct err *e) {
    struct rd rd = rd_of(value);
    uint32_t storage = (uint32_t)strtoul((const char *)key.p + strlen(AT_RECORDS), NULL, 16);
    for (struct moved_table *t = m->tables; t < m->tables + m->n_tables; t++) {
        if (t->storage != storage) continue;
        t->done = rd_u8(&rd);
        t->copied.records = rd_u64(&rd);
        t->copied.bytes = rd_u64(&rd);
        t->copied.checksum = rd_u64(&rd);
        t->at = arena_dup(&m->arena, rd_bytes(&rd, rd_left(&rd)));
        return !t->at.p ? err_nomem(e) : rd.bad ? err_set(e, ERR_SERVER, "the record of the move is damaged") : 0;
    }
    return 0;
}

static int take_destination(void *arg, struct slice key, struct slice value, struct err *e) {
    struct database_move *m = arg;
    if (slice_eq(key, slice_str(FROM_RECORD))) {
        m->continues = true;
        if (slice_eq(value, slice_str(m->from.words))) return 0;
        return err_set(e, ERR_CONFIG,
                       "a move from %.*s to %s is not complete: continue that one, or take another place",
                       SLICE_FMT(value), m->to.words);
    }
    if (begins(key, AT_RECORDS)) {
        struct buf text; /* ends with a NUL, for the number */
        buf_init(&text, 0);
        buf_put_slice(&text, key);
        buf_u8(&text, 0);
        int rc = buf_failed(&text) ? err_nomem(e) : take_checkpoint(m, slice_of(text.p, key.n), value, e);
        buf_fini(&text);
        return rc;
    }
    if (begins_with_one(key, stays, ARRAY_LEN(stays)) || begins_with_one(key, of_empty, ARRAY_LEN(of_empty))) return 0;
    m->occupied = true;
    return 0;
}

static int refuse_rows(void *arg, uint32_t id, struct err *e) {
    const struct database_move *m = arg;
    (void)id;
    return err_set(e, ERR_CONFIG, "%s is not empty", m->to.words);
}

static int name_tables(struct database_move *m, struct err *e) {
    for (struct moved_table *t = m->tables; t < m->tables + m->n_tables; t++) {
        const char *keyspace = "?";
        for (size_t i = 0; i < m->n_keyspaces; i++)
            if (m->keyspaces[i].id == t->keyspace) keyspace = m->keyspaces[i].name;
        t->name = arena_printf(&m->arena, "%s.%s", keyspace, t->name);
        if (!t->name) return err_nomem(e);
    }
    return 0;
}

/* Finds out whether the move may begin or go on. */
static int plan(struct database_move *m, struct err *e) {
    if (eng_meta_scan(m->from.eng, slice_str(""), take_source, m, e) || name_tables(m, e) ||
        eng_meta_scan(m->to.eng, slice_str(""), take_destination, m, e))
        return -1;
    if (m->continues) return 0;
    if (m->occupied) return refuse_rows(m, 0, e);
    if (eng_each_stored(m->to.eng, refuse_rows, m, e)) return -1;
    return eng_meta_put(m->to.eng, slice_str(FROM_RECORD), slice_str(m->from.words), e);
}

/* ---- rows ---- */

/* Adds up records in the form in which any store keeps them. */
struct adder {
    struct move_sums *sums;
    struct arena cells;
    struct buf form;
};

static void adder_init(struct adder *a, struct move_sums *sums) {
    a->sums = sums;
    arena_init(&a->cells, CHUNK, 0);
    buf_init(&a->form, 0);
}
static void adder_fini(struct adder *a) {
    arena_fini(&a->cells);
    buf_fini(&a->form);
}

static int add_up(void *arg, const struct eng_record *r, struct err *e) {
    struct adder *a = arg;
    struct eng_row row;
    arena_reset(&a->cells);
    buf_clear(&a->form, SIZE_MAX);
    eng_row_init(&row, ENG_ROW, slice_of("", 0));
    if (eng_row_decode(r->value, &a->cells, &row, e)) return -1;
    buf_put_slice(&a->form, r->key);
    eng_row_encode(&row, &a->form);
    if (buf_failed(&a->form)) return err_nomem(e);
    a->sums->records++;
    a->sums->bytes += a->form.n;
    a->sums->checksum += murmur3_hash(buf_slice(&a->form));
    return 0;
}

struct copier {
    struct database_move *m;
    struct moved_table *table;
    struct eng_batch *batch;
    struct adder adder;
    struct buf last;         /* the place of the last record */
    uint64_t checkpoint;     /* bytes of the table at the last one */
};

static void show_progress(struct database_move *m, const struct moved_table *t, bool ended) {
    int64_t now = clock_machine_us(&clock_real);
    if (m->json || (!ended && now - m->shown_us < PROGRESS_US)) return;
    m->shown_us = now;
    fprintf(stderr, "%s: %" PRIu64 " records, %.1f MB%s (%.1f MB/s)\n", t->name, t->copied.records,
            (double)t->copied.bytes / 1e6, ended ? ", all" : "", (double)m->bytes / (double)(now - m->began_us + 1));
}

static int put_checkpoint(struct copier *c, bool done, struct err *e) {
    char key[AT_KEY];
    struct buf value;
    snprintf(key, sizeof(key), AT_RECORDS "%08" PRIx32, c->table->storage);
    buf_init(&value, 0);
    buf_u8(&value, done);
    buf_u64(&value, c->table->copied.records);
    buf_u64(&value, c->table->copied.bytes);
    buf_u64(&value, c->table->copied.checksum);
    buf_put_slice(&value, buf_slice(&c->last));
    int rc = buf_failed(&value) ? err_nomem(e) : eng_meta_put(c->m->to.eng, slice_str(key), buf_slice(&value), e);
    buf_fini(&value);
    c->checkpoint = c->table->copied.bytes;
    return rc;
}

/* Writes the gathered rows. The rows are durable before the checkpoint says that they are there. */
static int flush(struct copier *c, bool done, struct err *e) {
    uint64_t seq;
    bool is_due = done || c->table->copied.bytes - c->checkpoint >= CHECKPOINT_BYTES;
    if (!eng_batch_empty(c->batch) &&
        (eng_batch_commit(c->batch, &seq, e) || (is_due && eng_wait_durable(c->m->to.eng, seq, e))))
        return -1;
    if (is_due && put_checkpoint(c, done, e)) return -1;
    show_progress(c->m, c->table, done);
    return 0;
}

static int copy_record(void *arg, const struct eng_record *r, struct err *e) {
    struct copier *c = arg;
    if (slice_eq(r->at, buf_slice(&c->last))) return 0; /* the checkpoint's, which is there */
    uint64_t before = c->table->copied.bytes;
    if (add_up(&c->adder, r, e)) return -1;
    c->m->bytes += c->table->copied.bytes - before;
    buf_clear(&c->last, SIZE_MAX);
    buf_put_slice(&c->last, r->at);
    if (buf_failed(&c->last)) return err_nomem(e);
    eng_batch_savepoint(c->batch); /* its own group: records need not be written together */
    int rc = eng_batch_record(c->batch, c->table->storage, r, e);
    eng_batch_release(c->batch);
    return rc ? -1 : eng_batch_bytes(c->batch) >= BATCH_BYTES ? flush(c, false, e) : 0;
}

static int copy_table(struct database_move *m, struct moved_table *t, struct err *e) {
    struct copier c = {.m = m, .table = t, .batch = eng_batch_new(m->to.eng), .checkpoint = t->copied.bytes};
    if (!c.batch) return err_nomem(e);
    adder_init(&c.adder, &t->copied);
    buf_init(&c.last, 0);
    buf_put_slice(&c.last, t->at);
    int rc = eng_each_record(m->from.eng, t->storage, t->at, copy_record, &c, e);
    if (!rc) rc = flush(&c, true, e);
    if (rc) eng_batch_drop(c.batch);
    eng_batch_free(c.batch);
    adder_fini(&c.adder);
    buf_fini(&c.last);
    return rc;
}

static int sum_up(const struct place *p, const struct moved_table *t, struct move_sums *out, struct err *e) {
    struct adder a;
    *out = (struct move_sums){0};
    adder_init(&a, out);
    int rc = eng_each_record(p->eng, t->storage, slice_of("", 0), add_up, &a, e);
    adder_fini(&a);
    return rc;
}

static bool is_same(const struct move_sums *a, const struct move_sums *b) {
    return a->records == b->records && a->bytes == b->bytes && a->checksum == b->checksum;
}

/* Reads both ends once more. */
static int verify_table(struct database_move *m, const struct moved_table *t, struct err *e) {
    struct move_sums here, there;
    if (sum_up(&m->from, t, &here, e) || sum_up(&m->to, t, &there, e)) return -1;
    if (is_same(&here, &there) && is_same(&here, &t->copied)) return 0;
    return err_set(e, ERR_SERVER,
                   "%s has %" PRIu64 " records, checksum %016" PRIx64 ", in %s, and %" PRIu64 ", checksum %016" PRIx64
                   ", in %s. Was it written to since the move began? Then begin again with an empty place",
                   t->name, here.records, here.checksum, m->from.words, there.records, there.checksum,
                   m->to.words);
}

/* ---- named records, and the end ---- */

static int copy_named(void *arg, struct slice key, struct slice value, struct err *e) {
    struct database_move *m = arg;
    if (begins_with_one(key, stays, ARRAY_LEN(stays))) return 0;
    m->named++;
    return eng_meta_put(m->to.eng, key, value, e);
}

static int take_key(void *arg, struct slice key, struct slice value, struct err *e) {
    struct buf *keys = arg;
    (void)value;
    buf_u32(keys, (uint32_t)key.n);
    buf_put_slice(keys, key);
    return buf_failed(keys) ? err_nomem(e) : 0;
}

/* The record that names the source goes last: while it is there, the move can be run again. */
static int end_move(struct database_move *m, struct err *e) {
    struct buf keys;
    buf_init(&keys, 0);
    int rc = eng_meta_scan(m->to.eng, slice_str(AT_RECORDS), take_key, &keys, e);
    struct rd rd = rd_of(buf_slice(&keys));
    while (!rc && rd_left(&rd)) rc = eng_meta_delete(m->to.eng, rd_bytes(&rd, rd_u32(&rd)), e);
    if (!rc) rc = eng_meta_delete(m->to.eng, slice_str(FROM_RECORD), e);
    buf_fini(&keys);
    return rc;
}

static int run(struct database_move *m, struct err *e) {
    if (open_place(&m->from, e) || open_place(&m->to, e) || plan(m, e)) return -1;
    if (!m->json)
        fprintf(stderr,
                "%s %zu tables from %s to %s. Not moved: histories of point-in-time recovery, saved states and "
                "backups; ledger and captures, which belong to a server and stay in its data folder\n",
                m->continues ? "continuing to move" : "moving", m->n_tables, m->from.words, m->to.words);
    m->began_us = clock_machine_us(&clock_real);
    for (struct moved_table *t = m->tables; t < m->tables + m->n_tables; t++)
        if (!t->done && copy_table(m, t, e)) return -1;
    for (struct moved_table *t = m->tables; t < m->tables + m->n_tables; t++)
        if (verify_table(m, t, e)) return -1;
    if (m->from.rados.pool && refuse_used_pool(&m->from, e)) return -1;
    return eng_meta_scan(m->from.eng, slice_str(""), copy_named, m, e) || end_move(m, e) ? -1 : 0;
}

static void print(struct database_move *m) {
    static const struct table_column columns[] = {
        {"table", false}, {"records", true}, {"bytes", true}, {"checksum", true}};
    struct table table;
    struct buf json;
    table_init(&table, columns, ARRAY_LEN(columns));
    buf_init(&json, 0);
    for (const struct moved_table *t = m->tables; t < m->tables + m->n_tables; t++) {
        char checksum[17];
        snprintf(checksum, sizeof(checksum), "%016" PRIx64, t->copied.checksum);
        table_row(&table, "%s\t%" PRIu64 "\t%" PRIu64 "\t%s", t->name, t->copied.records, t->copied.bytes,
                  checksum);
        json_open(&json, NULL, '{');
        json_text(&json, "table", t->name);
        json_count(&json, "records", t->copied.records);
        json_count(&json, "bytes", t->copied.bytes);
        json_text(&json, "checksum", checksum);
        buf_u8(&json, '}');
    }
    if (m->json) {
        printf("{\"ok\":true,\"tables\":[%.*s],\"named\":%" PRIu64 "}\n", SLICE_FMT(buf_slice(&json)), m->named);
    } else {
        table_print(&table);
        printf("moved and verified: %zu tables, %" PRIu64 " records of the schema and roles. %s still has the "
               "database, too: do not let clients write to both\n",
               m->n_tables, m->named, m->from.words);
    }
    table_fini(&table);
    buf_fini(&json);
}

int tally_move(int argc, char **argv) {
    struct database_move *m = calloc(1, sizeof(*m));
    const char *conf = "/etc/ceph/ceph.conf";
    struct err e = {0};
    if (!m) return EXIT_NO;
    const struct flag flags[] = {
        FLAG_TEXT("from", "PLACE", m->from.name, "the data folder of a stopped server, or rados:POOL"),
        FLAG_TEXT("to", "PLACE", m->to.name, "destination: a data folder without a database, or rados:POOL, a new "
                                             "pool"),
        FLAG_TEXT("rados-conf", "FILE", conf, "configuration of the Ceph cluster; default: /etc/ceph/ceph.conf"),
        FLAG_ON("json", m->json, "print the result as JSON, and no progress"),
    };
    m->from.lock = m->to.lock = -1;
    arena_init(&m->arena, CHUNK, 0);
    int rc = flags_read("move", argc, argv, flags, ARRAY_LEN(flags));
    if (!rc && (!m->from.name || !m->to.name)) {
        fprintf(stderr, "tally move: --from and --to say from where and to where; see tally move --help\n");
        rc = EXIT_USAGE;
    } else if (!rc && (name_place(&m->from, conf, true, &e) || name_place(&m->to, conf, false, &e))) {
        rc = say_wrong(m->json, "move", &e);
    } else if (!rc) {
        rc = run(m, &e) ? say_no(m->json, "move", &e) : EXIT_DONE;
        if (rc == EXIT_DONE) print(m);
    } else if (rc < 0) {
        rc = EXIT_DONE;
    }
    close_place(&m->from);
    close_place(&m->to);
    free(m->tables);
    free(m->keyspaces);
    arena_fini(&m->arena);
    free(m);
    return rc;
}
