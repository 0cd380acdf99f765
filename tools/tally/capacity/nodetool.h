/* Cassandra's own figures, as nodetool 3.0 to 5.0 prints them: tablestats (also with -H),
 * tablehistograms, info, status. What several nodes print may stand one behind the other.
 *
 * They say how often tables are read and written and what they hold, not which statements do it:
 * reads are taken for reads of one row by its whole key, writes for INSERTs of whole rows, and
 * every report says so.
 */
#pragma once

#include "tools/tally/capacity/report.h"

struct nodetool_table {
    struct nodetool_table *next;
    const char *keyspace, *name;
    uint32_t line;
    double reads, writes, partitions, live_bytes; /* of all captures together */
    double compression;                           /* the last capture's; below 0: none */
    double cells;                                 /* of a partition, median; below 0: not known */
};

struct nodetool {
    const char *path;            /* of tablestats */
    struct nodetool_table *tables, *newest;
    uint32_t captures;           /* of tablestats */
    uint32_t nodes;              /* of status: those that are up, of the first data centre; 0: not given */
    uint32_t uptimes;
    double uptime_s;             /* of info, on average */
};

enum nodetool_kind { NODETOOL_TABLESTATS, NODETOOL_TABLEHISTOGRAMS, NODETOOL_INFO, NODETOOL_STATUS };

/* -1: ERR_CONFIG with file, line and what is not as nodetool prints it. Histograms come after tablestats. */
int nodetool_read(struct nodetool *n, struct arena *a, enum nodetool_kind kind, const char *path, struct slice text,
                  struct err *e) MUST_CHECK;
/* Partitions, rows and rates of the schema's tables into the workload. replicas 0: as the keyspaces
 * say. -1: ERR_CONFIG. */
int nodetool_apply(const struct nodetool *n, struct workload *w, const struct schema *schema, uint32_t replicas,
                   uint16_t consistency, struct note **notes, struct err *e) MUST_CHECK;
/* Puts a note at the end. */
int note_add(struct arena *a, struct note **notes, struct err *e, const char *fmt, ...) PRINTF_LIKE(4, 5);
