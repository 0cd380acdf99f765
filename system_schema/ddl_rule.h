/* Which delay a DDL statement gets, and whether it fails: rules by statement, keyspace and object,
 * of which the closest one counts.
 *
 * Closer is, in this order: the object is named, the keyspace is named, the statement is named. A
 * rule may say the delay, the failure, or both; each is taken from the closest rule that says it.
 * The rule for everything (*, *, *) always has a delay: the configuration's, until it is set.
 *
 * Life: the configuration's rules are parsed at the start. What is set at run time is prepared,
 * recorded (catalog_rule.c) and then put in their place. The catalogue's lock guards a list of
 * rules.
 */
#pragma once

#include "system_schema/ddl_delay.h"

enum { DDL_RULES_MAX = 1000, DDL_NAME_MAX = 224, DDL_WORDS_MAX = 256, DDL_STATEMENT_MAX = 24 };

/* What a rule is for; "*": any. */
struct ddl_subject {
    const char *statement; /* "CREATE TABLE" */
    const char *keyspace, *name;
};

/* Of neither a delay nor a failure: it says nothing, and is in no list. */
struct ddl_rule {
    char statement[DDL_STATEMENT_MAX], keyspace[DDL_NAME_MAX], name[DDL_NAME_MAX];
    bool has_delay, has_failure;
    bool configured; /* as the configuration says it */
    bool begins;     /* its delays begin anew when it is put */
    char delay_text[96], failure[DDL_WORDS_MAX]; /* failure: the words that whoever waits is told */
    struct ddl_delay delay;
    uint64_t random;
};

struct ddl_rules {
    uint32_t n;
    struct ddl_rule **all; /* by statement, keyspace, name */
    uint64_t random;       /* of rules without a seed */
};

/* default_text: the delay of (*, *, *). Rules of a configuration: "STATEMENT KEYSPACE[.NAME] =
 * DELAY [fail WORDS]; ...", where * is any. */
int ddl_rules_init(struct ddl_rules *r, const char *default_text, const char *rules_text, uint64_t random,
                   struct err *e) MUST_CHECK;
void ddl_rules_fini(struct ddl_rules *r);
/* The rule as it is with what is not NULL in its place; an empty text takes a part away.
 * ERR_INVALID: no such statement or delay, or too many rules. */
int ddl_rules_prepare(const struct ddl_rules *r, const struct ddl_subject *of, const char *delay, const char *failure,
                      struct ddl_rule *out, struct err *e) MUST_CHECK;
/* Puts a rule that was prepared in the place of the one of its subject; one that says nothing takes that away. */
int ddl_rules_put(struct ddl_rules *r, const struct ddl_rule *rule, struct err *e) MUST_CHECK;
/* NULL: there is none. Valid until the rules change. */
const struct ddl_rule *ddl_rules_find(const struct ddl_rules *r, const struct ddl_subject *of);
/* Is it the rule for everything, which is always there? */
bool ddl_subject_is_everything(const struct ddl_subject *of);
/* Microseconds or -1 (held). */
int64_t ddl_rules_draw(struct ddl_rules *r, const struct ddl_subject *of);
/* The words that it fails with; NULL: it does not. Valid until the rules change. */
const char *ddl_rules_failure(const struct ddl_rules *r, const struct ddl_subject *of);

/* ---- as a record ---- */

/* version u8 (1) | flags u8 (1: a delay, 2: a failure) | statement | keyspace | name | delay |
 * failure      each: length u16 | bytes */
void ddl_rule_encode(const struct ddl_rule *rule, struct buf *out);
/* ERR_SERVER, ERR_INVALID: it is no rule. */
int ddl_rule_decode(struct slice bytes, struct ddl_rule *out, struct err *e) MUST_CHECK;
