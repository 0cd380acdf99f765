#include "cql/prepared.h"

#include "cql/compat/compat_check.h"
#include "cql/fingerprint.h"
#include "cql/row/ring.h"
#include "cql/statement.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUCKETS_LOG = 13, BUCKETS = 1 << BUCKETS_LOG, STRIPES = 32, CHANGES = 4096 };
enum { PREPARED_ARENA_LIMIT = 16 << 20, PREPARED_CHUNK = 2048 };

struct cql_prepared {
    _Atomic(struct cql_prepared *) next; /* of its bucket */
    struct cql_prepared *older, *newer;  /* of all, under the cache's lock */
    atomic_uint refs;
    atomic_bool used; /* since the cache last evicted statements */
    atomic_uint_fast64_t checked; /* generation of the schema in which it was last found valid */
    bool cached;
    bool unlisted; /* under the lock: a client deleted its row of system.prepared_statements */
    struct arena arena;
    enum partitioner_id partitioner;
    struct cql_statement *statement;
    struct prepared_info info;
};

struct stripe {
    atomic_uint readers;
    char pad[60]; /* a cache line each */
};

/* A client before v5 does not say which result columns it has for a statement. If it got them before the table changed,
 * it would misread rows that are sent without columns. So such rows carry their columns while a connection from before
 * the change is open, except on a connection that has got the new columns since in answer to a PREPARE. */
struct prepared_cache {
    pthread_mutex_t lock; /* writers only */
    size_t bytes, limit;
    struct cql_prepared *oldest, *newest;
    struct stripe stripes[STRIPES];
    struct cql_client *first, *last;    /* open connections, by age; under the lock */
    atomic_uint_fast64_t first_opened;  /* of the first; n_changes if none is open */
    uint64_t n_changes;                 /* statements that lost their columns so far; under the lock */
    uint64_t changes[CHANGES];          /* the last such change, by a hash of the statement's id; 0 if none */
    bool evicted[CHANGES];              /* by the same hash; under the lock: since the last change of the schema */
    uint64_t generation;                /* of the schema after that change */
    _Atomic(struct cql_prepared *) buckets[BUCKETS];
};

struct prepared_cache *prepared_cache_new(size_t bytes) {
    struct prepared_cache *c = calloc(1, sizeof(*c));
    if (!c) return NULL;
    c->limit = bytes ? bytes : (size_t)64 << 20;
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

void cql_prepared_unref(struct cql_prepared *p) {
    if (!p || atomic_fetch_sub(&p->refs, 1) != 1) return;
    if (p->statement) {
        for (const struct table_use *use = p->statement->tables; use; use = use->next) schema_table_unref(use->table);
        if (p->statement->schema) schema_unref(p->statement->schema);
    }
    arena_fini(&p->arena);
    free(p);
}

void prepared_cache_free(struct prepared_cache *c) {
    if (!c) return;
    for (struct cql_prepared *p = c->oldest, *next; p; p = next) {
        next = p->newer;
        cql_prepared_unref(p);
    }
    pthread_mutex_destroy(&c->lock);
    free(c);
}

const struct prepared_info *cql_prepared_info(const struct cql_prepared *p) { return &p->info; }

/* ---- the table ---- */

/* Ids of a later bucket are greater. */
static size_t bucket_of(const uint8_t *id) { return load_u32(id) >> (32 - BUCKETS_LOG); }

static void list_remove(struct prepared_cache *c, struct cql_prepared *p) {
    *(p->older ? &p->older->newer : &c->oldest) = p->newer;
    *(p->newer ? &p->newer->older : &c->newest) = p->older;
    p->older = p->newer = NULL;
}

static void list_append(struct prepared_cache *c, struct cql_prepared *p) {
    p->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = p;
    c->newest = p;
}

/* Under the lock. Requests in progress may still hold the entry. */
static void unlink_entry(struct prepared_cache *c, struct cql_prepared *p) {
    _Atomic(struct cql_prepared *) *at = &c->buckets[bucket_of(p->info.id)];
    while (atomic_load(at) != p) at = &atomic_load(at)->next;
    atomic_store(at, atomic_load(&p->next));
    list_remove(c, p);
    c->bytes -= p->arena.used;
    p->cached = false;
    for (int i = 0; i < STRIPES; i++)
        while (atomic_load(&c->stripes[i].readers)) sched_yield();
    cql_prepared_unref(p);
}

static uint32_t change_of(const struct cql_prepared *p) { return load_u32(p->info.id) % CHANGES; }

/* Under the lock: statements with this hash may have other columns from now on. */
static void columns_changed(struct prepared_cache *c, uint32_t hash) {
    c->changes[hash] = ++c->n_changes;
    if (!c->first) atomic_store(&c->first_opened, c->n_changes);
}

/* Under the lock: the statement's columns have changed, or its table is gone. */
static void evict_changed(struct prepared_cache *c, struct cql_prepared *p) {
    if (p->info.result.n) columns_changed(c, change_of(p));
    if (p->cached) unlink_entry(c, p);
}

/* Under the lock. Clients keep the columns of an evicted statement, which the next change of the schema may be about. A
 * statement that was compiled before the last change, and not looked up since, may have lost its columns already. */
static void evict(struct prepared_cache *c, struct cql_prepared *p) {
    if (atomic_load(&p->checked) < c->generation) {
        evict_changed(c, p);
        return;
    }
    if (p->info.result.n) c->evicted[change_of(p)] = true;
    unlink_entry(c, p);
}

void cql_client_open(struct cql_db *db, struct cql_client *client) {
    if (!db) return;
    struct prepared_cache *c = db->prepared;
    pthread_mutex_lock(&c->lock);
    *client = (struct cql_client){.cache = c, .older = c->last, .opened = c->n_changes};
    *(c->last ? &c->last->newer : &c->first) = client;
    c->last = client;
    pthread_mutex_unlock(&c->lock);
}

void cql_client_close(struct cql_db *db, struct cql_client *client) {
    if (!db) return;
    struct prepared_cache *c = db->prepared;
    pthread_mutex_lock(&c->lock);
    free(client->sent);
    client->sent = NULL;
    client->closed = true;
    *(client->older ? &client->older->newer : &c->first) = client->newer;
    *(client->newer ? &client->newer->older : &c->last) = client->older;
    atomic_store(&c->first_opened, c->first ? c->first->opened : c->n_changes);
    pthread_mutex_unlock(&c->lock);
}

/* Under the lock: the columns of the statement that the client has got since they changed; NULL if none. */
static struct cql_sent_columns *find_sent(const struct cql_client *client, const uint8_t *id) {
    for (unsigned i = 0; client->sent && i < CQL_SENT_MAX; i++)
        if (client->sent[i].change && !memcmp(client->sent[i].id, id, 16)) return &client->sent[i];
    return NULL;
}

void cql_client_sent_columns(struct cql_client *client, const struct prepared_info *info) {
    struct prepared_cache *c = client->cache;
    if (!info->result.change || !c) return;
    pthread_mutex_lock(&c->lock);
    if (!client->sent && !client->closed) client->sent = calloc(CQL_SENT_MAX, sizeof(*client->sent));
    struct cql_sent_columns *sent = find_sent(client, info->id);
    if (!sent && client->sent) sent = &client->sent[client->n_sent++ % CQL_SENT_MAX];
    if (sent) {
        memcpy(sent->id, info->id, 16);
        sent->change = info->result.change;
    }
    pthread_mutex_unlock(&c->lock);
}

bool cql_client_has_columns(struct cql_client *client, struct slice id, const struct result_meta *meta) {
    struct prepared_cache *c = client->cache;
    if (!c || id.n != 16) return !meta->change;
    if (meta->change <= atomic_load(&c->first_opened)) return true;
    pthread_mutex_lock(&c->lock);
    const struct cql_sent_columns *sent = find_sent(client, id.p);
    bool has = sent && sent->change == meta->change;
    pthread_mutex_unlock(&c->lock);
    return has;
}

/* Acquires a reference for the cache. Another thread may have put the same statement there: the newer one stays. */
static void publish(struct prepared_cache *c, struct cql_prepared *p) {
    pthread_mutex_lock(&c->lock);
    _Atomic(struct cql_prepared *) *head = &c->buckets[bucket_of(p->info.id)];
    struct cql_prepared *old = atomic_load(head);
    while (old && memcmp(old->info.id, p->info.id, 16)) old = atomic_load(&old->next);
    p->info.result.change = p->statement->result.change = c->changes[change_of(p)];
    atomic_fetch_add(&p->refs, 1);
    p->cached = true;
    p->unlisted = old && old->unlisted;
    atomic_store(&p->next, atomic_load(head));
    atomic_store(head, p);
    list_append(c, p);
    c->bytes += p->arena.used;
    if (old) unlink_entry(c, old);
    /* Makes room. A statement that was used lately is kept once more. */
    size_t chances = 0;
    for (struct cql_prepared *x = c->oldest; x && c->bytes > c->limit; x = c->oldest) {
        if (x == p && x == c->newest) break;
        if (x == p || (atomic_exchange(&x->used, false) && chances++ < BUCKETS)) {
            list_remove(c, x);
            list_append(c, x);
        } else {
            evict(c, x);
        }
    }
    pthread_mutex_unlock(&c->lock);
}

int prepared_each(void *from, const uint8_t *after, virtual_prepared_fn take, void *arg) {
    struct prepared_cache *c = from;
    int rc = 0;
    pthread_mutex_lock(&c->lock);
    for (size_t i = after ? bucket_of(after) : 0; i < BUCKETS && rc == 0;) {
        const struct cql_prepared *next = NULL; /* of the bucket: with the least id that is greater than after */
        for (const struct cql_prepared *p = atomic_load(&c->buckets[i]); p; p = atomic_load(&p->next)) {
            if (p->unlisted || (after && memcmp(p->info.id, after, 16) <= 0)) continue;
            if (!next || memcmp(p->info.id, next->info.id, 16) < 0) next = p;
        }
        if (!next) {
            i++;
            continue;
        }
        after = next->info.id;
        struct virtual_prepared v = {slice_of(after, 16), next->info.keyspace, (const char *)next->info.shown.p};
        rc = take(arg, &v);
    }
    pthread_mutex_unlock(&c->lock);
    return rc;
}

void prepared_unlist(void *from, const struct slice *id) {
    struct prepared_cache *c = from;
    pthread_mutex_lock(&c->lock);
    for (struct cql_prepared *p = c->oldest; p; p = p->newer)
        if (!id || slice_eq(*id, slice_of(p->info.id, 16))) p->unlisted = true;
    pthread_mutex_unlock(&c->lock);
}

/* ---- compiling ---- */

/* MD5 of names and types of a result: result_metadata_id. */
static int hash_meta(struct result_meta *m, struct err *e) {
    struct buf b;
    buf_init(&b, 0);
    for (uint32_t i = 0; i < m->n; i++) {
        buf_printf(&b, "%s.%s.%s ", m->columns[i].keyspace, m->columns[i].table, m->columns[i].name);
        cql_type_print(m->columns[i].type, &b);
        buf_u8(&b, '\n');
    }
    int rc = buf_failed(&b) ? err_nomem(e) : ring_md5(buf_slice(&b), m->id, e);
    buf_fini(&b);
    return rc;
}

static int fill_info(struct cql_prepared *p, struct err *e) {
    struct cql_statement *s = p->statement;
    struct result_column *binds = ARENA_ARRAY(&p->arena, s->binds.n + 1, struct result_column);
    if (!binds) return err_nomem(e);
    const struct schema_table *t = s->table;
    for (uint32_t i = 0; i < s->binds.n; i++) {
        const struct receiver *to = &s->binds.specs[i];
        const char *marker = s->binds.names ? s->binds.names[i] : NULL;
        binds[i] = (struct result_column){.keyspace = to->keyspace ? to->keyspace : t ? t->keyspace->name : "",
                                          .table = to->table ? to->table : t ? t->name : "",
                                          .name = marker ? marker : to->name,
                                          .type = to->type};
        if (!to->type) return err_invalid(e, "Cannot infer type of bind marker %u; use a type hint", i);
    }
    p->info.binds = (struct result_meta){.n = s->binds.n, .columns = binds};
    if (s->result.n && hash_meta(&s->result, e)) return -1;
    p->info.result = s->result;
    p->info.n_pk = s->n_pk;
    p->info.pk_indexes = s->pk_indexes;
    return hash_meta(&p->info.binds, e);
}

static struct cql_prepared *compile_text(struct cql_db *db, const struct schema *schema, struct slice query,
                                         const char *keyspace, enum partitioner_id partitioner, struct err *e) {
    struct cql_prepared *p = calloc(1, sizeof(*p));
    if (!p) return err_null(err_nomem(e));
    atomic_init(&p->refs, 1);
    p->partitioner = partitioner;
    arena_init(&p->arena, PREPARED_CHUNK, PREPARED_ARENA_LIMIT);
    struct prepared_info *info = &p->info;
    info->query = arena_dup(&p->arena, query);
    if (keyspace) info->keyspace = arena_strdup(&p->arena, keyspace);
    if (!info->query.p || (keyspace && !info->keyspace)) {
        err_nomem(e);
        goto failed;
    }
    struct ast_stmt *ast = cql_parse(&p->arena, info->query, true, e);
    struct compat compat = db->options.compat;
    if (!ast || compat_check_prepare(&compat, ast, e)) goto failed;
    bool secret = cql_holds_password(ast->kind, info->query);
    info->shown = secret ? cql_shown(&p->arena, ast->kind, info->query) : info->query;
    const struct ast_name *table = ast_table(ast);
    struct buf id;
    buf_init(&id, 0);
    if (keyspace && !(table && table->keyspace)) buf_put_str(&id, keyspace);
    buf_put_slice(&id, query);
    if (partitioner != PARTITIONER_MURMUR3) buf_u8(&id, 0xff); /* in no UTF-8 */
    int rc = buf_failed(&id) || !info->shown.p ? err_nomem(e) : ring_md5(buf_slice(&id), info->id, e);
    buf_fini(&id);
    if (rc) goto failed;
    struct bind_specs binds = {0};
    struct compile c = {.arena = &p->arena, .schema = schema, .keyspace = info->keyspace, .binds = &binds,
                        .partitioner = partitioner, .compat = db->options.compat, .prepares = true, .err = e,
                        .reading = {clock_wall_us(db->options.clock), db->options.mode == MODE_KEYSPACES}};
    info->statement = p->statement = cql_compile(&c, ast);
    atomic_init(&p->checked, schema->generation);
    if (!p->statement) goto failed;
    /* A statement on tables references those, and not a snapshot of the whole schema. */
    for (const struct table_use *use = p->statement->tables; use; use = use->next) schema_table_ref(use->table);
    if (p->statement->tables) p->statement->schema = NULL;
    else schema_ref(p->statement->schema);
    if (fill_info(p, e) == 0) return p;
failed:
    cql_prepared_unref(p);
    return NULL;
}

/* ---- what a change of the schema does ---- */

/* VALID: unchanged. RECOMPILE: its tables have the same columns, but its text must be compiled again. INVALID: a table
 * is gone, or has other columns. */
enum validity { VALID, RECOMPILE, INVALID };

static enum validity validity_in(const struct schema *now, const struct cql_prepared *p) {
    enum validity validity = p->statement->tables ? VALID : RECOMPILE;
    for (const struct table_use *use = p->statement->tables; use; use = use->next) {
        const struct schema_table *t = schema_table_any(now, use->table->keyspace->name, use->table->name);
        if (!t || !schema_table_same_shape(t, use->table)) return INVALID;
        if (t != use->table) validity = RECOMPILE;
    }
    return validity;
}

void prepared_on_change(void *arg, const struct schema_change *change) {
    struct cql_db *db = arg;
    struct prepared_cache *c = db->prepared;
    bool of_keyspace = change->target == TARGET_KEYSPACE || change->target == TARGET_TYPE;
    if (change->kind == CHANGE_CREATED || change->kind == CHANGE_GONE) return;
    const struct schema *now = catalog_schema(db->options.catalog);
    pthread_mutex_lock(&c->lock);
    for (struct cql_prepared *p = c->oldest, *next; p; p = next) {
        next = p->newer;
        bool uses = false;
        for (const struct table_use *use = p->statement->tables; use && !uses; use = use->next)
            uses = strcmp(use->table->keyspace->name, change->keyspace) == 0 &&
                   (of_keyspace || strcmp(use->table->name, change->name) == 0);
        if (uses && validity_in(now, p) == INVALID) evict_changed(c, p);
    }
    for (uint32_t hash = 0; hash < CHANGES; hash++) {
        if (c->evicted[hash]) columns_changed(c, hash);
        c->evicted[hash] = false;
    }
    c->generation = now->generation;
    pthread_mutex_unlock(&c->lock);
    schema_unref(now);
}

struct cql_prepared *prepared_make(struct cql_db *db, struct slice query, const char *keyspace,
                                  enum partitioner_id partitioner, struct err *e) {
    const struct schema *now = catalog_schema(db->options.catalog);
    struct cql_prepared *p = compile_text(db, now, query, keyspace, partitioner, e);
    schema_unref(now);
    if (p) publish(db->prepared, p);
    return p;
}

/* Compiles the statement for the current schema. Returns NULL if it counts as unprepared. */
static struct cql_prepared *renew(struct cql_db *db, struct cql_prepared *p) {
    const struct schema *now = catalog_schema(db->options.catalog);
    enum validity validity = validity_in(now, p);
    struct cql_prepared *again = NULL;
    struct err ignored = {0};
    if (validity == VALID) {
        atomic_store(&p->checked, now->generation);
        again = p;
    } else {
        const struct prepared_info *info = &p->info;
        if (validity == RECOMPILE)
            again = compile_text(db, now, info->query, info->keyspace, p->partitioner, &ignored);
        if (again) {
            publish(db->prepared, again);
        } else {
            pthread_mutex_lock(&db->prepared->lock);
            evict_changed(db->prepared, p);
            pthread_mutex_unlock(&db->prepared->lock);
        }
        cql_prepared_unref(p);
    }
    schema_unref(now);
    return again;
}

struct cql_prepared *prepared_get(struct cql_db *db, struct slice id, struct err *e) {
    struct prepared_cache *c = db->prepared;
    struct cql_prepared *p = NULL;
    if (id.n == 16) {
        /* The address of a local variable spreads threads over the stripes: each has its own stack. */
        uint8_t local;
        uintptr_t stack = (uintptr_t)&local;
        struct stripe *s = &c->stripes[(stack >> 16 ^ stack >> 23) % STRIPES];
        atomic_fetch_add(&s->readers, 1);
        p = atomic_load(&c->buckets[bucket_of(id.p)]);
        while (p && memcmp(p->info.id, id.p, 16)) p = atomic_load(&p->next);
        if (p) atomic_fetch_add(&p->refs, 1);
        atomic_fetch_sub(&s->readers, 1);
    }
    if (p && !atomic_load_explicit(&p->used, memory_order_relaxed))
        atomic_store_explicit(&p->used, true, memory_order_relaxed);
    if (p &&
        UNLIKELY(atomic_load_explicit(&p->checked, memory_order_relaxed) != catalog_generation(db->options.catalog)))
        p = renew(db, p);
    if (p) return p;
    char hex[33];
    for (int i = 0; i < 16; i++) snprintf(hex + 2 * (size_t)i, 3, "%02x", i < (int)id.n ? id.p[i] : 0);
    err_set(e, ERR_UNPREPARED,
            "Prepared query with ID %s not found (either the query was not prepared on this host (maybe the host has "
            "been restarted?) or you have prepared too many queries and it has been evicted from the internal cache)",
            hex);
    if (id.n == 16) memcpy(e->detail.prepared_id, id.p, 16);
    return NULL;
}
