/* Rules of DDL delays that clients set (system_control.ddl). They override those of the
 * configuration, are recorded before they take effect, and survive a restart.
 *
 * A record is "catalog/ddl_rule/", statement, 0, keyspace, 0, name, with the rule as ddl_rule.h
 * draws it: it replaces the configuration's rule for that subject. An empty rule removes the
 * configuration's. Without --control the records are ignored, because clients could neither see nor
 * change the rules.
 */
#include "base/log.h"
#include "base/murmur3.h"
#include "engine/named.h"
#include "system_schema/ddl/ddl.h"

static const char rule_prefix[] = "catalog/ddl_rule/";

static int put_loaded(void *arg, struct slice key, struct slice value, struct err *e) {
    struct ddl *d = arg;
    struct ddl_rule rule;
    struct err why = {0};
    (void)key, (void)e;
    if (ddl_rule_decode(value, &rule, &why) ||
        (d->rules.n >= DDL_RULES_MAX && err_invalid(&why, "there are %d already", DDL_RULES_MAX)) ||
        ddl_rules_put(&d->rules, &rule, &why))
        log_error("catalog: a rule of DDL delays that was set is left out: %s", why.text);
    err_clear(&why);
    return 0;
}

static int add_sum(void *arg, struct slice key, struct slice value, struct err *e) {
    (void)e;
    *(uint64_t *)arg += murmur3_hash(key) * 31 + murmur3_hash(value);
    return 0;
}

/* The sum of the records, in any order. */
static int sum_records(struct ddl *d, uint64_t *sum, struct err *e) {
    *sum = 0;
    return d->objects->has_control ? eng_meta_scan(d->objects->eng, slice_str(rule_prefix), add_sum, sum, e) : 0;
}

int rules_look_again(struct ddl *d, struct err *e) {
    uint64_t sum;
    if (sum_records(d, &sum, e)) return -1;
    return sum == d->rules_sum ? 0 : rules_load(d, e);
}

int rules_load(struct ddl *d, struct err *e) {
    struct ddl_rules fresh;
    if (sum_records(d, &d->rules_sum, e)) return -1;
    struct ddl_rules before = d->rules;
    if (ddl_rules_init(&fresh, d->delay, d->rule_text, before.random, e)) return -1;
    d->rules = fresh;
    int rc = d->objects->has_control ? eng_meta_scan(d->objects->eng, slice_str(rule_prefix), put_loaded, d, e) : 0;
    ddl_rules_continue(&d->rules, &before);
    ddl_rules_fini(&before);
    return rc;
}

/* Writes the record (keep) or erases it. There is no condition: a statement replaces the whole rule,
 * whatever it was, so of two servers the later one wins. */
static int record_rule(struct ddl *d, const struct ddl_rule *rule, bool keep, struct err *e) {
    struct buf key, value;
    buf_init(&key, 0);
    buf_init(&value, 0);
    buf_put_str(&key, rule_prefix);
    buf_put_str(&key, rule->statement);
    buf_u8(&key, 0);
    buf_put_str(&key, rule->keyspace);
    buf_u8(&key, 0);
    buf_put_str(&key, rule->name);
    ddl_rule_encode(rule, &value);
    int rc = buf_failed(&key) || buf_failed(&value) ? err_nomem(e) : 0;
    if (rc == 0 && keep) rc = eng_meta_put(d->objects->eng, buf_slice(&key), buf_slice(&value), e);
    else if (rc == 0) rc = eng_meta_delete(d->objects->eng, buf_slice(&key), e);
    buf_fini(&key);
    buf_fini(&value);
    return rc;
}

int rules_set(struct ddl *d, const struct ddl_subject *of, const char *delay, const char *failure, struct err *e) {
    struct ddl_rule rule;
    if (ddl_rules_prepare(&d->rules, of, delay, failure, &rule, e) || record_rule(d, &rule, true, e)) return -1;
    return ddl_rules_put(&d->rules, &rule, e);
}

int rules_remove(struct ddl *d, const struct ddl_subject *of, struct err *e) {
    struct ddl_rules all;
    struct ddl_rule configured = {0}, nothing;
    const struct ddl_rule *now = ddl_rules_find(&d->rules, of);
    if (ddl_rules_init(&all, d->delay, d->rule_text, 0, e)) return -1;
    const struct ddl_rule *found = ddl_rules_find(&all, of);
    bool is_configured = found != NULL;
    if (found) configured = *found;
    ddl_rules_fini(&all);
    if (!now) return 0;
    bool back = ddl_subject_is_everything(of);
    nothing = *now;
    nothing.has_delay = nothing.has_failure = nothing.begins = false;
    if (record_rule(d, &nothing, is_configured && !back, e)) return -1;
    return ddl_rules_put(&d->rules, back ? &configured : &nothing, e);
}
