/* TLS of the listeners: a certificate, its key and whom it trusts as clients, from PEM files, which
 * can be read anew while connections go on: those that are there keep what they began with. Any
 * thread.
 */
#pragma once

#include <openssl/ssl.h>

#include "base/err.h"

enum np_client_cert { NP_CLIENT_CERT_NONE, NP_CLIENT_CERT_OPTIONAL, NP_CLIENT_CERT_REQUIRED };

struct np_tls_options { /* texts must outlive it */
    const char *cert, *key;
    const char *client_ca; /* whose certificates clients may show; NULL with NONE */
    enum np_client_cert client_cert;
};

struct np_tls;

/* NULL and ERR_CONFIG, with the file's name. */
struct np_tls *np_tls_open(const struct np_tls_options *o, struct err *e) MUST_CHECK;
void np_tls_close(struct np_tls *t);
/* Connections from now on take what the files hold. -1: they are of no use, and what was there stays. */
int np_tls_reload(struct np_tls *t, struct err *e) MUST_CHECK;
/* Are the files others than when they were read last, well or in vain? */
bool np_tls_changed(struct np_tls *t);
/* The server's side of a new connection. NULL: no memory. */
SSL *np_tls_accept(struct np_tls *t);
