#include "types/json_text.h"

#include <stdio.h>

#include "types/family.h"

struct json {
    struct slice text;
    size_t at;
    struct err *e;
    int depth;
    uint32_t values; /* values and names read so far */
};

/* ---- refusing ---- */

/* Sets the error: what is wrong, and where. Lines and columns count from 1, columns in characters. */
static int refuse_at(struct json *j, size_t at, const char *what) {
    unsigned line = 1, column = 1;
    for (size_t i = 0; i < at && i < j->text.n; i++) {
        if (j->text.p[i] == '\n') line++, column = 1;
        else if ((j->text.p[i] & 0xC0) != 0x80) column++;
    }
    return err_invalid(j->e, "%s at line %u, column %u", what, line, column);
}

static int refuse(struct json *j, const char *what) {
    return refuse_at(j, j->at, j->at >= j->text.n ? "the text ends too early" : what);
}

/* ---- tokens ---- */

static bool at_end(const struct json *j) { return j->at >= j->text.n; }
static uint8_t peek(const struct json *j) { return at_end(j) ? 0 : j->text.p[j->at]; }
static bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

static void skip_space(struct json *j) {
    while (!at_end(j) && (peek(j) == ' ' || peek(j) == '\t' || peek(j) == '\n' || peek(j) == '\r')) j->at++;
}

static int read_escape(struct json *j) {
    uint8_t c = peek(j);
    if (!c || !strchr("\"\\/bfnrtu", c)) return refuse(j, "unknown escape sequence");
    j->at++;
    for (int i = 0; c == 'u' && i < 4; i++, j->at++)
        if (!peek(j) || !strchr("0123456789abcdefABCDEF", peek(j)))
            return refuse(j, "expected a hexadecimal digit of an escape sequence");
    return 0;
}

static int read_string(struct json *j) {
    j->at++;
    while (!at_end(j) && peek(j) != '"') {
        if (peek(j) < ' ') return refuse(j, "a control character in a string must be escaped");
        bool escape = peek(j) == '\\';
        j->at++;
        if (escape && read_escape(j) < 0) return -1;
    }
    if (at_end(j)) return refuse(j, "");
    j->at++;
    return 0;
}

static int read_digits(struct json *j) {
    if (!is_digit(peek(j))) return refuse(j, "expected a digit");
    while (is_digit(peek(j))) j->at++;
    return 0;
}

static int read_number(struct json *j) {
    if (peek(j) == '-') j->at++;
    bool zero = peek(j) == '0';
    if (zero) j->at++;
    if (zero && is_digit(peek(j))) return refuse(j, "a number must not begin with further zeroes");
    if (!zero && read_digits(j) < 0) return -1;
    if (peek(j) == '.') {
        j->at++;
        if (read_digits(j) < 0) return -1;
    }
    if (peek(j) == 'e' || peek(j) == 'E') {
        j->at++;
        if (peek(j) == '+' || peek(j) == '-') j->at++;
        if (read_digits(j) < 0) return -1;
    }
    size_t end = j->at;
    skip_space(j);
    bool apart = j->depth || at_end(j) || j->at > end;
    j->at = end;
    return apart ? 0 : refuse(j, "expected a space behind the number");
}

/* ---- values ---- */

static int read_value(struct json *j);

/* Counts one more value or name. */
static int count(struct json *j) {
    if (++j->values <= JSON_VALUES_MAX) return 0;
    return err_invalid(j->e, "JSON may not hold more than %d values", JSON_VALUES_MAX);
}

static int read_name(struct json *j) {
    if (peek(j) != '"') return refuse(j, "expected a name in double quotes");
    if (count(j) < 0 || read_string(j) < 0) return -1;
    skip_space(j);
    if (peek(j) != ':') return refuse(j, "expected a colon");
    j->at++;
    skip_space(j);
    return 0;
}

static int read_container(struct json *j, bool object) {
    uint8_t close = object ? '}' : ']';
    if (j->depth == JSON_DEPTH_MAX)
        return err_invalid(j->e, "JSON may not be nested more than %d deep", JSON_DEPTH_MAX);
    j->depth++;
    j->at++;
    skip_space(j);
    bool more = peek(j) != close;
    while (more) {
        if ((object && read_name(j) < 0) || read_value(j) < 0) return -1;
        skip_space(j);
        more = peek(j) == ',';
        if (!more && peek(j) != close)
            return refuse(j, object ? "expected a comma or }" : "expected a comma or ]");
        if (more) j->at++;
        skip_space(j);
    }
    j->at++;
    j->depth--;
    return 0;
}

static int read_value(struct json *j) {
    uint8_t c = peek(j);
    if (count(j) < 0) return -1;
    if (c == '{' || c == '[') return read_container(j, c == '{');
    if (c == '"') return read_string(j);
    if (c == '-' || is_digit(c)) return read_number(j);
    static const char *const known[] = {"true", "false", "null"};
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        size_t n = strlen(known[i]);
        if (j->text.n - j->at < n || memcmp(j->text.p + j->at, known[i], n) != 0) continue;
        uint8_t next = j->text.n - j->at > n ? j->text.p[j->at + n] : 0;
        if (next >= 0x80 || next == '_' || is_digit(next) || ((next | 0x20) >= 'a' && (next | 0x20) <= 'z')) break;
        j->at += n;
        return 0;
    }
    return refuse(j, "expected a value");
}

int cql_json_check(struct slice text, struct slice *value, struct err *e) {
    struct json j = {.text = text, .e = e};
    if (text.n >= JSON_TEXT_MAX) return err_invalid(e, "JSON may not be longer than %d bytes", JSON_TEXT_MAX);
    skip_space(&j);
    size_t from = j.at;
    if (read_value(&j) < 0) return -1;
    *value = slice_of(text.p + from, j.at - from);
    return 0;
}
