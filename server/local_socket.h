/* The local socket, <data folder>/tallyd.sock: `tally backup` reaches a running server through it.
 * Only the folder's owner can open it (0600 in a folder of 0700), and the owner can read the data
 * anyway, so it needs no login.
 *
 * A connection carries one request: a line of words separated by blanks, whose last word is the
 * rest of the line. The answer is one line of JSON; then the server closes the connection.
 *
 *     backup KEEP FOLDER     {"ok":true,"backup":3,"made":1700000000,"files":12,"bytes":4096}
 *                            {"ok":false,"error":"..."}
 *
 * One thread serves the connections one after the other.
 */
#pragma once

#include "engine/engine.h"

struct local_socket;

/* data_dir NULL: there is no socket, and *out is NULL. */
int local_socket_start(struct local_socket **out, const char *data_dir, struct eng *eng, struct err *e) MUST_CHECK;
/* Waits for a running backup. */
void local_socket_stop(struct local_socket *s);
