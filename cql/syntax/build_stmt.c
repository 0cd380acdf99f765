/* Nodes of properties and statements. */
#include "cql/syntax/build.h"
#include "keyspaces/ddl_error.h"

/* ---- properties ---- */

struct ast_prop_value *cqli_prop_literal(struct parse *p, const struct ast_expr *literal) {
    struct ast_prop_value *v = NEW(p, struct ast_prop_value);
    *v = (struct ast_prop_value){.kind = PROP_LITERAL, .literal = literal->literal, .text = literal->text};
    return v;
}

struct ast_prop_value *cqli_prop_word(struct parse *p, struct token t) {
    struct ast_prop_value *v = NEW(p, struct ast_prop_value);
    *v = (struct ast_prop_value){.kind = PROP_NAME, .text = slice_str(cqli_ident(p, t))};
    if (!t.word) cqli_reject(p, t); /* only unreserved keywords are values without quotes */
    return v;
}

struct ast_prop_value *cqli_prop_map(struct parse *p, struct seq *entries) {
    struct ast_prop_value *v = NEW(p, struct ast_prop_value);
    v->kind = PROP_MAP;
    v->keys = cqli_new(p, entries->n * sizeof(*v->keys));
    v->values = cqli_new(p, entries->n * sizeof(*v->values));
    if (p->failed) return v;
    const struct prop_entry *e = entries->p;
    for (uint32_t i = 0; i < entries->n; i++) v->keys[i] = e[i].key, v->values[i] = e[i].value;
    v->n = entries->n;
    return v;
}

struct ast_prop_value *cqli_prop_term(struct parse *p, const struct ast_expr *term) {
    if (p->failed) return NEW(p, struct ast_prop_value);
    if (term->kind == EXPR_LITERAL) return cqli_prop_literal(p, term);
    if (term->kind == EXPR_MAP || (term->kind == EXPR_SET && term->n_args == 0)) {
        struct seq *entries = SEQ(p, struct prop_entry);
        for (uint32_t i = 0; i + 1 < term->n_args; i += 2) {
            struct prop_entry e = {.key = cqli_prop_term(p, term->args[i]),
                                   .value = cqli_prop_term(p, term->args[i + 1])};
            entries = cqli_push(p, entries, &e);
        }
        return cqli_prop_map(p, entries);
    }
    struct ast_prop_value *v = NEW(p, struct ast_prop_value);
    struct buf text;
    buf_init(&text, ERR_TEXT_MAX); /* an error holds no more of it */
    ast_quote_expr(term, &text);
    v->kind = term->kind == EXPR_BIND ? PROP_BIND : PROP_TERM;
    v->text = arena_dup(p->arena, buf_slice(&text));
    if ((buf_failed(&text) && !text.over) || !v->text.p) cqli_nomem(p);
    buf_fini(&text);
    return v;
}

static void quote_prop(const struct ast_prop_value *v, struct buf *out) {
    if (v->kind != PROP_MAP) {
        bool string = v->kind == PROP_LITERAL && v->literal == LIT_STRING;
        buf_printf(out, string ? "'%.*s'" : "%.*s", SLICE_FMT(v->text));
        return;
    }
    buf_u8(out, '{');
    for (uint32_t i = 0; i < v->n; i++) {
        if (i) buf_put_str(out, ", ");
        quote_prop(v->keys[i], out);
        buf_put_str(out, ": ");
        quote_prop(v->values[i], out);
    }
    buf_u8(out, '}');
}

/* As the error texts write a term. */
static const char *prop_words(struct parse *p, const struct ast_prop_value *v) {
    struct buf b;
    buf_init(&b, ERR_TEXT_MAX);
    quote_prop(v, &b);
    const char *s = arena_printf(p->arena, "%.*s", SLICE_FMT(buf_slice(&b)));
    buf_fini(&b);
    return s ? s : cqli_nomem(p);
}

/* Returns whether the clause has named it before. Stores the first use of a name in named, with at. */
static bool is_named(struct parse *p, struct name_tree *named, struct slice name, uint32_t at) {
    int rc = p->failed ? 0 : name_tree_put(named, name, at);
    if (rc < 0) cqli_nomem(p);
    return rc == 1;
}

void cqli_prop_check_map(struct parse *p, const char *name, const struct ast_prop_value *map) {
    static const char *const nesting[] = {"custom_properties", "autoscaling_settings", "client_side_timestamps",
                                          "tags"};
    struct name_tree keys = {.arena = p->arena};
    bool may_nest = false;
    for (size_t i = 0; i < ARRAY_LEN(nesting); i++) may_nest = may_nest || !strcmp(nesting[i], name);
    for (uint32_t i = 0; i < map->n && !p->failed; i++) {
        const struct ast_prop_value *k = map->keys[i], *v = map->values[i];
        static const char ddl[] = " (bind variables are not supported in DDL queries)";
        if (k->kind != PROP_LITERAL) {
            cqli_note(p, "Invalid property name: %s%s", prop_words(p, k), k->kind == PROP_BIND ? ddl : "");
        } else if (v->kind == PROP_MAP && may_nest) {
            cqli_prop_check_map(p, name, v);
        } else if (v->kind != PROP_LITERAL) {
            cqli_note(p, "Invalid property value: %s for property: %s%s", prop_words(p, v), prop_words(p, k),
                      v->kind == PROP_BIND ? ddl : "");
        }
        if (is_named(p, &keys, k->text, i)) cqli_note(p, "Multiple definition for property %.*s", SLICE_FMT(k->text));
    }
}

struct ast_props *cqli_prop_add(struct parse *p, struct ast_props *props, const char *name, struct ast_prop_value *v) {
    if (p->failed) return props;
    if (v->kind == PROP_MAP) cqli_prop_check_map(p, name, v);
    if (!props->n) p->named = (struct name_tree){.arena = p->arena};
    if (is_named(p, &p->named, slice_str(name), props->n)) cqli_note(p, "Multiple definitions for property '%s'", name);
    struct ast_prop prop = {.name = name, .value = v};
    props->props = cqli_append(p, props->props, &props->n, sizeof(prop), &prop);
    if (!strcmp(name, "id") && v->kind == PROP_LITERAL) {
        props->id = NEW(p, struct ast_expr);
        *props->id = (struct ast_expr){.kind = EXPR_LITERAL, .literal = v->literal, .text = v->text};
    }
    return props;
}

void cqli_table_props(struct parse *p, struct ast_props *props, struct seq *order) {
    const struct ast_ordering *o = order->p;
    for (uint32_t i = 0; i < order->n && !p->failed; i++) {
        if (p->naming && is_named(p, &p->naming->ordered, slice_str(o[i].column), i))
            p->failed = ddl_error(p->err, p->cassandra_words, DDL_ORDER_TWICE, o[i].column, p->naming->table);
        props->order = cqli_append(p, props->order, &props->n_order, sizeof *props->order, &o[i]);
    }
}

/* ---- statements ---- */

struct ast_stmt *cqli_stmt(struct parse *p, enum stmt_kind kind, struct token first) {
    struct ast_stmt *s = NEW(p, struct ast_stmt);
    s->kind = kind;
    s->source = first.text;
    return s;
}

struct ast_stmt *cqli_other(struct parse *p, enum stmt_kind kind, struct token first) {
    struct ast_stmt *s = cqli_stmt(p, kind, first);
    s->other = NEW(p, struct ast_other);
    return s;
}

void cqli_stmt_end(struct parse *p, struct ast_stmt *s) {
    const uint8_t *end = p->prev.text.p + p->prev.text.n;
    if (end > s->source.p) s->source.n = (size_t)(end - s->source.p);
}

const struct ast_name *ast_any_table(const struct ast_stmt *s) {
    switch (s->kind) {
    case STMT_BATCH: return s->batch.n ? ast_any_table(s->batch.stmts[0]) : NULL;
    case STMT_CREATE_TABLE: return &s->create_table.table;
    case STMT_ALTER_TABLE: return &s->alter_table.table;
    case STMT_DROP_TABLE:
    case STMT_DROP_VIEW: return &s->drop.name;
    case STMT_CREATE_INDEX: return &s->other->create_index.table;
    case STMT_CREATE_VIEW: return &s->other->create_view.name;
    case STMT_ALTER_VIEW: return &s->other->alter_view.name;
    case STMT_CREATE_TRIGGER:
    case STMT_DROP_TRIGGER: return &s->other->trigger.table;
    case STMT_TRUNCATE: return &s->other->truncate.table;
    default: return ast_table(s);
    }
}

/* ---- assignments ---- */

struct seq *cqli_assign(struct parse *p, struct seq *s, const struct ast_assignment *a) {
    if (p->failed) return s;
    if (!s->n) p->named = (struct name_tree){.arena = p->arena};
    const struct ast_assignment *all = s->p;
    const uint32_t *first = name_tree_find(&p->named, slice_str(a->column));
    /* A whole column is assigned once and alone, and a field of it once; every other assignment may
     * be repeated. An assignment to a whole column is always the first of its column, so only the
     * first one is checked. */
    bool contradicts = first ? a->op == ASSIGN_SET || all[*first].op == ASSIGN_SET
                             : is_named(p, &p->named, slice_str(a->column), s->n);
    if (!contradicts && a->op == ASSIGN_FIELD) {
        const char *key = arena_printf(p->arena, "%s%c%s", a->column, 0, a->field); /* names hold no zeros */
        struct slice named = slice_of(key ? key : cqli_nomem(p), strlen(a->column) + 1 + strlen(a->field));
        contradicts = is_named(p, &p->named, named, s->n);
    }
    if (contradicts) cqli_refuse(p, "Multiple incompatible setting of column %s", a->column);
    return cqli_push(p, s, a);
}

void cqli_assign_operand(struct parse *p, const struct ast_assignment *a, const char *form) {
    if (!p->failed && strcmp(a->column, a->operand))
        cqli_refuse(p, "Only expressions of the form %s are supported.", form);
}

/* ---- tables ---- */

struct ast_stmt *cqli_create_table(struct parse *p, struct token first, struct ast_name table, bool if_not_exists) {
    struct ast_stmt *s = cqli_stmt(p, STMT_CREATE_TABLE, first);
    p->naming = NEW(p, struct naming);
    p->naming->columns.arena = p->naming->ordered.arena = p->arena;
    p->naming->table = table.keyspace ? arena_printf(p->arena, "%s.%s", table.keyspace, table.name) : table.name;
    if (!p->naming->table) cqli_nomem(p);
    s->create_table.table = table;
    s->create_table.if_not_exists = if_not_exists;
    return s;
}

static void take_key(struct parse *p) {
    if (p->naming->keyed)
        p->failed = ddl_error(p->err, p->cassandra_words, DDL_SECOND_KEY, p->naming->table);
    p->naming->keyed = true;
}

struct ast_create_table *cqli_table_column(struct parse *p, struct ast_create_table *t, const struct ast_column *c) {
    if (p->failed) return t;
    if (is_named(p, &p->naming->columns, slice_str(c->name), t->n_columns))
        p->failed = ddl_error(p->err, p->cassandra_words, DDL_SAME_COLUMN, c->name, p->naming->table);
    t->columns = cqli_append(p, t->columns, &t->n_columns, sizeof(*c), c);
    t->has_primary_key = t->has_primary_key || c->primary_key;
    if (c->primary_key) take_key(p);
    return t;
}

struct ast_create_table *cqli_table_key(struct parse *p, struct ast_create_table *t,
                                        const struct ast_create_table *key) {
    if (!p->failed) take_key(p);
    t->has_primary_key = true;
    t->n_partition_key = key->n_partition_key, t->partition_key = key->partition_key;
    t->n_clustering = key->n_clustering, t->clustering = key->clustering;
    return t;
}

struct ast_create_table *cqli_key(struct parse *p, struct seq *partition, struct seq *clustering) {
    struct ast_create_table *t = NEW(p, struct ast_create_table);
    t->n_partition_key = partition->n, t->partition_key = partition->p;
    if (clustering) t->n_clustering = clustering->n, t->clustering = clustering->p;
    return t;
}

struct slice cqli_object_name(struct parse *p, struct token t, bool plural) {
    struct slice s = cqli_token_text(p, t);
    bool pattern;
    if (s.n == 0) {
        cqli_refuse(p, "Empty JMX object name supplied");
        return s;
    }
    if (slice_is(s, "*:*")) cqli_refuse(p, "Please use ALL MBEANS instead of wildcard pattern");
    if (!object_name_read(s, &pattern)) cqli_refuse(p, "%.*s is not a valid JMX object name", SLICE_FMT(s));
    else if (plural && !pattern)
        cqli_refuse(p, "Plural form used, but non-pattern JMX object name specified (%.*s)", SLICE_FMT(s));
    return s;
}

struct ast_stmt *cqli_alter_columns(struct parse *p, struct ast_stmt *s, enum ast_alter_table_op op,
                                    struct seq *columns) {
    (void)p;
    s->alter_table.op = op;
    s->alter_table.n_columns = columns->n;
    s->alter_table.columns = columns->p;
    return s;
}

uint32_t cqli_split_pairs(struct parse *p, struct seq *pairs, const char ***a, const char ***b) {
    uint32_t n = pairs->n / 2;
    *a = cqli_new(p, n * sizeof(**a));
    *b = cqli_new(p, n * sizeof(**b));
    if (p->failed) return 0;
    const char *const *items = pairs->p;
    for (uint32_t i = 0; i < n; i++) (*a)[i] = items[2 * i], (*b)[i] = items[2 * i + 1];
    return n;
}

uint32_t cqli_split_columns(struct parse *p, struct seq *columns, const char ***names, struct ast_type ***types) {
    *names = cqli_new(p, columns->n * sizeof(**names));
    *types = cqli_new(p, columns->n * sizeof(**types));
    if (p->failed) return 0;
    const struct ast_column *c = columns->p;
    for (uint32_t i = 0; i < columns->n; i++) (*names)[i] = c[i].name, (*types)[i] = c[i].type;
    return columns->n;
}

/* ---- roles ---- */

struct ast_role_options *cqli_role_option(struct parse *p, enum ast_role_option option) {
    struct ast_role_options *o = NEW(p, struct ast_role_options);
    o->given = option;
    return o;
}

struct ast_role_options *cqli_role_options(struct parse *p, struct ast_role_options *all,
                                           const struct ast_role_options *one) {
    const uint32_t passwords = ROLE_PASSWORD | ROLE_HASHED_PASSWORD;
    static const char *const names[] = {"PASSWORD", "HASHED_PASSWORD", "SUPERUSER", "LOGIN", "OPTIONS"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (all->given & one->given & 1u << i) cqli_refuse(p, "Multiple definition for property '%s'", names[i]);
    all->given |= one->given;
    if ((all->given & passwords) == passwords)
        cqli_refuse(p, "Options 'password' and 'hashed password' are mutually exclusive");
    switch (one->given) {
    case ROLE_PASSWORD: case ROLE_HASHED_PASSWORD: all->password = one->password; break;
    case ROLE_SUPERUSER: all->superuser = one->superuser; break;
    case ROLE_LOGIN: all->login = one->login; break;
    case ROLE_OPTIONS: all->options = one->options; break;
    case ROLE_DATACENTERS:
        all->all_datacenters = one->all_datacenters, all->n_datacenters = one->n_datacenters,
        all->datacenters = one->datacenters;
        break;
    case ROLE_CIDRS: all->all_cidrs = one->all_cidrs, all->n_cidrs = one->n_cidrs, all->cidrs = one->cidrs; break;
    default: break;
    }
    return all;
}
