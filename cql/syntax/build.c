/* Shared by all builders: memory of the parse, refusals, names. */
#include "cql/syntax/build.h"
#include "cql/syntax/grammar.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- memory ---- */

void *cqli_nomem(struct parse *p) {
    p->failed = true;
    err_nomem(p->err);
    memset(p->scratch, 0, sizeof(p->scratch));
    return p->scratch;
}

void *cqli_new(struct parse *p, size_t size) {
    void *n = arena_zalloc(p->arena, size);
    return LIKELY(n != NULL) ? n : cqli_nomem(p);
}

struct seq *cqli_seq(struct parse *p, size_t size) {
    struct seq *s = NEW(p, struct seq);
    s->size = (uint32_t)size;
    return s;
}

struct seq *cqli_push(struct parse *p, struct seq *s, const void *item) {
    if (p->failed) return s;
    if (s->n == s->cap) {
        uint32_t cap = s->cap ? s->cap * 2 : 4;
        void *grown = arena_alloc(p->arena, (size_t)cap * s->size);
        if (!grown) return cqli_nomem(p), s;
        if (s->n) memcpy(grown, s->p, (size_t)s->n * s->size);
        s->p = grown, s->cap = cap;
    }
    memcpy((uint8_t *)s->p + (size_t)s->n++ * s->size, item, s->size);
    return s;
}

void *cqli_append(struct parse *p, void *items, uint32_t *n, size_t size, const void *item) {
    bool full = !*n || (*n >= 4 && !(*n & (*n - 1))); /* as cqli_push grows: 0, 4, 8, 16 ... */
    struct seq s = {.n = *n, .cap = full ? *n : UINT32_MAX, .size = (uint32_t)size, .p = items};
    cqli_push(p, &s, item);
    *n = s.n;
    return s.p;
}

/* ---- refusals ---- */

void cqli_reject(struct parse *p, struct token t) {
    if (p->failed || p->rejected) return;
    p->rejected = true;
    p->offender = t;
}

void cqli_reject_by_table(struct parse *p, struct token t, const bool *can, uint16_t n) {
    uint16_t found = 0, only = 0;
    if (p->failed || p->rejected) return;
    cqli_reject(p, t);
    for (uint16_t code = 0; code < n; code++)
        if (can[code]) found++, only = code;
    p->expected = found == 1 ? token_name(only) : NULL;
}

static void fail_with(struct parse *p, enum err_code code, const char *fmt, va_list ap) {
    if (p->failed || p->rejected) return;
    char text[ERR_TEXT_MAX];
    err_print(text, sizeof(text), fmt, ap);
    p->failed = true;
    err_set(p->err, code, "%s", text);
}

void cqli_refuse(struct parse *p, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fail_with(p, ERR_SYNTAX, fmt, ap);
    va_end(ap);
}

void cqli_invalid(struct parse *p, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fail_with(p, ERR_INVALID, fmt, ap);
    va_end(ap);
}

void cqli_note(struct parse *p, const char *fmt, ...) {
    char text[ERR_TEXT_MAX];
    if (p->failed || p->rejected || p->noted) return;
    va_list ap;
    va_start(ap, fmt);
    err_print(text, sizeof(text), fmt, ap);
    va_end(ap);
    p->noted = (const char *)arena_dup(p->arena, slice_str(text)).p;
    if (!p->noted) cqli_nomem(p);
}

/* ---- names and literals ---- */

struct slice cqli_token_text(struct parse *p, struct token t) {
    uint8_t c = t.text.n ? t.text.p[0] : 0;
    if (c != '\'' && c != '"' && c != '$') return t.text;
    struct slice s = token_unquote(p->arena, t.text);
    return s.p ? s : slice_of(cqli_nomem(p), 0);
}

const char *cqli_exact(struct parse *p, struct token t) {
    struct slice s = cqli_token_text(p, t);
    struct slice z = arena_dup(p->arena, s);
    if (memchr(s.p, 0, s.n)) cqli_refuse(p, "A name must not hold the character 0");
    return z.p ? (const char *)z.p : cqli_nomem(p);
}

const char *cqli_ident(struct parse *p, struct token t) {
    uint8_t c = t.text.n ? t.text.p[0] : 0;
    if (c == '\'' || c == '"' || c == '$') return cqli_exact(p, t);
    char *low = arena_alloc(p->arena, t.text.n + 1);
    if (!low) return cqli_nomem(p);
    for (size_t i = 0; i < t.text.n; i++) {
        uint8_t b = t.text.p[i];
        low[i] = (char)(b >= 'A' && b <= 'Z' ? b + 32 : b);
    }
    low[t.text.n] = 0;
    return low;
}

void cqli_no_word(struct parse *p, struct token t) {
    if (t.word && t.code != T_RESTORE) cqli_reject(p, t); /* RESTORE is Amazon Keyspaces' */
}

bool cqli_is_no_function(struct slice name) {
    static const char *const words[] = {"ttl", "writetime", "maxwritetime", "key", "cast", "json", "distinct"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (cqli_token_is((struct token){.text = name}, words[i])) return true;
    return false;
}

struct ast_name cqli_name(const char *keyspace, const char *name) {
    return (struct ast_name){.keyspace = keyspace, .name = name};
}

bool cqli_token_is(struct token t, const char *word) {
    size_t n = strlen(word);
    if (t.text.n != n) return false;
    for (size_t i = 0; i < n; i++)
        if ((t.text.p[i] | 0x20) != word[i]) return false;
    return true;
}
