/* Rules for the delay of DDL statements and for making them fail, by statement, keyspace and
 * object. The closest rule counts.
 *
 * A rule that names the object is closer than one that names the keyspace, and that one is closer
 * than a rule that names the statement. A rule may give a delay, a failure, or both; each is taken
 * from the closest rule that gives it. The rule for everything (*, *, *) always has a delay: the
 * configuration's, until a client sets another.
 *
 * Life: the configuration's rules are parsed at the start. A rule that is set at run time is
 * prepared, recorded (ddl/rule.c) and then put into the list. The catalogue's lock guards the
 * list.
 */
#pragma once

#include "system_schema/ddl/ddl_delay.h"

enum { DDL_RULES_MAX = 1000, DDL_NAME_MAX = 224, DDL_WORDS_MAX = 256, DDL_STATEMENT_MAX = 24 };

/* The statements that a rule applies to; "*": any. */
struct ddl_subject {
    const char *statement; /* "CREATE TABLE" */
    const char *keyspace, *name;
};

/* A rule without a delay and a failure is empty, and is kept in no list. */
struct ddl_rule {
    char statement[DDL_STATEMENT_MAX], keyspace[DDL_NAME_MAX], name[DDL_NAME_MAX];
    bool has_delay, has_failure;
    bool configured; /* comes from the configuration */
    bool begins;     /* putting it restarts its sequence of delays */
    char delay_text[96], failure[DDL_WORDS_MAX]; /* failure: the error text for the waiting client */
    struct ddl_delay delay;
    uint64_t random;
};

struct ddl_rules {
    uint32_t n;
    struct ddl_rule **all; /* by statement, keyspace, name */
    uint64_t random;       /* for rules without a seed */
};

/* default_text: the delay of (*, *, *). rules_text: "STATEMENT KEYSPACE[.NAME] = DELAY [fail
 * WORDS]; ...", where * is any. */
int ddl_rules_init(struct ddl_rules *r, const char *default_text, const char *rules_text, uint64_t random,
                   struct err *e) MUST_CHECK;
void ddl_rules_fini(struct ddl_rules *r);
/* Fills out with the present rule of the subject, changed by the arguments that are not NULL; an
 * empty text removes that part. ERR_INVALID: no such statement or delay, or too many rules. */
int ddl_rules_prepare(const struct ddl_rules *r, const struct ddl_subject *of, const char *delay, const char *failure,
                      struct ddl_rule *out, struct err *e) MUST_CHECK;
/* Replaces the rule of the subject by a prepared one; an empty one removes it. */
int ddl_rules_put(struct ddl_rules *r, const struct ddl_rule *rule, struct err *e) MUST_CHECK;
/* After the rules were read again: a rule whose delay is the same as before continues its sequence. */
void ddl_rules_continue(struct ddl_rules *r, const struct ddl_rules *before);
/* Returns NULL if there is none. Valid until the rules change. */
const struct ddl_rule *ddl_rules_find(const struct ddl_rules *r, const struct ddl_subject *of);
/* True for the subject of the rule for everything, which always exists. */
bool ddl_subject_is_everything(const struct ddl_subject *of);
/* Microseconds or -1 (held). */
int64_t ddl_rules_draw(struct ddl_rules *r, const struct ddl_subject *of);
/* The text that the statement fails with; NULL if it succeeds. Valid until the rules change. */
const char *ddl_rules_failure(const struct ddl_rules *r, const struct ddl_subject *of);

/* ---- as a record ---- */

/* version u8 (1) | flags u8 (1: a delay, 2: a failure) | statement | keyspace | name | delay |
 * failure      each: length u16 | bytes */
void ddl_rule_encode(const struct ddl_rule *rule, struct buf *out);
/* ERR_SERVER, ERR_INVALID: the record is damaged. */
int ddl_rule_decode(struct slice bytes, struct ddl_rule *out, struct err *e) MUST_CHECK;
