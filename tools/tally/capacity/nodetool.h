/* Reads the output of Cassandra's nodetool 3.0 to 5.0: tablestats (also with -H, -F json and -F yaml),
 * tablehistograms, info and status. A file may hold the output of several nodes, one after the other,
 * except of JSON and YAML.
 *
 * nodetool counts reads and writes of a table but does not show the statements. So a read is taken
 * to be a read of one row by its whole key, and a write to be an INSERT of a whole row. Every
 * report notes this.
 */
#pragma once

#include "system_schema/objects/schema.h"
#include "tools/tally/capacity/workload.h"

enum { NODES_MAX = 1000 };

/* The figures of a table on one node. */
struct nodetool_figures {
    double reads, writes, partitions, live_bytes;
    double compression;    /* compressed size by the size before; 0 or less: not compressed */
    double partition_mean; /* bytes; 0 if not known */
};

struct nodetool_table {
    struct nodetool_table *next;
    const char *keyspace, *name;
    uint32_t line;
    uint32_t n_nodes;                /* up to which the figures reach; a node without the table has zeros */
    struct nodetool_figures *nodes;  /* by capture, from 0 */
    double cells;                    /* of a partition, median; below 0: not known */
};

struct nodetool {
    struct arena *arena;
    const char *path;            /* of tablestats */
    struct nodetool_table *tables, *newest;
    uint32_t captures;           /* of tablestats */
    uint32_t nodes;              /* of status: those that are up, of the first data centre; 0 if not given */
    uint32_t uptimes;
    double uptime_s[NODES_MAX];  /* of info, by node, in the order of the captures */
};

/* Each reads what one of the commands prints. Returns -1 with ERR_CONFIG with file, line and the
 * part that nodetool does not print so. Histograms come after tablestats. */
typedef int (*nodetool_read_fn)(struct nodetool *n, const char *path, struct slice text, struct err *e);
int nodetool_tablestats(struct nodetool *n, const char *path, struct slice text, struct err *e) MUST_CHECK;
int nodetool_tablehistograms(struct nodetool *n, const char *path, struct slice text, struct err *e) MUST_CHECK;
int nodetool_info(struct nodetool *n, const char *path, struct slice text, struct err *e) MUST_CHECK;
int nodetool_status(struct nodetool *n, const char *path, struct slice text, struct err *e) MUST_CHECK;
/* Partitions, rows and rates of the schema's tables into the workload. replicas 0: as the keyspaces
 * say. Returns -1 with ERR_CONFIG. */
int nodetool_apply(const struct nodetool *n, struct workload *w, const struct schema *schema, uint32_t replicas,
                   uint16_t consistency, struct err *e) MUST_CHECK;
