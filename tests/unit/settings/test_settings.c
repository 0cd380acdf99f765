/* Settings: every row between text and member, records of earlier versions, merges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "settings/settings.h"

#define UPDATE "autoscaling_settings.provisioned_read_capacity_autoscaling_update."
#define POLICY "scaling_policy.target_tracking_scaling_policy_configuration."

struct world {
    struct arena arena;
    struct err err;
    uint32_t seed;
};

static int setup(void **state) {
    struct world *w = calloc(1, sizeof *w);
    arena_init(&w->arena, 4096, 0);
    w->seed = 1;
    *state = w;
    return 0;
}

static int teardown(void **state) {
    struct world *w = *state;
    arena_fini(&w->arena);
    free(w);
    return 0;
}

static uint32_t draw(struct world *w, uint32_t n) {
    w->seed = w->seed * 1664525 + 1013904223;
    return (w->seed >> 8) % n;
}

static struct setting_context context(struct world *w) {
    return (struct setting_context){.arena = &w->arena, .err = &w->err, .cassandra_mode = false};
}

/* ---- random settings ---- */

static void draw_map(struct world *w, struct setting_map *m, const char *fixed) {
    struct schema_option *entries = ARENA_ARRAY(&w->arena, 3, struct schema_option);
    m->n = 1 + draw(w, 3);
    for (uint32_t i = 0; i < m->n; i++)
        entries[i] = (struct schema_option){arena_printf(&w->arena, "%c%s", (char)('a' + i), fixed),
                                            arena_printf(&w->arena, "it's %u.", draw(w, 10))};
    m->entries = entries;
}

static void draw_member(struct world *w, const struct setting *row, uint32_t i, void *of) {
    char *to = (char *)of + row->offset;
    uint32_t words = 1;
    for (const char *p = row->words; p && *p; p++) words += *p == '|';
    *(uint64_t *)of |= UINT64_C(1) << i;
    switch (row->kind) {
    case SETTING_KIND_BOOL:
    case SETTING_KIND_FLAG: *(bool *)to = draw(w, 2); break;
    case SETTING_KIND_CHOICE: *(uint8_t *)to = (uint8_t)draw(w, words); break;
    case SETTING_KIND_REAL:
    case SETTING_KIND_NUMBER: *(double *)to = draw(w, 1000) / 8.0; break;
    case SETTING_KIND_TEXT: *(const char **)to = arena_printf(&w->arena, "it's %u.", draw(w, 10)); break;
    case SETTING_KIND_MAP: draw_map(w, (struct setting_map *)to, ".x"); break;
    default: *(int64_t *)to = draw(w, 100000); break;
    }
}

static void draw_scaling(struct world *w, struct scaling_settings *s, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (draw(w, 3) == 0) draw_member(w, &scaling_rows[i], i, s);
}

static void draw_settings(struct world *w, struct table_settings *s) {
    *s = *settings_defaults(true);
    for (uint32_t i = 0; i < SETTINGS; i++)
        if (draw(w, 3) == 0 && setting_rows[i].source != SETTING_SHOWN) draw_member(w, &setting_rows[i], i, s);
    for (int of = READ_CAPACITY; of <= WRITE_CAPACITY; of++) draw_scaling(w, &s->scaling[of], SCALING_SETTINGS);
    for (uint32_t k = draw(w, 3); k > 0; k--) {
        struct region_settings *r = settings_region(s, k == 1 ? "us-east-1" : "eu-west-1", &w->arena);
        draw_member(w, &region_rows[0], 0, r);
        draw_scaling(w, &r->scaling[READ_CAPACITY], SCALING_policy_name);
    }
}

static void assert_same(struct world *w, const struct table_settings *a, const struct table_settings *b) {
    uint32_t n, m;
    const struct schema_option *x = settings_texts(a, &w->arena, &n), *y = settings_texts(b, &w->arena, &m);
    assert_int_equal(n, m);
    for (uint32_t i = 0; i < n; i++) {
        assert_string_equal(x[i].name, y[i].name);
        assert_string_equal(x[i].value, y[i].value);
    }
}

static void test_settings_come_back_from_their_record(void **state) {
    struct world *w = *state;
    for (int round = 0; round < 500; round++) {
        struct table_settings s, back;
        bool no_memory;
        uint32_t n;
        draw_settings(w, &s);
        const struct schema_option *texts = settings_texts(&s, &w->arena, &n);
        assert_true(settings_of_texts(texts, n, &w->arena, &back, &no_memory));
        assert_false(back.respelled);
        assert_int_equal(s.given, back.given);
        assert_same(w, &s, &back);
        arena_reset(&w->arena);
    }
}

/* ---- merging ---- */

static void test_a_change_of_nothing_changes_nothing(void **state) {
    struct world *w = *state;
    for (int round = 0; round < 200; round++) {
        struct table_settings s, out;
        draw_settings(w, &s);
        assert_int_equal(settings_merge(&s, settings_defaults(true), 0, &w->arena, &out), 0);
        assert_same(w, &s, &out);
        arena_reset(&w->arena);
    }
}

/* What a change gives is there, and a second time it changes nothing. */
static void test_a_change_takes_effect_once(void **state) {
    struct world *w = *state;
    for (int round = 0; round < 200; round++) {
        struct table_settings s, change, once, twice;
        uint32_t n, m;
        draw_settings(w, &s);
        draw_settings(w, &change);
        assert_int_equal(settings_merge(&s, &change, 3, &w->arena, &once), 0);
        assert_int_equal(settings_merge(&once, &change, 3, &w->arena, &twice), 0);
        assert_same(w, &once, &twice);
        const struct schema_option *given = settings_texts(&change, &w->arena, &n),
                                   *all = settings_texts(&once, &w->arena, &m);
        for (uint32_t i = 0; i < n; i++) {
            const char *value = option_find(all, m, given[i].name);
            assert_non_null(value);
            assert_string_equal(value, given[i].value);
        }
        for (uint32_t i = 0; i < SETTINGS; i++) { /* a member that is not given has its default */
            struct table_settings otherwise = once;
            settings_clear(&otherwise, ~once.given);
            if (!(once.given >> i & 1) && setting_rows[i].kind != SETTING_KIND_MAP)
                assert_memory_equal((char *)&once + setting_rows[i].offset, (char *)&otherwise + setting_rows[i].offset,
                                    1);
        }
        arena_reset(&w->arena);
    }
}

static void take(struct world *w, struct table_settings *s, const char *name, const char *text) {
    const struct setting_context x = context(w);
    if (settings_take(&x, name, text, s)) fail_msg("%s: %s", name, w->err.text);
}

static void test_a_group_is_replaced_and_a_tag_is_added(void **state) {
    struct world *w = *state;
    struct table_settings s = *settings_defaults(true), change = s, out;
    take(w, &s, "custom_properties.capacity_mode.throughput_mode", "provisioned");
    take(w, &s, "custom_properties.capacity_mode.read_capacity_units", "5");
    take(w, &s, "custom_properties.ttl.status", "enabled");
    take(w, &s, "tags.a.b", "1");
    take(w, &s, UPDATE "minimum_units", "5");
    take(w, &s, UPDATE "replica_updates.eu-west-1.minimum_units", "6");
    take(w, &s, "custom_properties.replica_updates.eu-west-1.read_capacity_units", "7");
    take(w, &change, "custom_properties.capacity_mode.throughput_mode", "PAY_PER_REQUEST");
    take(w, &change, "tags.c", "2");
    take(w, &change, UPDATE "maximum_units", "9");
    assert_int_equal(settings_merge(&s, &change, 0, &w->arena, &out), 0);
    assert_int_equal(out.throughput_mode, PAY_PER_REQUEST);
    assert_false(out.given & SETTING_BIT(read_capacity_units));
    assert_int_equal(out.read_capacity_units, 1);
    assert_true(out.ttl);
    assert_int_equal(out.tags.n, 2);
    assert_int_equal(out.scaling[READ_CAPACITY].given, SCALING_BIT(maximum_units));
    assert_int_equal(out.n_regions, 1);
    assert_int_equal(out.regions[0].read_capacity_units, 7);
    assert_int_equal(out.regions[0].scaling[READ_CAPACITY].given, 0);
    const struct setting_map none = {0}, removed = {1, &(struct schema_option){"a.b", ""}};
    assert_int_equal(tags_merge(&out.tags, &none, &removed, &w->arena, &out.tags), 0);
    assert_int_equal(out.tags.n, 1);
    assert_string_equal(out.tags.entries[0].name, "c");
}

/* ---- each row ---- */

/* A text that each kind of property takes, and one that it refuses. */
static void test_each_row_takes_a_text_in_any_case_and_refuses_another(void **state) {
    struct world *w = *state;
    const struct setting_context x = context(w);
    for (uint32_t i = N_OPTIONS; i < SETTINGS + SCALING_SETTINGS; i++) {
        const struct setting *row = i < SETTINGS ? &setting_rows[i] : &scaling_rows[i - SETTINGS];
        struct table_settings s = *settings_defaults(true);
        if (row->source != SETTING_OF_STATEMENT) continue;
        bool words = row->kind == SETTING_KIND_FLAG || row->kind == SETTING_KIND_CHOICE;
        bool text = row->kind == SETTING_KIND_TEXT, map = row->kind == SETTING_KIND_MAP;
        const char *good = words  ? arena_printf(&w->arena, "%.*s", (int)strcspn(row->words, "|"), row->words)
                           : text ? arena_printf(&w->arena, "%sx", row->words)
                           : map  ? "v"
                                  : arena_printf(&w->arena, "%.0f", row->least);
        char *name = arena_printf(&w->arena, "%s%s%s", i < SETTINGS ? "" : UPDATE, row->name, map ? ".k" : "");
        for (char *p = name; *p; p++)
            if (!map && *p >= 'a' && *p <= 'z') *p -= 'a' - 'A';
        assert_int_equal(settings_take(&x, name, good, &s), 0);
        assert_true(settings_are_given(&s));
        assert_int_equal(settings_check_values(&x, &s), 0);
        uint32_t n;
        const struct schema_option *texts = settings_texts(&s, &w->arena, &n);
        assert_int_equal(n, 1);
        assert_string_equal(texts[0].value, good);
        if (map) continue;
        assert_int_equal(settings_take(&x, name, good, &s), -1); /* given twice */
        s = *settings_defaults(true);
        err_clear(&w->err);
        assert_int_equal(settings_take(&x, name, "not this", &s), -1);
        assert_int_equal(w->err.code, ERR_INVALID);
        err_clear(&w->err);
    }
}

static void test_each_option_takes_its_default(void **state) {
    struct world *w = *state;
    const struct setting_context x = context(w);
    for (int mode = 0; mode < 2; mode++)
        for (int i = 0; i < N_OPTIONS; i++) {
            const struct setting *row = &setting_rows[i];
            struct table_settings s = *settings_defaults(mode);
            if (!(row->releases & (mode ? RELEASE_5_0 : RELEASE_3_11)) || row->kind == SETTING_KIND_MAP) continue;
            const char *text = setting_text(row, &s, &w->arena);
            assert_int_equal(setting_take_option(&x, row, text, true, &s), 0);
            assert_int_equal(s.given, UINT64_C(1) << i);
        }
}

static void test_the_words_of_a_choice_have_the_order_of_its_enum(void **state) {
    (void)state;
    assert_int_equal(setting_word(&setting_rows[SETTING_throughput_mode], slice_str("provisioned")), PROVISIONED);
    assert_int_equal(setting_word(&setting_rows[SETTING_encryption_type], slice_str("CUSTOMER_MANAGED_KMS_KEY")),
                     CUSTOMER_MANAGED_KMS_KEY);
}

/* ---- records of earlier versions ---- */

/* Versions before this one kept the texts of statements. */
static void test_a_record_with_texts_as_they_were_given_is_read(void **state) {
    struct world *w = *state;
    static const struct schema_option old[] = {{"capacity.decreases", "20000 1 1728000000000"},
                                               {"comment", ""},
                                               {"custom_properties.capacity_mode.read_capacity_units", "007"},
                                               {"custom_properties.capacity_mode.throughput_mode", "PROVISIONED"},
                                               {"custom_properties.of.later", "x"},
                                               {UPDATE POLICY "target_value", "70.0"},
                                               {"read_scaling.made_ms", "5"},
                                               {"stream.label", "2026-01-02T03:04:05.678"},
                                               {"tags.a.b", "c"}};
    struct table_settings s;
    bool no_memory;
    assert_true(settings_of_texts(old, ARRAY_LEN(old), &w->arena, &s, &no_memory));
    assert_true(s.respelled);
    assert_string_equal(s.decreases, "20000 1 1728000000000");
    assert_string_equal(s.comment, "");
    assert_int_equal(s.read_capacity_units, 7);
    assert_int_equal(s.throughput_mode, PROVISIONED);
    assert_true(s.scaling[READ_CAPACITY].target_value == 70);
    assert_int_equal(s.scaling[READ_CAPACITY].made_ms, 5);
    assert_string_equal(s.stream_label, "2026-01-02T03:04:05.678");
    assert_string_equal(s.tags.entries[0].name, "a.b");
    const struct schema_option damaged = {"custom_properties.ttl.status", "perhaps"};
    assert_false(settings_of_texts(&damaged, 1, &w->arena, &s, &no_memory));
    assert_false(no_memory);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_settings_come_back_from_their_record),
        TEST(test_a_change_of_nothing_changes_nothing),
        TEST(test_a_change_takes_effect_once),
        TEST(test_a_group_is_replaced_and_a_tag_is_added),
        TEST(test_each_row_takes_a_text_in_any_case_and_refuses_another),
        TEST(test_each_option_takes_its_default),
        TEST(test_the_words_of_a_choice_have_the_order_of_its_enum),
        TEST(test_a_record_with_texts_as_they_were_given_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
