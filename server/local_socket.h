/* The local socket: how `tally backup` reaches a running server. <data folder>/tallyd.sock, which
 * only the folder's owner can open (0600 in a folder of 0700), so that whoever is answered there
 * may read the data anyway.
 *
 * One request a connection: a line of words with blanks between them, the last one being the rest
 * of the line; the answer is one line of JSON and the end.
 *
 *     backup KEEP FOLDER     {"ok":true,"backup":3,"made":1700000000,"files":12,"bytes":4096}
 *                            {"ok":false,"error":"..."}
 *
 * Connections are served one after the other, on a thread of its own.
 */
#pragma once

#include "engine/engine.h"

struct local_socket;

/* data_dir NULL: none, *out is NULL. */
int local_socket_start(struct local_socket **out, const char *data_dir, struct eng *eng, struct err *e) MUST_CHECK;
/* What is under way is finished. */
void local_socket_stop(struct local_socket *s);
