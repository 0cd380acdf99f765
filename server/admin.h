/* The admin port: HTTP on 127.0.0.1 with /health (the process runs), /live (and no event loop of it
 * hangs), /ready (it may be used), /version, and /metrics (Prometheus text; /metrics?per=table has
 * the ledger's figures table by table). */
#pragma once

#include "http/origin.h"
#include "native_protocol/front.h"
#include "server/system_metering.h"

struct admin;

/* port 0: off, *out is NULL. hosts: of http_options. */
int admin_start(struct admin **out, uint16_t port, const struct http_hosts *hosts, struct np_front *front,
                struct eng *eng, struct system_metering *metering, struct err *e) MUST_CHECK;
void admin_stop(struct admin *a);
/* The text of /metrics. */
void admin_metrics(const struct np_front *front, const struct eng *eng, struct buf *out);
