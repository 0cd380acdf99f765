/* The certificate of a TLS port. It can be read again while the port is open: each handshake gets a
 * copy of the current certificate, and open connections keep theirs. Any thread.
 */
#pragma once

#include <gnutls/abstract.h>

#include "base/err.h"

struct http_certificate;

/* cert, key: paths of PEM files with a chain and its private key; both texts must outlive the
 * result. NULL and ERR_CONFIG: the files cannot be read or do not fit. */
struct http_certificate *http_certificate_open(const char *cert, const char *key, struct err *e) MUST_CHECK;
void http_certificate_close(struct http_certificate *c);
/* Reads the files again. -1 and ERR_CONFIG: they cannot be read or do not fit, and the current
 * certificate stays. */
int http_certificate_reload(struct http_certificate *c, struct err *e) MUST_CHECK;
/* Copies the chain and the key for one handshake; GnuTLS frees both (GNUTLS_CERT_RETR_DEINIT_ALL).
 * Returns -1 if memory is exhausted. */
int http_certificate_copy(struct http_certificate *c, gnutls_pcert_st **chain, unsigned *n,
                          gnutls_privkey_t *key) MUST_CHECK;
