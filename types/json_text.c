#include "types/json_text.h"

#include <stdio.h>

#include "types/family.h"

#define SOURCE "[Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: "
#define ANY_VALUE "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')"

struct json {
    struct slice text;
    size_t at;
    struct err *e;
    int depth;
    uint32_t values; /* values and names read so far */
    size_t open[JSON_DEPTH_MAX]; /* positions of the brackets not yet closed */
};

/* ---- refusing ---- */

/* Prints a position: lines and columns count from 1, columns in characters. */
static void place(struct slice text, size_t at, char out[160]) {
    unsigned line = 1, column = 1;
    for (size_t i = 0; i < at && i < text.n; i++) {
        if (text.p[i] == '\n')
            line++, column = 1;
        else if ((text.p[i] & 0xC0) != 0x80)
            column++;
    }
    snprintf(out, 160, SOURCE "%u, column: %u]", line, column);
}

void cql_json_place(struct slice text, struct slice value, char out[160]) {
    place(text, (size_t)(value.p - text.p), out);
}

static int refuse(struct json *j, const char *class, size_t at, const char *message) {
    char where[160];
    place(j->text, at, where);
    return err_invalid(j->e, "com.fasterxml.jackson.core.%s: %s\n at %s", class, message, where);
}

static int refuse_end(struct json *j, const char *message) {
    return refuse(j, "io.JsonEOFException", j->text.n, message);
}

/* The length of the UTF-8 character at a position, and its code. A byte that begins no character
 * stands for itself. */
static size_t character(const struct json *j, size_t at, uint32_t *code) {
    const uint8_t *p = j->text.p + at;
    size_t left = j->text.n - at, n = p[0] < 0xC0 ? 1 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    if (n > left) n = 1;
    *code = n == 1 ? p[0] : p[0] & (0x3Fu >> (n - 1));
    for (size_t i = 1; i < n; i++) *code = *code << 6 | (p[i] & 0x3Fu);
    return n;
}

/* Sets the error "Unexpected character ('x' (code 120))", then why. shown: the position of the
 * character; at: the position that the text names. */
static int refuse_character(struct json *j, size_t shown, size_t at, const char *why) {
    char message[400];
    uint32_t code;
    size_t n = character(j, shown, &code);
    if (code < ' ')
        snprintf(message, sizeof message, "Unexpected character ((CTRL-CHAR, code %u))%s", code, why);
    else if (code > 255)
        snprintf(message, sizeof message, "Unexpected character ('%.*s' (code %u / 0x%x))%s", (int)n,
                 (const char *)j->text.p + shown, code, code, why);
    else
        snprintf(message, sizeof message, "Unexpected character ('%.*s' (code %u))%s", (int)n,
                 (const char *)j->text.p + shown, code, why);
    return refuse(j, "JsonParseException", at, message);
}

static int refuse_here(struct json *j, const char *why) { return refuse_character(j, j->at, j->at, why); }

/* ---- tokens ---- */

static bool at_end(const struct json *j) { return j->at >= j->text.n; }
static uint8_t peek(const struct json *j) { return at_end(j) ? 0 : j->text.p[j->at]; }
static bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

static void skip_space(struct json *j) {
    while (!at_end(j) && (peek(j) == ' ' || peek(j) == '\t' || peek(j) == '\n' || peek(j) == '\r')) j->at++;
}

static int read_escape(struct json *j) {
    static const char cut[] = "Unexpected end-of-input in character escape sequence";
    if (at_end(j)) return refuse_end(j, cut);
    if (peek(j) && strchr("\"\\/bfnrt", peek(j))) {
        j->at++;
        return 0;
    }
    if (peek(j) != 'u') {
        char message[80];
        uint32_t code;
        size_t n = character(j, j->at, &code);
        snprintf(message, sizeof message, "Unrecognized character escape '%.*s' (code %u)", (int)n,
                 (const char *)j->text.p + j->at, code);
        return refuse(j, "JsonParseException", j->at, message);
    }
    j->at++;
    for (int i = 0; i < 4; i++, j->at++) {
        if (at_end(j)) return refuse_end(j, cut);
        if (!peek(j) || !strchr("0123456789abcdefABCDEF", peek(j)))
            return refuse_here(j, ": expected a hex-digit for character escape sequence");
    }
    return 0;
}

static int read_string(struct json *j, bool name) {
    j->at++;
    while (!at_end(j) && peek(j) != '"') {
        if (peek(j) < ' ') {
            char message[160];
            snprintf(message, sizeof message,
                     "Illegal unquoted character ((CTRL-CHAR, code %u)): has to be escaped using backslash to be "
                     "included in %s",
                     peek(j), name ? "name" : "string value");
            return refuse(j, "JsonParseException", j->at, message);
        }
        bool escape = peek(j) == '\\';
        j->at++;
        if (escape && read_escape(j) < 0) return -1;
    }
    if (at_end(j))
        return refuse_end(j, name ? "Unexpected end-of-input in field name"
                                  : "Unexpected end-of-input: was expecting closing quote for a string value");
    j->at++;
    return 0;
}

static bool in_word(uint8_t c) {
    return c >= 0x80 || c == '_' || c == '$' || is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static int read_word(struct json *j) {
    size_t from = j->at;
    if (peek(j) == '-') j->at++;
    while (!at_end(j) && in_word(peek(j))) j->at++;
    struct slice word = slice_of(j->text.p + from, j->at - from);
    static const char *const known[] = {"true", "false", "null"}, *const others[] = {"NaN", "Infinity", "-Infinity",
                                                                                     "-INF"};
    char message[400];
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (slice_eq(word, slice_str(known[i]))) return 0;
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        if (!slice_eq(word, slice_str(others[i]))) continue;
        snprintf(message, sizeof message,
                 "Non-standard token '%s': enable `JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS` to allow", others[i]);
        return refuse(j, "JsonParseException", j->at, message);
    }
    snprintf(message, sizeof message, "Unrecognized token '%.*s': was expecting " ANY_VALUE,
             word.n > 256 ? 256 : (int)word.n, (const char *)word.p);
    return refuse(j, "JsonParseException", j->at, message);
}

static int read_digits(struct json *j, const char *end, const char *why) {
    if (at_end(j) && end) return refuse_end(j, end);
    if (!is_digit(peek(j))) return refuse_character(j, at_end(j) ? j->at - 1 : j->at, j->at - 1, why);
    while (is_digit(peek(j))) j->at++;
    return 0;
}

static int read_number(struct json *j) {
    if (peek(j) == '-') {
        j->at++;
        if (at_end(j)) return refuse_end(j, "Unexpected end-of-inputNo digit following sign");
        if (peek(j) == 'I') {
            j->at--;
            return read_word(j);
        }
        if (!is_digit(peek(j)))
            return refuse_here(j,
                               " in numeric value: expected digit (0-9) to follow minus sign, for valid numeric value");
    }
    bool zero = peek(j) == '0';
    j->at++;
    if (zero && is_digit(peek(j)))
        return refuse(j, "JsonParseException", j->at, "Invalid numeric value: Leading zeroes not allowed");
    while (is_digit(peek(j))) j->at++;
    if (peek(j) == '.') {
        j->at++;
        if (read_digits(j, NULL, " in numeric value: Decimal point not followed by a digit") < 0) return -1;
    }
    if (peek(j) == 'e' || peek(j) == 'E') {
        j->at++;
        if (peek(j) == '+' || peek(j) == '-') j->at++;
        if (read_digits(j, "Unexpected end-of-inputexpected a digit for number exponent",
                        " in numeric value: Exponent indicator not followed by a digit") < 0)
            return -1;
    }
    uint8_t c = peek(j);
    if (j->depth || at_end(j) || c == ' ' || c == '\t' || c == '\n' || c == '\r') return 0;
    return refuse_here(j, ": Expected space separating root-level values");
}

/* ---- values ---- */

static int read_value(struct json *j);

/* Reads the close bracket of a container, if it comes next: 1. 0: a member or a comma comes
 * next. */
static int read_close(struct json *j, bool object) {
    skip_space(j);
    uint8_t c = peek(j);
    if (c == (object ? '}' : ']')) {
        j->at++;
        return 1;
    }
    if (!at_end(j) && c != '}' && c != ']') return 0;
    const char *kind = object ? "Object" : "Array";
    char message[320], where[160];
    place(j->text, j->open[j->depth - 1], where);
    if (at_end(j)) {
        snprintf(message, sizeof message, "Unexpected end-of-input: expected close marker for %s (start marker at %s)",
                 kind, where);
        return refuse_end(j, message);
    }
    snprintf(message, sizeof message, "Unexpected close marker '%c': expected '%c' (for %s starting at %s)", c,
             object ? '}' : ']', kind, where);
    return refuse(j, "JsonParseException", j->at, message);
}

/* Counts one more value or name. */
static int count(struct json *j) {
    if (++j->values <= JSON_VALUES_MAX) return 0;
    return err_invalid(j->e, "JSON may not hold more than %d values", JSON_VALUES_MAX);
}

static int read_name(struct json *j) {
    static const char cut[] = "Unexpected end-of-input within/between Object entries";
    if (peek(j) != '"') return refuse_here(j, ": was expecting double-quote to start field name");
    if (count(j) < 0 || read_string(j, true) < 0) return -1;
    skip_space(j);
    if (at_end(j)) return refuse_end(j, cut);
    if (peek(j) != ':') return refuse_here(j, ": was expecting a colon to separate field name and value");
    j->at++;
    skip_space(j);
    return at_end(j) ? refuse_end(j, cut) : 0;
}

static int read_container(struct json *j, bool object) {
    if (j->depth == JSON_DEPTH_MAX)
        return err_invalid(j->e, "JSON may not be nested more than %d deep", JSON_DEPTH_MAX);
    j->open[j->depth++] = j->at++;
    int closed = read_close(j, object);
    while (closed == 0) {
        if ((object && read_name(j) < 0) || read_value(j) < 0) return -1;
        closed = read_close(j, object);
        if (closed) break;
        if (peek(j) != ',')
            return refuse_here(j, object ? ": was expecting comma to separate Object entries"
                                         : ": was expecting comma to separate Array entries");
        j->at++;
        skip_space(j);
        if (at_end(j))
            return refuse(j, "JsonParseException", j->at,
                          object ? "Unexpected end-of-input within/between Object entries"
                                 : "Unexpected end-of-input within/between Array entries");
        if (!object && peek(j) == '}') return refuse_here(j, ": expected a value");
    }
    j->depth--;
    return closed < 0 ? -1 : 0;
}

static int refuse_plus(struct json *j) {
    if (j->at + 1 == j->text.n) return refuse_end(j, "Unexpected end-of-input in a Number value");
    return refuse_character(j, j->at, j->at + 1,
                            " in numeric value: JSON spec does not allow numbers to have plus signs: enable "
                            "`JsonReadFeature.ALLOW_LEADING_PLUS_SIGN_FOR_NUMBERS` to allow");
}

static int read_value(struct json *j) {
    uint8_t c = peek(j);
    if (count(j) < 0) return -1;
    if (c == '{' || c == '[') return read_container(j, c == '{');
    if (c == '"') return read_string(j, false);
    if (c == '-' || is_digit(c)) return read_number(j);
    if (c == '+') return refuse_plus(j);
    if (in_word(c)) return read_word(j);
    if (c == '/')
        return refuse_here(j, ": maybe a (non-standard) comment? (not recognized as one since Feature 'ALLOW_COMMENTS' "
                              "not enabled for parser)");
    if (j->depth == 0 && (c == ']' || c == '}'))
        return refuse(j, "JsonParseException", j->at,
                      c == ']' ? "Unexpected close marker ']': no open Array to close"
                               : "Unexpected close marker '}': no open Object to close");
    return refuse_here(j, ": expected a valid value " ANY_VALUE);
}

int cql_json_check(struct slice text, struct slice *value, struct err *e) {
    struct json j = {.text = text, .e = e};
    if (text.n >= JSON_TEXT_MAX) return err_invalid(e, "JSON may not be longer than %d bytes", JSON_TEXT_MAX);
    skip_space(&j);
    if (at_end(&j))
        return err_invalid(e, "com.fasterxml.jackson.databind.exc.MismatchedInputException: No content to map due to "
                              "end-of-input\n at " SOURCE "1]");
    size_t from = j.at;
    if (read_value(&j) < 0) return -1;
    *value = slice_of(text.p + from, j.at - from);
    return 0;
}
