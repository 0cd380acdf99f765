/* Schema statements; a part of grammar.y, which begins the grammar. */

/* ---- USE, TRUNCATE, keyspaces ---- */

%type ddl {struct ast_stmt *}
ddl(A) ::= USE(T) keyspace(N). { A = cqli_stmt(p, STMT_USE, T); A->use.keyspace = N; }
ddl(A) ::= TRUNCATE(T) table_word_opt table(N). { A = cqli_other(p, STMT_TRUNCATE, T); A->other->truncate.table = N; }
table_word_opt ::= .
table_word_opt ::= COLUMNFAMILY.
keyspace_word ::= KEYSPACE.
keyspace_word ::= SCHEMA.
ddl(A) ::= CREATE(T) keyspace_word if_not_exists(I) name(N) WITH props(P). {
    A = cqli_stmt(p, STMT_CREATE_KEYSPACE, T);
    A->keyspace = (struct ast_keyspace){.name = N, .if_not_exists = I, .props = *P};
}
/* a production of its own, so that after a name the error of another token says that WITH is expected */
ddl(A) ::= CREATE(T) keyspace_word if_not_exists QMARK WITH props. {
    A = cqli_stmt(p, STMT_CREATE_KEYSPACE, T);
    cqli_refuse(p, no_keyspace_marker);
}
ddl(A) ::= ALTER(T) keyspace_word if_exists(I) keyspace(N) WITH props(P). {
    A = cqli_stmt(p, STMT_ALTER_KEYSPACE, T);
    A->keyspace = (struct ast_keyspace){.name = N, .if_exists = I, .props = *P};
}
ddl(A) ::= ALTER(T) keyspace_word if_exists(I) keyspace(N) ADD nm(W) eq_opt prop_map(M). {
    A = cqli_stmt(p, STMT_ALTER_KEYSPACE, T);
    A->keyspace = (struct ast_keyspace){.name = N, .if_exists = I, .add_tags = true, .tags = M};
    if (!cqli_token_is(W, "tags")) cqli_reject(p, W);
    cqli_prop_check_map(p, "tags", M);
}
ddl(A) ::= ALTER(T) keyspace_word if_exists(I) keyspace(N) DROP nm(W) eq_opt prop_map(M). {
    A = cqli_stmt(p, STMT_ALTER_KEYSPACE, T);
    A->keyspace = (struct ast_keyspace){.name = N, .if_exists = I, .drop_tags = true, .tags = M};
    if (!cqli_token_is(W, "tags")) cqli_reject(p, W);
    cqli_prop_check_map(p, "tags", M);
}
ddl(A) ::= DROP(T) keyspace_word if_exists(I) keyspace(N). {
    A = cqli_stmt(p, STMT_DROP_KEYSPACE, T);
    A->keyspace = (struct ast_keyspace){.name = N, .if_exists = I};
}
eq_opt ::= .
eq_opt ::= EQ.

/* ---- properties ---- */

%type props {struct ast_props *}
%type props_opt {struct ast_props *}
%type prop_value {struct ast_prop_value *}
%type prop_map {struct ast_prop_value *}
%type prop_entries {struct seq *}
%type prop_item {struct ast_prop_value *}
props_opt(A) ::= . { A = NEW(p, struct ast_props); }
props_opt(A) ::= WITH props(B). { A = B; }
props(A) ::= name(B) EQ prop_value(C). { A = cqli_prop_add(p, NEW(p, struct ast_props), B, C); }
props(A) ::= props(B) AND name(C) EQ prop_value(D). { A = cqli_prop_add(p, B, C, D); }
prop_value(A) ::= literal(B). { A = cqli_prop_literal(p, B); }
prop_value(A) ::= IDENT(B). { A = cqli_prop_word(p, B); }
prop_value(A) ::= prop_map(B). { A = B; }
prop_map(A) ::= LBRACE RBRACE. { A = cqli_prop_map(p, SEQ(p, struct prop_entry)); }
prop_map(A) ::= LBRACE prop_entries(B) RBRACE. { A = cqli_prop_map(p, B); }
prop_entries(A) ::= prop_item(K) COLON prop_item(V). {
    struct prop_entry e = {.key = K, .value = V};
    A = cqli_push(p, SEQ(p, struct prop_entry), &e);
}
prop_entries(A) ::= prop_entries(B) COMMA prop_item(K) COLON prop_item(V). {
    struct prop_entry e = {.key = K, .value = V};
    A = cqli_push(p, B, &e);
}
prop_item(A) ::= term(B). { A = cqli_prop_term(p, B); }

/* Properties of a table or a view. */
%type table_props_opt {struct ast_props *}
%type table_props {struct ast_props *}
%type clusterings {struct seq *}
%type clustering {struct ast_ordering}
%type table_prop_name {const char *}
table_prop_name(A) ::= name(B). { A = B; }
table_prop_name(A) ::= COMPACT(B). { A = cqli_ident(p, B); }
table_prop_name(A) ::= CLUSTERING(B). { A = cqli_ident(p, B); }
table_props_opt(A) ::= . { A = NEW(p, struct ast_props); }
table_props_opt(A) ::= WITH table_props(B). { A = B; }
table_props(A) ::= table_prop_name(B) EQ prop_value(C). { A = cqli_prop_add(p, NEW(p, struct ast_props), B, C); }
table_props(A) ::= COMPACT STORAGE. { A = NEW(p, struct ast_props); A->compact_storage = true; }
table_props(A) ::= CLUSTERING ORDER BY LP clusterings(B) RP. { A = NEW(p, struct ast_props); cqli_table_props(p, A, B); }
table_props(A) ::= table_props(B) AND table_prop_name(C) EQ prop_value(D). { A = cqli_prop_add(p, B, C, D); }
table_props(A) ::= table_props(B) AND COMPACT STORAGE. { A = B; A->compact_storage = true; }
table_props(A) ::= table_props(B) AND CLUSTERING ORDER BY LP clusterings(C) RP. { A = B; cqli_table_props(p, A, C); }
clusterings(A) ::= clustering(B). { A = cqli_push(p, SEQ(p, struct ast_ordering), &B); }
clusterings(A) ::= clusterings(B) COMMA clustering(C). { A = cqli_push(p, B, &C); }
clustering(A) ::= name(B) ASC. { A = (struct ast_ordering){.column = B}; }
clustering(A) ::= name(B) DESC. { A = (struct ast_ordering){.column = B, .desc = true}; }

/* ---- tables ---- */

%type table_body {struct ast_create_table *}
%type table_items {struct ast_create_table *}
%type key_columns {struct ast_create_table *}
%type column {struct ast_column *}
%type plain_column {struct ast_column *}
%type plain_columns {struct seq *}
%type is_static {bool}
%type is_primary {bool}
%type mask_opt {bool}
%type create_table {struct ast_stmt *}
create_table(A) ::= CREATE(T) COLUMNFAMILY if_not_exists(I) table(N). { A = cqli_create_table(p, T, N, I); }
ddl(A) ::= create_table(B) LP table_items(C) RP table_props_opt(P). {
    struct ast_create_table named = B->create_table;
    A = B;
    A->create_table = *C;
    A->create_table.table = named.table, A->create_table.if_not_exists = named.if_not_exists, A->create_table.props = *P;
}
table_items(A) ::= column(C). { A = cqli_table_column(p, NEW(p, struct ast_create_table), C); }
table_items(A) ::= key_columns(B). { A = cqli_table_key(p, NEW(p, struct ast_create_table), B); }
table_items(A) ::= table_items(B) COMMA. { A = B; }
table_items(A) ::= table_items(B) COMMA column(C). { A = cqli_table_column(p, B, C); }
table_items(A) ::= table_items(B) COMMA key_columns(C). { A = cqli_table_key(p, B, C); }
column(A) ::= plain_column(B) is_primary(P). { A = B; A->primary_key = P; }
plain_column(A) ::= name(B) type(C) is_static(S) mask_opt(M). {
    A = NEW(p, struct ast_column);
    *A = (struct ast_column){.name = B, .type = C, .is_static = S, .masked = M};
}
plain_columns(A) ::= plain_column(B). { A = cqli_push(p, SEQ(p, struct ast_column), B); }
plain_columns(A) ::= plain_columns(B) COMMA plain_column(C). { A = cqli_push(p, B, C); }
is_static(A) ::= . { A = false; }
is_static(A) ::= STATIC. { A = true; }
is_primary(A) ::= . { A = false; }
is_primary(A) ::= PRIMARY KEY. { A = true; }
mask_opt(A) ::= . { A = false; }
mask_opt(A) ::= mask. { A = true; }
mask ::= MASKED WITH DEFAULT.
mask ::= MASKED WITH DEFAULT LP terms_opt RP.
mask ::= MASKED WITH function_name LP terms_opt RP.
key_columns(A) ::= PRIMARY KEY LP partition_key(B) clustering_key(C) RP. { A = cqli_key(p, B, C); }
%type partition_key {struct seq *}
%type clustering_key {struct seq *}
partition_key(A) ::= name(B). { A = cqli_one_name(p, B); }
partition_key(A) ::= LP names(B) RP. { A = B; }
clustering_key(A) ::= . { A = NULL; }
clustering_key(A) ::= COMMA names(B). { A = B; }

%type alter_table {struct ast_stmt *}
%type drop_names {struct seq *}
%type renames {struct seq *}
%type drop_timestamp {struct ast_expr *}
alter_table(A) ::= ALTER(T) COLUMNFAMILY if_exists(I) table(N). {
    A = cqli_stmt(p, STMT_ALTER_TABLE, T);
    A->alter_table = (struct ast_alter_table){.table = N, .if_exists = I};
}
ddl(A) ::= alter_table(B) ADD if_not_exists(I) plain_column(C). {
    A = cqli_alter_columns(p, B, ALTER_TABLE_ADD, cqli_push(p, SEQ(p, struct ast_column), C));
    A->alter_table.column_if_not_exists = I;
}
ddl(A) ::= alter_table(B) ADD if_not_exists(I) LP plain_columns(C) RP. {
    A = cqli_alter_columns(p, B, ALTER_TABLE_ADD, C);
    A->alter_table.column_if_not_exists = I;
}
ddl(A) ::= alter_table(B) ADD if_not_exists nm(W) eq_opt prop_map(M). {
    A = B;
    A->alter_table.op = ALTER_TABLE_ADD_TAGS, A->alter_table.tags = M;
    if (!cqli_token_is(W, "tags")) cqli_reject(p, W);
    cqli_prop_check_map(p, "tags", M);
}
ddl(A) ::= alter_table(B) DROP if_exists nm(W) eq_opt prop_map(M). {
    A = B;
    A->alter_table.op = ALTER_TABLE_DROP_TAGS, A->alter_table.tags = M;
    if (!cqli_token_is(W, "tags")) cqli_reject(p, W);
    cqli_prop_check_map(p, "tags", M);
}
ddl(A) ::= alter_table(B) DROP if_exists(I) drop_names(C) drop_timestamp(D). {
    A = cqli_alter_columns(p, B, ALTER_TABLE_DROP, C);
    A->alter_table.column_if_exists = I, A->alter_table.drop_timestamp = D;
}
ddl(A) ::= alter_table(B) DROP COMPACT(N). {
    struct ast_column c = {.name = cqli_ident(p, N)};
    A = cqli_alter_columns(p, B, ALTER_TABLE_DROP, cqli_push(p, SEQ(p, struct ast_column), &c));
}
ddl(A) ::= alter_table(B) DROP COMPACT STORAGE. { A = B; A->alter_table.op = ALTER_TABLE_DROP_COMPACT_STORAGE; }
ddl(A) ::= alter_table(B) ALTER if_exists(I) cname(C) TYPE(W) type(D). {
    struct ast_column c = {.name = C, .type = D};
    A = cqli_alter_columns(p, B, ALTER_TABLE_ALTER_TYPE, cqli_push(p, SEQ(p, struct ast_column), &c));
    if (I) cqli_reject(p, W); /* IF EXISTS is for masks */
}
ddl(A) ::= alter_table(B) ALTER if_exists(I) cname(C) mask. {
    struct ast_column c = {.name = C, .masked = true};
    A = cqli_alter_columns(p, B, ALTER_TABLE_MASK, cqli_push(p, SEQ(p, struct ast_column), &c));
    A->alter_table.column_if_exists = I;
}
ddl(A) ::= alter_table(B) ALTER if_exists(I) cname(C) DROP MASKED. {
    struct ast_column c = {.name = C};
    A = cqli_alter_columns(p, B, ALTER_TABLE_DROP_MASK, cqli_push(p, SEQ(p, struct ast_column), &c));
    A->alter_table.column_if_exists = I;
}
ddl(A) ::= alter_table(B) RENAME if_exists(I) renames(C). {
    A = B;
    A->alter_table.op = ALTER_TABLE_RENAME, A->alter_table.column_if_exists = I;
    A->alter_table.n_renames = cqli_split_pairs(p, C, &A->alter_table.rename_from, &A->alter_table.rename_to);
}
ddl(A) ::= alter_table(B) WITH props(C). { A = B; A->alter_table.op = ALTER_TABLE_WITH; A->alter_table.props = *C; }
drop_names(A) ::= nm(B). {
    struct ast_column c = {.name = cqli_ident(p, B)};
    A = cqli_push(p, SEQ(p, struct ast_column), &c);
}
drop_names(A) ::= LP drop_list(B) RP. { A = B; }
%type drop_list {struct seq *}
drop_list(A) ::= name(B). {
    struct ast_column c = {.name = B};
    A = cqli_push(p, SEQ(p, struct ast_column), &c);
}
drop_list(A) ::= drop_list(B) COMMA name(C). {
    struct ast_column c = {.name = C};
    A = cqli_push(p, B, &c);
}
drop_timestamp(A) ::= . { A = NULL; }
drop_timestamp(A) ::= USING TIMESTAMP INTEGER(B). { A = cqli_literal(p, LIT_INTEGER, B); }
renames(A) ::= name(B) TO name(C). { A = cqli_push(p, cqli_push(p, SEQ(p, const char *), &B), &C); }
renames(A) ::= renames(B) AND name(C) TO name(D). { A = cqli_push(p, cqli_push(p, B, &C), &D); }

ddl(A) ::= DROP(T) COLUMNFAMILY if_exists(I) table(N). { A = cqli_stmt(p, STMT_DROP_TABLE, T); A->drop = (struct ast_drop){.name = N, .if_exists = I}; }
ddl(A) ::= RESTORE(T) COLUMNFAMILY table(N) FROM COLUMNFAMILY table(F) props_opt(P). {
    A = cqli_other(p, STMT_RESTORE_TABLE, T);
    A->other->restore = (struct ast_restore_table){.table = N, .from = F, .props = *P};
}

/* ---- types ---- */

%type type_fields {struct seq *}
%type type_field {struct ast_column}
%type alter_type {struct ast_stmt *}
%type user_type {struct ast_name}
user_type(A) ::= nm(B). { A = cqli_user_type(p, NULL, B); }
user_type(A) ::= name(B) DOT nm(C). { A = cqli_user_type(p, B, C); }
ddl(A) ::= CREATE(T) TYPE if_not_exists(I) user_type(N) LP type_fields(F) RP. {
    A = cqli_stmt(p, STMT_CREATE_TYPE, T);
    A->create_type = (struct ast_create_type){.name = N, .if_not_exists = I};
    A->create_type.n_fields = cqli_split_columns(p, F, &A->create_type.field_names, &A->create_type.field_types);
}
type_fields(A) ::= type_field(B). { A = cqli_push(p, SEQ(p, struct ast_column), &B); }
type_fields(A) ::= type_fields(B) COMMA. { A = B; }
type_fields(A) ::= type_fields(B) COMMA type_field(C). { A = cqli_push(p, B, &C); }
type_field(A) ::= name(B) type(C). { A = (struct ast_column){.name = B, .type = C}; }
alter_type(A) ::= ALTER(T) TYPE if_exists(I) user_type(N). {
    A = cqli_other(p, STMT_ALTER_TYPE, T);
    A->other->alter_type = (struct ast_alter_type){.name = N, .if_exists = I};
}
ddl(A) ::= alter_type(B) ADD if_not_exists(I) name(C) type(D). {
    struct ast_alter_type *x = &B->other->alter_type;
    A = B;
    x->op = ALTER_TYPE_ADD, x->field = C, x->type = D, x->field_if_not_exists = I;
}
ddl(A) ::= alter_type(B) ALTER name(C) TYPE type(D). {
    struct ast_alter_type *x = &B->other->alter_type;
    A = B;
    x->op = ALTER_TYPE_ALTER, x->field = C, x->type = D;
}
ddl(A) ::= alter_type(B) RENAME if_exists(I) renames(C). {
    struct ast_alter_type *x = &B->other->alter_type;
    A = B;
    x->op = ALTER_TYPE_RENAME, x->field_if_exists = I;
    x->n_renames = cqli_split_pairs(p, C, &x->rename_from, &x->rename_to);
}
ddl(A) ::= DROP(T) TYPE if_exists(I) user_type(N). { A = cqli_stmt(p, STMT_DROP_TYPE, T); A->drop = (struct ast_drop){.name = N, .if_exists = I}; }

/* ---- indexes, views, triggers ---- */

%type custom_opt {bool}
%type index_name_opt {const char *}
%type index_targets {struct seq *}
%type index_targets_opt {struct seq *}
%type index_target {struct ast_index_target}
%type using_class_opt {struct token}
ddl(A) ::= CREATE(T) custom_opt(C) INDEX if_not_exists(I) index_name_opt(X) ON table(N) LP index_targets_opt(L) RP using_class_opt(U)
           props_opt(P). {
    A = cqli_other(p, STMT_CREATE_INDEX, T);
    A->other->create_index = (struct ast_create_index){
        .name.name = X, .table = N, .custom = C, .if_not_exists = I, .n_targets = L->n, .targets = L->p, .props = *P,
        .has_class = U.code != 0, .using_class = U.code ? cqli_token_text(p, U) : (struct slice){0},
    };
}
custom_opt(A) ::= . { A = false; }
custom_opt(A) ::= CUSTOM. { A = true; }
index_name_opt(A) ::= . { A = NULL; }
index_name_opt(A) ::= name(B). { A = B; }
index_targets_opt(A) ::= . { A = SEQ(p, struct ast_index_target); }
index_targets_opt(A) ::= index_targets(B). { A = B; }
index_targets(A) ::= index_target(B). { A = cqli_push(p, SEQ(p, struct ast_index_target), &B); }
index_targets(A) ::= index_targets(B) COMMA index_target(C). { A = cqli_push(p, B, &C); }
index_target(A) ::= cname(B). { A = (struct ast_index_target){.column = B}; }
index_target(A) ::= VALUES(B). { A = (struct ast_index_target){.column = cqli_ident(p, B)}; }
index_target(A) ::= VALUES LP cname(B) RP. { A = (struct ast_index_target){.kind = INDEX_VALUES, .column = B}; }
index_target(A) ::= nm(K) LP cname(B) RP. {
    A = (struct ast_index_target){.kind = INDEX_KEYS, .column = B};
    if (!cqli_token_is(K, "keys")) cqli_reject(p, K);
}
index_target(A) ::= ENTRIES LP cname(B) RP. { A = (struct ast_index_target){.kind = INDEX_ENTRIES, .column = B}; }
index_target(A) ::= FULL LP cname(B) RP. { A = (struct ast_index_target){.kind = INDEX_FULL, .column = B}; }
using_class_opt(A) ::= . { A = (struct token){0}; }
using_class_opt(A) ::= USING STRING(B). { A = B; }
ddl(A) ::= DROP(T) INDEX if_exists(I) table(N). { A = cqli_stmt(p, STMT_DROP_INDEX, T); A->drop = (struct ast_drop){.name = N, .if_exists = I}; }

ddl(A) ::= CREATE(T) MATERIALIZED VIEW if_not_exists(I) table(N) AS SELECT select_list(L) FROM table(F) where_opt(W) key_columns(K)
           table_props_opt(P). {
    A = cqli_other(p, STMT_CREATE_VIEW, T);
    A->other->create_view = (struct ast_create_view){
        .name = N, .table = F, .if_not_exists = I, .n_selectors = L->n, .selectors = L->p, .where = cqli_where(W),
        .n_partition_key = K->n_partition_key, .n_clustering = K->n_clustering, .partition_key = K->partition_key,
        .clustering = K->clustering, .props = *P,
    };
}
ddl(A) ::= ALTER(T) MATERIALIZED VIEW if_exists(I) table(N) WITH props(P). {
    A = cqli_other(p, STMT_ALTER_VIEW, T);
    A->other->alter_view = (struct ast_alter_view){.name = N, .if_exists = I, .props = *P};
}
ddl(A) ::= DROP(T) MATERIALIZED VIEW if_exists(I) table(N). { A = cqli_stmt(p, STMT_DROP_VIEW, T); A->drop = (struct ast_drop){.name = N, .if_exists = I}; }

ddl(A) ::= CREATE(T) TRIGGER if_not_exists(I) name(X) ON table(N) USING STRING(C). {
    A = cqli_other(p, STMT_CREATE_TRIGGER, T);
    A->other->trigger = (struct ast_trigger){.name = X, .table = N, .if_not_exists = I, .using_class = cqli_token_text(p, C)};
}
ddl(A) ::= DROP(T) TRIGGER if_exists(I) name(X) ON table(N). {
    A = cqli_other(p, STMT_DROP_TRIGGER, T);
    A->other->trigger = (struct ast_trigger){.name = X, .table = N, .if_exists = I};
}

/* ---- functions and aggregates ---- */

%type or_replace {bool}
%type function_args {struct seq *}
%type function_args_opt {struct seq *}
%type types {struct seq *}
%type types_opt {struct seq *}
%type type_list_opt {struct seq *}
%type on_null {bool}
%type function_id {const char *}
%type final_opt {const char *}
%type init_opt {struct ast_expr *}
function_id(A) ::= plain_function(B). { A = cqli_ident(p, B); }
ddl(A) ::= CREATE(T) or_replace(R) FUNCTION if_not_exists(I) function_name(N) LP function_args_opt(L) RP on_null(O) ON NULL INPUT
           RETURNS type(Y) LANGUAGE IDENT(G) AS STRING(S). {
    cqli_no_word(p, G);
    A = cqli_other(p, STMT_CREATE_FUNCTION, T);
    struct ast_create_function *f = &A->other->create_function;
    *f = (struct ast_create_function){
        .name = N, .or_replace = R, .if_not_exists = I, .called_on_null = O, .returns = Y, .language = cqli_ident(p, G), .body = cqli_token_text(p, S),
    };
    f->n_args = cqli_split_columns(p, L, &f->arg_names, &f->arg_types);
}
or_replace(A) ::= . { A = false; }
or_replace(A) ::= OR REPLACE. { A = true; }
function_args_opt(A) ::= . { A = SEQ(p, struct ast_column); }
function_args_opt(A) ::= function_args(B). { A = B; }
function_args(A) ::= type_field(B). { A = cqli_push(p, SEQ(p, struct ast_column), &B); }
function_args(A) ::= function_args(B) COMMA type_field(C). { A = cqli_push(p, B, &C); }
on_null(A) ::= RETURNS NULL. { A = false; }
on_null(A) ::= CALLED. { A = true; }
ddl(A) ::= CREATE(T) or_replace(R) AGGREGATE if_not_exists(I) function_name(N) LP types_opt(L) RP SFUNC function_id(F) STYPE type(Y)
           final_opt(X) init_opt(V). {
    A = cqli_other(p, STMT_CREATE_AGGREGATE, T);
    A->other->create_aggregate = (struct ast_create_aggregate){
        .name = N, .or_replace = R, .if_not_exists = I, .n_args = L->n, .arg_types = L->p, .sfunc = F, .finalfunc = X, .stype = Y,
        .initcond = V,
    };
}
final_opt(A) ::= . { A = NULL; }
final_opt(A) ::= FINALFUNC function_id(B). { A = B; }
init_opt(A) ::= . { A = NULL; }
init_opt(A) ::= INITCOND term(B). { A = B; }
types_opt(A) ::= . { A = SEQ(p, struct ast_type *); }
types_opt(A) ::= types(B). { A = B; }
types(A) ::= type(B). { A = cqli_push(p, SEQ(p, struct ast_type *), &B); }
types(A) ::= types(B) COMMA type(C). { A = cqli_push(p, B, &C); }
type_list_opt(A) ::= . { A = NULL; }
type_list_opt(A) ::= LP types_opt(B) RP. { A = B; }
%type drop_function_kind {enum stmt_kind}
drop_function_kind(A) ::= FUNCTION. { A = STMT_DROP_FUNCTION; }
drop_function_kind(A) ::= AGGREGATE. { A = STMT_DROP_AGGREGATE; }
ddl(A) ::= DROP(T) drop_function_kind(K) if_exists(I) function_name(N) type_list_opt(L). {
    A = cqli_other(p, K, T);
    A->other->drop_function = (struct ast_drop_function){.name = N, .if_exists = I, .has_args = L != NULL};
    if (L) A->other->drop_function.n_args = L->n, A->other->drop_function.arg_types = L->p;
}
