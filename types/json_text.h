/* Checks whether a text is JSON. An error names the line and the column. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* JSON_VALUES_MAX limits the values at all depths, and the names of members, together. The tree
 * made of a text takes about 100 bytes for each, plus its strings. */
enum { JSON_DEPTH_MAX = 256, JSON_TEXT_MAX = 1 << 24, JSON_VALUES_MAX = 1 << 19 };

/* Finds the value that text begins with, without the space around it. Text after the value is
 * ignored. -1, ERR_INVALID: the text is not JSON, or is past JSON_DEPTH_MAX or JSON_VALUES_MAX.
 * Strings are UTF-8. */
int cql_json_check(struct slice text, struct slice *value, struct err *e) MUST_CHECK;
/* Takes the next member off an object that cql_json_check accepted: its name with the quotation
 * marks, and the text of its value. false: the object has no further member. */
bool cql_json_member(struct rd *object, struct slice *name, struct slice *value);
