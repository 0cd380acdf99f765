/* Passwords: bcrypt, as Cassandra keeps them ("$2a$10$..."), so that HASHED PASSWORD takes what
 * others have made. Slow on purpose: not on a loop. What was right a moment ago is remembered
 * (keyed hashes, in memory, bounded), so that a driver's many connections cost one bcrypt.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

/* A hash of the greatest cost takes seconds of the thread that all logins share: who may make roles
 * could make it stand still. */
enum { PASSWORD_HASH_MAX = 64, PASSWORD_COST_MAX = 14 };

enum password_form { PASSWORD_IS_HASH, PASSWORD_IS_NO_HASH, PASSWORD_IS_TOO_SLOW };

int password_hash(const char *password, char out[PASSWORD_HASH_MAX], struct err *e) MUST_CHECK;
/* Can it be a hash, and one that may be asked for? Slow, as the hash itself. */
enum password_form password_form(const char *hash);
/* Without a hash it takes as long as with one, and is false. Any thread. */
bool password_verify(const char *hash, const char *password);
/* Is it known to be right, without the slow way? Any thread, a loop's too. */
bool password_is_remembered(const char *hash, const char *password);
