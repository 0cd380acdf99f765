/* Logins: from the token of AUTH_RESPONSE to the role of the connection.
 *
 * SASL PLAIN is checked on a thread of its own, because a password's hash is slow on purpose; a
 * password that was checked successfully a moment ago needs no second check. AWS Signature Version
 * 4 (access/sigv4.h) is a challenge and its answer, both on the loop. The first token decides
 * between the two.
 *
 * Guessing passwords is rate-limited: an address has NP_LOGIN_BURST slow checks, and gets
 * NP_LOGIN_PER_SECOND more a second; a successful check is given back. Beyond that its logins are
 * refused at once, except those that need no slow check. This also bounds the logins that wait for
 * the thread.
 */
#pragma once

#include "access/credentials.h"
#include "native_protocol/conn.h"
#include "native_protocol/loop.h"

enum { NP_LOGIN_BURST = 20, NP_LOGIN_PER_SECOND = 2 };

struct np_logins;
struct np_logins_options {
    struct access_control *access;
    const struct access_keys *keys; /* NULL for no SigV4 */
    const char *region;             /* for which SigV4 logins are signed */
    struct clock *clock;
};

struct np_logins *np_logins_new(const struct np_logins_options *o, struct err *e) MUST_CHECK;
/* Drops the waiting logins; none is answered afterwards. The loops must still exist. */
void np_logins_stop(struct np_logins *p);
void np_logins_free(struct np_logins *p);

/* Checks a name and a password of a client of another port, under the same limit of guesses. The call takes as long as
 * hashing a password, so the thread must be one that may block. Returns -1 with err set if the password is wrong, or
 * that there were too many guesses. */
int np_logins_check(struct np_logins *p, const struct ip_address *client, const char *name, const char *password,
                    struct err *e) MUST_CHECK;

/* The small messages, which need no call and are answered at once: STARTUP, OPTIONS, REGISTER and
 * AUTH_RESPONSE (a login's result may be sent later). body is uncompressed. The loop's thread. */
void npi_on_STARTUP(struct np_conn *c, const struct np_envelope *env, struct slice body);
void npi_on_OPTIONS(struct np_conn *c, const struct np_envelope *env, struct slice body);
void npi_on_REGISTER(struct np_conn *c, const struct np_envelope *env, struct slice body);
void npi_on_AUTH_RESPONSE(struct np_conn *c, const struct np_envelope *env, struct slice body);
