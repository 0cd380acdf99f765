/* Logins: what AUTH_RESPONSE carries, until it is known whose connection it is.
 *
 * SASL PLAIN is checked on a thread of its own, for a password's hash is slow on purpose; what was
 * right a moment ago needs no thread. AWS Signature Version 4 (access/sigv4.h) is a challenge and
 * its answer, both on the loop. The first token tells the two apart.
 *
 * Who guesses pays: an address has NP_LOGIN_BURST slow checks, and gets NP_LOGIN_PER_SECOND more a
 * second; one that was right is given back. Beyond that its logins are refused at once, but for
 * those that need no slow check. Who waits for the thread is bounded so, too.
 */
#pragma once

#include "access/credentials.h"
#include "native_protocol/loop.h"

enum { NP_LOGIN_BURST = 20, NP_LOGIN_PER_SECOND = 2 };

struct np_logins;
struct np_logins_options {
    struct access_control *access;
    const struct access_keys *keys; /* NULL: no SigV4 */
    const char *region;             /* for which SigV4 logins are signed */
    struct clock *clock;
};

struct np_logins *np_logins_new(const struct np_logins_options *o, struct err *e) MUST_CHECK;
/* No login is answered after it; what waits is dropped. The loops still stand. */
void np_logins_stop(struct np_logins *p);
void np_logins_free(struct np_logins *p);

/* A token of the connection has come; answered now or later. The loop's thread. */
void npi_login(struct np_conn *c, const struct np_envelope *env, struct slice token);
