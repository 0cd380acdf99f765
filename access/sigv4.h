/* Logins with AWS Signature Version 4, as AWS's authentication plugins for the Cassandra drivers
 * sign them (aws-sigv4-auth-cassandra-*): the server's nonce is the payload of a presigned PUT to
 * /authenticate of the service "cassandra".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { SIGV4_NONCE = 32, SIGV4_SIGNATURE = 64, SIGV4_SKEW_S = 900 };

/* The first token of such a login. */
bool sigv4_is_hello(struct slice token);
/* Random, printable. */
int sigv4_nonce(char nonce[SIGV4_NONCE], struct err *e) MUST_CHECK;

/* The second token: signature=...,access_key=...,amzdate=...[,session_token=...]. The slices
 * point into the token. */
struct sigv4_response {
    struct slice signature, access_key, date, session_token; /* session_token: p NULL: none */
};
int sigv4_parse(struct slice token, struct sigv4_response *out, struct err *e) MUST_CHECK;
/* Computes the expected signature: 64 hexadecimal digits. Returns -1 if the date is malformed, or
 * memory is exhausted. */
int sigv4_sign(struct slice date, struct slice access_key, const char *secret, const char *region,
               const char nonce[SIGV4_NONCE], char out[SIGV4_SIGNATURE]) MUST_CHECK;
/* The signature of a canonical request, and the hash by which such a request names its payload: 64
 * hexadecimal digits each. scope: "20260102/us-east-1/cassandra/aws4_request". Returns -1 if the
 * scope has another form. */
int sigv4_sign_canonical(const char *secret, struct slice date, struct slice scope, struct slice canonical,
                         char out[SIGV4_SIGNATURE]) MUST_CHECK;
bool sigv4_hash(struct slice text, char out[SIGV4_SIGNATURE]) MUST_CHECK;
/* Seconds since 1970 of a response's date, YYYY-MM-DDTHH:MM:SS.mmmZ; -1 if malformed. */
int64_t sigv4_time(struct slice date);
