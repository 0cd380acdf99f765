/* Passwords: bcrypt, as Cassandra keeps them ("$2a$10$..."), so that HASHED PASSWORD accepts hashes
 * made by other tools. Hashing is slow on purpose: do not call it on an event loop. A bounded cache
 * in memory keeps keyed hashes of recently verified passwords, so that the many connections of a
 * driver cost one bcrypt.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

/* A hash of a great cost takes seconds of the thread that all logins share: without a limit, a
 * client that may create roles could block every login. */
enum { PASSWORD_HASH_MAX = 64, PASSWORD_COST_MAX = 14 };

enum password_form { PASSWORD_IS_HASH, PASSWORD_IS_NO_HASH, PASSWORD_IS_TOO_SLOW };

int password_hash(const char *password, char out[PASSWORD_HASH_MAX], struct err *e) MUST_CHECK;
/* Returns whether the text is a bcrypt hash, and one within PASSWORD_COST_MAX. As slow as
 * verifying a password. */
enum password_form password_form(const char *hash);
/* With an empty hash it takes as long as with a real one, and returns false. Any thread. */
bool password_verify(const char *hash, const char *password);
/* True if the cache contains the password as right; never hashes with bcrypt. Any
 * thread, also an event loop. */
bool password_is_remembered(const char *hash, const char *password);
