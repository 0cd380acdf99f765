/* Is a text JSON? Refused in the words of the JSON reader that Cassandra has (Jackson 2.15), which
 * clients get to see. */
#pragma once

#include "base/err.h"

/* Values: of arrays and objects, names of members too, those in containers within containers all
 * counted. The tree that a value is read from takes about 100 bytes for each, beside what its
 * strings take. */
enum { JSON_DEPTH_MAX = 256, JSON_TEXT_MAX = 1 << 24, JSON_VALUES_MAX = 1 << 19 };

/* The value that text begins with, without the space around it; what follows is not looked at. -1
 * with ERR_INVALID: the class of the exception, ": " and its message. Strings are UTF-8. No deeper
 * than JSON_DEPTH_MAX, no more than JSON_VALUES_MAX. */
int cql_json_check(struct slice text, struct slice *value, struct err *e) MUST_CHECK;
/* " at [Source ...; line: 1, column: N]" of a value that was found by cql_json_check, as messages end. */
void cql_json_place(struct slice text, struct slice value, char out[160]);
