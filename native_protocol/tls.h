/* TLS of the listeners: a certificate, its key, and the certificates that clients are checked
 * against, from PEM files. The files can be reloaded while the server runs; existing connections
 * keep the state that they began with. Any thread.
 */
#pragma once

#include <openssl/ssl.h>

#include "base/err.h"

enum np_client_cert { NP_CLIENT_CERT_NONE, NP_CLIENT_CERT_OPTIONAL, NP_CLIENT_CERT_REQUIRED };

struct np_tls_options { /* texts must outlive it */
    const char *cert, *key;
    const char *client_ca; /* certificates that clients are checked against; NULL with NONE */
    enum np_client_cert client_cert;
};

struct np_tls;

/* NULL and ERR_CONFIG, with the file's name. */
struct np_tls *np_tls_open(const struct np_tls_options *o, struct err *e) MUST_CHECK;
void np_tls_close(struct np_tls *t);
/* Reads the files for all later connections. Returns -1 if the files cannot be used, and the
 * previous contents stay in effect. */
int np_tls_reload(struct np_tls *t, struct err *e) MUST_CHECK;
/* Whether the files have changed since they were last read, successfully or not. */
bool np_tls_changed(struct np_tls *t);
/* The server's side of a new connection. Returns NULL if memory is exhausted. */
SSL *np_tls_accept(struct np_tls *t);
