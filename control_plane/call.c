/* Functions that several operations use: errors, names of resources, pages. */
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>

#include "control_plane/operation.h"

int call_fail(struct call *c, enum api_error error, const char *fmt, ...) {
    char text[ERR_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    err_print(text, sizeof(text), fmt, ap);
    va_end(ap);
    c->error = error;
    return err_invalid(c->err, "%s", text);
}

int call_nomem(struct call *c) {
    c->error = API_InternalServerException;
    return err_nomem(c->err);
}

const char *call_text(struct call *c, const char *member) {
    const char *text = doc_text(c->arena, c->in, member);
    if (!text) call_nomem(c);
    return text;
}

/* ---- resources ---- */

const char *arn_of_keyspace(struct call *c, const char *keyspace) {
    const struct node_info *n = catalog_node(c->o->catalog);
    return arena_printf(c->arena, "arn:aws:cassandra:%s:%s:/keyspace/%s/", c->region, n->account, keyspace);
}

const char *arn_of_table(struct call *c, const char *keyspace, const char *table) {
    const struct node_info *n = catalog_node(c->o->catalog);
    return arena_printf(c->arena, "arn:aws:cassandra:%s:%s:/keyspace/%s/table/%s", c->region, n->account, keyspace,
                        table);
}

bool call_shows(const struct schema_keyspace *ks) {
    return !ks->is_system || !strcmp(ks->name, "system") || !strcmp(ks->name, "system_schema") ||
           !strcmp(ks->name, "system_schema_mcs") || !strcmp(ks->name, "system_multiregion_info");
}

int call_no_keyspace(struct call *c, const char *keyspace) {
    c->resource = arn_of_keyspace(c, keyspace);
    return call_fail(c, API_ResourceNotFoundException, "The keyspace %s does not exist.", keyspace);
}

const struct schema_space *call_space(struct call *c, const char *keyspace) {
    for (uint32_t i = 0; keyspace && i < c->schema->n_spaces; i++)
        if (!strcmp(c->schema->spaces[i]->keyspace->name, keyspace) && call_shows(c->schema->spaces[i]->keyspace))
            return c->schema->spaces[i];
    if (keyspace) call_no_keyspace(c, keyspace);
    return NULL;
}

const struct schema_table *call_table(struct call *c, const char *keyspace, const char *table) {
    const struct schema_space *space = table ? call_space(c, keyspace) : NULL;
    if (!space) return NULL;
    const struct schema_table *t = schema_tables_find(&space->tables, table);
    if (!t) t = schema_tables_find(&space->deleting, table);
    if (t) return t;
    c->resource = arn_of_table(c, keyspace, table);
    call_fail(c, API_ResourceNotFoundException, "The table %s does not exist in keyspace %s.", table, keyspace);
    return NULL;
}

const struct schema_type *call_type(struct call *c, const char *keyspace, const char *name) {
    const struct schema_space *space = name ? call_space(c, keyspace) : NULL;
    for (uint32_t i = 0; space && i < space->n_types; i++)
        if (!strcmp(space->types[i]->type->name, name)) return space->types[i];
    if (space) c->resource = arn_of_keyspace(c, keyspace);
    if (space)
        call_fail(c, API_ResourceNotFoundException, "The type %s does not exist in keyspace %s.", name, keyspace);
    return NULL;
}

int call_check_creator(struct call *c, enum resource_kind kind, const char *keyspace) {
    const struct resource on = {.kind = kind, .keyspace = keyspace};
    struct buf text;
    if (!c->role) return 0;
    const struct role_set *roles = access_roles(c->o->access);
    bool may = role_permissions(roles, c->role, &on) & 1u << MAY_CREATE;
    role_set_unref(roles);
    if (may) return 0;
    buf_init(&text, 0);
    permission_missing(MAY_CREATE, c->role, &on, &text);
    c->error = API_AccessDeniedException;
    return err_set_buf(c->err, ERR_UNAUTHORIZED, &text);
}

int call_check_active(struct call *c, const char *what, const char *name, enum schema_status status) {
    if (status == SCHEMA_ACTIVE) return 0;
    return call_fail(c, API_ConflictException, "The %s %s is %s; wait until it is %s.", what, name,
                     schema_status_name(status), status == SCHEMA_DELETING ? "gone" : "ACTIVE");
}

int call_check_active_in(struct call *c, const char *keyspace, const char *what, const char *name,
                         enum schema_status status) {
    const struct schema_space *space = call_space(c, keyspace);
    const struct schema_keyspace *ks = space ? space->keyspace : NULL;
    if (!ks || call_check_active(c, what, name, status)) return -1;
    for (uint32_t i = 0; i < ks->n_regions; i++)
        if (ks->regions[i].is_new) return call_check_active(c, "keyspace", keyspace, ks->status);
    return 0;
}

const char *type_text(struct call *c, const struct cql_type *t) {
    const char *text = cql_type_text(t, c->arena);
    c->make.failed = c->make.failed || !text;
    return text;
}

/* ---- pages: a token is the last name of the page before, in base64 ---- */

enum { PAGE_ROOM = 1000, TOKEN_MAX = 2048 };

int page_begin_at(struct call *c, struct result_page *p, const char *name, uint32_t room, enum api_error invalid) {
    const struct doc *token = doc_get(c->in, name);
    *p = (struct result_page){.after = "", .room = room, .token = name};
    if (!token) return 0;
    unsigned char text[TOKEN_MAX + 4];
    int n = token->text.n % 4 || token->text.n > TOKEN_MAX ? -1
                                                           : EVP_DecodeBlock(text, token->text.p, (int)token->text.n);
    for (size_t i = token->text.n; n > 0 && i > 0 && token->text.p[i - 1] == '='; i--) n--;
    if (n <= 0 || memchr(text, 0, (size_t)n))
        return call_fail(c, invalid, "The %s is not one that this service gave.", name);
    p->after = (const char *)arena_dup(c->arena, slice_of(text, (size_t)n)).p;
    return p->after ? 0 : call_nomem(c);
}

int page_begin(struct call *c, struct result_page *p) {
    const struct doc *room = doc_get(c->in, "maxResults");
    return page_begin_at(c, p, "nextToken", room ? (uint32_t)room->whole : PAGE_ROOM, API_ValidationException);
}

int page_end(struct call *c, const char *token, const char *after) {
    size_t n = after ? strlen(after) : 0;
    char *text = after ? arena_alloc(c->arena, 4 * ((n + 2) / 3) + 1) : NULL;
    if (!text) return call_nomem(c);
    EVP_EncodeBlock((unsigned char *)text, (const unsigned char *)after, (int)n);
    doc_put_text(&c->make, c->out, token, text);
    return 0;
}

bool page_takes(struct call *c, struct result_page *p, const char *name) {
    if (strcmp(name, p->after) <= 0) return false;
    if (p->room == 0) {
        if (*p->after && !doc_get(c->out, p->token)) c->make.failed = page_end(c, p->token, p->after) || c->make.failed;
        return false;
    }
    p->room--;
    p->after = name;
    return true;
}
