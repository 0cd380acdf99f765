/* The protocol's notations beyond plain integers (v5 specification, section 3). */
#pragma once

#include "base/buf.h"

/* [string]: a length of two bytes and the bytes; cut at 65535. */
void np_put_string(struct buf *out, const char *s);
