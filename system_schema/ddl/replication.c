/* Checks replication options as Cassandra's strategies do. The options have no effect on this
 * one node; they are stored for clients to see. */
#include <stdlib.h>

#include "system_schema/ddl/apply.h"

static const char locator[] = "org.apache.cassandra.locator.";

static int check_factor(const char *text, struct err *e) {
    const char *p = text + (*text == '-' || *text == '+');
    size_t digits = strspn(p, "0123456789");
    if (digits == 0 || digits > 9 || (p[digits] && p[digits] != '/'))
        return err_set(e, ERR_CONFIG, "For input string: \"%s\"", text);
    int factor = atoi(text);
    if (factor < 0) return err_set(e, ERR_CONFIG, "Replication factor must be non-negative, found %s", text);
    return 0;
}

static int unrecognized(const char *option, const char *strategy, const char *keyspace, struct err *e) {
    return err_set(e, ERR_CONFIG, "Unrecognized strategy option {%s} passed to %s for keyspace %s", option, strategy,
                   keyspace);
}

static int simple(const char *keyspace, uint32_t n, const struct schema_option *given, struct schema_option *out,
                  uint32_t *n_out, struct err *e) {
    out[1] = (struct schema_option){"replication_factor", "1"};
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(given[i].name, "class") == 0) continue;
        if (strcmp(given[i].name, "replication_factor") != 0)
            return unrecognized(given[i].name, "SimpleStrategy", keyspace, e);
        out[1].value = given[i].value;
    }
    *n_out = 2;
    return check_factor(out[1].value, e);
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
            return unrecognized(given[i].name, "NetworkTopologyStrategy", keyspace, e);
        if (check_factor(given[i].value, e)) return -1;
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
    if (!class) return err_set(e, ERR_CONFIG, "Missing replication strategy class");
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
        return n == 1 ? 0 : unrecognized(given[1].name, "SingleRegionStrategy", keyspace, e);
    }
    if (strcmp(bare, "SimpleStrategy") == 0) {
        options[0] = (struct schema_option){"class", "org.apache.cassandra.locator.SimpleStrategy"};
        return simple(keyspace, n, given, options, &out->n_replication, e);
    }
    if (strcmp(bare, "NetworkTopologyStrategy") == 0) {
        options[0] = (struct schema_option){"class", "org.apache.cassandra.locator.NetworkTopologyStrategy"};
        return topology(d, keyspace, n, given, options, &out->n_replication, e);
    }
    if (strcmp(bare, "LocalStrategy") == 0)
        return err_invalid(e, "Unable to use given strategy class: LocalStrategy is reserved for internal use.");
    return err_set(e, ERR_CONFIG, "Unable to find replication strategy class '%s%s'", strchr(class, '.') ? "" : locator,
                   class);
}
