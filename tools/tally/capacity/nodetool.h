/* Reads the output of Cassandra's nodetool 3.0 to 5.0: tablestats (also with -H), tablehistograms,
 * info and status. A file may hold the output of several nodes, one after the other.
 *
 * nodetool counts reads and writes of a table but does not show the statements. So a read is taken
 * to be a read of one row by its whole key, and a write to be an INSERT of a whole row. Every
 * report notes this.
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

/* -1: ERR_CONFIG with file, line and what is not as nodetool prints it. Histograms come after
 * tablestats. */
int nodetool_read(struct nodetool *n, struct arena *a, enum nodetool_kind kind, const char *path, struct slice text,
                  struct err *e) MUST_CHECK;
/* Partitions, rows and rates of the schema's tables into the workload. replicas 0: as the keyspaces
 * say. -1: ERR_CONFIG. */
int nodetool_apply(const struct nodetool *n, struct workload *w, const struct schema *schema, uint32_t replicas,
                   uint16_t consistency, struct note **notes, struct err *e) MUST_CHECK;
/* Puts a note at the end. */
int note_add(struct arena *a, struct note **notes, struct err *e, const char *fmt, ...) PRINTF_LIKE(4, 5);
