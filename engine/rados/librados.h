/* Ceph's client library, loaded when the store is opened: the package does not depend on Ceph. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/err.h"

/* Values of <rados/librados.h>. */
enum { LIBRADOS_EXCLUSIVE = 1, LIBRADOS_IDEMPOTENT = 0 }; /* write_op_create */
enum { LIBRADOS_EQ = 1 };                                 /* write_op_omap_cmp2 */

struct librados {
#define LIBRADOS(result, name, parameters) result(*name) parameters;
#include "engine/rados/librados.def"
#undef LIBRADOS
};

/* Returns the library's functions, the same for every call. The library stays loaded until the process
 * ends. Returns NULL with ERR_CONFIG if it is not installed, or lacks a function. Any thread. */
const struct librados *librados_load(struct err *e) MUST_CHECK;
