/* system_metering.partitions, statements, connections and roles: the subjects with the highest
 * charges, from the ledger's shards. */
#include <stdio.h>
#include <stdlib.h>

#include "metering/charge.h"
#include "server/system_metering.h"

/* Writes a load, which the ledger keeps in halves of read units. */
static void row_load(struct row_out *ro, const char *column, uint64_t halves) {
    row_double(ro, column, (double)halves / 2);
}

/* Writes three columns: the figure's total, and its value in the last whole minute and second. */
static void row_figure(struct row_out *ro, const char *name, const struct usage *u, enum usage_figure f) {
    char column[64];
    row_count(ro, name, usage_all(u, f));
    snprintf(column, sizeof(column), "%s_last_minute", name);
    row_count(ro, column, u->last_minute.n[f]);
    snprintf(column, sizeof(column), "%s_last_second", name);
    row_count(ro, column, u->last_second.n[f]);
}

static void row_units(struct row_out *ro, const char *name, const struct usage *u, enum usage_figure f, double unit) {
    char column[64];
    row_double(ro, name, unit * (double)usage_all(u, f));
    snprintf(column, sizeof(column), "%s_last_minute", name);
    row_double(ro, column, unit * u->last_minute.n[f]);
    snprintf(column, sizeof(column), "%s_last_second", name);
    row_double(ro, column, unit * u->last_second.n[f]);
}

/* Writes the columns that all four tables have. */
static void row_use(struct row_out *ro, const struct usage *u) {
    row_figure(ro, "entities", u, USAGE_ENTITIES);
    row_units(ro, "read_units", u, USAGE_READ_HALVES, 0.5);
    row_figure(ro, "throttles", u, USAGE_THROTTLES);
    row_units(ro, "write_units", u, USAGE_WRITE_UNITS, 1);
}

/* ---- partitions ---- */

static int by_place(const void *a, const void *b) {
    const struct ledger_partition *x = a, *y = b;
    int c = strcmp(x->keyspace, y->keyspace);
    if (!c) c = strcmp(x->table, y->table);
    return c ? c : (x->p.token > y->p.token) - (x->p.token < y->p.token);
}

static uint64_t window_load(const struct usage_window *w) {
    return usage_load(w->n[USAGE_READ_HALVES], w->n[USAGE_WRITE_UNITS]);
}

YIELDS_METERING(partitions) {
    size_t n;
    struct ledger_partition *all = ledger_partitions(metering_of(ro->table)->ledger, &n);
    int rc = all ? 0 : err_nomem(ro->ctx->err);
    if (all) qsort(all, n, sizeof(*all), by_place);
    for (size_t i = 0; !rc && i < n; i++) {
        const struct ledger_partition *p = &all[i];
        if (!*p->keyspace || !row_out_wants(ro, 0, p->keyspace)) continue;
        row_text(ro, "keyspace_name", p->keyspace);
        row_text(ro, "table_name", p->table);
        row_long(ro, "token", p->p.token);
        row_use(ro, &p->p.usage);
        row_load(ro, "load", p->kept.load);
        row_load(ro, "load_error", p->kept.error);
        row_load(ro, "load_last_minute", window_load(&p->p.usage.last_minute));
        row_load(ro, "load_last_second", window_load(&p->p.usage.last_second));
        size_t n_key = p->p.key_n < sizeof(p->p.key) ? p->p.key_n : sizeof(p->p.key);
        row_bytes(ro, "partition_key", slice_of(p->p.key, n_key));
        row_text(ro, "pattern", p->pattern == ORDER_NONE ? NULL : order_pattern_name(p->pattern));
        row_double(ro, "share", p->share);
        rc = row_out_emit(ro);
    }
    free(all);
    return rc;
}

/* ---- statements ---- */

YIELDS_METERING(statements) {
    size_t n;
    struct ledger_statement *all = ledger_statements(metering_of(ro->table)->ledger, &n);
    int rc = all ? 0 : err_nomem(ro->ctx->err);
    for (size_t i = 0; !rc && i < n; i++) {
        const struct ledger_statement *s = &all[i];
        row_count(ro, "statement_id", s->kept.key);
        row_use(ro, &s->s.usage);
        row_figure(ro, "executions", &s->s.usage, USAGE_REQUESTS);
        row_text(ro, "keyspace_name", s->keyspace);
        row_load(ro, "load", s->kept.load);
        row_load(ro, "load_error", s->kept.error);
        if (s->s.rows_read) row_text(ro, "query_class", query_class_name(s->s.class));
        row_count(ro, "rows_read", s->s.rows_read);
        row_count(ro, "rows_returned", s->s.rows_returned);
        row_text(ro, "statement", s->text);
        row_text(ro, "table_name", s->table);
        rc = row_out_emit(ro);
    }
    free(all);
    return rc;
}

/* ---- connections and roles ---- */

YIELDS_METERING(connections) {
    size_t n;
    struct ledger_connection *all = ledger_connections(metering_of(ro->table)->ledger, &n);
    int rc = all ? 0 : err_nomem(ro->ctx->err);
    for (size_t i = 0; !rc && i < n; i++) {
        const struct ledger_connection *c = &all[i];
        row_count(ro, "connection_id", c->id);
        row_text(ro, "address", c->address);
        row_long(ro, "opened_at", c->opened_us / 1000);
        row_text(ro, "role", c->role);
        row_figure(ro, "statements", &c->usage, USAGE_REQUESTS);
        row_use(ro, &c->usage);
        rc = row_out_emit(ro);
    }
    if (all) ledger_connections_free(all, n);
    return rc;
}

YIELDS_METERING(roles) {
    struct roles *all = ledger_roles(metering_of(ro->table)->ledger);
    int rc = all ? 0 : err_nomem(ro->ctx->err);
    for (size_t i = 0; !rc && i < all->n; i++) {
        const struct ledger_role *r = &all->list[i];
        row_text(ro, "role", r->name);
        row_count(ro, "connections", r->connections);
        row_figure(ro, "statements", &r->usage, USAGE_REQUESTS);
        row_use(ro, &r->usage);
        rc = row_out_emit(ro);
    }
    free(all);
    return rc;
}
