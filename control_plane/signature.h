/* AWS Signature Version 4 of an HTTP request
 * (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html): the
 * Authorization header, the time window of fifteen minutes, the session token. Inside control_plane
 * only.
 */
#pragma once

#include "access/credentials.h"
#include "control_plane/operation.h"
#include "http/listener.h"

/* Checks the request's signature for the service, and returns the key that signed it. NULL: *error
 * and e give the reason. now_s: seconds since 1970. */
const struct access_key *signature_check(const struct access_keys *keys, const char *region, const char *service,
                                         const struct http_request *q, int64_t now_s, struct arena *a,
                                         enum api_error *error, struct err *e) MUST_CHECK;
