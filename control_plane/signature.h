/* AWS Signature Version 4 of an HTTP request
 * (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html): the
 * Authorization header, the time window of fifteen minutes, the session token, the Region. Inside
 * control_plane only.
 */
#pragma once

#include "access/credentials.h"
#include "control_plane/operation.h"
#include "server/http/listener.h"

/* The Region that the request is signed for, whether the signature is right or not. It is the
 * server's own one when the request has no signature, or one for a Region that AWS does not have.
 * Returns NULL if memory is exhausted. */
const char *signature_region(const struct http_request *q, const char *own, struct arena *a) MUST_CHECK;

/* Checks the request's signature for the Region and the service, and returns the key that signed it. Returns NULL
 * with the reason in *error and e. now_s: seconds since 1970. */
const struct access_key *signature_check(const struct access_keys *keys, const char *region, const char *service,
                                         const struct http_request *q, int64_t now_s, struct arena *a,
                                         enum api_error *error, struct err *e) MUST_CHECK;
