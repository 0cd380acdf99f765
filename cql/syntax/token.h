/* The tokenizer: query text to tokens, one at a time, without copying.
 *
 * Life: token_reader_init on the text, token_next until T_END or T_ERROR. A token points into the
 * text; line and column are computed only for an error. The rules are those of
 * Cassandra's lexer: a sign belongs to the number after it, a UUID comes before a number or a
 * name, and comments that begin with two dashes or slashes need a line end. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

enum { T_ERROR = 0xffff }; /* the other codes are T_<token> of the grammar; 0 is the end of the text */

struct token {
    uint16_t code;
    uint16_t word;      /* keyword.def row + 1, whatever the token falls back to; 0 for no such word */
    struct slice text;  /* as written, with its quotes */
};

struct token_reader {
    struct slice text;
    size_t at;
    struct err *err;
};

void token_reader_init(struct token_reader *r, struct slice text, struct err *e);
/* At the end, a token of code 0. T_ERROR with ERR_SYNTAX set ("line 1:5 no viable alternative at character '@'"). */
struct token token_next(struct token_reader *r);

/* The row of keyword.def for a word of any case, from 1; 0 if there is none. */
uint16_t token_keyword(struct slice word);
/* May the word be an identifier without quotes? (It is not reserved.) */
bool token_word_is_free(struct slice word);
/* How errors name a token: K_SELECT, '(' , IDENT, EOF. */
const char *token_name(uint16_t code);

/* The contents of a string or quoted name; copied into the arena only when needed. */
struct slice token_unquote(struct arena *a, struct slice text) MUST_CHECK;

struct token_place {
    uint32_t line, column; /* from 1; from 0, in UTF-16 units, as Cassandra counts */
};
struct token_place token_place(struct slice text, const uint8_t *at);
