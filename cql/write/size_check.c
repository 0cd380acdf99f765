#include "cql/write/size_check.h"

#include <stdio.h>

#include "cql/request/db.h"

enum { UNLOGGED_PARTITIONS_WARN = 10, TABLE_NAMES_MAX = 900 };
/* Cassandra's batch_size_warn_threshold, batch_size_fail_threshold and bytes per partition. */
enum { SIZE_WARN = 5 * 1024, SIZE_FAIL = 50 * 1024, DATA_PARTITION = 29 };

/* Cassandra's max_mutation_size for one partition; and a limit for all together, which Cassandra
 * does not have: an IN over many partitions writes its values to each. */
enum { MUTATION_MAX = 16 << 20, WRITE_MAX = 4 * MUTATION_MAX };

static int oversized(struct cql_run *r, const struct mutation *m, uint64_t bytes, int max) {
    return err_invalid(r->err, "Rejected an oversized mutation (%llu/%d) for keyspace: %s. Top keys are: %s",
                       (unsigned long long)bytes, max, m->table->keyspace->name, m->table->name);
}

int check_write_size(struct cql_run *r, const struct mutations *m) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        if (m->list[i].data_bytes > MUTATION_MAX) return oversized(r, &m->list[i], m->list[i].data_bytes, MUTATION_MAX);
        sum += m->list[i].data_bytes;
    }
    return sum > WRITE_MAX ? oversized(r, &m->list[0], sum, WRITE_MAX) : 0;
}

int check_batch_size(struct cql_run *r, const struct mutations *m, enum ast_batch_kind kind, bool conditional) {
    /* Keyspaces has limits of its own: write_rules.h */
    if (conditional || r->db->options.mode != MODE_CASSANDRA) return 0;
    if (m->n <= 1) return 0;
    char names[TABLE_NAMES_MAX] = ""; /* each table once: "ks.t, ks.u" */
    size_t used = 0;
    uint32_t n_tables = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        const struct schema_table *t = m->list[i].table;
        if (i && m->list[i - 1].table == t) continue;
        n_tables++;
        int len = snprintf(names + used, TABLE_NAMES_MAX - used, "%s%s.%s", used ? ", " : "", t->keyspace->name,
                           t->name);
        if (len > 0 && used + (size_t)len < TABLE_NAMES_MAX) used += (size_t)len;
        else names[used] = '\0';
    }
    uint64_t size = (uint64_t)m->n * DATA_PARTITION;
    for (uint32_t i = 0; i < m->n; i++) size += m->list[i].data_bytes;
    if (size > SIZE_FAIL) return err_invalid(r->err, "Batch too large");
    if (size > SIZE_WARN &&
        cql_warn(r, "Batch for [%s] is of size %llu, exceeding specified threshold of %d by %llu.", names,
                 (unsigned long long)size, SIZE_WARN, (unsigned long long)(size - SIZE_WARN)))
        return -1;
    if (kind != BATCH_UNLOGGED || m->n <= UNLOGGED_PARTITIONS_WARN) return 0;
    return cql_warn(r,
                    "Unlogged batch covering %u partitions detected against table%s [%s]. You should use a logged "
                    "batch for atomicity, or "
                    "asynchronous writes for performance.",
                    m->n, n_tables == 1 ? "" : "s", names);
}
