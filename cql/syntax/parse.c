/* cql_parse: frequent statements by hand (plain.c), all others by the generated parser. */
#include "cql/syntax/build.h"
#include "cql/syntax/grammar.h"

/* SELECT JSON and SELECT DISTINCT, or columns of these names: it depends on what follows. */
static struct token next_token(struct parse *p) {
    struct token t = p->has_ahead ? p->ahead : token_next(&p->reader);
    p->has_ahead = false;
    if (t.code != T_JSON && t.code != T_DISTINCT) return t;
    bool first = p->prev.code == T_SELECT;
    bool second = t.code == T_DISTINCT && p->prev.code == T_JSON;
    if (!first && !second) return t;
    p->ahead = token_next(&p->reader);
    p->has_ahead = true;
    switch (p->ahead.code) { /* those with which a selector can begin, beside words that are not reserved */
    case T_IDENT: case T_QNAME: case T_STRING: case T_INTEGER: case T_FLOAT: case T_BOOLEAN: case T_DURATION:
    case T_UUID: case T_HEX: case T_POSITIVE_NAN: case T_NEGATIVE_NAN: case T_POSITIVE_INFINITY:
    case T_NEGATIVE_INFINITY: case T_QMARK: case T_COLON: case T_NULL:
    case T_LP: case T_LBRACKET: case T_LBRACE: case T_MINUS: case T_STAR: case T_TOKEN: break;
    default: /* "json as x" is a column with an alias */
        if (p->ahead.code == T_AS || !cqli_falls_back(p->ahead.code)) t.code = T_IDENT;
    }
    return t;
}

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
    else if (p.rejected) cqli_syntax_error(&p);
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
