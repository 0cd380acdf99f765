/* The MD2 hash (RFC 1319), which Java still has and OpenSSL no longer has. Only mask_hash uses it;
 * no security depends on it. */
#pragma once

#include "base/slice.h"

enum { MD2_BYTES = 16 };

void md2_digest(struct slice in, uint8_t out[MD2_BYTES]);
