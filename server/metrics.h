/* The page /metrics in Prometheus' text format: the loops' counters (metric.def), the engine's (stat.def,
 * store_stat.def), the ledger's (metering_metrics.c), and the families of family.def. */
#pragma once

#include "membership/membership.h"
#include "native_protocol/front.h"
#include "server/system_metering.h"

enum family {
#define FAMILY(id, name, type, labels, help) FAMILY_##id,
#include "server/family.def"
#undef FAMILY
    FAMILIES
};

/* The sources of the figures; they must outlive the page's requests. */
struct metrics_sources {
    struct np_front *front;
    struct eng *eng;
    struct membership *membership; /* NULL if there is one server */
    struct system_metering *metering;
    const char *data_dir; /* NULL if data is kept in memory */
    size_t memory; /* --memory, in bytes */
};

const char *family_name(enum family f);
void family_put_header(struct buf *out, enum family f);
/* The whole page. is_ready: the answer of /ready. */
void metrics_put(const struct metrics_sources *s, bool per_table, bool is_ready, struct buf *out);
