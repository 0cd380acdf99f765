/* Records of roles, sets of them, and what follows from memberships and from grants on what is above. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "access/role.h"

static const struct role_set *with(const struct role_set *s, const struct role *r) {
    const struct role_set *next = role_set_with(s, r->name, r);
    assert_non_null(next);
    role_set_unref(s);
    return next;
}

static void test_texts_of_resources_are_shown_again(void **state) {
    static const struct {
        struct resource on;
        const char *text, *shown;
    } all[] = {{{RESOURCE_OF_ALL_KEYSPACES, NULL, NULL}, "data", "<all keyspaces>"},
               {{RESOURCE_OF_KEYSPACE, "k", NULL}, "data/k", "<keyspace k>"},
               {{RESOURCE_OF_ALL_TABLES, "k", NULL}, "data/k/*", "<all tables in k>"},
               {{RESOURCE_OF_TABLE, "k", "t"}, "data/k/t", "<table k.t>"},
               {{RESOURCE_OF_ALL_ROLES, NULL, NULL}, "roles", "<all roles>"},
               {{RESOURCE_OF_ROLE, NULL, "a/b"}, "roles/a/b", "<role a/b>"},
               {{RESOURCE_OF_ALL_FUNCTIONS, NULL, NULL}, "functions", "<all functions>"},
               {{RESOURCE_OF_ALL_FUNCTIONS_IN, "k", NULL}, "functions/k", "<all functions in k>"},
               {{RESOURCE_OF_ALL_MBEANS, NULL, NULL}, "mbean", "<all mbeans>"}};
    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct buf text, shown, again;
        buf_init(&text, 0), buf_init(&shown, 0), buf_init(&again, 0);
        resource_text(&all[i].on, &text);
        resource_show(&all[i].on, &shown);
        resource_show_text(all[i].text, &again);
        assert_true(slice_is(buf_slice(&text), all[i].text));
        assert_true(slice_is(buf_slice(&shown), all[i].shown));
        assert_true(slice_is(buf_slice(&again), all[i].shown));
        buf_fini(&text), buf_fini(&shown), buf_fini(&again);
    }
}

/* Every record that is damaged anywhere is refused, or reads as a role that encodes to the same bytes. */
static void test_a_record_comes_back_and_a_damaged_one_is_refused(void **state) {
    static const char *const member_of[] = {"a", "b"};
    static const struct grant grants[] = {{"data", 1 << MAY_SELECT}, {"data/k/t", 1 << MAY_MODIFY | 1 << MAY_ALTER}};
    const struct role r = {.name = "r",
                           .hash = "h",
                           .superuser = true,
                           .n_member_of = 2,
                           .member_of = member_of,
                           .n_grants = 2,
                           .grants = grants};
    struct buf form, again;
    struct arena a;
    struct role out;
    struct err e = {0};
    (void)state;
    arena_init(&a, 1024, 0);
    buf_init(&form, 0), buf_init(&again, 0);
    role_encode(&r, &form);
    assert_int_equal(role_decode("r", buf_slice(&form), &a, &out, &e), 0);
    role_encode(&out, &again);
    assert_true(slice_eq(buf_slice(&form), buf_slice(&again)));
    for (size_t i = 0; i < form.n; i++)
        for (int bit = 0; bit < 8; bit++) {
            form.p[i] ^= (uint8_t)(1 << bit);
            err_clear(&e);
            if (!role_decode("r", buf_slice(&form), &a, &out, &e)) {
                buf_clear(&again, SIZE_MAX);
                role_encode(&out, &again);
                assert_true(slice_eq(buf_slice(&form), buf_slice(&again)));
            } else {
                assert_int_equal(e.code, ERR_SERVER);
            }
            form.p[i] ^= (uint8_t)(1 << bit);
        }
    for (size_t n = 0; n < form.n; n++) {
        err_clear(&e);
        assert_int_equal(role_decode("r", slice_of(form.p, n), &a, &out, &e), -1);
    }
    buf_fini(&form), buf_fini(&again);
    arena_fini(&a);
}

static void test_permissions_come_from_above_and_from_memberships(void **state) {
    static const char *const to_b[] = {"b"}, *const to_c[] = {"c"};
    static const struct grant on_table[] = {{"data/k/t", 1 << MAY_MODIFY}},
                              on_keyspace[] = {{"data/k", 1 << MAY_SELECT}}, on_all[] = {{"data", 1 << MAY_DROP}};
    const struct role
        a = {.name = "a", .hash = "", .n_member_of = 1, .member_of = to_b, .n_grants = 1, .grants = on_table},
        b = {.name = "b", .hash = "", .n_member_of = 1, .member_of = to_c, .n_grants = 1, .grants = on_keyspace},
        c = {.name = "c", .hash = "", .n_grants = 1, .grants = on_all},
        root = {.name = "root", .hash = "", .superuser = true};
    const struct resource t = {RESOURCE_OF_TABLE, "k", "t"}, t2 = {RESOURCE_OF_TABLE, "k", "t2"},
                          other = {RESOURCE_OF_TABLE, "k2", "t"};
    const struct role_set *s = with(with(with(with(role_set_empty(), &c), &a), &root), &b);
    (void)state;
    assert_int_equal(s->n, 4);
    assert_int_equal(role_permissions(s, "a", &t), 1 << MAY_MODIFY | 1 << MAY_SELECT | 1 << MAY_DROP);
    assert_int_equal(role_permissions(s, "a", &t2), 1 << MAY_SELECT | 1 << MAY_DROP);
    assert_int_equal(role_permissions(s, "a", &other), 1 << MAY_DROP);
    assert_int_equal(role_permissions(s, "b", &t), 1 << MAY_SELECT | 1 << MAY_DROP);
    assert_int_equal(role_permissions(s, "nobody", &t), 0);
    assert_int_equal(role_permissions(s, "root", &t), PERMISSIONS_ALL);
    assert_true(role_is_member(s, "a", "c") && role_is_member(s, "a", "a"));
    assert_false(role_is_member(s, "c", "a") || role_is_member(s, "a", "root"));
    assert_false(role_is_superuser(s, "a"));
    role_set_unref(s);
}

/* The cost of a change, in roles that are copied whole, is one: the rest is shared. */
static void test_sets_share_what_is_the_same(void **state) {
    enum { N = 300 };
    char names[N][8];
    const struct role_set *s = role_set_empty();
    (void)state;
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof(names[i]), "r%03d", (i * 7919) % N);
        s = with(s, &(struct role){.name = names[i], .hash = ""});
    }
    for (uint32_t i = 1; i < s->n; i++) assert_true(strcmp(role_at(s, i - 1)->name, role_at(s, i)->name) < 0);
    role_set_ref(s);
    const struct role_set *next = with(s, &(struct role){.name = "r007", .hash = "", .login = true});
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(role_at(s, i) == role_at(next, i), strcmp(role_at(s, i)->name, "r007") != 0);
    assert_false(role_find(s, "r007")->login);
    assert_true(role_find(next, "r007")->login);
    const struct role_set *less = role_set_with(next, "r007", NULL);
    assert_null(role_find(less, "r007"));
    assert_int_equal(less->n, N - 1);
    role_set_unref(s), role_set_unref(next), role_set_unref(less);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts_of_resources_are_shown_again),
        cmocka_unit_test(test_a_record_comes_back_and_a_damaged_one_is_refused),
        cmocka_unit_test(test_permissions_come_from_above_and_from_memberships),
        cmocka_unit_test(test_sets_share_what_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
