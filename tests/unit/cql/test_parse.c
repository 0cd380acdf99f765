#include "tests/unit/cql/parse_support.h"

#include "base/fault.h"
#include "cql/syntax/ast_other.h"

static struct parsed *parse(const char *text) {
    struct parsed *r = parse_text(slice_str(text));
    if (!r->stmt) fail_msg("%s: %s", text, r->err.text);
    return r;
}

static void test_parse_folds_names_unless_quoted(void **state) {
    (void)state;
    struct parsed *r = parse("SELECT A, \"B\"\"b\" FROM Ks.\"T\"");
    assert_string_equal(r->stmt->select.table.keyspace, "ks");
    assert_string_equal(r->stmt->select.table.name, "T");
    assert_string_equal(r->stmt->select.selectors[0].expr->name, "a");
    assert_string_equal(r->stmt->select.selectors[1].expr->name, "B\"b");
    parsed_free(r);
}

static void test_parse_numbers_markers_in_order(void **state) {
    (void)state;
    struct parsed *r = parse(
        "BEGIN BATCH INSERT INTO t (a, b) VALUES (?, :\"X\") USING TTL ? UPDATE t SET a = :y WHERE k IN ? APPLY BATCH");
    assert_int_equal(r->stmt->binds.n, 5);
    assert_null(r->stmt->binds.names[0]);
    assert_string_equal(r->stmt->binds.names[1], "X");
    assert_string_equal(r->stmt->binds.names[3], "y");
    const struct ast_stmt *update = r->stmt->batch.stmts[1];
    assert_int_equal(update->update.assignments[0].value->bind, 3);
    assert_int_equal(update->update.where.relations[0]->value->bind, 4);
    assert_false(update->update.where.relations[0]->in_list);
    parsed_free(r);
}

static void test_parse_keeps_the_text_of_statements_and_expressions(void **state) {
    (void)state;
    struct parsed *r = parse("BEGIN BATCH DELETE FROM t WHERE a = 1 ; INSERT INTO t (a) VALUES (f( 1 )) APPLY BATCH ;");
    assert_true(slice_is(r->stmt->source,
                         "BEGIN BATCH DELETE FROM t WHERE a = 1 ; INSERT INTO t (a) VALUES (f( 1 )) APPLY BATCH"));
    assert_true(slice_is(r->stmt->batch.stmts[0]->source, "DELETE FROM t WHERE a = 1"));
    assert_true(slice_is(r->stmt->batch.stmts[1]->source, "INSERT INTO t (a) VALUES (f( 1 ))"));
    assert_true(slice_is(r->stmt->batch.stmts[1]->insert.values[0]->source, "f( 1 )"));
    parsed_free(r);
    r = parse("SELECT a + b * 2, m['x'] FROM t");
    assert_true(slice_is(r->stmt->select.selectors[0].expr->source, "a + b * 2"));
    assert_true(slice_is(r->stmt->select.selectors[1].expr->source, "m['x']"));
    parsed_free(r);
}

static void test_parse_arithmetic_has_precedence(void **state) {
    (void)state;
    struct parsed *r = parse("SELECT a + b * c - d FROM t");
    const struct ast_expr *x = r->stmt->select.selectors[0].expr;
    assert_int_equal(x->kind, EXPR_SUB);
    assert_int_equal(x->args[0]->kind, EXPR_ADD);
    assert_int_equal(x->args[0]->args[1]->kind, EXPR_MUL);
    parsed_free(r);
}

static void test_parse_json_and_distinct_may_be_columns(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool json, distinct;
        uint32_t n;
    } rows[] = {
        {"SELECT json FROM t", false, false, 1},          {"SELECT JSON a FROM t", true, false, 1},
        {"SELECT json, a FROM t", false, false, 2},       {"SELECT json AS x FROM t", false, false, 1},
        {"SELECT JSON * FROM t", true, false, 1},         {"SELECT distinct, json FROM t", false, false, 2},
        {"SELECT JSON DISTINCT a FROM t", true, true, 1}, {"SELECT DISTINCT a FROM t", false, true, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct parsed *r = parse(rows[i].text);
        assert_int_equal(r->stmt->select.json, rows[i].json);
        assert_int_equal(r->stmt->select.distinct, rows[i].distinct);
        assert_int_equal(r->stmt->select.n_selectors, rows[i].n);
        parsed_free(r);
    }
}

static void test_parse_create_table_of_the_founding_example(void **state) {
    (void)state;
    struct parsed *r = parse(
        "CREATE TABLE mykeyspace.mytable(pk_col1 int, pk_col2 int, ck_col1 int, ck_col2 int, reg_col1 int, "
        "static_col1 int static, PRIMARY KEY ((pk_col1, pk_col2), ck_col1, ck_col2)) WITH TAGS = {'a': 'b'}");
    const struct ast_create_table *t = &r->stmt->create_table;
    assert_int_equal(t->n_columns, 6);
    assert_true(t->columns[5].is_static);
    assert_string_equal(t->columns[5].type->name, "int");
    assert_int_equal(t->n_partition_key, 2);
    assert_int_equal(t->n_clustering, 2);
    assert_true(t->has_primary_key);
    assert_string_equal(t->clustering[1], "ck_col2");
    assert_string_equal(t->props.props[0].name, "tags");
    assert_int_equal(t->props.props[0].value->n, 1);
    parsed_free(r);
}

static void test_parse_assignment_forms(void **state) {
    (void)state;
    struct parsed *r = parse(
        "UPDATE t SET a = 1, b = b + 2, c = c-3, d = [4] + d, e += 5, f -= 6, g[7] = 8, h.i = 9 WHERE k = 1");
    static const enum ast_assign_op ops[] = {ASSIGN_SET, ASSIGN_ADD, ASSIGN_ADD,     ASSIGN_PREPEND,
                                             ASSIGN_ADD, ASSIGN_SUB, ASSIGN_ELEMENT, ASSIGN_FIELD};
    assert_int_equal(r->stmt->update.n_assignments, ARRAY_LEN(ops));
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) assert_int_equal(r->stmt->update.assignments[i].op, ops[i]);
    assert_true(slice_is(r->stmt->update.assignments[2].value->text, "-3"));
    assert_null(r->stmt->update.assignments[4].operand);
    parsed_free(r);
}

static void test_parse_restore_table_of_keyspaces(void **state) {
    (void)state;
    struct parsed *r = parse("RESTORE TABLE ks.t2 FROM TABLE ks.t WITH restore_timestamp = '2026-01-02T03:04:05+0000'");
    assert_int_equal(r->stmt->kind, STMT_RESTORE_TABLE);
    assert_string_equal(r->stmt->other->restore.from.name, "t");
    assert_int_equal(r->stmt->other->restore.props.n, 1);
    parsed_free(r);
}

/* Every allocation fails once, until a parse passes. */
static void fail_each_allocation(char *line) {
    for (int64_t nth = 1;; nth++) {
        struct err *e = calloc(1, sizeof(*e));
        struct arena a;
        assert_non_null(e);
        arena_init(&a, 64, 0);
        fault_arm(FAULT_ALLOC, nth);
        const struct ast_stmt *s = cql_parse(&a, slice_str(line), true, e);
        fault_arm(FAULT_ALLOC, 0);
        assert_true(s ? !e->set : e->set && e->code == ERR_SERVER);
        arena_fini(&a);
        free(e);
        if (s) return;
        assert_true(nth < 10000);
    }
}

static void test_parse_survives_every_failed_allocation(void **state) {
    (void)state;
    assert_true(each_line("statements.cql", fail_each_allocation) > 500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_folds_names_unless_quoted),
        cmocka_unit_test(test_parse_numbers_markers_in_order),
        cmocka_unit_test(test_parse_keeps_the_text_of_statements_and_expressions),
        cmocka_unit_test(test_parse_arithmetic_has_precedence),
        cmocka_unit_test(test_parse_json_and_distinct_may_be_columns),
        cmocka_unit_test(test_parse_create_table_of_the_founding_example),
        cmocka_unit_test(test_parse_assignment_forms),
        cmocka_unit_test(test_parse_restore_table_of_keyspaces),
        cmocka_unit_test(test_parse_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
