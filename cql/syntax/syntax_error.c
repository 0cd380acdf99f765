/* Words a rejected token as Cassandra does: "line 1:9 mismatched input 'FORM' expecting K_FROM
 * (SELECT * [FORM]...)".
 *
 * Where it stands and what is wanted there is what walk.h finds. The text in parentheses runs from
 * ten tokens (blanks count) before the place where the decision went wrong to two behind it, as far
 * as Cassandra had read; the brackets hold that place, which is not always the offending token. */
#include <stdio.h>

#include "cql/syntax/build.h"
#include "cql/syntax/grammar.h"
#include "cql/syntax/walk.h"

enum { BEFORE = 10, AFTER = 2 };

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

static void put_snippet(struct writer *w, struct slice text, const struct walk_result *r) {
    uint32_t last = r->n_items - 1, from_at = r->place > BEFORE ? r->place - BEFORE : 0,
             to_at = r->place + AFTER < last ? r->place + AFTER : last;
    const struct token *from = &r->items[from_at], *to = &r->items[to_at], *place = &r->items[r->place];
    if (!from->code || !to->code || !place->code) return; /* Cassandra's end of text has no position */
    const uint8_t *end = to->text.p + shown_length(to), *text_end = text.p + text.n;
    const uint8_t *open = place->text.p, *close = open + shown_length(place);
    while (text_end > end && text_end[-1] == '\n') text_end--;
    if (end < close) end = close;
    put(w, " (", 2);
    if (from->text.p != text.p) put(w, "...", 3);
    put(w, from->text.p, (size_t)(open - from->text.p));
    put(w, "[", 1);
    put(w, open, (size_t)(close - open));
    put(w, "]", 1);
    put(w, close, (size_t)(end - close));
    if (end != text_end) put(w, "...", 3);
    put(w, ")", 1);
}

/* The token that nothing can be done with, and what is known of it. */
static void say(struct parse *p, struct token seen, const char *want, const char *snippet) {
    enum { SEEN_MAX = 512 };
    char place[48], tail[64] = "";
    struct token_place pl = token_place(p->text, seen.text.p);
    if (!seen.code) snprintf(place, sizeof(place), "0:-1");
    else snprintf(place, sizeof(place), "%u:%u", pl.line, pl.column);
    if (want) snprintf(tail, sizeof(tail), " expecting %s", want);
    struct slice text = !seen.code                  ? slice_str("<EOF>")
                        : seen.code == T_EMPTY_NAME ? seen.text
                                                    : cqli_token_text(p, seen);
    if (text.n > SEEN_MAX) text.n = SEEN_MAX;
    err_set(p->err, ERR_SYNTAX, "line %s %s input '%.*s'%s%s", place, want ? "mismatched" : "no viable alternative at",
            SLICE_FMT(text), tail, snippet);
}

void cqli_syntax_error(struct parse *p) {
    struct writer w = {0};
    struct walk_result r;
    p->failed = true;
    struct arena_mark mark = arena_mark(p->arena);
    cqli_walk(p->arena, p->text, &r);
    switch (r.fault) {
    case WALK_NONE: say(p, p->offender, NULL, ""); break;
    case WALK_BAD_TOKEN: *p->err = r.why; break;
    case WALK_MARKER: {
        const char *of = strchr(r.want, '_');
        err_set(p->err, ERR_SYNTAX, "Bind variables cannot be used for %.*s names", (int)(of - r.want), r.want);
        break;
    }
    case WALK_NO_WAY:
    case WALK_MISMATCH:
        put_snippet(&w, p->text, &r);
        say(p, r.items[r.seen], r.fault == WALK_MISMATCH ? r.want : NULL, w.text);
        break;
    }
    arena_rewind(p->arena, mark);
}
