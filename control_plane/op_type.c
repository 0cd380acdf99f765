/* CreateType, GetType, ListTypes, DeleteType. */
#include <ctype.h>

#include "control_plane/tree.h"
#include "keyspaces/ddl_error.h"

static void answer(struct call *c, const char *keyspace, const char *name) {
    doc_put_text(&c->make, c->out, "keyspaceArn", arn_of_keyspace(c, keyspace));
    doc_put_text(&c->make, c->out, "typeName", name);
}

int op_create_type(struct call *c) {
    const char *keyspace = call_text(c, "keyspaceName"), *name = call_text(c, "typeName");
    const struct schema_space *space = name ? call_space(c, keyspace) : NULL;
    if (!space || call_check_creator(c, RESOURCE_OF_ALL_TABLES, keyspace) ||
        call_check_active(c, "keyspace", keyspace, space->keyspace->status))
        return -1;
    /* A type of any status: a type that is being deleted may still exist next to a new one of the same name. */
    const struct schema_type *t = NULL;
    for (uint32_t i = 0; i < space->n_types && !t; i++)
        if (!strcmp(space->types[i]->type->name, name)) t = space->types[i];
    if (t && call_check_active(c, "type", name, t->status)) return -1;
    if (t) return call_fail(c, API_ConflictException, "The type %s already exists in keyspace %s.", name, keyspace);
    /* In CQL a quoted name may hold any characters (udts.html). */
    for (const char *p = name; *p; p++)
        if (!isalnum((uint8_t)*p) && *p != '_')
            return ddl_error(c->err, false, DDL_TYPE_CHARACTERS, name);
    struct ast_stmt *s = tree_new(c, STMT_CREATE_TYPE);
    if (!s) return -1;
    struct ast_create_type *made = &s->create_type;
    const struct doc *fields = doc_get(c->in, "fieldDefinitions");
    made->name = (struct ast_name){keyspace, name};
    made->field_names = ARENA_ARRAY(c->arena, fields->n, const char *);
    made->field_types = ARENA_ARRAY(c->arena, fields->n, struct ast_type *);
    if (!made->field_names || !made->field_types) return call_nomem(c);
    for (const struct doc *d = fields->first; d; d = d->next, made->n_fields++) {
        uint32_t i = made->n_fields;
        if (!(made->field_names[i] = doc_text(c->arena, d, "name"))) return call_nomem(c);
        if (!(made->field_types[i] = cql_parse_type(c->arena, doc_get(d, "type")->text, c->err))) return -1;
    }
    answer(c, keyspace, name);
    return 0;
}

int op_delete_type(struct call *c) {
    const char *keyspace = call_text(c, "keyspaceName"), *name = call_text(c, "typeName");
    const struct schema_type *t = name ? call_type(c, keyspace, name) : NULL;
    if (!t) return -1;
    answer(c, keyspace, name);
    if (t->status == SCHEMA_DELETING) return 0;
    if (call_check_active_in(c, keyspace, "type", name, t->status) || !tree_new(c, STMT_DROP_TYPE)) return -1;
    c->statement->drop.name = (struct ast_name){keyspace, name};
    return 0;
}

static void put_texts(struct call *c, const char *member, const char **texts, uint32_t n) {
    struct doc *list = doc_put(&c->make, c->out, member, DOC_LIST);
    for (uint32_t i = 0; i < n; i++) doc_put_text(&c->make, list, NULL, texts[i]);
}

int op_get_type(struct call *c) {
    const char *keyspace = call_text(c, "keyspaceName"), *name = call_text(c, "typeName");
    const struct schema_type *t = name ? call_type(c, keyspace, name) : NULL;
    struct type_users users;
    if (!t) return -1;
    if (type_users_find(call_space(c, keyspace), name, c->arena, &users)) return call_nomem(c);
    struct doc_maker *m = &c->make;
    doc_put_text(m, c->out, "keyspaceName", keyspace);
    doc_put_text(m, c->out, "typeName", name);
    struct doc *fields = doc_put(m, c->out, "fieldDefinitions", DOC_LIST);
    for (uint32_t i = 0; i < t->type->n_args; i++) {
        struct doc *f = doc_put(m, fields, NULL, DOC_MAP);
        doc_put_text(m, f, "name", t->type->field_names[i]);
        doc_put_text(m, f, "type", type_text(c, t->type->args[i]));
    }
    doc_put_moment(m, c->out, "lastModifiedTimestamp", t->modified_ms);
    doc_put_text(m, c->out, "status", schema_status_name(t->status));
    put_texts(c, "directReferringTables", users.tables, users.n_tables);
    put_texts(c, "directParentTypes", users.parents, users.n_parents);
    doc_put_whole(m, c->out, "maxNestingDepth", type_nesting(t->type));
    doc_put_text(m, c->out, "keyspaceArn", arn_of_keyspace(c, keyspace));
    return 0;
}

int op_list_types(struct call *c) {
    const struct schema_space *space = call_space(c, call_text(c, "keyspaceName"));
    struct result_page p;
    if (!space || page_begin(c, &p)) return -1;
    struct doc *all = doc_put(&c->make, c->out, "types", DOC_LIST);
    for (uint32_t i = 0; i < space->n_types; i++)
        if (page_takes(c, &p, space->types[i]->type->name))
            doc_put_text(&c->make, all, NULL, space->types[i]->type->name);
    return 0;
}
