/* Units of the published examples; the reference on Amazon Keyspaces, sections 1.2 to 1.4 and 8.1. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "metering/charge.h"

struct fixture {
    struct arena arena;
    struct op_cost cost;
    struct charge charge;
};

static int setup(void **state) {
    struct fixture *f = test_calloc(1, sizeof *f);
    arena_init(&f->arena, 4096, 0);
    f->cost = (struct op_cost){.arena = &f->arena};
    *state = f;
    return 0;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    arena_fini(&f->arena);
    test_free(f);
    return 0;
}

/* A row, or a static row, that encodes to n bytes. */
static struct size_sum row_of(uint64_t n) { return (struct size_sum){.rows = 1, .bytes = n, .n_columns = 1}; }

static struct op_write *add_write(struct fixture *f, uint64_t row, uint64_t statics) {
    struct op_write *w = op_cost_write(&f->cost, OP_INSERT);
    w->has_row = row > 0;
    w->has_static = statics > 0;
    if (row) w->row = row_of(row);
    if (statics) w->statics = row_of(statics);
    return w;
}

static void add_read(struct fixture *f, uint64_t rows, uint64_t bytes) {
    struct op_read *r = op_cost_read(&f->cost);
    r->rows = (struct size_sum){.rows = rows, .bytes = bytes};
}

static double total(struct fixture *f, enum charge_consistency consistency) {
    charge_compute(&f->cost, consistency, &f->charge);
    return f->charge.total;
}

static bool has_rule(const struct fixture *f, enum rule_id id) { return f->charge.rules >> id & 1; }

static void test_write_founding_mixed_costs_four(void **state) {
    struct fixture *f = *state;
    add_write(f, 134, 122);
    assert_true(total(f, CHARGE_STRONG) == 4);
    assert_true(f->charge.write_units == 2 && f->charge.static_write_units == 2);
    assert_int_equal(f->charge.row_bytes, 134);
    assert_int_equal(f->charge.static_bytes, 122);
    assert_true(has_rule(f, RULE_WRITE_BOTH));
}

static void test_write_founding_static_only_costs_one(void **state) {
    struct fixture *f = *state;
    add_write(f, 0, 122);
    assert_true(total(f, CHARGE_STRONG) == 1);
    assert_true(f->charge.static_write_units == 1);
    assert_false(has_rule(f, RULE_WRITE_BOTH));
}

static void test_write_founding_56_units(void **state) {
    struct fixture *f = *state;
    add_write(f, 25 * 1024 + 512, 1024 + 512);
    assert_true(total(f, CHARGE_STRONG) == 56);
}

static void test_write_rounds_up_by_1024(void **state) {
    struct fixture *f = *state;
    add_write(f, 1024, 0);
    assert_true(total(f, CHARGE_STRONG) == 1);
    add_write(f, 1025, 0);
    assert_true(total(f, CHARGE_STRONG) == 3);
    add_write(f, 2048, 0);
    assert_true(total(f, CHARGE_STRONG) == 5);
    assert_true(has_rule(f, RULE_WRITE_BATCH));
}

static void test_write_rounds_each_row(void **state) {
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++) add_write(f, 134, 0);
    assert_true(total(f, CHARGE_STRONG) == 3);
}

static void test_batch_logged_doubles(void **state) {
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++) add_write(f, 1024, 0);
    assert_true(total(f, CHARGE_STRONG) == 3);
    f->cost.is_logged_batch = true;
    assert_true(total(f, CHARGE_STRONG) == 6);
}

static void test_write_ignores_consistency(void **state) {
    struct fixture *f = *state;
    add_write(f, 2048, 0);
    assert_true(total(f, CHARGE_EVENTUAL) == 2);
}

static void test_read_8k_and_half(void **state) {
    struct fixture *f = *state;
    add_read(f, 1, 8192);
    assert_true(total(f, CHARGE_STRONG) == 2);
    assert_true(total(f, CHARGE_EVENTUAL) == 1);
}

static void test_read_range_sums_rows(void **state) {
    struct fixture *f = *state;
    add_read(f, 2, 4600);
    assert_true(total(f, CHARGE_STRONG) == 2);
    assert_true(total(f, CHARGE_EVENTUAL) == 1);
    assert_true(has_rule(f, RULE_READ_SUM));
}

static void test_read_missing_row_costs_minimum(void **state) {
    struct fixture *f = *state;
    struct op_read *r = op_cost_read(&f->cost);
    assert_non_null(r);
    assert_true(total(f, CHARGE_STRONG) == 1);
    assert_true(total(f, CHARGE_EVENTUAL) == 0.5);
    assert_true(has_rule(f, RULE_READ_MINIMUM));
}

static void test_read_static_joins_rows(void **state) {
    struct fixture *f = *state;
    struct op_read *r = op_cost_read(&f->cost);
    r->rows = row_of(4000);
    r->statics = row_of(122);
    assert_true(total(f, CHARGE_STRONG) == 2);
    assert_int_equal(f->charge.row_bytes, 4000);
    assert_int_equal(f->charge.static_bytes, 122);
    assert_true(has_rule(f, RULE_READ_STATIC));
}

static void test_read_in_rounds_each_subquery(void **state) {
    struct fixture *f = *state;
    add_read(f, 1, 134);
    add_read(f, 1, 134);
    assert_non_null(op_cost_read(&f->cost));
    assert_true(total(f, CHARGE_STRONG) == 3);
    assert_true(total(f, CHARGE_EVENTUAL) == 1.5);
}

/* Two rows of more than 4 KiB and a small one are 3 units; three empty storage partitions add one each. */
static void test_scan_counts_empty_partitions(void **state) {
    struct fixture *f = *state;
    add_read(f, 3, 2 * 4200 + 134);
    f->cost.empty_partitions = 3;
    assert_true(total(f, CHARGE_STRONG) == 6);
    assert_true(total(f, CHARGE_EVENTUAL) == 3);
}

static void test_scan_of_new_table_costs_its_partitions(void **state) {
    struct fixture *f = *state;
    assert_non_null(op_cost_read(&f->cost));
    f->cost.empty_partitions = 4;
    assert_true(total(f, CHARGE_STRONG) == 4);
    assert_true(total(f, CHARGE_EVENTUAL) == 2);
}

/* Whatever else holds of the read. */
static void test_read_of_one_row(void **state) {
    struct fixture *f = *state;
    static const uint64_t bytes[] = {101, 4095, 4096, 4097, 8192, 8193, 100000};
    unsigned told = 0;
    for (unsigned i = 0; i < 7 * 2 * 2 * 3 * 2 * 2 * 2 * 2; i++) {
        unsigned k = i / 7;
        f->cost = (struct op_cost){.arena = &f->arena,
                                   .size_model = k & 1 ? SIZE_CURRENT : SIZE_DOCUMENTED_2022};
        enum charge_consistency consistency = k & 2 ? CHARGE_STRONG : CHARGE_EVENTUAL;
        struct op_read *r = op_cost_read(&f->cost);
        r->rows = (struct size_sum){.rows = k / 4 % 3, .bytes = k / 4 % 3 ? bytes[i % 7] : 0};
        k /= 12;
        if (k & 1) r->rows.ttl = r->rows.timestamps = r->rows.rows > 0;
        if (k & 2) r->statics = row_of(200);
        r->filtered = r->rows.rows && k & 4;
        f->cost.empty_partitions = k & 8;
        if (r->rows.rows != 1 || r->statics.rows || f->cost.empty_partitions) continue;
        uint32_t halves = (uint32_t)(size_read_steps(r->rows.bytes) << (consistency == CHARGE_STRONG));
        assert_int_equal(2 * total(f, consistency), halves);
        assert_int_equal(r->item.read_halves, halves);
        assert_int_equal(has_rule(f, RULE_READ_PROCESSED), r->filtered);
        told++;
    }
    assert_int_equal(told, 7 * 2 * 2 * 2 * 2);
}

static void test_read_names_why_rows_were_read(void **state) {
    struct fixture *f = *state;
    add_read(f, 3, 3 * 134);
    struct op_read *r = f->cost.reads;
    assert_true(total(f, CHARGE_STRONG) == 1);
    assert_false(has_rule(f, RULE_READ_PROCESSED) || has_rule(f, RULE_READ_LIMIT) || has_rule(f, RULE_READ_BOUND) ||
                 has_rule(f, RULE_READ_EXPIRED));
    r->filtered = r->past_limit = r->at_bound = r->expired = 1;
    assert_true(total(f, CHARGE_STRONG) == 1);
    assert_true(has_rule(f, RULE_READ_PROCESSED) && has_rule(f, RULE_READ_LIMIT) && has_rule(f, RULE_READ_BOUND) &&
                has_rule(f, RULE_READ_EXPIRED));
}

static void test_every_rule_says_what_it_is(void **state) {
    (void)state;
    for (unsigned id = 0; id < RULES; id++) {
        const struct rule *r = rule_of(id);
        assert_true(*r->name && *r->title && *r->text && *r->source);
        assert_true(strcmp(r->confidence, "documented") == 0 || strcmp(r->confidence, "seen") == 0 ||
                    strcmp(r->confidence, "inferred") == 0);
        for (unsigned k = 0; k < id; k++) assert_string_not_equal(rule_of(k)->name, r->name);
    }
}

static void test_system_tables_are_free(void **state) {
    struct fixture *f = *state;
    add_read(f, 3, 9000);
    f->cost.is_system = true;
    assert_true(total(f, CHARGE_STRONG) == 0);
    assert_true(has_rule(f, RULE_SYSTEM_FREE));
}

static void test_lwt_applied_costs_the_write(void **state) {
    struct fixture *f = *state;
    struct op_write *w = add_write(f, 2048, 0);
    w->conditional = w->applied = true;
    assert_true(total(f, CHARGE_STRONG) == 2);
    assert_true(has_rule(f, RULE_LWT_APPLIED));
}

static void test_lwt_failed_costs_the_existing_row(void **state) {
    struct fixture *f = *state;
    struct op_write *w = add_write(f, 2048, 0);
    w->conditional = w->row_existed = true;
    assert_true(total(f, CHARGE_STRONG) == 2);
    w->row_existed = false;
    assert_true(total(f, CHARGE_STRONG) == 1);
    assert_true(has_rule(f, RULE_LWT_FAILED_ABSENT));
}

static void test_lwt_failed_on_ttl_table_reads_too(void **state) {
    struct fixture *f = *state;
    struct op_write *w = add_write(f, 5000, 0);
    w->conditional = w->row_existed = w->reads_when_failed = true;
    assert_true(total(f, CHARGE_STRONG) == 5 + 2);
    w->row_existed = false;
    assert_true(total(f, CHARGE_STRONG) == 1 + 1);
}

static void test_update_and_delete_name_their_rules(void **state) {
    struct fixture *f = *state;
    add_write(f, 134, 0)->kind = OP_UPDATE;
    add_write(f, 116, 0)->kind = OP_DELETE;
    assert_true(total(f, CHARGE_STRONG) == 2);
    assert_true(has_rule(f, RULE_UPDATE_WRITTEN) && has_rule(f, RULE_DELETE_KEY));
}

/* A write of 200 bytes that leaves (or takes away) rows of so many bytes, each rounded on its own. */
static struct op_write *add_image(struct fixture *f, enum op_write_kind kind, uint64_t bytes, uint64_t steps) {
    struct op_write *w = add_write(f, 200, 0);
    w->kind = kind;
    w->image = (struct op_image){.known = IMAGE_FOUND, .row_steps = steps};
    if (bytes) w->image.row = row_of(bytes);
    return w;
}

static void test_write_by_row_or_by_what_is_written(void **state) {
    struct fixture *f = *state;
    struct charge_write_size row, written;
    add_image(f, OP_UPDATE, 3000, 3);
    f->cost.write_size = WRITE_SIZE_ROW;
    assert_true(total(f, CHARGE_STRONG) == 3);
    assert_int_equal(f->charge.row_bytes, 3000);
    assert_true(has_rule(f, RULE_WRITE_ROW) && !has_rule(f, RULE_UPDATE_WRITTEN));
    f->cost.write_size = WRITE_SIZE_WRITTEN;
    assert_true(total(f, CHARGE_STRONG) == 1);
    assert_true(has_rule(f, RULE_UPDATE_WRITTEN) && !has_rule(f, RULE_WRITE_ROW));
    assert_true(charge_write_size(&f->cost, WRITE_SIZE_ROW, &row) &&
                charge_write_size(&f->cost, WRITE_SIZE_WRITTEN, &written));
    assert_true(row.units == 3 && written.units == 1);
    f->cost.writes->image.known = IMAGE_UNKNOWN;
    assert_false(charge_write_size(&f->cost, WRITE_SIZE_ROW, &row));
    f->cost.writes->image.known = IMAGE_AS_WRITTEN;
    assert_true(charge_write_size(&f->cost, WRITE_SIZE_ROW, &row));
    assert_int_equal(row.row_bytes, 200);
}

static void test_deletion_by_what_was_there(void **state) {
    struct fixture *f = *state;
    f->cost.write_size = WRITE_SIZE_ROW;
    add_image(f, OP_DELETE, 0, 0); /* nothing was */
    assert_true(total(f, CHARGE_STRONG) == 1);
    assert_true(has_rule(f, RULE_DELETE_ROW));
    struct op_write *w = add_image(f, OP_DELETE, 5000, 7);
    w->many = true;
    w->image.statics = row_of(1500);
    assert_true(total(f, CHARGE_STRONG) == 1 + 7 + 2); /* static data once, not twice */
    assert_true(has_rule(f, RULE_DELETE_EACH));
}

/* The static row of a partition without rows is all that its deletion deletes. */
static void test_deletion_of_a_partition_of_static_data(void **state) {
    struct fixture *f = *state;
    f->cost.write_size = WRITE_SIZE_ROW;
    struct op_write *w = add_image(f, OP_DELETE, 0, 0);
    w->many = true;
    w->image.statics = row_of(122);
    assert_true(total(f, CHARGE_STRONG) == 1);
    assert_true(f->charge.static_write_units == 1);
}

static void test_write_in_each_region(void **state) {
    struct fixture *f = *state;
    struct op_write *w = add_write(f, 1500, 200);
    w->regions = 3;
    assert_true(total(f, CHARGE_STRONG) == 3 * (2 * 2 + 2 * 1));
    assert_true(has_rule(f, RULE_WRITE_REGIONS));
    assert_int_equal(w->item.write_units, 2 * 2 + 2 * 1); /* capacity and limits count what one Region takes */
    assert_int_equal(w->item.static_units, 2 * 1);
    assert_true(f->charge.region_write_units == 2 * 2 + 2 * 1);
    w->conditional = true;
    w->row_existed = true;
    assert_true(total(f, CHARGE_STRONG) == 2 + 1); /* not applied: nothing was written elsewhere */
    assert_true(f->charge.region_write_units == 2 + 1);
}

static void test_current_model_writes(void **state) {
    struct fixture *f = *state;
    f->cost.size_model = SIZE_CURRENT;
    struct op_write *w = op_cost_write(&f->cost, OP_INSERT);
    w->has_row = true;
    w->row = row_of(533);
    assert_true(total(f, CHARGE_STRONG) == 1);
    assert_int_equal(f->charge.row_bytes, 533);
    assert_true(has_rule(f, RULE_SIZE_CURRENT));
}

static void test_json_names_everything(void **state) {
    struct fixture *f = *state;
    f->cost.keyspace = "ks";
    f->cost.table = "t";
    add_read(f, 1, 134);
    f->cost.rows_read = f->cost.rows_returned = 1;
    f->cost.bytes_read = 99;
    total(f, CHARGE_EVENTUAL);
    struct buf b;
    buf_init(&b, 0);
    charge_json(&f->cost, &f->charge, &b);
    buf_u8(&b, 0);
    assert_string_equal((const char *)b.p,
                        "{\"read_units\":0.5,\"write_units\":0,\"static_write_units\":0,\"row_bytes\":134,\"static_"
                        "bytes\":0,\"bytes_read\":99,"
                        "\"rows_read\":1,\"rows_returned\":1,\"entities\":1,\"query_class\":\"point\","
                        "\"table\":\"ks.t\",\"guidance_class\":\"point query\",\"advice\":\"\","
                        "\"rules\":[\"read-4k\",\"read-half-at-one\",\"size-documented-2022\"]}");
    buf_fini(&b);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(test_write_founding_mixed_costs_four),
        CASE(test_write_founding_static_only_costs_one),
        CASE(test_write_founding_56_units),
        CASE(test_write_rounds_up_by_1024),
        CASE(test_write_rounds_each_row),
        CASE(test_batch_logged_doubles),
        CASE(test_write_ignores_consistency),
        CASE(test_read_8k_and_half),
        CASE(test_read_range_sums_rows),
        CASE(test_read_missing_row_costs_minimum),
        CASE(test_read_static_joins_rows),
        CASE(test_read_in_rounds_each_subquery),
        CASE(test_scan_counts_empty_partitions),
        CASE(test_scan_of_new_table_costs_its_partitions),
        CASE(test_read_of_one_row),
        CASE(test_read_names_why_rows_were_read),
        CASE(test_every_rule_says_what_it_is),
        CASE(test_system_tables_are_free),
        CASE(test_lwt_applied_costs_the_write),
        CASE(test_lwt_failed_costs_the_existing_row),
        CASE(test_lwt_failed_on_ttl_table_reads_too),
        CASE(test_update_and_delete_name_their_rules),
        CASE(test_write_by_row_or_by_what_is_written),
        CASE(test_deletion_by_what_was_there),
        CASE(test_deletion_of_a_partition_of_static_data),
        CASE(test_write_in_each_region),
        CASE(test_current_model_writes),
        CASE(test_json_names_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
