/* The error of a token that the grammar cannot take: "line 1:15 mismatched input 'a' expecting K_BY
 * (...FROM t ORDER [a]...)".
 *
 * The parser's state names the token, and the one token that can stand there, if it is only one. The
 * text in parentheses begins ten tokens before it; a run of blanks counts as one. */
#include <stdio.h>

#include "cql/syntax/build.h"
#include "cql/syntax/grammar.h"

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

void cqli_syntax_error(struct parse *p) {
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
