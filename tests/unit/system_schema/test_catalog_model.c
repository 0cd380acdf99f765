/* Random DDL beside a model of a few lines: changes that end at once or are held, that fail when
 * they end, that cannot be recorded, and starts anew in the middle of everything. After every step
 * each keyspace and table is what the model says, and so was each answer. TALLYTEST_SEED=n tells the
 * dice. */
#include "base/fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "system_schema/catalog.h"
#include "system_schema/system_tables/system_table.h"

#ifdef __SANITIZE_THREAD__
enum { STEPS = 5000 }; /* what the model says of values is proven without it */
#else
enum { STEPS = 20000 };
#endif
enum { KEYSPACES = 2, TABLES = 3, GONE = -1 };

struct object {
    int status;  /* enum schema_status, or GONE */
    int value, next; /* a comment, or durable_writes */
    bool fails;
    bool with_keyspace;
};

struct model {
    struct object keyspaces[KEYSPACES], tables[KEYSPACES][TABLES];
};

struct world {
    struct eng *eng;
    struct catalog *catalog;
    struct model m;
    bool held, fails; /* what the rules say of the next statement */
    int answer;       /* the catalogue's to the last one */
    uint64_t random;
    struct err err;
};

static unsigned draw(struct world *w, unsigned below) {
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (unsigned)(w->random >> 33) % below;
}

static void open_catalog(struct world *w) {
    struct catalog_options o = {.eng = w->eng, .clock = &clock_real, .mode = MODE_KEYSPACES, .ddl_delay = "held"};
    o.node = (struct node_info){"test", "dc1", "rack1", "3.11.2", "3.4.4", "127.0.0.1", 9042};
    w->catalog = catalog_open(&o, &w->err);
    if (!w->catalog) fail_msg("%s", w->err.text);
    w->held = true;
    w->fails = false;
}

/* ---- the model ---- */

static bool is_pending(const struct object *o) {
    return o->status == SCHEMA_CREATING || o->status == SCHEMA_UPDATING || o->status == SCHEMA_DELETING;
}

static void finish_keyspace(struct model *m, int k) {
    for (int t = 0; t < TABLES; t++) {
        struct object *o = &m->tables[k][t];
        if (m->keyspaces[k].status == GONE) *o = (struct object){.status = GONE};
        else if (o->status == SCHEMA_DELETING && o->with_keyspace) o->status = SCHEMA_ACTIVE;
        o->with_keyspace = false;
    }
}

/* The end of what is under way on an object; of (NULL: itself) a keyspace. */
static void finish(struct object *o, const struct object *of) {
    switch (o->status) {
    case SCHEMA_CREATING: o->status = o->fails ? GONE : SCHEMA_ACTIVE; break;
    case SCHEMA_UPDATING:
        if (!o->fails) o->value = o->next;
        o->status = SCHEMA_ACTIVE;
        break;
    case SCHEMA_DELETING:
        if (!o->fails) o->status = GONE;
        else if (of && of->status == SCHEMA_DELETING) o->with_keyspace = true;
        else o->status = SCHEMA_ACTIVE;
        break;
    default: break;
    }
    o->fails = false;
}

static void release_all(struct model *m) {
    for (int k = 0; k < KEYSPACES; k++) {
        for (int t = 0; t < TABLES; t++)
            if (is_pending(&m->tables[k][t]) && !m->tables[k][t].with_keyspace)
                finish(&m->tables[k][t], &m->keyspaces[k]);
        bool dropped = m->keyspaces[k].status == SCHEMA_DELETING;
        finish(&m->keyspaces[k], NULL);
        if (dropped) finish_keyspace(m, k);
    }
}

/* A statement has begun on it. */
static void begin(struct world *w, struct object *o, int status, const struct object *of) {
    o->status = status;
    o->fails = w->fails;
    if (!w->held) finish(o, of);
}

/* ---- statements: the model's answer and the catalogue's ---- */

static void apply(struct world *w, const struct catalog_change *change) {
    struct schema_change out;
    uint32_t unfinished;
    err_clear(&w->err);
    w->answer = catalog_apply(w->catalog, change, &out, &unfinished, &w->err);
}

static int keyspace_statement(struct world *w, int k, enum catalog_op op, int value,
                              const struct catalog_change *change) {
    struct model *m = &w->m;
    struct object *ks = &m->keyspaces[k];
    bool blocked = false;
    int want = -1;
    for (int t = 0; t < TABLES; t++)
        blocked |= is_pending(&m->tables[k][t]) && m->tables[k][t].status != SCHEMA_DELETING;
    if (op == CATALOG_CREATE_KEYSPACE) want = ks->status == GONE ? 1 : -1;
    else if (op == CATALOG_ALTER_KEYSPACE) want = ks->status != SCHEMA_ACTIVE ? -1 : ks->value != value;
    else want = ks->status == SCHEMA_DELETING ? 0 : ks->status != SCHEMA_ACTIVE || blocked ? -1 : 1;
    apply(w, change);
    if (w->answer == 1 && want == 1) {
        ks->next = value;
        if (op == CATALOG_CREATE_KEYSPACE) ks->value = value;
        for (int t = 0; t < TABLES && op == CATALOG_DROP_KEYSPACE; t++) {
            struct object *o = &m->tables[k][t];
            if (o->status == GONE || o->status == SCHEMA_DELETING) continue;
            o->status = SCHEMA_DELETING;
            o->with_keyspace = true;
        }
        begin(w, ks,
              op == CATALOG_CREATE_KEYSPACE  ? SCHEMA_CREATING
              : op == CATALOG_ALTER_KEYSPACE ? SCHEMA_UPDATING
                                             : SCHEMA_DELETING,
              NULL);
        if (op == CATALOG_DROP_KEYSPACE && ks->status != SCHEMA_DELETING) finish_keyspace(m, k);
    }
    return want;
}

static int table_statement(struct world *w, int k, int t, enum catalog_op op, int value,
                           const struct catalog_change *change) {
    const struct object *ks = &w->m.keyspaces[k];
    struct object *o = &w->m.tables[k][t];
    bool usable = ks->status == SCHEMA_ACTIVE || ks->status == SCHEMA_UPDATING;
    int want = -1;
    if (usable && op == CATALOG_CREATE_TABLE) want = o->status == GONE ? 1 : -1;
    if (usable && op == CATALOG_ALTER_TABLE) want = o->status != SCHEMA_ACTIVE ? -1 : o->value != value;
    if (usable && op == CATALOG_DROP_TABLE)
        want = o->status == SCHEMA_DELETING ? 0 : o->status == SCHEMA_ACTIVE ? 1 : -1;
    apply(w, change);
    if (w->answer == 1 && want == 1) {
        o->next = value;
        if (op == CATALOG_CREATE_TABLE) o->value = value;
        begin(w, o,
              op == CATALOG_CREATE_TABLE  ? SCHEMA_CREATING
              : op == CATALOG_ALTER_TABLE ? SCHEMA_UPDATING
                                          : SCHEMA_DELETING,
              ks);
    }
    return want;
}

static const struct schema_option simple[] = {{"class", "SimpleStrategy"}, {"replication_factor", "1"}};

/* What could not be recorded was refused, and nothing has changed. */
static void expect(struct world *w, int want, bool faulty) {
    if (faulty && w->answer == -1 && w->err.code == ERR_SERVER) return;
    if (w->answer != want) fail_msg("answered %d and not %d: %s", w->answer, want, w->answer < 0 ? w->err.text : "");
}

/* A new object's id is written before its record. What ends at once with a failure is written by
 * another thread, too, which tries again later. */
static void arm(struct world *w, enum catalog_op op) {
    bool creates = op == CATALOG_CREATE_KEYSPACE || op == CATALOG_CREATE_TABLE;
    fault_arm(FAULT_KV_WRITE, creates && !(w->fails && !w->held) ? 1 + (int64_t)draw(w, 2) : 1);
}

static void run_statement(struct world *w) {
    int k = (int)draw(w, KEYSPACES), t = (int)draw(w, TABLES), value = (int)draw(w, 2);
    char keyspace[16], table[16], comment[16];
    snprintf(keyspace, sizeof keyspace, "k%d", k);
    snprintf(table, sizeof table, "t%d", t);
    snprintf(comment, sizeof comment, "%d", value);
    struct catalog_column column = {"p", cql_type_scalar(CQL_INT), COLUMN_PARTITION_KEY, false};
    const struct table_settings settings = {.given = SETTING_BIT(comment), .comment = comment};
    bool faulty = draw(w, 8) == 0;
    static const enum catalog_op of_keyspace[] = {CATALOG_CREATE_KEYSPACE, CATALOG_ALTER_KEYSPACE,
                                                  CATALOG_DROP_KEYSPACE};
    static const enum catalog_op of_table[] = {CATALOG_CREATE_TABLE, CATALOG_ALTER_TABLE, CATALOG_DROP_TABLE};
    struct catalog_change change = {.keyspace = keyspace, .durable_writes = -1};
    int want;
    if (draw(w, 4) == 0) {
        change.op = of_keyspace[draw(w, 3)];
        change.durable_writes = (int8_t)value;
        if (change.op == CATALOG_CREATE_KEYSPACE) change.n_replication = 2, change.replication = simple;
        if (faulty) arm(w, change.op);
        want = keyspace_statement(w, k, change.op, value, &change);
    } else {
        change.op = of_table[draw(w, 3)];
        change.name = table;
        if (change.op == CATALOG_CREATE_TABLE) change.n_columns = 1, change.columns = &column;
        if (change.op != CATALOG_DROP_TABLE) change.settings = &settings;
        if (faulty) arm(w, change.op);
        want = table_statement(w, k, t, change.op, value, &change);
    }
    fault_arm(FAULT_KV_WRITE, 0);
    expect(w, want, faulty);
}

/* ---- what is there ---- */

static bool is_freed(const struct catalog *c) {
    for (uint32_t i = 0; i < c->objects->n_all; i++)
        if (object_is_gone(c->objects->all[i])) return false;
    return true;
}

/* What is due has ended, and nothing is being freed while a fault point is armed. */
static void settle(struct world *w) {
    struct catalog *c = w->catalog;
    ddl_step(c->ddl);
    pthread_mutex_lock(&c->objects->lock);
    while (!is_freed(c)) pthread_cond_wait(&c->objects->moved, &c->objects->lock);
    pthread_mutex_unlock(&c->objects->lock);
}

static int status_of(struct catalog *c, const struct object_kind *kind, uint32_t keyspace_id, const char *name,
                     uint32_t *id) {
    for (uint32_t i = 0; i < c->objects->n_all; i++) {
        const struct catalog_object *x = c->objects->all[i];
        if (x->kind != kind || x->keyspace_id != keyspace_id || strcmp(x->name, name) != 0) continue;
        *id = x->id;
        return x->status;
    }
    return GONE;
}

static void check_table(const struct schema *s, const char *keyspace, const char *name, int have,
                        const struct object *o) {
    if (have != o->status) fail_msg("%s.%s has status %d, not %d", keyspace, name, have, o->status);
    const struct schema_table *t = schema_table_any(s, keyspace, name);
    bool shown = o->status != GONE && o->status != SCHEMA_DELETING;
    if ((t != NULL) != shown) fail_msg("%s.%s is %sshown", keyspace, name, t ? "" : "not ");
    if (t && (atoi(t->settings.comment) != o->value || (int)t->status != o->status))
        fail_msg("%s.%s is shown as it is not", keyspace, name);
}

static void check_all(struct world *w) {
    const struct schema *s = catalog_schema(w->catalog);
    uint32_t n = 0, id = 0;
    for (int k = 0; k < KEYSPACES; k++) {
        char keyspace[16], table[16];
        snprintf(keyspace, sizeof keyspace, "k%d", k);
        int have = status_of(w->catalog, &keyspace_kind, 0, keyspace, &id);
        uint32_t keyspace_id = id;
        if (have != w->m.keyspaces[k].status)
            fail_msg("%s has status %d, not %d", keyspace, have, w->m.keyspaces[k].status);
        n += have != GONE;
        for (int t = 0; t < TABLES; t++) {
            snprintf(table, sizeof table, "t%d", t);
            int status = have == GONE ? GONE : status_of(w->catalog, &table_kind, keyspace_id, table, &id);
            n += status != GONE;
            check_table(s, keyspace, table, status, &w->m.tables[k][t]);
        }
    }
    assert_int_equal(w->catalog->objects->n_all, n);
    schema_unref(s);
}

/* ---- steps ---- */

static void set_rule(struct world *w) {
    const struct ddl_subject everything = {"*", "*", "*"};
    w->held = draw(w, 2);
    w->fails = draw(w, 4) == 0;
    pthread_mutex_lock(&w->catalog->objects->lock);
    const char *delay = w->held ? "held" : "none", *failure = w->fails ? "no luck" : "";
    assert_int_equal(rules_set(w->catalog->ddl, &everything, delay, failure, &w->err), 0);
    pthread_mutex_unlock(&w->catalog->objects->lock);
}

/* Rules are forgotten, with what they said of changes under way; the changes are not. */
static void restart(struct world *w) {
    catalog_close(w->catalog);
    open_catalog(w);
    for (int k = 0; k < KEYSPACES; k++) {
        w->m.keyspaces[k].fails = false;
        for (int t = 0; t < TABLES; t++) w->m.tables[k][t].fails = false;
    }
}

/* One change under way ends, those before it may not. */
static void release_one(struct world *w) {
    int k = (int)draw(w, KEYSPACES), t = (int)draw(w, TABLES + 1);
    struct object *ks = &w->m.keyspaces[k], *o = t == TABLES ? ks : &w->m.tables[k][t];
    char keyspace[16], table[16];
    if (!is_pending(o) || o->with_keyspace) return;
    snprintf(keyspace, sizeof keyspace, "k%d", k);
    snprintf(table, sizeof table, "t%d", t);
    pthread_mutex_lock(&w->catalog->objects->lock);
    for (uint32_t i = 0; i < w->catalog->objects->n_all; i++) {
        struct catalog_object *x = w->catalog->objects->all[i];
        const struct form_context at = object_context(w->catalog->objects, x);
        if (!object_is_gone(x) && strcmp(at.keyspace, keyspace) == 0 &&
            strcmp(at.name, t == TABLES ? keyspace : table) == 0)
            x->change->due_us = 0;
    }
    pthread_mutex_unlock(&w->catalog->objects->lock);
    bool dropped = ks->status == SCHEMA_DELETING && o == ks;
    finish(o, o == ks ? NULL : ks);
    if (dropped) finish_keyspace(&w->m, k);
}

static void step(struct world *w) {
    unsigned what = draw(w, 40);
    if (what == 0) {
        restart(w);
    } else if (what < 3) {
        catalog_release_held(w->catalog);
        release_all(&w->m);
    } else if (what < 9) {
        set_rule(w);
    } else if (what < 14) {
        release_one(w);
    } else {
        run_statement(w);
    }
    settle(w);
    check_all(w);
}

static void test_the_catalogue_is_what_the_model_says(void **state) {
    (void)state;
    const char *seed = getenv("TALLYTEST_SEED");
    struct world w = {.random = 0x9e3779b97f4a7c15 * (seed ? strtoull(seed, NULL, 10) + 1 : 1)};
    struct eng_options o = {.clock = &clock_real, .durability = ENG_NONE};
    w.eng = eng_open(&o, &w.err);
    assert_non_null(w.eng);
    for (int k = 0; k < KEYSPACES; k++) {
        w.m.keyspaces[k].status = GONE;
        for (int t = 0; t < TABLES; t++) w.m.tables[k][t].status = GONE;
    }
    open_catalog(&w);
    for (int i = 0; i < STEPS; i++) step(&w);
    catalog_close(w.catalog);
    eng_close(w.eng);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_catalogue_is_what_the_model_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
