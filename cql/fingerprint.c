#include "cql/fingerprint.h"

#include <strings.h>

#include "base/hot.h"
#include "cql/syntax/token.h"
#include "cql/syntax/grammar.h"

/* it is made on the event loop, which a statement of hundreds of kilobytes must not hold up */
enum { TOKENS_MAX = 4000 };

static bool is_value(uint16_t code) {
    switch (code) {
    case T_STRING: case T_INTEGER: case T_FLOAT: case T_BOOLEAN: case T_DURATION: case T_UUID: case T_HEX:
    case T_QMARK: return true;
    default: return false;
    }
}

struct writer {
    char *at, *start;
    int listed; /* 1 if the last token is a ?, 2 if it is a comma after a ? */
};

/* Comparisons with constants, because a call of memchr for each token is 3 % of an unprepared read. */
static void put(struct writer *w, struct slice text) {
    char last = w->at == w->start ? '(' : w->at[-1], first = text.n ? (char)text.p[0] : ')';
    bool opens = last == '(' || last == '.' || last == '[' || last == '<';
    bool follows = first == ')' || first == ',' || first == '.' || first == ']' || first == ';' || first == '>' ||
                   first == '(';
    if (!opens && !follows) *w->at++ = ' ';
    copy_short((uint8_t *)w->at, text.p, text.n);
    w->at += text.n;
}

struct slice cql_fingerprint(struct arena *a, struct slice text) {
    struct token_reader r;
    struct err e = {0};
    struct writer w = {.start = arena_alloc(a, 2 * text.n + 4)}; /* a blank before every token at most */
    if (!w.start) return (struct slice){0};
    w.at = w.start;
    token_reader_init(&r, text, &e);
    uint32_t n = 0;
    for (struct token t = token_next(&r); t.code && t.code != T_ERROR; t = token_next(&r)) {
        if (n++ == TOKENS_MAX) {
            put(&w, slice_str("..."));
            break;
        }
        if (is_value(t.code)) {
            if (w.listed == 2) w.at--; /* a ? after "?," replaces both */
            else put(&w, slice_str("?"));
            w.listed = 1;
            continue;
        }
        put(&w, t.text);
        w.listed = w.listed == 1 && t.text.n == 1 && t.text.p[0] == ',' ? 2 : 0;
    }
    return slice_of(w.start, (size_t)(w.at - w.start));
}

struct slice cql_without_literals(struct arena *a, struct slice text) {
    struct token_reader r;
    struct err e = {0};
    struct token t;
    token_reader_init(&r, text, &e);
    do t = token_next(&r);
    while (t.code && t.code != T_ERROR && (t.code == T_QMARK || !is_value(t.code)));
    return t.code ? cql_fingerprint(a, text) : text;
}

bool cql_holds_password(enum stmt_kind kind, struct slice text) {
    static const char word[] = "password";
    if (!text.p || stmt_is_data(kind)) return false;
    for (size_t i = 0; i + sizeof(word) - 1 <= text.n; i++)
        if (!strncasecmp((const char *)text.p + i, word, sizeof(word) - 1)) return true;
    return false;
}

struct slice cql_shown(struct arena *a, enum stmt_kind kind, struct slice text) {
    if (cql_holds_password(kind, text)) text = cql_fingerprint(a, text);
    return text.p ? arena_dup(a, text) : text;
}
