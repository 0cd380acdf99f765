/* Checks replication options as Cassandra's strategies do. The options have no effect on this
 * one node; they are stored for clients to see. */
#include <stdlib.h>

#include "system_schema/ddl/apply.h"

static const char locator[] = "org.apache.cassandra.locator.";

#define refuse(d, e, ...) ddl_error((e), (d)->objects->mode == MODE_CASSANDRA, __VA_ARGS__)

static int check_factor(const struct ddl *d, const char *text, enum ddl_error_id no_number, struct err *e) {
    const char *p = text + (*text == '-' || *text == '+');
    size_t digits = strspn(p, "0123456789");
    if (digits == 0 || digits > 9 || (p[digits] && p[digits] != '/')) return refuse(d, e, no_number, text);
    return atoi(text) < 0 ? refuse(d, e, DDL_FACTOR_NEGATIVE, text) : 0;
}

static int simple(const struct ddl *d, const char *keyspace, uint32_t n, const struct schema_option *given,
                  struct schema_option *out, uint32_t *n_out, struct err *e) {
    out[1] = (struct schema_option){"replication_factor", "1"};
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(given[i].name, "class") == 0) continue;
        if (strcmp(given[i].name, "replication_factor") != 0)
            return refuse(d, e, DDL_STRATEGY_OPTION, given[i].name, "SimpleStrategy", keyspace);
        out[1].value = given[i].value;
    }
    *n_out = 2;
    return check_factor(d, out[1].value, DDL_FACTOR_SIMPLE, e);
}

/* In keyspaces mode any data centre name is accepted, because this node stands for all Regions.
 * In cassandra mode only the node's own data centre is. */
static int topology(const struct ddl *d, const char *keyspace, uint32_t n, const struct schema_option *given,
                    struct schema_option *out, uint32_t *n_out, struct err *e) {
    uint32_t m = 1;
    const char *factor = NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(given[i].name, "class") == 0) continue;
        bool all = strcmp(given[i].name, "replication_factor") == 0;
        if (!all && d->objects->mode == MODE_CASSANDRA && strcmp(given[i].name, d->datacenter) != 0)
            return refuse(d, e, DDL_STRATEGY_OPTION, given[i].name, "NetworkTopologyStrategy", keyspace);
        if (check_factor(d, given[i].value, DDL_FACTOR_TOPOLOGY, e)) return -1;
        if (all) factor = given[i].value;
        else out[m++] = given[i];
    }
    if (m == 1) out[m++] = (struct schema_option){d->datacenter, factor ? factor : "1"};
    qsort(out + 1, m - 1, sizeof *out, option_order);
    *n_out = m;
    return 0;
}

int replication_check(const struct ddl *d, const char *keyspace, uint32_t n, const struct schema_option *given,
                      struct arena *a, struct schema_keyspace *out, struct err *e) {
    const char *class = option_find(given, n, "class");
    if (!class) return refuse(d, e, DDL_NO_CLASS);
    struct schema_option *options = ARENA_ARRAY(a, n + 2, struct schema_option);
    if (!options) return err_nomem(e);
    const char *bare = strncmp(class, locator, sizeof locator - 1) == 0 ? class + sizeof locator - 1 : class;
    out->replication = options;
    if (strcmp(bare, "SingleRegionStrategy") == 0 && d->objects->mode == MODE_KEYSPACES) {
        /* Three copies in one Region. Drivers do not know this class, so it is stored as one
         * that they can place replicas with. */
        options[0] = (struct schema_option){"class", "org.apache.cassandra.locator.SimpleStrategy"};
        options[1] = (struct schema_option){"replication_factor", "3"};
        out->n_replication = 2;
        return n == 1 ? 0 : refuse(d, e, DDL_STRATEGY_OPTION, given[1].name, "SingleRegionStrategy", keyspace);
    }
    if (strcmp(bare, "SimpleStrategy") == 0) {
        options[0] = (struct schema_option){"class", "org.apache.cassandra.locator.SimpleStrategy"};
        return simple(d, keyspace, n, given, options, &out->n_replication, e);
    }
    if (strcmp(bare, "NetworkTopologyStrategy") == 0) {
        options[0] = (struct schema_option){"class", "org.apache.cassandra.locator.NetworkTopologyStrategy"};
        return topology(d, keyspace, n, given, options, &out->n_replication, e);
    }
    if (strcmp(bare, "LocalStrategy") == 0) return refuse(d, e, DDL_STRATEGY_LOCAL);
    return refuse(d, e, DDL_STRATEGY_CLASS, strchr(class, '.') ? "" : locator, class);
}
