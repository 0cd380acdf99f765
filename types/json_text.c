#include "types/json_text.h"

#include "base/array.h"
#include "types/family.h"

struct json {
    struct slice text;
    size_t at;
    struct err *e;
    int depth;
    uint32_t values;        /* values and names read so far */
    struct json_tree *tree; /* NULL if the text is only checked */
};

/* ---- refusing ---- */

/* Sets the error, with the place of the fault. Lines and columns count from 1, columns in characters. */
static int refuse(struct json *j, const char *what) {
    unsigned line = 1, column = 1;
    for (size_t i = 0; i < j->at && i < j->text.n; i++) {
        if (j->text.p[i] == '\n') line++, column = 1;
        else if ((j->text.p[i] & 0xC0) != 0x80) column++;
    }
    if (j->at >= j->text.n) what = "the text ends too early";
    return err_invalid(j->e, "%s at line %u, column %u", what, line, column);
}

/* ---- tokens ---- */

static bool at_end(const struct json *j) { return j->at >= j->text.n; }
static uint8_t peek(const struct json *j) { return at_end(j) ? 0 : j->text.p[j->at]; }
static bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

static void skip_space(struct json *j) {
    while (!at_end(j) && (peek(j) == ' ' || peek(j) == '\t' || peek(j) == '\n' || peek(j) == '\r')) j->at++;
}

static uint32_t code_unit(const uint8_t *p) {
    uint32_t c = 0;
    for (int i = 0; i < 4; i++) c = c << 4 | (uint32_t)cqlt_hex_digit(p[i]);
    return c;
}

/* Appends the character of the escape sequence \uXXXX at p, or of the two that are a surrogate
 * pair. Returns the byte after it. */
static const uint8_t *put_unicode(const uint8_t *p, const uint8_t *end, struct buf *out) {
    uint32_t c = code_unit(p + 2);
    p += 6;
    if (c >= 0xD800 && c < 0xDC00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
        uint32_t low = code_unit(p + 2);
        if (low >= 0xDC00 && low < 0xE000) {
            c = 0x10000 + ((c - 0xD800) << 10 | (low - 0xDC00));
            p += 6;
        }
    }
    if (c >= 0xD800 && c < 0xE000) c = '?';
    if (c >= 0x10000) {
        buf_u8(out, (uint8_t)(0xF0 | c >> 18));
        buf_u8(out, (uint8_t)(0x80 | (c >> 12 & 0x3F)));
    } else if (c >= 0x800) {
        buf_u8(out, (uint8_t)(0xE0 | c >> 12));
    }
    if (c >= 0x800) buf_u8(out, (uint8_t)(0x80 | (c >> 6 & 0x3F)));
    else if (c >= 0x80) buf_u8(out, (uint8_t)(0xC0 | c >> 6));
    buf_u8(out, (uint8_t)(c >= 0x80 ? 0x80 | (c & 0x3F) : c));
    return p;
}

/* Replaces the escape sequences of a string that read_string accepted. */
static void put_unescaped(struct slice s, struct buf *out) {
    static const char names[] = "bfnrt", means[] = "\b\f\n\r\t";
    for (const uint8_t *p = s.p, *end = s.p + s.n; p < end;) {
        if (*p != '\\') {
            buf_u8(out, *p++);
        } else if (p[1] == 'u') {
            p = put_unicode(p, end, out);
        } else {
            const char *name = strchr(names, p[1]);
            buf_u8(out, name ? (uint8_t)means[name - names] : p[1]);
            p += 2;
        }
    }
}

static int read_string(struct json *j) {
    size_t from = ++j->at;
    bool escapes = false;
    while (!at_end(j) && peek(j) != '"') {
        if (peek(j) < ' ') return refuse(j, "a control character in a string must be escaped");
        bool escape = peek(j) == '\\';
        escapes |= escape;
        j->at++;
        if (!escape) continue;
        uint8_t c = peek(j);
        if (!c || !strchr("\"\\/bfnrtu", c)) return refuse(j, "unknown escape sequence");
        j->at++;
        for (int i = 0; c == 'u' && i < 4; i++, j->at++)
            if (cqlt_hex_digit(peek(j)) < 0) return refuse(j, "expected a hexadecimal digit of an escape sequence");
    }
    if (at_end(j)) return refuse(j, "");
    struct slice s = slice_of(j->text.p + from, j->at++ - from);
    if (!j->tree) return 0;
    if (escapes) {
        /* The buffer never moves: it has room for the whole text, and no value is longer than its
         * escaped form. */
        struct buf *strings = &j->tree->strings;
        if (!strings->p && !buf_reserve(strings, j->text.n)) return err_nomem(j->e);
        size_t at = strings->n;
        put_unescaped(s, strings);
        s = slice_of(strings->p + at, strings->n - at);
    }
    j->tree->values[j->tree->n - 1].text = s;
    return 0;
}

static int read_digits(struct json *j) {
    if (!is_digit(peek(j))) return refuse(j, "expected a digit");
    while (is_digit(peek(j))) j->at++;
    return 0;
}

static int read_number(struct json *j) {
    size_t from = j->at;
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
    if (j->tree) j->tree->values[j->tree->n - 1].text = slice_of(j->text.p + from, end - from);
    skip_space(j);
    bool apart = j->depth || at_end(j) || j->at > end;
    j->at = end;
    return apart ? 0 : refuse(j, "expected a space after the number");
}

/* ---- values ---- */

static int read_value(struct json *j);

/* Counts one more value or name, and adds it to the tree. */
static int add(struct json *j, enum json_kind kind) {
    struct json_tree *t = j->tree;
    if (++j->values > JSON_VALUES_MAX)
        return err_invalid(j->e, "JSON may not hold more than %d values", JSON_VALUES_MAX);
    if (!t) return 0;
    if (array_room(&t->values, t->n, &t->cap, sizeof *t->values) < 0) return err_nomem(j->e);
    t->values[t->n++] = (struct json_value){.kind = kind, .size = 1};
    return 0;
}

static int read_container(struct json *j, bool object) {
    uint8_t close = object ? '}' : ']';
    uint32_t at = j->values - 1, n = 0;
    if (j->depth == JSON_DEPTH_MAX)
        return err_invalid(j->e, "JSON may not be nested more than %d deep", JSON_DEPTH_MAX);
    j->depth++;
    j->at++;
    skip_space(j);
    bool more = peek(j) != close;
    for (; more; n++) {
        if (object) {
            if (peek(j) != '"') return refuse(j, "expected a name in double quotes");
            if (add(j, JSON_STRING) < 0 || read_string(j) < 0) return -1;
            skip_space(j);
            if (peek(j) != ':') return refuse(j, "expected a colon");
            j->at++;
            skip_space(j);
        }
        if (read_value(j) < 0) return -1;
        skip_space(j);
        more = peek(j) == ',';
        if (!more && peek(j) != close)
            return refuse(j, object ? "expected a comma or }" : "expected a comma or ]");
        if (more) j->at++;
        skip_space(j);
    }
    j->at++;
    j->depth--;
    if (j->tree) j->tree->values[at].n = n, j->tree->values[at].size = j->values - at;
    return 0;
}

static int read_value(struct json *j) {
    uint8_t c = peek(j);
    if (c == '{' || c == '[') return add(j, c == '{' ? JSON_OBJECT : JSON_ARRAY) < 0 ? -1 : read_container(j, c == '{');
    if (c == '"') return add(j, JSON_STRING) < 0 ? -1 : read_string(j);
    if (c == '-' || is_digit(c)) return add(j, JSON_NUMBER) < 0 ? -1 : read_number(j);
    static const struct {
        const char *word;
        enum json_kind kind;
    } known[] = {{"true", JSON_TRUE}, {"false", JSON_FALSE}, {"null", JSON_NULL}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        size_t n = strlen(known[i].word);
        if (j->text.n - j->at < n || memcmp(j->text.p + j->at, known[i].word, n) != 0) continue;
        uint8_t next = j->text.n - j->at > n ? j->text.p[j->at + n] : 0;
        if (next >= 0x80 || next == '_' || is_digit(next) || ((next | 0x20) >= 'a' && (next | 0x20) <= 'z')) break;
        j->at += n;
        return add(j, known[i].kind);
    }
    return refuse(j, "expected a value");
}

/* Reads one value. *value: its text. */
static int read_text(struct json *j, struct slice *value) {
    if (j->text.n >= JSON_TEXT_MAX) return err_invalid(j->e, "JSON may not be longer than %d bytes", JSON_TEXT_MAX);
    skip_space(j);
    size_t from = j->at;
    if (read_value(j) < 0) return -1;
    *value = slice_of(j->text.p + from, j->at - from);
    return 0;
}

int cql_json_check(struct slice text, struct slice *value, struct err *e) {
    struct json j = {.text = text, .e = e};
    return read_text(&j, value);
}

int cql_json_parse(struct slice text, struct json_tree *tree, struct err *e) {
    struct json j = {.text = text, .e = e, .tree = tree};
    struct slice value;
    *tree = (struct json_tree){0};
    buf_init(&tree->strings, 0);
    return read_text(&j, &value);
}

void cql_json_fini(struct json_tree *tree) {
    free(tree->values);
    buf_fini(&tree->strings);
}

/* Takes the text before a sign that is outside of strings and brackets, without the space around
 * it. */
static struct slice take_before(struct rd *r, const char *signs) {
    const uint8_t *from = r->p;
    bool quoted = false;
    for (uint32_t depth = 0; rd_left(r) && (quoted || depth || !strchr(signs, *r->p)); r->p++) {
        if (*r->p == '"') quoted = !quoted;
        else if (quoted) r->p += *r->p == '\\';
        else if (*r->p == '{' || *r->p == '[') depth++;
        else if (*r->p == '}' || *r->p == ']') depth--;
    }
    const uint8_t *end = r->p;
    while (from < end && memchr(" \t\n\r", *from, 4)) from++;
    while (end > from && memchr(" \t\n\r", end[-1], 4)) end--;
    return slice_of(from, (size_t)(end - from));
}

bool cql_json_member(struct rd *object, struct slice *name, struct slice *value) {
    if (rd_left(object)) object->p++; /* the brace or the comma before it */
    *name = take_before(object, ":}");
    if (!name->n || !rd_left(object)) return false;
    object->p++;
    *value = take_before(object, ",}");
    return true;
}
