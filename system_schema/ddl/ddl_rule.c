#include "system_schema/ddl/ddl_rule.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_any(const char *s) { return strcmp(s, "*") == 0; }

/* ---- the list ---- */

static int compare(const struct ddl_rule *r, const struct ddl_subject *of) {
    int c = strcmp(r->statement, of->statement);
    if (c == 0) c = strcmp(r->keyspace, of->keyspace);
    return c ? c : strcmp(r->name, of->name);
}

/* The index of the rule of the subject, or where it would be inserted. */
static uint32_t place_of(const struct ddl_rules *r, const struct ddl_subject *of) {
    uint32_t i = 0;
    while (i < r->n && compare(r->all[i], of) < 0) i++;
    return i;
}

static bool is_at(const struct ddl_rules *r, uint32_t i, const struct ddl_subject *of) {
    return i < r->n && compare(r->all[i], of) == 0;
}

bool ddl_subject_is_everything(const struct ddl_subject *of) {
    return is_any(of->statement) && is_any(of->keyspace) && is_any(of->name);
}

const struct ddl_rule *ddl_rules_find(const struct ddl_rules *r, const struct ddl_subject *of) {
    uint32_t at = place_of(r, of);
    return is_at(r, at, of) ? r->all[at] : NULL;
}

static int set_delay(struct ddl_rule *rule, const char *text, struct err *e) {
    rule->has_delay = rule->begins = *text;
    if (strlen(text) >= sizeof rule->delay_text) return err_invalid(e, "'%.100s...' is too long for a DDL delay", text);
    snprintf(rule->delay_text, sizeof rule->delay_text, "%s", text);
    return *text ? ddl_delay_parse(text, &rule->delay, e) : 0;
}

static int set_failure(struct ddl_rule *rule, const char *words, struct err *e) {
    rule->has_failure = *words;
    if (strlen(words) >= DDL_WORDS_MAX)
        return err_invalid(e, "The words of a failure have at most %d bytes", DDL_WORDS_MAX - 1);
    snprintf(rule->failure, sizeof rule->failure, "%s", words);
    return 0;
}

/* Makes an empty rule of the subject. */
static int rule_of(const struct ddl_subject *of, struct ddl_rule *out, struct err *e) {
    if (!is_any(of->statement) && !ddl_statement_is_known(of->statement)) {
        struct buf text;
        buf_init(&text, 4096);
        buf_printf(&text, "'%.100s' is no DDL statement that takes time: *, ", of->statement);
        ddl_statement_list(&text);
        return err_set_buf(e, ERR_INVALID, &text);
    }
    if (!*of->keyspace || !*of->name || strlen(of->keyspace) >= DDL_NAME_MAX || strlen(of->name) >= DDL_NAME_MAX)
        return err_invalid(e, "A rule names a keyspace and an object of it, or * for any");
    if (is_any(of->keyspace) && !is_any(of->name))
        return err_invalid(e, "A rule that names an object names its keyspace, too");
    *out = (struct ddl_rule){0};
    snprintf(out->statement, sizeof out->statement, "%s", of->statement);
    snprintf(out->keyspace, sizeof out->keyspace, "%s", of->keyspace);
    snprintf(out->name, sizeof out->name, "%s", of->name);
    return 0;
}

int ddl_rules_prepare(const struct ddl_rules *r, const struct ddl_subject *of, const char *delay, const char *failure,
                      struct ddl_rule *out, struct err *e) {
    if (rule_of(of, out, e)) return -1;
    const struct ddl_rule *old = ddl_rules_find(r, of);
    if (old) *out = *old;
    out->configured = false;
    if (!old && r->n >= DDL_RULES_MAX)
        return err_invalid(e, "There are %d rules of DDL delays already, which is the most there may be",
                           DDL_RULES_MAX);
    if (delay && !*delay && ddl_subject_is_everything(of))
        return err_invalid(e, "The rule for everything needs a delay; DELETE puts it back to the configuration's");
    return (delay && set_delay(out, delay, e)) || (failure && set_failure(out, failure, e)) ? -1 : 0;
}

int ddl_rules_put(struct ddl_rules *r, const struct ddl_rule *rule, struct err *e) {
    const struct ddl_subject of = {rule->statement, rule->keyspace, rule->name};
    bool says = rule->has_delay || rule->has_failure;
    uint32_t at = place_of(r, &of);
    if (is_at(r, at, &of)) {
        if (!says) {
            free(r->all[at]);
            memmove(r->all + at, r->all + at + 1, (r->n - at - 1) * sizeof *r->all);
            r->n--;
            return 0;
        }
        *r->all[at] = *rule;
    } else if (says) {
        struct ddl_rule **all = realloc(r->all, (r->n + 1) * sizeof *all), *copy = malloc(sizeof *copy);
        if (all) r->all = all;
        if (!all || !copy) {
            free(copy);
            return err_nomem(e);
        }
        *copy = *rule;
        memmove(all + at + 1, all + at, (r->n - at) * sizeof *all);
        all[at] = copy;
        r->n++;
    }
    if (rule->begins) r->all[at]->random = rule->delay.seeded ? rule->delay.seed : (r->random += 0x9e3779b97f4a7c15);
    if (says) r->all[at]->begins = false;
    return 0;
}

void ddl_rules_continue(struct ddl_rules *r, const struct ddl_rules *before) {
    for (uint32_t i = 0; i < r->n; i++) {
        struct ddl_rule *rule = r->all[i];
        const struct ddl_rule *old =
            ddl_rules_find(before, &(struct ddl_subject){rule->statement, rule->keyspace, rule->name});
        if (old && strcmp(old->delay_text, rule->delay_text) == 0) rule->random = old->random;
    }
}

/* ---- which one counts ---- */

static bool matches(const char *pattern, const char *text) { return is_any(pattern) || strcmp(pattern, text) == 0; }

static int closeness(const struct ddl_rule *r) {
    return !is_any(r->name) * 4 + !is_any(r->keyspace) * 2 + !is_any(r->statement);
}

static struct ddl_rule *closest(const struct ddl_rules *r, const struct ddl_subject *of, bool failure) {
    struct ddl_rule *best = NULL;
    for (uint32_t i = 0; i < r->n; i++) {
        struct ddl_rule *x = r->all[i];
        if (!(failure ? x->has_failure : x->has_delay)) continue;
        if (!matches(x->statement, of->statement) || !matches(x->keyspace, of->keyspace) || !matches(x->name, of->name))
            continue;
        if (!best || closeness(x) > closeness(best)) best = x;
    }
    return best;
}

int64_t ddl_rules_draw(struct ddl_rules *r, const struct ddl_subject *of) {
    struct ddl_rule *rule = closest(r, of, false);
    return rule ? ddl_delay_draw(&rule->delay, of->statement, &rule->random) : 0;
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

static int configure(struct ddl_rules *r, const struct ddl_subject *of, const char *delay, const char *failure,
                     struct err *e) {
    struct ddl_rule rule;
    if (ddl_rules_prepare(r, of, delay, failure, &rule, e)) return -1;
    rule.configured = true;
    return ddl_rules_put(r, &rule, e);
}

/* "CREATE TABLE ks.name = held fail words"; cut in place. */
static int take_rule(struct ddl_rules *r, char *text, struct err *e) {
    char *equals = strchr(text, '=');
    if (!equals)
        return err_invalid(e, "'%s' is no rule of a DDL delay: STATEMENT KEYSPACE[.NAME] = DELAY [fail WORDS]", text);
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
    if (!*delay && !failure) return err_invalid(e, "'%s %s' says neither a delay nor a failure", left, object);
    return configure(r, &of, *delay ? delay : NULL, failure, e);
}

int ddl_rules_init(struct ddl_rules *r, const char *default_text, const char *rules_text, uint64_t random,
                   struct err *e) {
    *r = (struct ddl_rules){.random = random};
    const struct ddl_subject everything = {"*", "*", "*"};
    char *copy = strdup(rules_text), *at = copy;
    int rc = copy ? configure(r, &everything, default_text, NULL, e) : err_nomem(e);
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

/* ---- as a record ---- */

enum { RULE_VERSION = 1, FLAG_DELAY = 1, FLAG_FAILURE = 2 };

static void put_text(struct buf *out, const char *text) {
    buf_u16(out, (uint16_t)strlen(text));
    buf_put_str(out, text);
}

void ddl_rule_encode(const struct ddl_rule *rule, struct buf *out) {
    buf_u8(out, RULE_VERSION);
    buf_u8(out, (uint8_t)(rule->has_delay * FLAG_DELAY | rule->has_failure * FLAG_FAILURE));
    put_text(out, rule->statement);
    put_text(out, rule->keyspace);
    put_text(out, rule->name);
    put_text(out, rule->has_delay ? rule->delay_text : "");
    put_text(out, rule->has_failure ? rule->failure : "");
}

/* Reads a text into out, which has room bytes, with a terminating NUL. */
static void get_text(struct rd *rd, char *out, size_t room) {
    struct slice s = rd_bytes(rd, rd_u16(rd));
    if (rd->bad || s.n >= room || (s.n && memchr(s.p, 0, s.n))) {
        rd->bad = true;
        return;
    }
    if (s.n) memcpy(out, s.p, s.n);
    out[s.n] = 0;
}

int ddl_rule_decode(struct slice bytes, struct ddl_rule *out, struct err *e) {
    struct ddl_rule texts = {0};
    struct rd rd = rd_of(bytes);
    uint8_t version = rd_u8(&rd), flags = rd_u8(&rd);
    get_text(&rd, texts.statement, sizeof texts.statement);
    get_text(&rd, texts.keyspace, sizeof texts.keyspace);
    get_text(&rd, texts.name, sizeof texts.name);
    get_text(&rd, texts.delay_text, sizeof texts.delay_text);
    get_text(&rd, texts.failure, sizeof texts.failure);
    bool sound = !rd.bad && rd_left(&rd) == 0 && version == RULE_VERSION && flags <= (FLAG_DELAY | FLAG_FAILURE) &&
                 !(flags & FLAG_DELAY) == !*texts.delay_text && !(flags & FLAG_FAILURE) == !*texts.failure;
    if (!sound) return err_set(e, ERR_SERVER, "the record of a rule of DDL delays is damaged");
    const struct ddl_subject of = {texts.statement, texts.keyspace, texts.name};
    return rule_of(&of, out, e) || set_delay(out, texts.delay_text, e) || set_failure(out, texts.failure, e) ? -1 : 0;
}
