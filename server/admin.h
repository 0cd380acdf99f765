/* The admin port: HTTP with /health (the process runs), /live (no event loop
 * hangs), /ready (the storage engine accepts requests; a cluster answers), /version, and /metrics (Prometheus text;
 * /metrics?per=table has the ledger's figures by table). At / is the live page (server/page). */
#pragma once

#include "server/http/origin.h"
#include "server/metrics.h"
#include "server/page/page.h"

struct admin;

/* port 0: the port is off, and *out is NULL. membership: NULL when there is one server. address, hosts: as in
 * http_options. page: is stopped, and not freed, by admin_stop. */
int admin_start(struct admin **out, const char *address, uint16_t port, const struct http_hosts *hosts,
                const struct metrics_sources *sources, struct live_page *page, struct err *e) MUST_CHECK;
void admin_stop(struct admin *a);
uint16_t admin_port(const struct admin *a);
