#include "system_schema/ddl_rule.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const statements[] = {
#define DDL_STATEMENT(words) words,
#include "system_schema/ddl_statement.def"
#undef DDL_STATEMENT
};

static bool is_any(const char *s) { return strcmp(s, "*") == 0; }

bool ddl_statement_is_known(const char *statement) {
    if (is_any(statement)) return true;
    for (size_t i = 0; i < ARRAY_LEN(statements); i++)
        if (strcmp(statements[i], statement) == 0) return true;
    return false;
}

static int no_such_statement(const char *statement, struct err *e) {
    char list[256] = "*";
    for (size_t i = 0; i < ARRAY_LEN(statements); i++) {
        strncat(list, ", ", sizeof list - strlen(list) - 1);
        strncat(list, statements[i], sizeof list - strlen(list) - 1);
    }
    return err_invalid(e, "'%s' is no DDL statement that takes time: %s", statement, list);
}

/* ---- the list ---- */

static int compare(const struct ddl_rule *r, const struct ddl_subject *of) {
    int c = strcmp(r->statement, of->statement);
    if (c == 0) c = strcmp(r->keyspace, of->keyspace);
    return c ? c : strcmp(r->name, of->name);
}

/* Where it is, or belongs. */
static uint32_t place_of(const struct ddl_rules *r, const struct ddl_subject *of) {
    uint32_t i = 0;
    while (i < r->n && compare(r->all[i], of) < 0) i++;
    return i;
}

static bool is_at(const struct ddl_rules *r, uint32_t i, const struct ddl_subject *of) { return i < r->n && compare(r->all[i], of) == 0; }

static int insert(struct ddl_rules *r, uint32_t at, const struct ddl_subject *of, struct err *e) {
    struct ddl_rule **all = realloc(r->all, (r->n + 1) * sizeof *all), *rule = calloc(1, sizeof *rule);
    if (all) r->all = all;
    if (!all || !rule) {
        free(rule);
        return err_nomem(e);
    }
    snprintf(rule->statement, sizeof rule->statement, "%s", of->statement);
    snprintf(rule->keyspace, sizeof rule->keyspace, "%s", of->keyspace);
    snprintf(rule->name, sizeof rule->name, "%s", of->name);
    memmove(all + at + 1, all + at, (r->n - at) * sizeof *all);
    all[at] = rule;
    r->n++;
    return 0;
}

static void erase(struct ddl_rules *r, uint32_t at) {
    free(r->all[at]);
    memmove(r->all + at, r->all + at + 1, (r->n - at - 1) * sizeof *r->all);
    r->n--;
}

static void use_delay(struct ddl_rules *r, struct ddl_rule *rule, const struct ddl_delay *d, const char *text) {
    rule->has_delay = true;
    rule->delay = *d;
    rule->random = d->seeded ? d->seed : (r->random += 0x9e3779b97f4a7c15);
    snprintf(rule->delay_text, sizeof rule->delay_text, "%s", text);
}

static bool is_everything(const struct ddl_subject *of) { return is_any(of->statement) && is_any(of->keyspace) && is_any(of->name); }

static int check_set(const struct ddl_rules *r, const struct ddl_subject *of, const char *delay, const char *failure, struct ddl_delay *d, struct err *e) {
    if (!ddl_statement_is_known(of->statement)) return no_such_statement(of->statement, e);
    if (!*of->keyspace || !*of->name || strlen(of->keyspace) >= DDL_NAME_MAX || strlen(of->name) >= DDL_NAME_MAX)
        return err_invalid(e, "A rule names a keyspace and an object of it, or * for any");
    if (is_any(of->keyspace) && !is_any(of->name)) return err_invalid(e, "A rule that names an object names its keyspace, too");
    if (failure && strlen(failure) >= DDL_WORDS_MAX) return err_invalid(e, "The words of a failure have at most %d bytes", DDL_WORDS_MAX - 1);
    if (delay && strlen(delay) >= sizeof r->all[0]->delay_text) return err_invalid(e, "'%.100s...' is too long for a DDL delay", delay);
    if (delay && !*delay && is_everything(of)) return err_invalid(e, "The rule for everything needs a delay; DELETE puts it back to the configuration's");
    if (delay && *delay && ddl_delay_parse(delay, d, e)) return -1;
    return 0;
}

int ddl_rules_set(struct ddl_rules *r, const struct ddl_subject *of, const char *delay, const char *failure, struct err *e) {
    struct ddl_delay d;
    if (check_set(r, of, delay, failure, &d, e)) return -1;
    uint32_t at = place_of(r, of);
    if (!is_at(r, at, of)) {
        if (r->n >= DDL_RULES_MAX) return err_invalid(e, "There are %d rules of DDL delays already, which is the most there may be", DDL_RULES_MAX);
        if (insert(r, at, of, e)) return -1;
    }
    struct ddl_rule *rule = r->all[at];
    if (delay && *delay) use_delay(r, rule, &d, delay);
    else if (delay) rule->has_delay = false;
    if (failure) {
        rule->has_failure = *failure;
        snprintf(rule->failure, sizeof rule->failure, "%s", failure);
    }
    if (!rule->has_delay && !rule->has_failure) erase(r, at);
    return 0;
}

void ddl_rules_remove(struct ddl_rules *r, const struct ddl_subject *of, const char *default_text) {
    uint32_t at = place_of(r, of);
    struct err ignored = {0};
    struct ddl_delay d;
    if (!is_at(r, at, of)) return;
    if (!is_everything(of)) {
        erase(r, at);
        return;
    }
    r->all[at]->has_failure = false;
    if (ddl_delay_parse(default_text, &d, &ignored) == 0) use_delay(r, r->all[at], &d, default_text);
}

/* ---- which one counts ---- */

static bool matches(const char *pattern, const char *text) { return is_any(pattern) || strcmp(pattern, text) == 0; }

static int closeness(const struct ddl_rule *r) { return !is_any(r->name) * 4 + !is_any(r->keyspace) * 2 + !is_any(r->statement); }

static struct ddl_rule *closest(const struct ddl_rules *r, const struct ddl_subject *of, bool failure) {
    struct ddl_rule *best = NULL;
    for (uint32_t i = 0; i < r->n; i++) {
        struct ddl_rule *x = r->all[i];
        if (!(failure ? x->has_failure : x->has_delay)) continue;
        if (!matches(x->statement, of->statement) || !matches(x->keyspace, of->keyspace) || !matches(x->name, of->name)) continue;
        if (!best || closeness(x) > closeness(best)) best = x;
    }
    return best;
}

int64_t ddl_rules_draw(struct ddl_rules *r, const struct ddl_subject *of) {
    struct ddl_rule *rule = closest(r, of, false);
    return rule ? ddl_delay_draw(&rule->delay, &rule->random) : 0;
}

const char *ddl_rules_failure(const struct ddl_rules *r, const struct ddl_subject *of) {
    const struct ddl_rule *rule = closest(r, of, true);
    return rule ? rule->failure : NULL;
}

/* ---- the configuration ---- */

static char *trim(char *s) {
    s += strspn(s, " \t\n");
    size_t n = strlen(s);
    while (n && strchr(" \t\n", s[n - 1])) s[--n] = 0;
    return s;
}

/* "CREATE TABLE ks.name = held fail words"; cut in place. */
static int take_rule(struct ddl_rules *r, char *text, struct err *e) {
    char *equals = strchr(text, '=');
    if (!equals) return err_invalid(e, "'%s' is no rule of a DDL delay: STATEMENT KEYSPACE[.NAME] = DELAY [fail WORDS]", text);
    *equals = 0;
    char *left = trim(text), *delay = trim(equals + 1), *object = strrchr(left, ' ');
    if (!object) return err_invalid(e, "'%s' names no statement and keyspace; * is any", left);
    *object++ = 0;
    char *name = strchr(object, '.'), *failure = strstr(delay, "fail ");
    if (name) *name++ = 0;
    if (failure) {
        failure[0] = 0;
        failure = trim(failure + 5);
        delay = trim(delay);
    }
    const struct ddl_subject of = {trim(left), object, name ? name : "*"};
    return ddl_rules_set(r, &of, *delay ? delay : NULL, failure, e);
}

int ddl_rules_init(struct ddl_rules *r, const char *default_text, const char *rules_text, uint64_t random, struct err *e) {
    *r = (struct ddl_rules){.random = random};
    const struct ddl_subject everything = {"*", "*", "*"};
    char *copy = strdup(rules_text), *at = copy;
    int rc = copy ? ddl_rules_set(r, &everything, default_text, NULL, e) : err_nomem(e);
    while (rc == 0 && at) {
        char *next = strchr(at, ';');
        if (next) *next++ = 0;
        char *rule = trim(at);
        if (*rule) rc = take_rule(r, rule, e);
        at = next;
    }
    free(copy);
    if (rc) ddl_rules_fini(r);
    return rc;
}

void ddl_rules_fini(struct ddl_rules *r) {
    for (uint32_t i = 0; i < r->n; i++) free(r->all[i]);
    free(r->all);
    *r = (struct ddl_rules){0};
}
