/* The MD2 hash (RFC 1319) for mask_hash: Java still has it, OpenSSL no longer. */
#pragma once

#include "base/slice.h"

enum { MD2_BYTES = 16 };

void md2_digest(struct slice in, uint8_t out[MD2_BYTES]);
