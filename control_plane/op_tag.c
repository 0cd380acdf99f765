/* TagResource, UntagResource and ListTagsForResource, for keyspaces and tables. */
#include <stdlib.h>

#include "control_plane/tree.h"

struct resource_name {
    const char *keyspace, *table; /* table NULL: the keyspace */
};

static int no_resource(struct call *c, const char *arn) {
    c->resource = arn;
    return call_fail(c, API_ResourceNotFoundException, "The resource %s does not exist.", arn);
}

/* Parses the ARN arn:aws:cassandra:REGION:ACCOUNT:/keyspace/NAME/, which table/NAME may follow. */
static int find(struct call *c, struct resource_name *out) {
    static const char before[] = "/keyspace/", table[] = "/table/";
    const struct node_info *n = catalog_node(c->o->catalog);
    const char *arn = call_text(c, "resourceArn");
    const char *prefix = arena_printf(c->arena, "arn:aws:cassandra:%s:%s:", c->region, n->account);
    if (!arn || !prefix) return call_nomem(c);
    if (strncmp(arn, prefix, strlen(prefix)) || strncmp(arn + strlen(prefix), before, sizeof(before) - 1))
        return no_resource(c, arn);
    const char *name = arn + strlen(prefix) + sizeof(before) - 1, *rest = name + strcspn(name, "/");
    bool of_table = !strncmp(rest, table, sizeof(table) - 1) && rest[sizeof(table) - 1];
    if (!of_table && *rest && strcmp(rest, "/") != 0) return no_resource(c, arn);
    out->keyspace = (const char *)arena_dup(c->arena, slice_of(name, (size_t)(rest - name))).p;
    out->table = of_table ? rest + sizeof(table) - 1 : NULL;
    if (!out->keyspace) return call_nomem(c);
    if (!call_space(c, out->keyspace) || (of_table && !call_table(c, out->keyspace, out->table))) return -1;
    return 0;
}

/* Makes ALTER ... ADD TAGS or DROP TAGS. */
static int change(struct call *c, bool add) {
    struct resource_name r;
    if (find(c, &r)) return -1;
    if (r.table ? call_check_active_in(c, r.keyspace, "table", r.table, call_table(c, r.keyspace, r.table)->status)
                : call_check_active(c, "keyspace", r.keyspace, call_space(c, r.keyspace)->keyspace->status))
        return -1;
    struct ast_prop_value *tags = tree_tags(c, doc_get(c->in, "tags"));
    struct ast_stmt *s = tree_new(c, r.table ? STMT_ALTER_TABLE : STMT_ALTER_KEYSPACE);
    if (!s) return -1;
    if (r.table)
        s->alter_table = (struct ast_alter_table){.table = {r.keyspace, r.table},
                                                  .op = add ? ALTER_TABLE_ADD_TAGS : ALTER_TABLE_DROP_TAGS,
                                                  .tags = tags};
    else
        s->keyspace = (struct ast_keyspace){.name = r.keyspace, .add_tags = add, .drop_tags = !add, .tags = tags};
    return 0;
}

int op_tag_resource(struct call *c) { return change(c, true); }
int op_untag_resource(struct call *c) { return change(c, false); }

int op_list_tags_for_resource(struct call *c) {
    struct resource_name r;
    struct result_page p;
    if (find(c, &r) || page_begin(c, &p)) return -1;
    const struct schema_keyspace *ks = call_space(c, r.keyspace)->keyspace;
    const struct schema_table *t = r.table ? call_table(c, r.keyspace, r.table) : NULL;
    const struct setting_map *tags = t ? &t->settings.tags : &ks->tags;
    struct doc *all = doc_put(&c->make, c->out, "tags", DOC_LIST);
    for (uint32_t i = 0; i < tags->n; i++) {
        if (!page_takes(c, &p, tags->entries[i].name)) continue;
        struct doc *one = doc_put(&c->make, all, NULL, DOC_MAP);
        doc_put_text(&c->make, one, "key", tags->entries[i].name);
        doc_put_text(&c->make, one, "value", tags->entries[i].value);
    }
    return 0;
}
