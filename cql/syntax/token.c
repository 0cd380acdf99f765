#include "cql/syntax/token.h"

#include "base/buf.h"
#include "base/hot.h"
#include "cql/syntax/grammar.h"
#include "cql/syntax/keyword_slot.h"
#include "cql/syntax/keyword_slots.h"

struct keyword {
    uint8_t word[KEYWORD_MAX + 1]; /* padded with 0: the two numbers of its key */
    bool reserved;
    uint16_t code;
};

static const struct keyword keywords[] = {
#define KEYWORD(word_, token, reserved_) {.word = word_, .reserved = reserved_, .code = T_##token},
#include "cql/syntax/keyword.def"
#undef KEYWORD
};

/* ---- characters ---- */

/* NUMBER: a character that continues a number, a UUID or a duration after digits */
enum { SPACE = 1, DIGIT = 2, HEX = 4, LETTER = 8, WORD = 16, NUMBER = 32 };
static const uint8_t kinds[256] = {
    [' '] = SPACE, ['\t'] = SPACE, ['\n'] = SPACE, ['\r'] = SPACE,
    ['0' ... '9'] = DIGIT | HEX | WORD,
    ['a' ... 'f'] = HEX | LETTER | WORD | NUMBER, ['g' ... 'z'] = LETTER | WORD | NUMBER,
    ['A' ... 'F'] = HEX | LETTER | WORD | NUMBER, ['G' ... 'Z'] = LETTER | WORD | NUMBER,
    ['_'] = WORD, ['.'] = NUMBER, ['-'] = NUMBER, [0xc2] = NUMBER,
};

/* c: a byte, or -1, which is of no kind. */
static bool is(int c, uint8_t kind) { return c >= 0 && kinds[c] & kind; }
static bool is_digit(int c) { return is(c, DIGIT); }
static bool is_letter(int c) { return is(c, LETTER); }
static bool is_hex(int c) { return is(c, HEX); }
static int lower(int c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; }

static int peek(const struct token_reader *r, size_t i) { return i < r->text.n ? r->text.p[i] : -1; }

/* Returns the index after the run of characters of this kind that starts at i. */
static size_t skip(const struct token_reader *r, size_t i, uint8_t kind) {
    while (i < r->text.n && kinds[r->text.p[i]] & kind) i++;
    return i;
}
static size_t skip_digits(const struct token_reader *r, size_t i) { return skip(r, i, DIGIT); }

void token_reader_init(struct token_reader *r, struct slice text, struct err *e) {
    *r = (struct token_reader){.text = text, .err = e};
}

struct token_place token_place(struct slice text, const uint8_t *at) {
    struct token_place pl = {.line = 1};
    for (const uint8_t *p = text.p; p < at; p++) {
        if (*p == '\n') pl.line++, pl.column = 0;
        else if ((*p & 0xc0) != 0x80) pl.column += *p < 0xf0 ? 1 : 2;
    }
    return pl;
}

/* ---- keywords ---- */

uint16_t token_keyword(struct slice word) {
    if (word.n < 2 || word.n > KEYWORD_MAX) return 0;
    struct keyword_key key = keyword_key(word);
    uint16_t row = keyword_slots[keyword_slot(key, KEYWORD_FACTOR)];
    if (!row) return 0;
    const struct keyword *k = &keywords[row - 1];
    return load_u64(k->word) == key.first && load_u64(k->word + 8) == key.rest ? row : 0;
}

bool token_word_is_free(struct slice word) {
    uint16_t k = token_keyword(word);
    return !k || !keywords[k - 1].reserved;
}

static const struct {
    uint16_t code;
    const char *name;
} marks[] = {
    {T_LP, "'('"}, {T_RP, "')'"}, {T_LBRACKET, "'['"}, {T_RBRACKET, "']'"}, {T_LBRACE, "'{'"}, {T_RBRACE, "'}'"},
    {T_COMMA, "','"}, {T_SEMI, "';'"}, {T_COLON, "':'"}, {T_DOT, "'.'"}, {T_EQ, "'='"}, {T_LT, "'<'"},
    {T_LTE, "'<='"}, {T_GT, "'>'"}, {T_GTE, "'>='"}, {T_NEQ, "'!='"}, {T_PLUS, "'+'"}, {T_MINUS, "'-'"},
    {T_STAR, "'*'"}, {T_SLASH, "'/'"}, {T_PERCENT, "'%'"}, {T_PLUS_EQ, "'+='"}, {T_MINUS_EQ, "'-='"},
    {T_EXPR, "'expr('"}, {T_RANGE, "RANGE"}, {T_QMARK, "QMARK"}, {T_IDENT, "IDENT"}, {T_QNAME, "QUOTED_NAME"},
    {T_EMPTY_NAME, "EMPTY_QUOTED_NAME"}, {T_STRING, "STRING_LITERAL"}, {T_INTEGER, "INTEGER"}, {T_FLOAT, "FLOAT"},
    {T_BOOLEAN, "BOOLEAN"}, {T_DURATION, "DURATION"}, {T_UUID, "UUID"}, {T_HEX, "HEXNUMBER"},
    {T_NEGATIVE_NAN, "K_NEGATIVE_NAN"}, {T_NEGATIVE_INFINITY, "K_NEGATIVE_INFINITY"}, {0, "EOF"},
};

static const struct {
    uint16_t code;
    const char *name;
} words[] = {
#define KEYWORD(word, token, reserved) {T_##token, "K_" #token},
#include "cql/syntax/keyword.def"
#undef KEYWORD
};

const char *token_name(uint16_t code) {
    for (size_t i = 0; i < ARRAY_LEN(marks); i++)
        if (marks[i].code == code) return marks[i].name;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (words[i].code == code) return words[i].name;
    return "?";
}

/* ---- tokens ---- */

static struct token make(struct token_reader *r, uint16_t code, size_t end) {
    struct token t = {.code = code, .text = slice_of(r->text.p + r->at, end - r->at)};
    r->at = end;
    return t;
}

static size_t char_len(const struct token_reader *r, size_t at) {
    size_t n = 1;
    while ((peek(r, at + n) & 0xc0) == 0x80 && peek(r, at + n) >= 0 && n < 4) n++;
    return n;
}

/* The character at `at` is a wrong one. */
static struct token wrong_char(struct token_reader *r, size_t at, const char *want) {
    struct token_place pl = token_place(r->text, r->text.p + at);
    if (at >= r->text.n) {
        err_set(r->err, ERR_SYNTAX, "line %u:%u mismatched character '<EOF>' expecting %s", pl.line, pl.column, want);
    } else {
        err_set(r->err, ERR_SYNTAX, "line %u:%u mismatched character '%.*s' expecting %s", pl.line, pl.column,
                (int)char_len(r, at), (const char *)r->text.p + at, want);
    }
    return (struct token){.code = T_ERROR};
}

/* No token can continue with the character at `at`. */
static struct token no_way(struct token_reader *r, size_t at, const char *what) {
    struct token_place pl = token_place(r->text, r->text.p + at);
    struct slice shown = at >= r->text.n ? slice_str("<EOF>") : slice_of(r->text.p + at, char_len(r, at));
    err_set(r->err, ERR_SYNTAX, "line %u:%u %s at character '%.*s'", pl.line, pl.column, what, SLICE_FMT(shown));
    return (struct token){.code = T_ERROR};
}

static struct token no_char(struct token_reader *r, size_t at) { return no_way(r, at, "no viable alternative"); }

/* Skips white space and comments. Returns -1 if a comment has no end, which is an error. */
static int skip_space(struct token_reader *r) {
    for (;;) {
        r->at = skip(r, r->at, SPACE);
        int c = peek(r, r->at), d;
        if (LIKELY(c != '-' && c != '/')) return 0;
        size_t i = r->at + 2;
        d = peek(r, r->at + 1);
        if (c == d) {
            while (peek(r, i) >= 0 && peek(r, i) != '\n' && peek(r, i) != '\r') i++;
            if (i >= r->text.n) return wrong_char(r, i, "set null"), -1;
            r->at = i + 1;
        } else if (c == '/' && d == '*') {
            while (peek(r, i) >= 0 && !(peek(r, i) == '*' && peek(r, i + 1) == '/')) i++;
            if (i >= r->text.n) return wrong_char(r, i, "'*'"), -1;
            r->at = i + 2;
        } else return 0;
    }
}

/* A quoted text that ends at a quote that is not doubled. */
static struct token read_quoted(struct token_reader *r, int quote, uint16_t code) {
    size_t i = r->at + 1;
    for (;; i++) {
        if (i >= r->text.n) return wrong_char(r, i, quote == '"' ? "'\"'" : "'''");
        if (peek(r, i) != quote) continue;
        if (peek(r, i + 1) != quote) break;
        i++;
    }
    return make(r, code, i + 1);
}

/* Returns the end of digits and a designator (P1Y: digits, then one of the letters, in order), or at if there is
 * none. */
static size_t iso_part(const struct token_reader *r, size_t at, const char *letters, bool *any) {
    for (; *letters; letters++) {
        size_t i = skip_digits(r, at);
        if (i == at || peek(r, i) != *letters) continue;
        at = i + 1;
        *any = true;
    }
    return at;
}

/* An ISO 8601 duration at `at`, which holds its P: where it ends, or 0. */
static size_t iso_duration(const struct token_reader *r, size_t at) {
    static const char form[] = "9999-99-99T99:99:99"; /* P2020-01-02T03:04:05 */
    size_t start = at + 1, i = 0;
    while (form[i] && (form[i] == '9' ? is_digit(peek(r, start + i)) : peek(r, start + i) == form[i])) i++;
    if (!form[i]) return start + i;
    i = skip_digits(r, start);
    if (i > start && peek(r, i) == 'W') return i + 1;
    bool any = false;
    i = iso_part(r, start, "YMD", &any);
    if (peek(r, i) == 'T') {
        bool any_time = false;
        size_t j = iso_part(r, i + 1, "HMS", &any_time);
        if (any_time) return j;
    }
    return any ? i : 0;
}

/* Length of a unit of a duration (y mo w d h m s ms us µs ns), the longest that fits; 0 if there is
 * none. */
static size_t unit_len(const struct token_reader *r, size_t i) {
    int c = lower(peek(r, i)), d = lower(peek(r, i + 1));
    if (c == 'm' && (d == 'o' || d == 's')) return 2;
    if ((c == 'u' || c == 'n') && d == 's') return 2;
    if (c == 0xc2 && peek(r, i + 1) == 0xb5 && lower(peek(r, i + 2)) == 's') return 3;
    return c == 'y' || c == 'w' || c == 'd' || c == 'h' || c == 'm' || c == 's' ? 1 : 0;
}

/* After a digit, n, u and the micro sign only begin a unit: an s must follow. */
static bool is_half_unit(const struct token_reader *r, size_t i) {
    int c = lower(peek(r, i));
    return c == 'n' || c == 'u' || (c == 0xc2 && peek(r, i + 1) == 0xb5);
}

enum { UUID_BYTES = 36, UUID_FIRST = 8 };

static bool is_dash_of_uuid(size_t i) { return i == 8 || i == 13 || i == 18 || i == 23; }

static struct token read_uuid(struct token_reader *r) {
    for (size_t i = 0; i < UUID_BYTES; i++) {
        int c = peek(r, r->at + i);
        if (is_dash_of_uuid(i) ? c != '-' : !is_hex(c))
            return wrong_char(r, r->at + i, is_dash_of_uuid(i) ? "'-'" : "set null");
    }
    return make(r, T_UUID, r->at + UUID_BYTES);
}

/* True when Cassandra's lexer accepts only a UUID here: after eight hexadecimal digits and a dash,
 * or when a number continues as neither a real number nor a duration does: 12ab, 12e3f, 12d3e. */
static bool begins_uuid(const struct token_reader *r) {
    size_t run = 0, i = skip_digits(r, r->at) - r->at;
    while (run <= UUID_FIRST && is_hex(peek(r, r->at + run))) run++;
    if (run == UUID_FIRST && peek(r, r->at + run) == '-') return true;
    if (!i) return false; /* a word */
    size_t end = run < UUID_FIRST ? run : UUID_FIRST;
    for (int before = 0; i < end; i = skip_digits(r, r->at + i) - r->at) {
        int c = lower(peek(r, r->at + i));
        if ((c != 'd' && c != 'e') || before == 'e' || (before == 'd' && c == 'e')) return true;
        before = c;
        if (++i < end && is_letter(peek(r, r->at + i))) return true;
    }
    return false;
}

static struct token read_number(struct token_reader *r, size_t digits) {
    size_t whole = skip_digits(r, digits);
    /* A number that ends here is neither a UUID nor a duration. */
    if (LIKELY(!is(peek(r, whole), NUMBER))) return make(r, T_INTEGER, whole);
    if (digits == r->at && peek(r, digits) == '0' && lower(peek(r, digits + 1)) == 'x') {
        size_t i = digits + 2;
        while (is_hex(peek(r, i))) i++;
        return make(r, T_HEX, i);
    }
    if (digits == r->at && begins_uuid(r)) return read_uuid(r);
    if (unit_len(r, whole) || is_half_unit(r, whole)) {
        /* pairs of digits and unit, of which the first is there */
        while (is_digit(peek(r, digits))) {
            size_t end = skip_digits(r, digits), n = unit_len(r, end);
            if (!n && is_half_unit(r, end)) return wrong_char(r, end + (peek(r, end) == 0xc2 ? 2 : 1), "set null");
            if (!n) return no_char(r, end);
            digits = end + n;
        }
        return make(r, T_DURATION, digits);
    }
    /* A whole number or, with a fraction or an exponent, a real one. It begins at `digits`, after a sign. */
    size_t i = whole;
    if (peek(r, i) == '.' && peek(r, i + 1) != '.') i = skip_digits(r, i + 1);
    else if (peek(r, i) == '.' && peek(r, i + 2) == '.') i++; /* 1...2 is 1. .. 2 */
    if (lower(peek(r, i)) != 'e') return make(r, i > whole ? T_FLOAT : T_INTEGER, i);
    size_t mark = i + 1;
    bool sign = peek(r, mark) == '+' || peek(r, mark) == '-',
         uuid = digits == r->at && i == whole && i - digits < UUID_FIRST;
    if (is_digit(peek(r, mark + sign))) return make(r, T_FLOAT, skip_digits(r, mark + sign));
    if (uuid && !sign) return no_char(r, mark);
    return no_way(r, mark + sign, "required (...)+ loop did not match anything");
}

static struct token read_word(struct token_reader *r) {
    size_t i = skip(r, r->at + 1, WORD);
    if (peek(r, r->at) == 'P') {
        size_t end = iso_duration(r, r->at);
        if (end && end >= i) return make(r, T_DURATION, end);
    }
    struct slice word = slice_of(r->text.p + r->at, i - r->at);
    if (peek(r, i) == '(' && slice_is(word, "expr")) return make(r, T_EXPR, i + 1);
    uint16_t k = token_keyword(word);
    struct token t = make(r, k ? keywords[k - 1].code : T_IDENT, i);
    t.word = k;
    return t;
}

/* After a minus, n or i only begins -NaN or -Infinity, because Cassandra's lexer looks no further ahead. */
static struct token read_negative(struct token_reader *r, const char *word, uint16_t code) {
    size_t at = r->at + 1;
    for (; *word; word++, at++)
        if (lower(peek(r, at)) != *word) return wrong_char(r, at, "set null");
    return make(r, code, at);
}

/* A mark that is another one when '=' follows. */
static struct token read_with_eq(struct token_reader *r, uint16_t alone, uint16_t with_eq) {
    bool eq = peek(r, r->at + 1) == '=';
    return make(r, eq ? with_eq : alone, r->at + (eq ? 2 : 1));
}

static SELDOM struct token read_no_word(struct token_reader *r, int c) {
    if (c < 0) return make(r, 0, r->text.n);
    if (is_digit(c)) return read_number(r, r->at);
    if (c == '\'') return read_quoted(r, '\'', T_STRING);
    if (c == '"') {
        if (peek(r, r->at + 1) == '"' && peek(r, r->at + 2) != '"') return make(r, T_EMPTY_NAME, r->at + 2);
        return read_quoted(r, '"', T_QNAME);
    }
    size_t i;
    switch (c) {
    case '(': return make(r, T_LP, r->at + 1);
    case ')': return make(r, T_RP, r->at + 1);
    case ',': return make(r, T_COMMA, r->at + 1);
    case '?': return make(r, T_QMARK, r->at + 1);
    case '=': return make(r, T_EQ, r->at + 1);
    case ';': return make(r, T_SEMI, r->at + 1);
    case ':': return make(r, T_COLON, r->at + 1);
    case '[': return make(r, T_LBRACKET, r->at + 1);
    case ']': return make(r, T_RBRACKET, r->at + 1);
    case '{': return make(r, T_LBRACE, r->at + 1);
    case '}': return make(r, T_RBRACE, r->at + 1);
    case '*': return make(r, T_STAR, r->at + 1);
    case '/': return make(r, T_SLASH, r->at + 1);
    case '%': return make(r, T_PERCENT, r->at + 1);
    case '<': return read_with_eq(r, T_LT, T_LTE);
    case '>': return read_with_eq(r, T_GT, T_GTE);
    case '+': return read_with_eq(r, T_PLUS, T_PLUS_EQ);
    case '-': {
        int d = peek(r, r->at + 1);
        if (is_digit(d)) return read_number(r, r->at + 1);
        if (d == '=') return make(r, T_MINUS_EQ, r->at + 2);
        size_t end = d == 'P' ? iso_duration(r, r->at + 1) : 0;
        if (end) return make(r, T_DURATION, end);
        if (d == 'P') return no_char(r, skip_digits(r, r->at + 2)); /* a minus before a P is a duration's */
        if (lower(d) == 'n') return read_negative(r, "nan", T_NEGATIVE_NAN);
        if (lower(d) == 'i') return read_negative(r, "infinity", T_NEGATIVE_INFINITY);
        return make(r, T_MINUS, r->at + 1);
    }
    case '.': return peek(r, r->at + 1) == '.' ? make(r, T_RANGE, r->at + 2) : make(r, T_DOT, r->at + 1);
    case '!': return peek(r, r->at + 1) == '=' ? make(r, T_NEQ, r->at + 2) : wrong_char(r, r->at + 1, "'='");
    case '$':
        if (peek(r, r->at + 1) != '$') return wrong_char(r, r->at + 1, "'$'");
        for (i = r->at + 2; i + 1 < r->text.n; i++)
            if (r->text.p[i] == '$' && r->text.p[i + 1] == '$') return make(r, T_STRING, i + 2);
        return wrong_char(r, r->text.n - 1 > r->at + 1 ? r->text.n - 1 : r->text.n, "'$'");
    default: return no_char(r, r->at);
    }
}

struct token token_next(struct token_reader *r) {
    if (skip_space(r)) return (struct token){.code = T_ERROR};
    int c = peek(r, r->at);
    if (!is_letter(c)) return read_no_word(r, c);
    return UNLIKELY(peek(r, r->at + UUID_FIRST) == '-') && begins_uuid(r) ? read_uuid(r) : read_word(r);
}

struct slice token_unquote(struct arena *a, struct slice text) {
    if (text.n < 2) return text;
    uint8_t quote = text.p[0];
    if (quote == '$') return slice_of(text.p + 2, text.n - 4);
    struct slice in = slice_of(text.p + 1, text.n - 2);
    if (!memchr(in.p, quote, in.n)) return in;
    uint8_t *out = arena_alloc(a, in.n);
    if (!out) return (struct slice){0};
    size_t n = 0;
    for (size_t i = 0; i < in.n; i++) {
        out[n++] = in.p[i];
        if (in.p[i] == quote) i++;
    }
    return slice_of(out, n);
}
