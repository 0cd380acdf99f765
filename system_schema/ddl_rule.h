/* Which delay a DDL statement gets, and whether it fails: rules by statement, keyspace and object, of which the closest one counts.
 *
 * Closer is, in this order: the object is named, the keyspace is named, the statement is named. A rule may say the delay, the failure, or both;
 * each is taken from the closest rule that says it. The rule for everything (*, *, *) always has a delay: the configuration's, until it is set.
 * The catalogue's lock guards a list of rules.
 */
#pragma once

#include "system_schema/ddl_delay.h"

enum { DDL_RULES_MAX = 1000, DDL_NAME_MAX = 224, DDL_WORDS_MAX = 256, DDL_STATEMENT_MAX = 24 };

/* What a rule is for; "*": any. */
struct ddl_subject {
    const char *statement; /* "CREATE TABLE" */
    const char *keyspace, *name;
};

struct ddl_rule {
    char statement[DDL_STATEMENT_MAX], keyspace[DDL_NAME_MAX], name[DDL_NAME_MAX];
    bool has_delay, has_failure;
    char delay_text[96], failure[DDL_WORDS_MAX]; /* failure: the words that whoever waits is told */
    struct ddl_delay delay;
    uint64_t random;
};

struct ddl_rules {
    uint32_t n;
    struct ddl_rule **all; /* by statement, keyspace, name */
    uint64_t random;       /* of rules without a seed */
};

/* default_text: the delay of (*, *, *). Rules of a configuration: "STATEMENT KEYSPACE[.NAME] = DELAY [fail WORDS]; ...", where * is any. */
int ddl_rules_init(struct ddl_rules *r, const char *default_text, const char *rules_text, uint64_t random, struct err *e) MUST_CHECK;
void ddl_rules_fini(struct ddl_rules *r);
/* Sets what is not NULL; an empty text takes it away. ERR_INVALID: no such statement or delay, or too many rules. */
int ddl_rules_set(struct ddl_rules *r, const struct ddl_subject *of, const char *delay, const char *failure, struct err *e) MUST_CHECK;
/* The rule for everything goes back to default_text and keeps no failure. */
void ddl_rules_remove(struct ddl_rules *r, const struct ddl_subject *of, const char *default_text);
/* Microseconds or -1 (held). */
int64_t ddl_rules_draw(struct ddl_rules *r, const struct ddl_subject *of);
/* The words that it fails with; NULL: it does not. Valid until the rules change. */
const char *ddl_rules_failure(const struct ddl_rules *r, const struct ddl_subject *of);
/* "CREATE TABLE" and the like, or "*"; for those who are to be told what there is, the whole list. */
bool ddl_statement_is_known(const char *statement);
