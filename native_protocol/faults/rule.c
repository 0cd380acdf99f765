#include "native_protocol/faults/rule.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <strings.h>

#include "base/buf.h"
#include "base/murmur3.h"
#include "cql/request/consistency.h"

/* ---- columns ---- */

static const struct {
    const char *name;
    enum fault_type type;
    size_t at;
} columns[] = {
#define AT(column, type) {#column, type, offsetof(struct fault_rule, column)},
#define FAULT_TEXT(column) AT(column, FAULT_IS_TEXT)
#define FAULT_LONG(column) AT(column, FAULT_IS_LONG)
#define FAULT_INT(column) AT(column, FAULT_IS_INT)
#define FAULT_DOUBLE(column) AT(column, FAULT_IS_DOUBLE)
#define FAULT_BOOL(column) AT(column, FAULT_IS_BOOL)
#define FAULT_COUNTER(column) AT(column, FAULT_IS_COUNTER)
#include "native_protocol/faults/column.def"
#undef AT
};

const char *fault_column_name(enum fault_column c) { return columns[c].name; }

enum fault_type fault_column_type(enum fault_column c) { return columns[c].type; }

const void *fault_column_at(const struct fault_rule *r, enum fault_column c) { return (const char *)r + columns[c].at; }

int fault_rule_set(struct fault_rule *r, enum fault_column c, const uint8_t *bytes, int32_t n, struct err *e) {
    static const int32_t sizes[] = {
        [FAULT_IS_LONG] = 8, [FAULT_IS_INT] = 4, [FAULT_IS_DOUBLE] = 8, [FAULT_IS_BOOL] = 1};
    enum fault_type type = columns[c].type;
    void *to = (char *)r + columns[c].at;
    if (type == FAULT_IS_COUNTER)
        return err_invalid(e, "Column %s of system_control.faults is read-only", columns[c].name);
    r->has[c] = n > 0;
    if (type == FAULT_IS_TEXT) {
        struct slice s = n > 0 ? slice_of(bytes, (size_t)n) : slice_str("");
        if (s.n >= FAULT_TEXT_MAX || (s.n && memchr(s.p, 0, s.n)))
            return err_invalid(e, "%s of system_control.faults has at most %d bytes", columns[c].name,
                               FAULT_TEXT_MAX - 1);
        snprintf(to, FAULT_TEXT_MAX, "%.*s", SLICE_FMT(s));
        return 0;
    }
    memset(to, 0, (size_t)sizes[type]);
    if (n <= 0) return 0;
    if (n != sizes[type]) return err_invalid(e, "That is no value of system_control.faults.%s", columns[c].name);
    if (type == FAULT_IS_BOOL) *(bool *)to = *bytes != 0;
    else if (type == FAULT_IS_INT) *(int32_t *)to = (int32_t)load_u32(bytes);
    else { /* a double has the bits of its number */
        uint64_t bits = load_u64(bytes);
        memcpy(to, &bits, sizeof(bits));
    }
    return 0;
}

/* ---- words ---- */

/* The protocol's names of requests that run statements. */
static const char *const kinds[] = {
    [REQUEST_QUERY] = "QUERY", [REQUEST_PREPARE] = "PREPARE", [REQUEST_EXECUTE] = "EXECUTE", [REQUEST_BATCH] = "BATCH"};

static const struct answer {
    enum err_code code;
    const char *name, *carries, *words;
} answers[] = {
#define FAULT_ERROR(id, name, carries, words) {ERR_##id, name, carries, words},
#include "native_protocol/faults/error.def"
#undef FAULT_ERROR
};

static const struct answer *answer_of(enum err_code code) {
    size_t i = 0;
    while (answers[i].code != code) i++;
    return &answers[i];
}

static int no_such(enum fault_column c, const char *text, struct err *e) {
    struct buf words;
    buf_init(&words, 4096);
    buf_printf(&words, "'%.100s' is no %s of a fault", text, columns[c].name);
    if (c == FAULT_COLUMN_error)
        for (size_t i = 0; i < ARRAY_LEN(answers); i++) buf_printf(&words, "%s%s", i ? ", " : ": ", answers[i].name);
    if (c == FAULT_COLUMN_opcode) buf_put_str(&words, ": QUERY, EXECUTE, BATCH, PREPARE");
    return err_set_buf(e, ERR_INVALID, &words);
}

/* Resolves the words in opcode, statement, error, consistency and write_type. */
static int find_words(struct fault_rule *r, struct err *e) {
    /* v5 specification, section 9 */
    static const char *const types[] = {"SIMPLE",    "BATCH", "UNLOGGED_BATCH", "COUNTER",
                                        "BATCH_LOG", "CAS",   "VIEW",           "CDC"};
    r->kind = -1;
    for (size_t i = 0; i < ARRAY_LEN(kinds) && *r->opcode; i++)
        if (!strcasecmp(r->opcode, kinds[i])) r->kind = (int)i;
    if (*r->opcode && r->kind < 0) return no_such(FAULT_COLUMN_opcode, r->opcode, e);

    r->stmt_kind = STMT_KINDS;
    for (int i = 0; i < STMT_KINDS && *r->statement; i++)
        if (!strcasecmp(r->statement, stmt_words((enum stmt_kind)i))) r->stmt_kind = (enum stmt_kind)i;
    if (*r->statement && r->stmt_kind == STMT_KINDS) return no_such(FAULT_COLUMN_statement, r->statement, e);

    r->fails = false;
    for (size_t i = 0; i < ARRAY_LEN(answers) && *r->error; i++)
        if (!strcasecmp(r->error, answers[i].name)) {
            r->fails = true;
            r->code = answers[i].code;
        }
    if (*r->error && !r->fails) return no_such(FAULT_COLUMN_error, r->error, e);

    if (*r->consistency) {
        uint16_t level = 0;
        while (strcmp(consistency_name(level), "UNKNOWN") && strcasecmp(r->consistency, consistency_name(level)))
            level++;
        if (!strcmp(consistency_name(level), "UNKNOWN")) return no_such(FAULT_COLUMN_consistency, r->consistency, e);
        r->level = level;
    }
    if (*r->write_type) {
        size_t type = 0;
        while (type < ARRAY_LEN(types) && strcasecmp(r->write_type, types[type])) type++;
        if (type == ARRAY_LEN(types)) return no_such(FAULT_COLUMN_write_type, r->write_type, e);
        snprintf(r->write_type, sizeof(r->write_type), "%s", types[type]);
    }
    return 0;
}

/* ---- columns that must fit each other ---- */

static int check_answer(const struct fault_rule *r, struct err *e) {
    static const struct { enum fault_column column; char letter; } carried[] = {
        {FAULT_COLUMN_consistency, 'A'}, {FAULT_COLUMN_received, 'A'}, {FAULT_COLUMN_required, 'A'},
        {FAULT_COLUMN_failures, 'F'}, {FAULT_COLUMN_data_present, 'D'}, {FAULT_COLUMN_write_type, 'W'}};
    const char *carries = r->fails ? answer_of(r->code)->carries : "";
    for (size_t i = 0; i < ARRAY_LEN(carried); i++)
        if (r->has[carried[i].column] && !strchr(carries, carried[i].letter))
            return err_invalid(e, "%s goes with errors that carry it, and %s does not", columns[carried[i].column].name,
                               r->fails ? answer_of(r->code)->name : "a fault without an error");
    if (r->received < 0 || r->required < 0 || r->failures < 0)
        return err_invalid(e, "received, required and failures of a fault are not negative");
    if (*r->message && !r->fails) return err_invalid(e, "A message goes with an error");
    return 0;
}

/* Checks the columns that choose requests, and those that say what happens to them. */
static int check_columns(const struct fault_rule *r, struct err *e) {
    bool nth = r->has[FAULT_COLUMN_nth], every = r->has[FAULT_COLUMN_every],
         probable = r->has[FAULT_COLUMN_probability];
    if (!*r->name) return err_invalid(e, "A fault has a name");
    if (*r->table_name && !*r->keyspace_name)
        return err_invalid(e, "A fault that names a table names its keyspace, too");
    if (!strcasecmp(r->keyspace_name, "system_control"))
        return err_invalid(e, "A fault cannot hit statements on system_control, because they remove faults");
    if (nth + every + probable > 1)
        return err_invalid(
            e,
            "A fault hits the nth request, every nth request, or each with a probability: give one of nth, every and "
            "probability");
    if ((nth && r->nth < 1) || (every && r->every < 1) || (r->has[FAULT_COLUMN_times] && r->times < 1))
        return err_invalid(e, "nth, every and times of a fault are at least 1");
    if (probable && !(r->probability >= 0 && r->probability <= 1))
        return err_invalid(e, "The probability of a fault is from 0 to 1");
    if (r->has[FAULT_COLUMN_seed] && !probable) return err_invalid(e, "A seed goes with a probability");

    if (r->delay_ms < 0 || r->delay_ms > FAULT_DELAY_MAX_MS)
        return err_invalid(e, "A fault delays by 0 to %d milliseconds", FAULT_DELAY_MAX_MS);
    if (r->fails && r->close) return err_invalid(e, "A fault answers an error or closes the connection, not both");
    if (!r->fails && !r->close && !r->delay_ms)
        return err_invalid(e, "A fault has an error, closes the connection, or delays: error, close, delay_ms");
    return 0;
}

int fault_rule_check(struct fault_rule *r, struct err *e) {
    r->matched = r->hits = 0;
    if (find_words(r, e)) return -1;
    r->partly = !strcasecmp(r->moment, "partly");
    r->after = r->partly || !strcasecmp(r->moment, "after");
    if (*r->moment && !r->after && strcasecmp(r->moment, "before"))
        return err_invalid(e, "The moment of a fault is before (the request is applied), after, "
                              "or partly (a part of an unlogged batch is)");
    return check_columns(r, e) || check_answer(r, e) ? -1 : 0;
}

/* ---- hits, and the error ---- */

bool fault_rule_hits(const struct fault_rule *r, int64_t matched) {
    if (r->has[FAULT_COLUMN_times] && r->hits >= r->times) return false;
    if (r->has[FAULT_COLUMN_nth]) return matched == r->nth;
    if (r->has[FAULT_COLUMN_every]) return matched % r->every == 0;
    if (!r->has[FAULT_COLUMN_probability]) return true;
    /* compared with a number from 0 to 1 that depends on the seed and on matched alone */
    uint8_t bytes[16];
    store_u64(bytes, (uint64_t)r->seed);
    store_u64(bytes + 8, (uint64_t)matched);
    return ldexp((double)((uint64_t)murmur3_hash(slice_of(bytes, sizeof(bytes))) >> 11), -53) < r->probability;
}

static const char *write_type_of(const struct fault_rule *r, const struct cql_run *q) {
    if (*r->write_type) return r->write_type;
    return q->answer.write_type ? q->answer.write_type : "SIMPLE";
}

void fault_rule_fail(const struct fault_rule *r, const struct cql_run *q, struct err *e) {
    err_clear(e);
    err_set(e, r->code, "%s", *r->message ? r->message : answer_of(r->code)->words);
    struct err_detail *d = &e->detail;
    /* The id that an UNPREPARED error names: in a batch, that of the first prepared statement. */
    struct slice id = q->in->prepared_id;
    for (uint32_t i = 0; i < q->in->n_items && !id.n; i++) id = q->in->items[i].prepared_id;
    d->consistency = *r->consistency ? r->level : q->in->params.consistency;
    d->received = r->received;
    d->required = r->has[FAULT_COLUMN_required] ? r->required : r->received < INT32_MAX ? r->received + 1 : INT32_MAX;
    d->failures = r->has[FAULT_COLUMN_failures] ? r->failures : 1;
    d->data_present = r->data_present;
    snprintf(d->write_type, sizeof(d->write_type), "%.19s", write_type_of(r, q));
    snprintf(d->keyspace, sizeof(d->keyspace), "%s", q->cost->keyspace ? q->cost->keyspace : "");
    snprintf(d->name, sizeof(d->name), "%s", q->cost->table ? q->cost->table : "");
    if (id.n == sizeof(d->prepared_id)) memcpy(d->prepared_id, id.p, id.n);
}
