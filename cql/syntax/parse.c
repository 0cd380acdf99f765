/* cql_parse: frequent statements by hand (plain.c), all others by the generated parser. */
#include <stdio.h>

#include "cql/syntax/build.h"
#include "cql/syntax/grammar.h"

/* Returns the next token. JSON and DISTINCT after SELECT are columns of these names unless a selector follows. */
static struct token next_token(struct parse *p) {
    struct token t = p->has_ahead ? p->ahead : token_next(&p->reader);
    p->has_ahead = false;
    if (t.code != T_JSON && t.code != T_DISTINCT) return t;
    bool first = p->prev.code == T_SELECT;
    bool second = t.code == T_DISTINCT && p->prev.code == T_JSON;
    if (!first && !second) return t;
    p->ahead = token_next(&p->reader);
    p->has_ahead = true;
    switch (p->ahead.code) { /* tokens with which a selector can begin, in addition to words that are not reserved */
    case T_IDENT: case T_QNAME: case T_STRING: case T_INTEGER: case T_FLOAT: case T_BOOLEAN: case T_DURATION:
    case T_UUID: case T_HEX: case T_POSITIVE_NAN: case T_NEGATIVE_NAN: case T_POSITIVE_INFINITY:
    case T_NEGATIVE_INFINITY: case T_QMARK: case T_COLON: case T_NULL:
    case T_LP: case T_LBRACKET: case T_LBRACE: case T_MINUS: case T_STAR: case T_TOKEN: break;
    default: /* "json as x" is a column with an alias */
        if (p->ahead.code == T_AS || !cqli_falls_back(p->ahead.code)) t.code = T_IDENT;
    }
    return t;
}

/* ---- the error of a token that the grammar does not accept ---- */

enum { BEFORE = 10, SHOWN_MAX = 256 };

/* Where the shown text begins. */
static const uint8_t *snippet_start(struct slice text, const uint8_t *offender) {
    const uint8_t *starts[BEFORE], *end = text.p;
    struct token_reader reader;
    struct err ignored = {0};
    size_t n = 0;
    token_reader_init(&reader, text, &ignored);
    for (struct token t = token_next(&reader); t.code && t.code != T_ERROR; t = token_next(&reader)) {
        if (t.text.p > end) starts[n++ % BEFORE] = end;
        if (t.text.p >= offender) break;
        starts[n++ % BEFORE] = t.text.p;
        end = t.text.p + t.text.n;
    }
    const uint8_t *start = n > BEFORE ? starts[n % BEFORE] : text.p;
    if (offender - start > SHOWN_MAX) start = offender - SHOWN_MAX;
    while ((*start & 0xc0) == 0x80) start++; /* the middle of a UTF-8 sequence */
    return start;
}

/* Its first bytes, without a part of a UTF-8 sequence at the end. */
static struct slice shortened(struct slice s) {
    if (s.n <= SHOWN_MAX) return s;
    s.n = SHOWN_MAX;
    while (s.n && (s.p[s.n] & 0xc0) == 0x80) s.n--;
    return s;
}

/* Sets the error of the rejected token: "line 1:15 mismatched input 'a' expecting K_BY (...FROM t ORDER [a]...)".
 * p->expected is the only token that can be there, if there is only one. The text in parentheses begins ten
 * tokens before it; a run of blanks counts as one. */
static void set_syntax_error(struct parse *p) {
    struct token t = p->offender;
    struct token_place at = token_place(p->text, t.text.p);
    struct slice seen = !t.code ? slice_str("<EOF>") : t.code == T_EMPTY_NAME ? t.text : cqli_token_text(p, t);
    struct buf b;
    p->failed = true;
    buf_init(&b, 0);
    if (t.code) buf_printf(&b, "line %u:%u ", at.line, at.column);
    else buf_put_str(&b, "line 0:-1 "); /* Cassandra's end of text has no position */
    buf_put_str(&b, p->expected ? "mismatched input '" : "no viable alternative at input '");
    buf_put_slice(&b, shortened(seen));
    buf_u8(&b, '\'');
    if (p->expected) buf_printf(&b, " expecting %s", p->expected);
    if (t.code) {
        const uint8_t *start = snippet_start(p->text, t.text.p), *end = t.text.p + t.text.n;
        const uint8_t *text_end = p->text.p + p->text.n;
        size_t from = b.n;
        while (text_end > end && text_end[-1] == '\n') text_end--;
        buf_put_str(&b, start == p->text.p ? " (" : " (...");
        buf_put(&b, start, (size_t)(t.text.p - start));
        buf_u8(&b, '[');
        buf_put_slice(&b, shortened(t.text));
        buf_put_str(&b, end == text_end ? "])" : "]...)");
        for (size_t i = from; i < b.n; i++)
            if (b.p[i] == '\n') b.p[i] = ' ';
    }
    if (buf_failed(&b)) err_nomem(p->err);
    else err_set(p->err, ERR_SYNTAX, "%.*s", SLICE_FMT(buf_slice(&b)));
    buf_fini(&b);
}

/* ---- the parsers ---- */

static void begin(struct parse *p, struct arena *a, struct slice text, bool cassandra_words, struct err *e) {
    *p = (struct parse){.arena = a, .err = e, .text = text, .cassandra_words = cassandra_words};
    err_clear(e);
    token_reader_init(&p->reader, text, e);
    p->binds = SEQ(p, const char *);
}

static struct ast_stmt *with_binds(const struct parse *p, struct ast_stmt *s) {
    s->binds = (struct ast_binds){.n = p->binds->n, .names = p->binds->p};
    return s;
}

struct ast_stmt *cqli_parse_by_grammar(struct arena *a, struct slice text, bool cassandra_words, struct err *e) {
    struct parse p;
    begin(&p, a, text, cassandra_words, e);
    if (!p.failed) cqli_run(&p, next_token);
    if (p.noted && (!e->set || e->code == ERR_SYNTAX)) err_clear(e), err_set(e, ERR_SYNTAX, "%s", p.noted);
    else if (p.rejected) set_syntax_error(&p);
    if (e->set) return NULL;
    if (!p.stmt) return err_null(err_set(e, ERR_SYNTAX, "line 0:-1 no viable alternative at input '<EOF>'"));
    return with_binds(&p, p.stmt);
}

struct ast_stmt *cql_parse(struct arena *a, struct slice text, bool cassandra_words, struct err *e) {
    struct arena_mark mark = arena_mark(a);
    struct parse p;
    begin(&p, a, text, cassandra_words, e);
    struct ast_stmt *s = p.failed ? NULL : cqli_plain(&p);
    if (LIKELY(s != NULL)) return with_binds(&p, s);
    if (e->set && e->no_memory) return NULL;
    arena_rewind(a, mark);
    return cqli_parse_by_grammar(a, text, cassandra_words, e);
}

/* The grammar begins with a statement: it reads the shortest one that ends with a type. */
struct ast_type *cql_parse_type(struct arena *a, struct slice text, struct err *e) {
    struct err why = {0};
    static const char before[] = "ALTER TYPE t ADD f ";
    char *around = arena_alloc(a, sizeof before + text.n);
    if (around) mempcpy(mempcpy(around, before, sizeof before - 1), text.p, text.n);
    const struct ast_stmt *s = around ? cql_parse(a, slice_of(around, sizeof before - 1 + text.n), true, &why) : NULL;
    if (s && s->kind == STMT_ALTER_TYPE && s->other->alter_type.op == ALTER_TYPE_ADD) return s->other->alter_type.type;
    if (!around || why.no_memory) err_nomem(e);
    else err_invalid(e, "'%.*s' is not a type", SLICE_FMT(text));
    return NULL;
}

enum stmt_kind cql_parse_kind(struct slice text) {
    struct token_reader reader;
    struct err ignored = {0};
    token_reader_init(&reader, text, &ignored);
    switch (token_next(&reader).code) {
    case T_SELECT: return STMT_SELECT;
    case T_INSERT: return STMT_INSERT;
    case T_UPDATE: return STMT_UPDATE;
    case T_DELETE: return STMT_DELETE;
    case T_BEGIN: return STMT_BATCH;
    default: return STMT_KINDS;
    }
}
