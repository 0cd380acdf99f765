/* Opens files that an operator names, or that stand in a folder which others may write to.
 *
 * Opening a FIFO waits until another process opens its other end, and reading a device may never
 * end: both would hang a thread that nothing can wake. So only regular files are read. A log may
 * be written to a FIFO or a device, but only when that does not wait.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* A descriptor, to be closed by the caller. -1: *why says why in words (valid until the next
 * call), and errno is 0 when the file is not a regular one. */
int file_open_read(const char *path, const char **why) MUST_CHECK;
/* The same for appending; makes the file, mode 0600, when it is not there. */
int file_open_append(const char *path, const char **why) MUST_CHECK;
/* Appends the bytes of a regular file to out. ERR_CONFIG names the file: it cannot be read, or has
 * more than max bytes. */
int file_append_to(const char *path, size_t max, struct buf *out, struct err *e) MUST_CHECK;
