/* CreateKeyspace, GetKeyspace, ListKeyspaces, UpdateKeyspace, DeleteKeyspace. */
#include <stdio.h>

#include "control_plane/tree.h"

/* ---- changes: statements ---- */

/* A specification is SINGLE_REGION, or MULTI_REGION with a list of Regions. */
static struct ast_prop_value *replication(struct call *c, const struct doc *spec) {
    const struct doc *strategy = doc_get(spec, "replicationStrategy"), *regions = doc_get(spec, "regionList");
    bool several = strategy && slice_is(strategy->text, "MULTI_REGION");
    if (several != !!regions) {
        call_fail(c, API_ValidationException,
                  several ? "A replicationSpecification of MULTI_REGION needs a regionList."
                          : "A replicationSpecification of SINGLE_REGION has no regionList.");
        return NULL;
    }
    struct ast_prop_value *map = tree_map(c);
    tree_put(c, map, "class", tree_text(c, several ? "NetworkTopologyStrategy" : "SingleRegionStrategy"));
    for (const struct doc *r = several ? regions->first : NULL; r; r = r->next)
        tree_put(c, map, (const char *)arena_dup(c->arena, r->text).p, tree_text(c, "3"));
    return map;
}

/* Begins a statement about the keyspace, and answers its ARN. */
static struct ast_stmt *statement(struct call *c, enum stmt_kind kind, const char *keyspace) {
    struct ast_stmt *s = tree_new(c, kind);
    if (s) s->keyspace.name = keyspace;
    doc_put_text(&c->make, c->out, "resourceArn", arn_of_keyspace(c, keyspace));
    return s;
}

int op_create_keyspace(struct call *c) {
    const char *name = call_text(c, "keyspaceName");
    if (call_check_creator(c, RESOURCE_OF_ALL_KEYSPACES, NULL)) return -1;
    struct ast_prop_value *map = name ? replication(c, doc_get(c->in, "replicationSpecification")) : NULL;
    struct ast_stmt *s = map ? statement(c, STMT_CREATE_KEYSPACE, name) : NULL;
    if (!s) return c->err->set ? -1 : call_nomem(c);
    for (uint32_t i = 0; i < c->schema->n_spaces; i++)
        if (!strcmp(c->schema->spaces[i]->keyspace->name, name))
            return c->schema->spaces[i]->keyspace->is_system
                       ? call_fail(c, API_ValidationException, "%s keyspace is not user-modifiable", name)
                       : call_fail(c, API_ConflictException, "The keyspace %s already exists.", name);
    tree_add_prop(c, &s->keyspace.props, "replication", map);
    tree_add_map(c, &s->keyspace.props, "tags", tree_tags(c, doc_get(c->in, "tags")));
    return 0;
}

static int check_keyspace(struct call *c, const char *name) {
    const struct schema_space *space = call_space(c, name);
    if (!space) return -1;
    if (space->keyspace->is_system)
        return call_fail(c, API_ValidationException, "The keyspace %s is a system keyspace.", name);
    return 0;
}

int op_update_keyspace(struct call *c) {
    const char *name = call_text(c, "keyspaceName");
    if (!name || check_keyspace(c, name) ||
        call_check_active(c, "keyspace", name, call_space(c, name)->keyspace->status))
        return -1;
    struct ast_prop_value *map = replication(c, doc_get(c->in, "replicationSpecification"));
    struct ast_stmt *s = map ? statement(c, STMT_ALTER_KEYSPACE, name) : NULL;
    if (!s) return c->err->set ? -1 : call_nomem(c);
    tree_add_prop(c, &s->keyspace.props, "replication", map);
    if (doc_get(c->in, "clientSideTimestamps")) {
        struct ast_prop_value *status = tree_map(c);
        tree_put(c, status, "status", tree_text(c, "ENABLED")); /* the model has no other value */
        tree_add_prop(c, &s->keyspace.props, "client_side_timestamps", status);
    }
    return 0;
}

int op_delete_keyspace(struct call *c) {
    const char *name = call_text(c, "keyspaceName");
    if (!name || check_keyspace(c, name)) return -1;
    const struct schema_space *space = call_space(c, name);
    if (space->keyspace->status == SCHEMA_DELETING) return 0;
    if (call_check_active(c, "keyspace", name, space->keyspace->status)) return -1;
    struct schema_table_cursor live = schema_tables_begin(&space->tables), gone = schema_tables_begin(&space->deleting);
    for (const struct schema_table *t; (t = schema_tables_next(&live)) || (t = schema_tables_next(&gone));) {
        /* Terraform tries again after these words (terraform-provider-aws,
         * internal/service/keyspaces/keyspace.go). */
        if (t->status == SCHEMA_CREATING || t->status == SCHEMA_DELETING)
            return call_fail(
                c, API_ConflictException,
                "The keyspace %s cannot be deleted: a table under it is currently being created or deleted (%s).", name,
                t->name);
        if (call_check_active(c, "table", t->name, t->status)) return -1;
    }
    struct ast_stmt *s = tree_new(c, STMT_DROP_KEYSPACE);
    if (s) s->keyspace.name = name;
    return s ? 0 : -1;
}

/* ---- descriptions ---- */

static void put_keyspace(struct call *c, struct doc *to, const struct schema_keyspace *ks) {
    bool several = ks->n_regions;
    doc_put_text(&c->make, to, "keyspaceName", ks->name);
    doc_put_text(&c->make, to, "resourceArn", arn_of_keyspace(c, ks->name));
    doc_put_text(&c->make, to, "replicationStrategy", several ? "MULTI_REGION" : "SINGLE_REGION");
    struct doc *regions = several ? doc_put(&c->make, to, "replicationRegions", DOC_LIST) : NULL;
    for (uint32_t i = 0; regions && i < ks->n_regions; i++)
        doc_put_text(&c->make, regions, NULL, ks->regions[i].name);
}

/* Can GetKeyspace find the keyspace? A keyspace of one Region has no status in the answer.
 * Terraform waits until GetKeyspace finds it (terraform-provider-aws,
 * internal/service/keyspaces/keyspace.go), so it must not be found while it is being made.
 * system_schema_mcs.keyspaces shows it from the same moment. */
static bool is_usable(const struct schema_keyspace *ks) {
    return ks->status != SCHEMA_CREATING || schema_regions(ks) > 1;
}

int op_get_keyspace(struct call *c) {
    const char *name = call_text(c, "keyspaceName");
    const struct schema_space *space = call_space(c, name);
    if (!space) return -1;
    const struct schema_keyspace *ks = space->keyspace;
    if (!is_usable(ks)) return call_no_keyspace(c, name);
    put_keyspace(c, c->out, ks);
    struct doc *all = ks->n_regions ? doc_put(&c->make, c->out, "replicationGroupStatuses", DOC_LIST) : NULL;
    for (uint32_t i = 0; all && i < ks->n_regions; i++) {
        const struct schema_region *region = &ks->regions[i];
        struct doc *one = doc_put(&c->make, all, NULL, DOC_MAP);
        doc_put_text(&c->make, one, "region", region->name);
        doc_put_text(&c->make, one, "keyspaceStatus", schema_status_name(schema_region_status(ks, region)));
        if (!region->is_new) continue;
        char progress[SCHEMA_PROGRESS_TEXT];
        schema_replication_progress(space, progress);
        doc_put_text(&c->make, one, "tablesReplicationProgress", progress);
    }
    return 0;
}

int op_list_keyspaces(struct call *c) {
    struct result_page p;
    if (page_begin(c, &p)) return -1;
    struct doc *all = doc_put(&c->make, c->out, "keyspaces", DOC_LIST);
    for (uint32_t i = 0; i < c->schema->n_spaces; i++) {
        const struct schema_keyspace *ks = c->schema->spaces[i]->keyspace;
        if (call_shows(ks) && is_usable(ks) && page_takes(c, &p, ks->name))
            put_keyspace(c, doc_put(&c->make, all, NULL, DOC_MAP), ks);
    }
    return 0;
}
