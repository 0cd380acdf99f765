/* Opens files that an operator names, or that are in a folder to which other users may write.
 *
 * Opening a FIFO waits until another process opens its other end, and reading a device may never
 * end. Both would block a thread for ever. So only regular files are read. A log may be written to
 * a FIFO or a device, but only when opening it does not wait.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* Returns a descriptor, which the caller closes. Returns -1 with the reason in words in *why (valid
 * until the next call), and errno is 0 when the file is not a regular one. */
int file_open_read(const char *path, const char **why) MUST_CHECK;
/* Whether more than a gigabyte of the file was never written. A crash leaves no such hole in a file that a
 * store writes, and reading it to its end may take hours. */
struct stat;
bool file_is_sparse(const struct stat *st) MUST_CHECK;
/* Opens a file for appending. Creates it, mode 0600, when it does not exist. Returns -1 with the reason
 * in *why. */
int file_open_append(const char *path, const char **why) MUST_CHECK;
/* Appends the bytes of a regular file to out. -1, ERR_CONFIG: the file cannot be read, or has more
 * than max bytes. */
int file_append_to(const char *path, size_t max, struct buf *out, struct err *e) MUST_CHECK;
