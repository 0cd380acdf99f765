/* The small messages, which need no call and are answered at once: STARTUP, OPTIONS, REGISTER and
 * AUTH_RESPONSE. body is uncompressed. The loop's thread. */
#pragma once

#include "native_protocol/conn.h"

void npi_on_STARTUP(struct np_conn *c, const struct np_envelope *env, struct slice body);
void npi_on_OPTIONS(struct np_conn *c, const struct np_envelope *env, struct slice body);
void npi_on_REGISTER(struct np_conn *c, const struct np_envelope *env, struct slice body);
void npi_on_AUTH_RESPONSE(struct np_conn *c, const struct np_envelope *env, struct slice body);
