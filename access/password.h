/* Passwords: bcrypt, as Cassandra keeps them ("$2a$10$..."), so that HASHED PASSWORD takes what others have made. Slow on purpose: not on a loop.
 * What was right a moment ago is remembered (keyed hashes, in memory, bounded), so that a driver's many connections cost one bcrypt.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

enum { PASSWORD_HASH_MAX = 64 };

int password_hash(const char *password, char out[PASSWORD_HASH_MAX], struct err *e) MUST_CHECK;
/* Can it be a hash? */
bool password_is_hash(const char *hash);
/* Without a hash it takes as long as with one, and is false. Any thread. */
bool password_verify(const char *hash, const char *password);
/* Is it known to be right, without the slow way? Any thread, a loop's too. */
bool password_is_remembered(const char *hash, const char *password);
