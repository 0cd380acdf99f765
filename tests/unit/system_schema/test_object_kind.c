/* A kind of objects that the catalogue has never heard of: one row of operations, and it is
 * created, recorded, found again, guarded and dropped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/named.h"
#include "system_schema/catalog.h"
#include "system_schema/system_tables/system_table.h"

/* ---- the kind: a note on a table ---- */

struct note {
    const char *table, *text;
};

static void encode(const void *definition, struct buf *out) {
    const struct note *n = definition;
    form_put_text(out, n->table);
    form_put_text(out, n->text);
}

static void *decode(struct slice form, const struct form_context *at, struct arena *a, struct err *e) {
    struct note *n = ARENA_NEW(a, struct note);
    struct rd rd = rd_of(form);
    if (!n) {
        err_nomem(e);
        return NULL;
    }
    n->table = form_get_text(&rd, a, e);
    n->text = form_get_text(&rd, a, e);
    if (!rd.bad && rd_left(&rd) == 0) return n;
    err_set(e, ERR_SERVER, "the record of note %s is damaged", at->name);
    return NULL;
}

static int check(const void *definition, struct err *e) {
    const struct note *n = definition;
    return strlen(n->text) <= 10 ? 0 : err_invalid(e, "A note has at most 10 characters");
}

static int depend(const void *definition, object_need_fn need, void *arg) {
    return need(arg, &table_kind, ((const struct note *)definition)->table);
}

static bool has_old_keys(const void *definition) {
    (void)definition;
    return false;
}

static bool same_shape(const void *a, const void *b) {
    (void)a, (void)b;
    return true;
}

static const struct object_kind *const needs[] = {&table_kind, NULL};
static const struct object_kind note_kind = {.word = "note",
                                             .tag = 'n',
                                             .in_keyspace = true,
                                             .target = TARGET_TYPE,
                                             .encode = encode,
                                             .decode = decode,
                                             .check = check,
                                             .needs = needs,
                                             .depend = depend,
                                             .has_old_keys = has_old_keys,
                                             .same_shape = same_shape};
static const struct object_kind *const kinds[] = {&note_kind};

/* ---- the world ---- */

struct world {
    struct eng *eng;
    struct catalog *catalog;
    struct catalog_listener listener;
    struct schema_change told;
    struct err err;
};

static void on_change(void *arg, const struct schema_change *change) { ((struct world *)arg)->told = *change; }

static void catalog_start(struct world *w, const char *delay) {
    struct catalog_options o = {
        .eng = w->eng, .clock = &clock_real, .mode = MODE_KEYSPACES, .n_kinds = 1, .kinds = kinds};
    o.node = (struct node_info){"test", "dc1", "rack1", "3.11.2", "3.4.4", "127.0.0.1", 9042};
    o.ddl_delay = delay;
    assert_non_null(w->catalog = catalog_open(&o, &w->err));
    w->listener = (struct catalog_listener){.changed = on_change, .arg = w};
    catalog_on_change(w->catalog, &w->listener);
}

static void world_restart(struct world *w, const char *delay) {
    catalog_close(w->catalog);
    catalog_start(w, delay);
}

static int apply(struct world *w, const struct catalog_change *change) {
    struct schema_change out;
    uint32_t unfinished;
    err_clear(&w->err);
    return catalog_apply(w->catalog, change, &out, &unfinished, &w->err);
}

static void world_open(struct world *w) {
    static const struct schema_option simple[] = {{"class", "SimpleStrategy"}, {"replication_factor", "1"}};
    static const struct eng_options eo = {.clock = &clock_real, .durability = ENG_NONE};
    const struct catalog_column p = {"p", cql_type_scalar(CQL_INT), COLUMN_PARTITION_KEY, false};
    *w = (struct world){.eng = eng_open(&eo, &w->err)};
    assert_non_null(w->eng);
    catalog_start(w, "none");
    assert_int_equal(apply(w, &(struct catalog_change){.op = CATALOG_CREATE_KEYSPACE,
                                                       .keyspace = "ks",
                                                       .durable_writes = -1,
                                                       .n_replication = 2,
                                                       .replication = simple}),
                     1);
    assert_int_equal(apply(w, &(struct catalog_change){.op = CATALOG_CREATE_TABLE,
                                                       .keyspace = "ks",
                                                       .name = "t",
                                                       .n_columns = 1,
                                                       .columns = &p}),
                     1);
}

static void world_close(struct world *w) {
    catalog_close(w->catalog);
    eng_close(w->eng);
}

static int make_note(struct world *w, const char *name, const char *table, const char *text) {
    const struct note n = {table, text};
    return apply(w, &(struct catalog_change){.op = CATALOG_CREATE_OBJECT,
                                             .kind = &note_kind,
                                             .keyspace = "ks",
                                             .name = name,
                                             .definition = &n});
}

static int drop_note(struct world *w, const char *name) {
    return apply(
        w, &(struct catalog_change){.op = CATALOG_DROP_OBJECT, .kind = &note_kind, .keyspace = "ks", .name = name});
}

static int drop_table(struct world *w) {
    return apply(w, &(struct catalog_change){.op = CATALOG_DROP_TABLE, .keyspace = "ks", .name = "t"});
}

static const struct catalog_object *find(struct world *w, const char *name) {
    const struct catalog_object *ks = object_find(w->catalog->objects, &keyspace_kind, 0, "ks");
    return ks ? object_find(w->catalog->objects, &note_kind, ks->id, name) : NULL;
}

static void release(struct world *w) {
    catalog_release_held(w->catalog);
    ddl_step(w->catalog->ddl);
}

static void test_object_of_a_new_kind_is_made_found_again_and_dropped(void **state) {
    (void)state;
    struct world w;
    world_open(&w);
    assert_int_equal(make_note(&w, "n", "t", "hello"), 1);
    assert_int_equal(w.told.target, TARGET_TYPE);
    assert_string_equal(w.told.name, "n");
    assert_int_equal(make_note(&w, "n", "t", "hello"), -1);
    assert_string_equal(w.err.text, "A note named 'ks.n' already exists");
    assert_int_equal(make_note(&w, "t", "t", "its own"), 1); /* names of kinds do not meet */
    world_restart(&w, "none");
    struct arena a;
    arena_init(&a, 1024, 0);
    const struct catalog_object *x = find(&w, "n");
    const struct form_context at = object_context(w.catalog->objects, x);
    const struct note *n = x->kind->decode(x->form, &at, &a, &w.err);
    assert_string_equal(n->text, "hello");
    arena_fini(&a);
    assert_int_equal(drop_note(&w, "n"), 1);
    assert_int_equal(w.told.kind, CHANGE_GONE);
    assert_int_equal(drop_note(&w, "n"), -1);
    world_restart(&w, "none");
    assert_null(find(&w, "n"));
    assert_non_null(find(&w, "t"));
    world_close(&w);
}

static void test_what_an_object_needs_is_there_and_stays(void **state) {
    (void)state;
    struct world w;
    world_open(&w);
    assert_int_equal(make_note(&w, "n", "nowhere", "x"), -1);
    assert_string_equal(w.err.text, "The table ks.nowhere that n needs doesn't exist");
    assert_int_equal(make_note(&w, "n", "t", "longer than ten"), -1);
    assert_string_equal(w.err.text, "A note has at most 10 characters");
    assert_int_equal(make_note(&w, "n", "t", "x"), 1);
    assert_int_equal(drop_table(&w), -1);
    assert_string_equal(w.err.text, "Cannot drop table 'ks.t': note n needs it");
    assert_int_equal(drop_note(&w, "n"), 1);
    assert_int_equal(drop_table(&w), 1);
    world_close(&w);
}

static void test_an_object_goes_with_its_keyspace(void **state) {
    (void)state;
    struct world w;
    world_open(&w);
    assert_int_equal(make_note(&w, "n", "t", "x"), 1);
    assert_int_equal(apply(&w, &(struct catalog_change){.op = CATALOG_DROP_KEYSPACE, .keyspace = "ks"}), 1);
    world_restart(&w, "none");
    ddl_step(w.catalog->ddl);
    assert_null(find(&w, "n"));
    world_close(&w);
}

static void test_a_restart_at_each_status_goes_on(void **state) {
    (void)state;
    struct world w;
    world_open(&w);
    world_restart(&w, "held");
    assert_int_equal(make_note(&w, "n", "t", "x"), 1);
    world_restart(&w, "held");
    assert_int_equal(find(&w, "n")->status, SCHEMA_CREATING);
    assert_int_equal(drop_note(&w, "n"), -1);
    assert_string_equal(w.err.text, "Note 'n' is CREATING: wait until it is ACTIVE");
    release(&w);
    assert_int_equal(find(&w, "n")->status, SCHEMA_ACTIVE);
    world_restart(&w, "held");
    assert_int_equal(find(&w, "n")->status, SCHEMA_ACTIVE);
    assert_int_equal(drop_note(&w, "n"), 1);
    world_restart(&w, "held");
    assert_null(find(&w, "n"));
    assert_int_equal(make_note(&w, "n", "t", "x"), -1);
    assert_string_equal(w.err.text, "Note 'n' is DELETING: wait until it is gone");
    assert_int_equal(drop_note(&w, "n"), 0);
    release(&w);
    world_restart(&w, "none");
    assert_int_equal(make_note(&w, "n", "t", "x"), 1);
    world_close(&w);
}

static void test_a_damaged_object_is_set_aside(void **state) {
    (void)state;
    struct world w;
    world_open(&w);
    assert_int_equal(make_note(&w, "n", "t", "x"), 1);
    uint8_t key[RECORD_KEY_SIZE];
    record_key('n', find(&w, "n")->id, key);
    assert_int_equal(eng_meta_put(w.eng, slice_of(key, sizeof key), slice_str("\2\1"), &w.err), 0);
    world_restart(&w, "none");
    assert_int_equal(w.catalog->objects->n_set_aside, 1);
    assert_null(find(&w, "n"));
    assert_int_equal(drop_table(&w), 1);
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_object_of_a_new_kind_is_made_found_again_and_dropped),
        cmocka_unit_test(test_what_an_object_needs_is_there_and_stays),
        cmocka_unit_test(test_an_object_goes_with_its_keyspace),
        cmocka_unit_test(test_a_restart_at_each_status_goes_on),
        cmocka_unit_test(test_a_damaged_object_is_set_aside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
