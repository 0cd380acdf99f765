/* JSON, appended to a buffer member by member. A member or an item gets a comma in front unless it
 * is the first of its object or array. */
#pragma once

#include "base/buf.h"

/* Begins an item of an array, or the value of a member. */
void json_item(struct buf *out);
/* Begins a member of an object; its value follows. */
void json_member(struct buf *out, const char *name);
void json_text(struct buf *out, const char *name, const char *text);
void json_count(struct buf *out, const char *name, uint64_t n);
