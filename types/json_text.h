/* Checks whether a text is JSON, and reads it as a tree. An error names the line and the column. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* JSON_VALUES_MAX limits the values at all depths, and the names of members, together. A tree has
 * 32 bytes for each. */
enum { JSON_DEPTH_MAX = 256, JSON_TEXT_MAX = 1 << 24, JSON_VALUES_MAX = 1 << 19 };

enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* A value. The values of a text follow one another in the order of the text: those of a container
 * after the container, the name of a member (a JSON_STRING) before its value. */
struct json_value {
    enum json_kind kind;
    uint32_t n;        /* of elements, or of members */
    struct slice text; /* of a number; a string's value, which may contain NUL bytes */
    uint32_t size;     /* how many values this one and those in it are */
};

struct json_tree {
    struct json_value *values; /* the first is the value that the text begins with */
    size_t n, cap;
    struct buf strings; /* the values of strings that contain escape sequences */
};

/* Finds the value that text begins with, without the space around it. Text after the value is
 * ignored. -1, ERR_INVALID: the text is not JSON, or is past JSON_DEPTH_MAX or JSON_VALUES_MAX.
 * Strings are UTF-8. */
int cql_json_check(struct slice text, struct slice *value, struct err *e) MUST_CHECK;
/* Checks the text in the same way and reads the value as a tree, which points into the text. The
 * caller calls cql_json_fini in either case. An escape sequence that is half of a surrogate pair
 * without the other half becomes a question mark, as in Java. */
int cql_json_parse(struct slice text, struct json_tree *tree, struct err *e) MUST_CHECK;
void cql_json_fini(struct json_tree *tree);
static inline const struct json_value *cql_json_next(const struct json_value *v) { return v + v->size; }
/* Takes the next member off an object that cql_json_check accepted: its name with the quotation
 * marks, and the text of its value. false: the object has no further member. */
bool cql_json_member(struct rd *object, struct slice *name, struct slice *value);
