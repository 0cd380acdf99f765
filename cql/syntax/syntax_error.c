/* Words a rejected token as Cassandra does: "line 1:9 mismatched input 'FORM' expecting K_FROM (SELECT * [FORM]...)".
 *
 * The text in parentheses runs from ten tokens (blanks count) before the place where the decision went wrong to two behind it, as far as
 * Cassandra had read; the brackets hold that place, which is not always the offending token. */
#include <stdio.h>

#include "cql/syntax/build.h"
#include "cql/syntax/grammar.h"

enum { BEFORE = 10, AFTER = 2, HISTORY = 32 };

/* The last tokens of the text up to the offender, blanks and comments included. */
struct history {
    struct token items[HISTORY];
    uint32_t n; /* ever added; item i is items[i % HISTORY] */
    int64_t offender; /* an item; -1: not there yet */
    struct token first;
};

enum { T_BLANK = 0xfffe };

static void add(struct history *h, struct token t) {
    if (!h->n) h->first = t;
    h->items[h->n++ % HISTORY] = t;
}

static const struct token *at(const struct history *h, int64_t i) {
    static const struct token none;
    return i < 0 || i >= h->n || i + HISTORY < h->n ? &none : &h->items[i % HISTORY];
}

/* The text between two tokens: each run of blanks and each comment is one token of Cassandra's. */
static void add_gap(struct history *h, const uint8_t *p, const uint8_t *end) {
    while (p < end) {
        const uint8_t *start = p;
        if (*p == '/' && p + 1 < end && p[1] == '*') {
            for (p += 2; p < end && !(p[-1] == '/' && p[-2] == '*' && p - start > 3); p++) continue;
        } else if (*p == '-' || *p == '/') {
            while (p < end && *p != '\n' && *p != '\r') p++;
            if (p < end) p++;
        } else {
            while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) p++;
        }
        add(h, (struct token){.code = T_BLANK, .text = slice_of(start, (size_t)(p - start))});
    }
}

/* Reads the text again, up to the offender. */
static void read_history(const struct parse *p, struct history *h) {
    static const size_t too_long = 1u << 20;
    struct err ignored = {0};
    struct token_reader r;
    const uint8_t *end = p->text.p;
    /* A chain of the select list is refused where it can go no further, behind what was read to see that. */
    bool ahead = p->expecting && strcmp(p->expecting, "K_FROM") == 0;
    token_reader_init(&r, p->text, &ignored);
    for (size_t i = 0; i < too_long; i++) {
        struct token t = token_next(&r);
        if (t.code == T_ERROR) break;
        add_gap(h, end, t.text.p);
        end = t.text.p + t.text.n;
        add(h, t);
        if (h->offender < 0 && t.text.p >= p->offender.text.p) h->offender = (int64_t)h->n - 1;
        if (!t.code || (h->offender >= 0 && (!ahead || t.text.p >= p->prev.text.p))) break;
    }
}

/* The i-th token before `from` that is not a blank; its index. */
static int64_t back(const struct history *h, int64_t from) {
    do from--;
    while (from >= 0 && at(h, from)->code == T_BLANK);
    return from;
}

static bool is_name(const struct token *t) { return t->code == T_IDENT || t->code == T_QNAME || (t->word && cqli_falls_back(t->code)); }

static bool is_compare(uint16_t code) {
    return code == T_EQ || code == T_NEQ || code == T_LT || code == T_LTE || code == T_GT || code == T_GTE || code == T_IN;
}

/* What a term stands behind: there a name is looked at together with what follows it. */
static bool before_term(uint16_t code) {
    return is_compare(code) || code == T_LP || code == T_COMMA || code == T_LBRACKET || code == T_COLON || code == T_PLUS || code == T_MINUS ||
           code == T_STAR || code == T_SLASH || code == T_SELECT;
}

static bool is_dml(uint16_t code) {
    return code == T_SELECT || code == T_INSERT || code == T_UPDATE || code == T_DELETE || code == T_BEGIN;
}

/* Does it stand behind the name of a table without a keyspace, and can follow none? The name could have been a keyspace's. */
static bool after_bare_table(const struct history *h, int64_t offender) {
    int64_t a = back(h, offender), b = back(h, a);
    uint16_t before = at(h, b)->code, code = at(h, offender)->code;
    if (!is_name(at(h, a)) || (before != T_FROM && before != T_INTO && before != T_UPDATE && before != T_COLUMNFAMILY && before != T_TRUNCATE))
        return false;
    return code == T_INTEGER || code == T_STRING || code == T_IF || code == T_IDENT || code == T_QNAME;
}

/* count( that may be Cassandra's own */
static bool is_bare_count(const struct history *h, int64_t paren) {
    int64_t name = back(h, paren), before = back(h, name);
    return at(h, paren)->code == T_LP && at(h, name)->code == T_IDENT && cqli_token_is(*at(h, name), "count") && at(h, before)->code != T_DOT;
}

/* Where Cassandra's parser stood when it found no way on. */
static int64_t decision(const struct history *h, int64_t offender) {
    int64_t a = back(h, offender), b = back(h, a), c = back(h, b);
    const struct token *ta = at(h, a), *tb = at(h, b), *tc = at(h, c);
    uint16_t first = h->first.code;
    if (a == 0 && (first == T_CREATE || first == T_DROP || first == T_LIST || first == T_ALTER)) return a;
    if (is_name(ta)) {
        if (tb->code == T_DELETE || after_bare_table(h, offender)) return a;
        if (tb->code == T_WHERE || (tb->code == T_AND && is_dml(first))) return a;
        if (is_dml(first) && before_term(tb->code)) return a;
        if (tb->code == T_DESCRIBE || tb->code == T_DESC || (first == T_ALTER && is_name(tb))) return a;
    }
    if (ta->code == T_IN && is_name(tb)) return b;
    if (ta->code == T_EQ && is_name(tb) && (tc->code == T_WITH || (tc->code == T_AND && !is_dml(first)))) return b;
    if (is_compare(ta->code) && tb->code == T_RP && is_dml(first)) return a;
    if (ta->code == T_LP && tb->code == T_IN && tc->code == T_RP) return a;
    if (is_bare_count(h, a)) return b;
    return offender;
}

/* Where Cassandra looks at several tokens together, it never says which one it wants: a name that could have been a function, a column or a
 * property. */
static bool looks_together(const struct history *h, int64_t offender, const char *want) {
    int64_t a = back(h, offender), b = back(h, a);
    const struct token *ta = at(h, a), *tb = at(h, b);
    if (is_bare_count(h, a)) return true;
    if (after_bare_table(h, offender)) return true;
    if (is_name(ta) && tb->code == T_DELETE) return true;
    if (!strcmp(want, "INTEGER")) return is_name(ta) && is_dml(h->first.code);
    if (!strcmp(want, "EOF")) return is_name(at(h, offender)) && is_name(ta) && (tb->code == T_DESCRIBE || tb->code == T_DESC || (h->first.code == T_ALTER && is_name(tb)));
    if (!strcmp(want, "'='")) return ta->code == T_IDENT || ta->code == T_QNAME;
    return !strcmp(want, "'('") && is_name(ta) && is_dml(h->first.code) && before_term(tb->code);
}

/* Cassandra measures a string without its quotes. */
static size_t shown_length(const struct token *t) {
    if (t->code == T_STRING && t->text.p[0] == '$') return t->text.n - 4;
    return (t->code == T_STRING || t->code == T_QNAME) && t->text.n >= 2 ? t->text.n - 2 : t->text.n;
}

struct writer {
    char text[ERR_TEXT_MAX];
    size_t n;
};

static void put(struct writer *w, const void *p, size_t n) {
    const char *s = p;
    for (size_t i = 0; i < n && w->n + 1 < sizeof(w->text); i++)
        if (s[i] != '\n') w->text[w->n++] = s[i];
    w->text[w->n] = 0;
}

static void put_snippet(struct writer *w, const struct parse *p, const struct history *h, int64_t start, int64_t last) {
    int64_t from_at = start > BEFORE ? start - BEFORE : 0, to_at = start + AFTER < last ? start + AFTER : last;
    const struct token *from = at(h, from_at), *to = at(h, to_at), *place = at(h, start);
    if (!from->code || !to->code || !place->code) return; /* Cassandra's end of text has no position */
    const uint8_t *end = to->text.p + shown_length(to), *text_end = p->text.p + p->text.n;
    const uint8_t *open = place->text.p, *close = open + shown_length(place);
    while (text_end > end && text_end[-1] == '\n') text_end--;
    if (end < close) end = close;
    put(w, " (", 2);
    if (from->text.p != p->text.p) put(w, "...", 3);
    put(w, from->text.p, (size_t)(open - from->text.p));
    put(w, "[", 1);
    put(w, open, (size_t)(close - open));
    put(w, "]", 1);
    put(w, close, (size_t)(end - close));
    if (end != text_end) put(w, "...", 3);
    put(w, ")", 1);
}

/* Can the token follow a complete term somewhere in CQL? If not, Cassandra has no viable alternative there. */
static bool follows_term(uint16_t code) {
    switch (code) {
    case 0: case T_SEMI: case T_COMMA: case T_RP: case T_RBRACKET: case T_RBRACE: case T_COLON: case T_RANGE: case T_AND: case T_AS:
    case T_IF: case T_WHERE: case T_LIMIT: case T_PER: case T_ALLOW: case T_GROUP: case T_ORDER: case T_PRIMARY: case T_ASC: case T_DESC:
    case T_FROM: case T_INSERT: case T_UPDATE: case T_DELETE: case T_APPLY: case T_PLUS: case T_MINUS: case T_STAR: case T_SLASH:
    case T_PERCENT:
        return true;
    default:
        return false;
    }
}

static bool is_operator(int t) { return t == T_PLUS || t == T_MINUS || t == T_STAR || t == T_SLASH || t == T_PERCENT; }

/* The one token that must come once loops and options are left, or NULL. */
static const char *expected(const struct parse *p) {
    static const uint16_t closers[] = {T_APPLY, T_BATCH, T_FROM};
    if (p->expecting) return *p->expecting ? p->expecting : NULL;
    if (p->after_term && !follows_term(p->offender.code)) return NULL;
    bool name = p->shifts[T_IDENT];
    for (size_t i = 0; i < ARRAY_LEN(closers); i++)
        if (p->shifts[closers[i]] && (closers[i] != T_FROM || name || !p->shifts[T_TO])) return token_name(closers[i]);
    if (p->shifts[T_WITH] && p->shifts[T_ADD] && !p->shifts[T_ALTER]) return token_name(T_WITH); /* ALTER KEYSPACE: TAGS is not Cassandra's */
    int only = -1;
    for (int t = 0; t < PARSE_TOKENS_MAX; t++) {
        if (!p->shifts[t] || t == T_COMMA || t == T_SEMI || t == T_AND || t == T_DOT || is_operator(t)) continue;
        if (only >= 0) return NULL;
        only = t;
    }
    return only < 0 ? NULL : token_name((uint16_t)only);
}

void cqli_syntax_error(struct parse *p) {
    struct history h = {.offender = -1};
    struct writer w = {0};
    char place[48], tail[64] = "";
    read_history(p, &h);
    int64_t last = (int64_t)h.n - 1, offender = h.offender >= 0 ? h.offender : last;
    const char *want = expected(p);
    if (want && looks_together(&h, offender, want)) want = NULL;
    int64_t start = want ? offender : decision(&h, offender);
    put_snippet(&w, p, &h, start, last);
    bool eof = !p->offender.code;
    struct token_place pl = token_place(p->text, p->offender.text.p);
    if (eof) snprintf(place, sizeof(place), "0:-1");
    else snprintf(place, sizeof(place), "%u:%u", pl.line, pl.column);
    if (want) snprintf(tail, sizeof(tail), " expecting %s", want);
    struct slice seen = eof ? slice_str("<EOF>") : p->offender.code == T_EMPTY_NAME ? p->offender.text : cqli_token_text(p, p->offender);
    enum { SEEN_MAX = 512 };
    if (seen.n > SEEN_MAX) seen.n = SEEN_MAX;
    p->failed = true;
    err_set(p->err, ERR_SYNTAX, "line %s %s input '%.*s'%s%s", place, want ? "mismatched" : "no viable alternative at", SLICE_FMT(seen), tail, w.text);
}
