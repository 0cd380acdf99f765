#include "keyspaces/report.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"

struct row {
    char keyspace[64], table[256];
    char statement[REPORT_TEXT + 1], words[REPORT_TEXT + 1];
    uint64_t uses;
    int64_t first_us, last_us;
};

struct rule_rows {
    unsigned n;
    struct row *rows; /* REPORT_STATEMENTS, once there is a use */
    struct row others;
};

struct compat_report {
    pthread_mutex_t lock;
    struct clock *clock;
    struct rule_rows rules[REFUSALS];
};

struct compat_report *compat_report_new(struct clock *clock, struct err *e) {
    struct compat_report *r = calloc(1, sizeof *r);
    if (!r) return err_null(err_nomem(e));
    r->clock = clock;
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

void compat_report_free(struct compat_report *r) {
    if (!r) return;
    for (int i = 0; i < REFUSALS; i++) free(r->rules[i].rows);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

/* ---- a statement's text without its values ---- */

static bool is_word(uint8_t c) { return isalnum(c) || c == '_' || c >= 0x80; }

/* The end of a quoted text that begins at i. Doubled quotes do not end it. */
static size_t after_quote(struct slice s, size_t i, uint8_t quote) {
    for (i++; i < s.n; i++) {
        if (s.p[i] != quote) continue;
        if (i + 1 == s.n || s.p[i + 1] != quote) return i + 1;
        i++;
    }
    return s.n;
}

/* Is there a UUID at i: 8-4-4-4-12 hexadecimal digits, the first of which may be a letter? */
static bool is_uuid(struct slice s, size_t i) {
    enum { LENGTH = 36 };
    if (s.n - i < LENGTH) return false;
    for (size_t k = 0; k < LENGTH; k++) {
        bool dash = k == 8 || k == 13 || k == 18 || k == 23;
        if (dash ? s.p[i + k] != '-' : !isxdigit(s.p[i + k])) return false;
    }
    return true;
}

/* Copies a statement with ? for each value. to has room for REPORT_TEXT bytes and a NUL. */
static void without_values(struct slice s, char *to) {
    size_t n = 0, i = 0;
    bool in_word = false;
    while (i < s.n && n < REPORT_TEXT) {
        uint8_t c = s.p[i];
        size_t end = i;
        if (c == '\'') end = after_quote(s, i, c);
        else if (!in_word && (isdigit(c) || is_uuid(s, i))) /* a number, a blob, a UUID or a duration */
            while (end < s.n && (is_word(s.p[end]) || s.p[end] == '.' ||
                                 (s.p[end] == '-' && end + 1 < s.n && isalnum(s.p[end + 1]))))
                end++;
        if (end > i) {
            to[n++] = '?';
            i = end;
            in_word = false;
            continue;
        }
        if (c == '"') { /* a name is no value, whatever it holds */
            for (end = after_quote(s, i, c); i < end && n < REPORT_TEXT; i++) to[n++] = (char)s.p[i];
            in_word = false;
            continue;
        }
        bool space = isspace(c);
        if (!space || (n && to[n - 1] != ' ')) to[n++] = space ? ' ' : (char)c;
        in_word = is_word(c);
        i++;
    }
    /* Do not cut inside a UTF-8 sequence. */
    while (n && ((uint8_t)to[n - 1] & 0xC0) == 0x80 && i < s.n) n--;
    if (n && i < s.n && (uint8_t)to[n - 1] >= 0xC0) n--;
    to[n] = 0;
}

/* ---- rows ---- */

void compat_report_note(struct compat_report *r, enum refusal_id id, const char *keyspace, const char *table,
                        struct slice statement, const char *words) {
    char text[REPORT_TEXT + 1];
    if (!r) return;
    without_values(statement, text);
    int64_t now = clock_wall_us(r->clock);
    struct rule_rows *of = &r->rules[id];
    struct row *row = NULL;
    if (!keyspace) keyspace = "";
    if (!table) table = "";
    pthread_mutex_lock(&r->lock);
    for (unsigned i = 0; i < of->n && !row; i++)
        if (!strcmp(of->rows[i].statement, text) && !strcmp(of->rows[i].table, table) &&
            !strcmp(of->rows[i].keyspace, keyspace))
            row = &of->rows[i];
    if (!of->rows) of->rows = calloc(REPORT_STATEMENTS, sizeof *of->rows);
    if (!row && of->rows && of->n < REPORT_STATEMENTS) {
        row = &of->rows[of->n++];
        snprintf(row->keyspace, sizeof row->keyspace, "%s", keyspace);
        snprintf(row->table, sizeof row->table, "%s", table);
        snprintf(row->statement, sizeof row->statement, "%s", text);
    }
    if (!row) row = &of->others;
    if (!row->uses++) row->first_us = now;
    if (words && !*row->words && *row->statement) snprintf(row->words, sizeof row->words, "%s", words);
    row->last_us = now;
    pthread_mutex_unlock(&r->lock);
}

static int give(const struct row *row, int id, int (*take)(void *, const struct compat_use *), void *arg) {
    const struct compat_use u = {.id = (enum refusal_id)id,
                                 .keyspace = row->keyspace,
                                 .table = row->table,
                                 .statement = row->statement,
                                 .words = *row->words ? row->words : refusal_of((enum refusal_id)id).checks,
                                 .uses = row->uses,
                                 .first_us = row->first_us,
                                 .last_us = row->last_us};
    return row->uses ? take(arg, &u) : 0;
}

int compat_report_each(struct compat_report *r, int (*take)(void *arg, const struct compat_use *u), void *arg) {
    int rc = 0;
    pthread_mutex_lock(&r->lock);
    for (int id = 0; id < REFUSALS && rc == 0; id++) {
        for (unsigned i = 0; i < r->rules[id].n && rc == 0; i++) rc = give(&r->rules[id].rows[i], id, take, arg);
        if (rc == 0) rc = give(&r->rules[id].others, id, take, arg);
    }
    pthread_mutex_unlock(&r->lock);
    return rc;
}
