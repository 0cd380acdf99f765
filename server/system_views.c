#include "server/system_views.h"

#include <stdlib.h>
#include <string.h>

#include "system_schema/system_tables/row_out.h"

#define YIELDS_VIEWS(name) static int views_##name(struct row_out *ro)

static const struct system_views *views_of(const struct schema_table *t) { return t->virt->owner; }

YIELDS_VIEWS(none) {
    (void)ro;
    return 0;
}

/* ---- clients ---- */

static int emit_client(struct row_out *ro, const struct ledger_connection *c) {
    const struct ledger_driver *d = c->client.driver;
    const char *driver = d && *d->name ? d->name : NULL, *version = d && *d->version ? d->version : NULL;
    struct schema_option options[4];
    uint32_t n = 0;
    if (*c->client.compression) options[n++] = (struct schema_option){"COMPRESSION", c->client.compression};
    if (driver) options[n++] = (struct schema_option){"DRIVER_NAME", driver};
    if (version) options[n++] = (struct schema_option){"DRIVER_VERSION", version};
    row_inet(ro, "address", c->address);
    row_int(ro, "port", c->client.port);
    row_map(ro, "client_options", n, options);
    row_text(ro, "connection_stage", "ready");
    row_text(ro, "driver_name", driver);
    row_text(ro, "driver_version", version);
    row_text(ro, "hostname", c->address);
    row_int(ro, "protocol_version", c->client.version);
    row_long(ro, "request_count", (int64_t)usage_all(&c->usage, USAGE_REQUESTS));
    row_text(ro, "ssl_cipher_suite", *c->client.cipher ? c->client.cipher : NULL);
    row_bool(ro, "ssl_enabled", *c->client.tls != 0);
    row_text(ro, "ssl_protocol", *c->client.tls ? c->client.tls : NULL);
    row_text(ro, "username", *c->role ? c->role : "anonymous");
    return row_out_emit(ro);
}

static int by_address(const void *a, const void *b) {
    const struct ledger_connection *x = a, *y = b;
    int c = strcmp(x->address, y->address);
    return c ? c : (int)x->client.port - (int)y->client.port;
}

YIELDS_VIEWS(clients) {
    size_t n;
    struct ledger_connection *all = ledger_connections(views_of(ro->table)->ledger, &n);
    int rc = all ? 0 : err_nomem(ro->ctx->err);
    if (all) qsort(all, n, sizeof(*all), by_address);
    for (size_t i = 0; !rc && i < n; i++)
        if (all[i].client.version) rc = emit_client(ro, &all[i]);
    if (all) ledger_connections_free(all, n);
    return rc;
}

/* ---- settings ---- */

static int emit_setting(struct row_out *ro, const char *name, const char *value) {
    char *spelt = arena_strdup(ro->ctx->arena, name);
    if (!spelt) return err_nomem(ro->ctx->err);
    for (char *p = spelt; *p; p++) *p = *p == '-' ? '_' : *p;
    if (!row_out_wants(ro, 0, spelt)) return 0;
    row_text(ro, "name", spelt);
    row_text(ro, "value", value);
    return row_out_emit(ro);
}

/* Settings of cassandra.yaml that tools read, with the values that describe Tally. */
static const struct { const char *name, *value; } fixed[] = {
    {"dynamic_data_masking_enabled", "false"},
    {"materialized_views_enabled", "false"},
    {"sasi_indexes_enabled", "false"},
    {"user_defined_functions_enabled", "false"},
};

YIELDS_VIEWS(settings) {
    const struct config *c = views_of(ro->table)->config;
    for (int o = 0; c && o < CONFIG_OPTIONS; o++)
        if (emit_setting(ro, config_flag((enum config_option)o), c->values[o])) return -1;
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        if (emit_setting(ro, fixed[i].name, fixed[i].value)) return -1;
    return 0;
}

void system_views_tables(struct system_views *v, struct virtual_table tables[VIEWS_TABLES]) {
#define VIEWS_TABLE(name_, yields_, comment_, columns_) \
    tables[VIEWS_TABLE_##name_] = (struct virtual_table){.keyspace = "system_views", \
                                                         .name = #name_, \
                                                         .comment = comment_, \
                                                         .columns = columns_, \
                                                         .virt = {.owner = v, .yield = views_##yields_}};
#include "server/system_views.def"
#undef VIEWS_TABLE
}
