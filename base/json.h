/* Writes JSON into a buffer, member by member. Each function puts the comma that the place needs. name NULL: an
 * item of an array, or the outermost value. */
#pragma once

#include "base/buf.h"

struct json_amount {
    const char *name;
    double n;
};

/* Begins a member; its value follows, by any means. */
void json_member(struct buf *out, const char *name);
static inline void json_item(struct buf *out) { json_member(out, NULL); }
void json_open(struct buf *out, const char *name, char bracket);
void json_slice(struct buf *out, const char *name, struct slice text);
/* text NULL: null */
void json_text(struct buf *out, const char *name, const char *text);
void json_flag(struct buf *out, const char *name, bool on);
void json_count(struct buf *out, const char *name, uint64_t n);
/* An amount below 0 is unknown: null. */
void json_amount(struct buf *out, const char *name, double n);
void json_amounts(struct buf *out, const struct json_amount *list, size_t n);
