/* The certificate of a TLS port, which can be read anew while the port is open: each handshake
 * gets a copy of the one that is current when it begins, and connections that are open keep
 * theirs. Any thread.
 */
#pragma once

#include <gnutls/abstract.h>

#include "base/err.h"

struct http_certificate;

/* cert: a chain, key: its private key; paths of PEM files, which must outlive it. NULL and
 * ERR_CONFIG: the files are of no use. */
struct http_certificate *http_certificate_open(const char *cert, const char *key, struct err *e) MUST_CHECK;
void http_certificate_close(struct http_certificate *c);
/* Reads the files again. -1 and ERR_CONFIG: they are of no use, and the certificate stays as it
 * was. */
int http_certificate_reload(struct http_certificate *c, struct err *e) MUST_CHECK;
/* The chain and the key for one handshake; GnuTLS frees both (GNUTLS_CERT_RETR_DEINIT_ALL). -1: no
 * memory. */
int http_certificate_copy(struct http_certificate *c, gnutls_pcert_st **chain, unsigned *n,
                          gnutls_privkey_t *key) MUST_CHECK;
