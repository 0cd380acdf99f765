/* Rules of DDL delays from hostile bytes: a first byte says whether they are the configuration's
 * text, a delay of the table, or a record. What is taken comes back from its record, and its delays
 * are within bounds. */
#include <stdlib.h>

#include "system_schema/ddl/ddl_rule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_delay(const struct ddl_delay *d) {
    uint64_t random = 7;
    for (int i = 0; i < 4; i++) {
        int64_t us = ddl_delay_draw(d, "CREATE TABLE", &random);
        if (us < 0 && (d->kind != DDL_HELD || us != -1)) abort();
        if (us > (int64_t)DDL_DELAY_MAX_MS * 1000) abort();
    }
}

static void check_rule(const struct ddl_rule *rule) {
    struct ddl_rule back;
    struct err e = {0};
    struct buf b;
    if (!rule->has_delay && !rule->has_failure) abort();
    if (rule->has_delay) check_delay(&rule->delay);
    buf_init(&b, 0);
    ddl_rule_encode(rule, &b);
    if (ddl_rule_decode(buf_slice(&b), &back, &e)) abort();
    if (strcmp(back.delay_text, rule->delay_text) || strcmp(back.failure, rule->failure) ||
        strcmp(back.name, rule->name))
        abort();
    buf_fini(&b);
}

static void try_configuration(const char *text) {
    struct ddl_rules r;
    struct err e = {0};
    if (ddl_rules_init(&r, "none", text, 1, &e)) {
        if (!e.set) abort();
        return;
    }
    for (uint32_t i = 0; i < r.n; i++) check_rule(r.all[i]);
    const struct ddl_subject of = {"CREATE TABLE", "ks", "t"};
    (void)ddl_rules_draw(&r, &of);
    (void)ddl_rules_failure(&r, &of);
    ddl_rules_fini(&r);
}

/* As an INSERT into system_control.ddl gives it: statement, keyspace, name, delay, failure, cut at line ends. */
static void try_table(char *text) {
    char *parts[5] = {text, NULL, NULL, NULL, NULL};
    struct ddl_rules r = {0};
    struct ddl_rule rule;
    struct err e = {0};
    for (int i = 1; i < 5 && parts[i - 1] && (parts[i] = strchr(parts[i - 1], '\n')); i++) *parts[i]++ = 0;
    if (!parts[2]) return;
    const struct ddl_subject of = {parts[0], parts[1], parts[2]};
    if (ddl_rules_prepare(&r, &of, parts[3], parts[4], &rule, &e) == 0 && ddl_rules_put(&r, &rule, &e) == 0 && r.n)
        check_rule(r.all[0]);
    ddl_rules_fini(&r);
}

static void try_record(const uint8_t *data, size_t size) {
    struct ddl_rule rule;
    struct err e = {0};
    if (ddl_rule_decode(slice_of(data, size), &rule, &e)) {
        if (!e.set) abort();
    } else if (rule.has_delay || rule.has_failure) {
        check_rule(&rule);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    if (data[0] == 'r') return try_record(data + 1, size - 1), 0;
    char *text = malloc(size);
    if (!text) return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    if (data[0] == 't') try_table(text);
    else try_configuration(text);
    free(text);
    return 0;
}
