/* The store of roles: what is changed is there after a restart, what is dropped takes its grants
 * along, what is damaged is left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "access/credentials.h"
#include "access/password.h"
#include "engine/named.h"

struct world {
    struct eng *eng;
    struct catalog *catalog;
    struct access_control *access;
    struct err err;
};

static void start_catalog(struct world *w) {
    struct catalog_options o = {.eng = w->eng, .clock = &clock_real, .mode = MODE_CASSANDRA};
    o.node = (struct node_info){"test", "dc1", "rack1", "5.0.8", "3.4.7", "127.0.0.1", 9042};
    w->catalog = catalog_open(&o, &w->err);
    assert_non_null(w->catalog);
}

static void start_access(struct world *w) {
    const struct access_options ao = {.eng = w->eng,
                                      .catalog = w->catalog,
                                      .first_role = "root",
                                      .first_password = "root"};
    w->access = access_open(&ao, &w->err);
    assert_non_null(w->access);
}

static void start(struct world *w) {
    start_catalog(w);
    start_access(w);
}

static void stop(struct world *w) {
    access_close(w->access);
    catalog_close(w->catalog);
}

static void restart(struct world *w) {
    stop(w);
    start(w);
}

static int setup(void **state) {
    struct world *w = *state = calloc(1, sizeof *w);
    const struct eng_options o = {.clock = &clock_real, .durability = ENG_NONE};
    w->eng = eng_open(&o, &w->err);
    assert_non_null(w->eng);
    start(w);
    return 0;
}

static int teardown(void **state) {
    struct world *w = *state;
    stop(w);
    eng_close(w->eng);
    free(w);
    return 0;
}

static void apply(struct world *w, enum catalog_op op, const char *keyspace, const char *table) {
    static const struct schema_option simple[] = {{"class", "SimpleStrategy"}, {"replication_factor", "1"}};
    const struct catalog_column key = {"p", cql_type_scalar(CQL_INT), COLUMN_PARTITION_KEY, false};
    struct catalog_change c = {.op = op, .keyspace = keyspace, .name = table, .durable_writes = -1};
    struct schema_change out;
    uint32_t unfinished;
    if (op == CATALOG_CREATE_KEYSPACE) c.n_replication = 2, c.replication = simple;
    if (op == CATALOG_CREATE_TABLE) c.n_columns = 1, c.columns = &key;
    assert_int_equal(catalog_apply(w->catalog, &c, &out, &unfinished, &w->err), 1);
}

static const struct role_set *put(struct world *w, const struct role *r) {
    access_begin(w->access);
    const struct role_set *s = access_put(w->access, r, &w->err);
    return access_end(w->access, s ? 0 : -1, &w->err) == 0 ? s : NULL;
}

static uint32_t grants_of(struct world *w, const char *name) {
    const struct role_set *s = access_roles(w->access);
    const struct role *r = role_find(s, name);
    uint32_t n = r ? r->n_grants : UINT32_MAX;
    role_set_unref(s);
    return n;
}

static void test_roles_are_there_after_a_restart(void **state) {
    static const char *const root[] = {"root"};
    static const struct grant grants[] = {{"data", 1 << MAY_SELECT}};
    struct world *w = *state;
    uint64_t before = access_generation(w->access);
    assert_non_null(put(w, &(struct role){.name = "a",
                                          .hash = "",
                                          .login = true,
                                          .n_member_of = 1,
                                          .member_of = root,
                                          .n_grants = 1,
                                          .grants = grants}));
    assert_int_not_equal(access_generation(w->access), before);
    restart(w);
    const struct role_set *s = access_roles(w->access);
    const struct role *a = role_find(s, "a"), *first = role_find(s, "root");
    assert_int_equal(s->n, 2);
    assert_true(a && a->login && !a->superuser && a->n_grants == 1 && a->n_member_of == 1);
    assert_true(first && first->superuser && password_verify(first->hash, "root"));
    role_set_unref(s);
}

static void test_who_is_dropped_leaves_nothing_behind(void **state) {
    static const char *const a[] = {"a"};
    static const struct grant grants[] = {{"roles", 1 << MAY_ALTER}, {"roles/a", 1 << MAY_DROP}};
    struct world *w = *state;
    put(w, &(struct role){.name = "a", .hash = ""});
    put(w, &(struct role){.name = "b", .hash = "", .n_member_of = 1, .member_of = a, .n_grants = 2, .grants = grants});
    access_begin(w->access);
    assert_non_null(access_drop(w->access, "a", &w->err));
    assert_int_equal(access_end(w->access, 0, &w->err), 0);
    for (int i = 0; i < 2; i++, restart(w)) {
        const struct role_set *s = access_roles(w->access);
        assert_null(role_find(s, "a"));
        assert_int_equal(role_find(s, "b")->n_member_of, 0);
        assert_int_equal(role_find(s, "b")->n_grants, 1);
        role_set_unref(s);
    }
}

static void test_grants_go_with_tables_and_keyspaces(void **state) {
    static const struct grant grants[] = {{"data/k", 1 << MAY_SELECT},   {"data/k/*", 1 << MAY_SELECT},
                                          {"data/k/t", 1 << MAY_SELECT}, {"data/k/u", 1 << MAY_SELECT},
                                          {"data/k2", 1 << MAY_SELECT},  {"functions/k", 1 << MAY_EXECUTE}};
    struct world *w = *state;
    apply(w, CATALOG_CREATE_KEYSPACE, "k", NULL);
    apply(w, CATALOG_CREATE_KEYSPACE, "k2", NULL);
    apply(w, CATALOG_CREATE_TABLE, "k", "t");
    apply(w, CATALOG_CREATE_TABLE, "k", "u");
    put(w, &(struct role){.name = "a", .hash = "", .n_grants = 6, .grants = grants});
    apply(w, CATALOG_DROP_TABLE, "k", "t");
    assert_int_equal(grants_of(w, "a"), 5);
    apply(w, CATALOG_CREATE_TABLE, "k", "t");
    assert_int_equal(grants_of(w, "a"), 5); /* its new self was granted to nobody */
    apply(w, CATALOG_DROP_KEYSPACE, "k", NULL);
    assert_int_equal(grants_of(w, "a"), 1);
    restart(w);
    assert_int_equal(grants_of(w, "a"), 1);
}

/* Dropped while the records could not be told: the next start takes them away. */
static void test_grants_on_what_is_gone_go_at_the_start(void **state) {
    static const struct grant grants[] = {{"data", 1 << MAY_SELECT},
                                          {"data/gone", 1 << MAY_SELECT},
                                          {"data/gone/t", 1 << MAY_SELECT},
                                          {"roles", 1 << MAY_DROP}};
    struct world *w = *state;
    put(w, &(struct role){.name = "a", .hash = "", .n_grants = 4, .grants = grants});
    restart(w);
    assert_int_equal(grants_of(w, "a"), 2);
}

static void test_a_damaged_record_is_left_out(void **state) {
    struct world *w = *state;
    put(w, &(struct role){.name = "a", .hash = ""});
    assert_int_equal(eng_meta_put(w->eng, slice_str("role/bad"), slice_str("nonsense"), &w->err), 0);
    restart(w);
    assert_int_equal(grants_of(w, "a"), 0);
    assert_int_equal(grants_of(w, "bad"), UINT32_MAX);
}

static void test_bounds_are_refused_with_words(void **state) {
    struct world *w = *state;
    char name[ROLE_NAME_MAX + 2];
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    assert_null(put(w, &(struct role){.name = name, .hash = ""}));
    assert_int_equal(w->err.code, ERR_INVALID);
    assert_string_equal(w->err.text, "A role's name may have at most 255 bytes");
}

/* ---- several servers on a store ---- */

static void open_two(struct world *w) {
    struct eng_options o = {.clock = &clock_real, .durability = ENG_NONE, .shared = true};
    for (int i = 0; i < 2; i++) {
        o.beside = i ? w[0].eng : NULL;
        w[i].eng = eng_open(&o, &w[i].err);
        assert_non_null(w[i].eng);
        start(&w[i]);
    }
}

static void close_two(struct world *w) {
    for (int i = 0; i < 2; i++) {
        stop(&w[i]);
        eng_close(w[i].eng);
    }
}

static void test_what_another_server_changes_is_known(void **state) {
    enum { HANG_S = 120, EACH_US = 1000 };
    static const struct grant grants[] = {{"data", 1 << MAY_SELECT}};
    struct world w[2] = {0};
    (void)state;
    open_two(w);
    assert_non_null(put(&w[0], &(struct role){.name = "a", .hash = "", .n_grants = 1, .grants = grants}));
    for (int i = 0; grants_of(&w[1], "a") != 1 && i < HANG_S * 1000000 / EACH_US; i++) usleep(EACH_US);
    assert_int_equal(grants_of(&w[1], "a"), 1);
    access_begin(w[1].access);
    assert_non_null(access_drop(w[1].access, "a", &w[1].err));
    assert_int_equal(access_end(w[1].access, 0, &w[1].err), 0);
    for (int i = 0; grants_of(&w[0], "a") == 1 && i < HANG_S * 1000000 / EACH_US; i++) usleep(EACH_US);
    assert_int_equal(grants_of(&w[0], "a"), UINT32_MAX);
    close_two(w);
}

static void test_of_two_servers_that_change_roles_at_once_one_decides_anew(void **state) {
    struct world w[2] = {0};
    (void)state;
    open_two(w);
    assert_non_null(put(&w[1], &(struct role){.name = "a", .hash = ""})); /* it has seen everything until here */
    eng_meta_unwatch(w[1].eng, NULL);
    assert_non_null(put(&w[0], &(struct role){.name = "b", .hash = ""}));
    access_begin(w[1].access);
    assert_non_null(access_put(w[1].access, &(struct role){.name = "c", .hash = ""}, &w[1].err));
    assert_int_equal(access_end(w[1].access, 0, &w[1].err), ACCESS_AGAIN);
    assert_int_equal(grants_of(&w[1], "c"), UINT32_MAX);
    const struct role_set *s = access_begin(w[1].access);
    assert_non_null(role_find(s, "b"));
    assert_non_null(access_put(w[1].access, &(struct role){.name = "c", .hash = ""}, &w[1].err));
    assert_int_equal(access_end(w[1].access, 0, &w[1].err), 0);
    for (int i = 0; i < 2; i++) {
        restart(&w[i]);
        for (const char *name = "a\0b\0c\0"; *name; name += 2) assert_int_equal(grants_of(&w[i], name), 0);
    }
    close_two(w);
}

struct successor {
    struct world *by;
    struct catalog_listener gone, removed; /* called before and after the roles' listener */
    atomic_bool made, looked;
};

static const struct grant on_table[] = {{"data/ks/t", 1 << MAY_SELECT}};

static void make_successor(void *arg, const struct schema_change *c) {
    struct successor *s = arg;
    if (c->kind != CHANGE_GONE) return;
    apply(s->by, CATALOG_CREATE_TABLE, "ks", "t");
    assert_non_null(put(s->by, &(struct role){.name = "a", .hash = "", .n_grants = 1, .grants = on_table}));
    atomic_store(&s->made, true);
}

static void note_looked(void *arg, const struct schema_change *c) {
    struct successor *s = arg;
    if (c->kind == CHANGE_GONE) atomic_store(&s->looked, true);
}

/* The second server hears that a table is gone, and not yet that the first has made it anew and granted rights on
 * it. */
static void test_grants_on_a_table_that_another_server_makes_anew_stay(void **state) {
    enum { HANG_S = 120, EACH_US = 1000 };
    struct world w[2] = {0};
    struct successor s = {.by = &w[0]};
    struct eng_options o = {.clock = &clock_real, .durability = ENG_NONE, .shared = true};
    (void)state;
    w[0].eng = eng_open(&o, &w[0].err);
    start(&w[0]);
    apply(&w[0], CATALOG_CREATE_KEYSPACE, "ks", NULL);
    apply(&w[0], CATALOG_CREATE_TABLE, "ks", "t");
    assert_non_null(put(&w[0], &(struct role){.name = "a", .hash = "", .n_grants = 1, .grants = on_table}));
    o.beside = w[0].eng;
    w[1].eng = eng_open(&o, &w[1].err);
    start_catalog(&w[1]);
    s.gone = (struct catalog_listener){.changed = make_successor, .arg = &s};
    catalog_on_change(w[1].catalog, &s.gone);
    start_access(&w[1]);
    s.removed = (struct catalog_listener){.changed = note_looked, .arg = &s};
    catalog_on_change(w[1].catalog, &s.removed);

    apply(&w[0], CATALOG_DROP_TABLE, "ks", "t");
    for (int i = 0; !atomic_load(&s.looked) && i < HANG_S * 1000000 / EACH_US; i++) usleep(EACH_US);
    assert_true(atomic_load(&s.made) && atomic_load(&s.looked));
    for (int i = 0; i < 2; i++) {
        access_begin(w[i].access);
        assert_int_equal(access_end(w[i].access, 0, &w[i].err), 0);
        assert_int_equal(grants_of(&w[i], "a"), 1);
    }
    catalog_off_change(w[1].catalog, &s.gone);
    catalog_off_change(w[1].catalog, &s.removed);
    close_two(w);
}

static void test_changes_of_a_statement_that_fails_are_not_made(void **state) {
    struct world *w = *state;
    access_begin(w->access);
    assert_non_null(access_put(w->access, &(struct role){.name = "a", .hash = ""}, &w->err));
    assert_int_equal(access_end(w->access, -1, &w->err), -1);
    assert_int_equal(grants_of(w, "a"), UINT32_MAX);
    restart(w);
    assert_int_equal(grants_of(w, "a"), UINT32_MAX);
}

/* ---- the file of credentials ---- */

static int read_file(struct world *w, const char *text, mode_t mode, struct access_keys *keys) {
    char path[] = "/tmp/tally-credentials-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && !fchmod(fd, mode));
    close(fd);
    err_clear(&w->err);
    int rc = credentials_read(path, w->access, keys, &w->err);
    unlink(path);
    return rc;
}

static void test_credentials_make_logins_and_keys(void **state) {
    struct world *w = *state;
    struct access_keys keys;
    assert_int_equal(read_file(w,
                               "# who may\nuser alice-at-123456789012 s3cret\n\nkey AKIA1 shh "
                               "alice-at-123456789012\nkey AKIA2 shh2 root token+/==\n",
                               0600, &keys),
                     0);
    const struct role_set *s = access_roles(w->access);
    const struct role *alice = role_find(s, "alice-at-123456789012");
    assert_true(alice && alice->login && password_verify(alice->hash, "s3cret"));
    role_set_unref(s);
    assert_string_equal(access_key_find(&keys, slice_str("AKIA1"))->role, "alice-at-123456789012");
    assert_null(access_key_find(&keys, slice_str("AKIA1"))->token);
    assert_string_equal(access_key_find(&keys, slice_str("AKIA2"))->token, "token+/==");
    assert_null(access_key_find(&keys, slice_str("AKIA")));
    access_keys_fini(&keys);
    restart(w); /* it is no record */
    assert_int_equal(grants_of(w, "alice-at-123456789012"), UINT32_MAX);
}

static void test_credentials_that_are_wrong_name_the_line(void **state) {
    static const struct {
        const char *text;
        mode_t mode;
        const char *word;
    } bad[] = {{"user a\n", 0600, "line 1: it must be: user NAME PASSWORD"},
               {"user a b\nkey x\n", 0600, "line 2: it must be: key"},
               {"grant a\n", 0600, "line 1: a line begins with"},
               {"key A s nobody\n", 0600, "for role nobody, which there is not"},
               {"user a $2a$31$JSJEMFm6GeaW9XxT5JIheuEtPvat6i7uKbnTcxX3c1wshIIsGyUtG\n", 0600,
                "line 1: the hash of this password has too great a cost"},
               {"user a b\nkey A s a\nkey A s a\n", 0600, "line 3: this access key is there already"},
               {"user a b\n", 0604, "may be read by everybody"}};
    struct world *w = *state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct access_keys keys;
        assert_int_equal(read_file(w, bad[i].text, bad[i].mode, &keys), -1);
        assert_int_equal(w->err.code, ERR_CONFIG);
        assert_non_null(strstr(w->err.text, bad[i].word));
        access_keys_fini(&keys);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_roles_are_there_after_a_restart, setup, teardown),
        cmocka_unit_test_setup_teardown(test_who_is_dropped_leaves_nothing_behind, setup, teardown),
        cmocka_unit_test_setup_teardown(test_grants_go_with_tables_and_keyspaces, setup, teardown),
        cmocka_unit_test_setup_teardown(test_grants_on_what_is_gone_go_at_the_start, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_damaged_record_is_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bounds_are_refused_with_words, setup, teardown),
        cmocka_unit_test(test_what_another_server_changes_is_known),
        cmocka_unit_test(test_of_two_servers_that_change_roles_at_once_one_decides_anew),
        cmocka_unit_test(test_grants_on_a_table_that_another_server_makes_anew_stay),
        cmocka_unit_test_setup_teardown(test_changes_of_a_statement_that_fails_are_not_made, setup, teardown),
        cmocka_unit_test_setup_teardown(test_credentials_make_logins_and_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(test_credentials_that_are_wrong_name_the_line, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
