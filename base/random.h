/* Unpredictable random bytes from the system. Any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* -1, ERR_SERVER: the system has none, and the bytes must not be used. */
int random_bytes(void *p, size_t n, struct err *e) MUST_CHECK;
/* A random uuid: version 4 of RFC 4122. */
int random_uuid(uint8_t id[16], struct err *e) MUST_CHECK;
