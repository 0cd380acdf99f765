/* DESCRIBE, roles and permissions; a part of grammar.y, which begins the grammar. */

/* ---- DESCRIBE ---- */

%type describe {struct ast_stmt *}
%type describe_what {struct ast_describe}
%type internals {bool}
describe(A) ::= describe_word(T) describe_what(D) internals(I). {
    A = cqli_stmt(p, STMT_DESCRIBE, T);
    A->describe = D;
    A->describe.internals = I;
}
%type describe_word {struct token}
describe_word(A) ::= DESCRIBE(B). { A = B; }
describe_word(A) ::= DESC(B). { A = B; }
internals(A) ::= . { A = false; }
internals(A) ::= WITH INTERNALS. { A = true; }
describe_what(A) ::= CLUSTER. { A = (struct ast_describe){.kind = DESCRIBE_CLUSTER}; }
describe_what(A) ::= SCHEMA. { A = (struct ast_describe){.kind = DESCRIBE_SCHEMA}; }
describe_what(A) ::= FULL SCHEMA. { A = (struct ast_describe){.kind = DESCRIBE_SCHEMA, .full = true}; }
describe_what(A) ::= KEYSPACES. { A = (struct ast_describe){.kind = DESCRIBE_KEYSPACES}; }
describe_what(A) ::= KEYSPACE keyspace_opt(N). { A = (struct ast_describe){.kind = DESCRIBE_KEYSPACE, .name.name = N}; }
describe_what(A) ::= ONLY KEYSPACE keyspace_opt(N). { A = (struct ast_describe){.kind = DESCRIBE_KEYSPACE, .only = true, .name.name = N}; }
describe_what(A) ::= TABLES. { A = (struct ast_describe){.kind = DESCRIBE_TABLES}; }
describe_what(A) ::= COLUMNFAMILY table(N). { A = (struct ast_describe){.kind = DESCRIBE_TABLE, .name = N}; }
describe_what(A) ::= INDEX table(N). { A = (struct ast_describe){.kind = DESCRIBE_INDEX, .name = N}; }
describe_what(A) ::= MATERIALIZED VIEW table(N). { A = (struct ast_describe){.kind = DESCRIBE_VIEW, .name = N}; }
describe_what(A) ::= TYPES. { A = (struct ast_describe){.kind = DESCRIBE_TYPES}; }
describe_what(A) ::= TYPE user_type(N). { A = (struct ast_describe){.kind = DESCRIBE_TYPE, .name = N}; }
describe_what(A) ::= FUNCTIONS. { A = (struct ast_describe){.kind = DESCRIBE_FUNCTIONS}; }
describe_what(A) ::= FUNCTION function_name(N). { A = (struct ast_describe){.kind = DESCRIBE_FUNCTION, .name = N}; }
describe_what(A) ::= AGGREGATES. { A = (struct ast_describe){.kind = DESCRIBE_AGGREGATES}; }
describe_what(A) ::= AGGREGATE function_name(N). { A = (struct ast_describe){.kind = DESCRIBE_AGGREGATE, .name = N}; }
describe_what(A) ::= describe_kind(N). { A = (struct ast_describe){.kind = DESCRIBE_GENERIC, .name.name = cqli_ident(p, N)}; }
describe_what(A) ::= describe_kind(K) DOT name(N). { A = (struct ast_describe){.kind = DESCRIBE_GENERIC, .name = {cqli_ident(p, K), N}}; }
describe_what(A) ::= name(N). { A = (struct ast_describe){.kind = DESCRIBE_GENERIC, .name.name = N}; }
describe_what(A) ::= name(K) DOT name(N). { A = (struct ast_describe){.kind = DESCRIBE_GENERIC, .name = {K, N}}; }
%type describe_kind {struct token} /* words that stand before a name, and can be one */
describe_kind(A) ::= TYPE(B). { A = B; }
describe_kind(A) ::= FUNCTION(B). { A = B; }
describe_kind(A) ::= AGGREGATE(B). { A = B; }
describe_kind(A) ::= ONLY(B). { A = B; }
%type keyspace_opt {const char *}
keyspace_opt(A) ::= . { A = NULL; }
keyspace_opt(A) ::= keyspace(B). { A = B; }

/* ---- roles, users, permissions, identities ---- */

%type access {struct ast_stmt *}
%type role_name {const char *}
%type user_name {const char *}
%type role_options_opt {struct ast_role_options *}
%type role_options {struct ast_role_options *}
%type role_option {struct ast_role_options *}
%type user_options {struct ast_role_options *}
%type user_super {struct ast_role_options *}
%type strings {struct seq *}
role_name(A) ::= name(B). { A = B; }
role_name(A) ::= STRING(B). { A = cqli_ident(p, B); }
role_name(A) ::= QMARK(B). { A = cqli_ident(p, B); cqli_refuse(p, "Bind variables cannot be used for role names"); }
user_name(A) ::= IDENT(B). { A = cqli_exact(p, B); cqli_no_word(p, B); }
user_name(A) ::= STRING(B). { A = cqli_ident(p, B); }
user_name(A) ::= QNAME(B). {
    A = cqli_ident(p, B);
    cqli_refuse(p, "Quoted strings are are not supported for user names and USER is deprecated, please use ROLE");
}
access(A) ::= CREATE(T) ROLE if_not_exists(I) role_name(N) role_options_opt(O). {
    A = cqli_other(p, STMT_CREATE_ROLE, T);
    A->other->role = (struct ast_role){.name = N, .if_not_exists = I, .options = *O};
}
access(A) ::= ALTER(T) ROLE if_exists(I) role_name(N) role_options_opt(O). {
    A = cqli_other(p, STMT_ALTER_ROLE, T);
    A->other->role = (struct ast_role){.name = N, .if_exists = I, .options = *O};
}
access(A) ::= DROP(T) ROLE if_exists(I) role_name(N). {
    A = cqli_other(p, STMT_DROP_ROLE, T);
    A->other->role = (struct ast_role){.name = N, .if_exists = I};
}
access(A) ::= CREATE(T) USER if_not_exists(I) user_name(N) user_options(O). {
    A = cqli_other(p, STMT_CREATE_ROLE, T);
    A->other->role = (struct ast_role){.name = N, .user = true, .if_not_exists = I, .options = *O};
}
access(A) ::= ALTER(T) USER if_exists(I) user_name(N) user_options(O). {
    A = cqli_other(p, STMT_ALTER_ROLE, T);
    A->other->role = (struct ast_role){.name = N, .user = true, .if_exists = I, .options = *O};
}
access(A) ::= DROP(T) USER if_exists(I) user_name(N). {
    A = cqli_other(p, STMT_DROP_ROLE, T);
    A->other->role = (struct ast_role){.name = N, .user = true, .if_exists = I};
}
user_options(A) ::= user_super(B). { A = B; }
user_options(A) ::= WITH PASSWORD STRING(S) user_super(B). { A = B; A->given |= ROLE_PASSWORD; A->password = cqli_token_text(p, S); }
user_options(A) ::= WITH HASHED PASSWORD STRING(S) user_super(B). { A = B; A->given |= ROLE_HASHED_PASSWORD; A->password = cqli_token_text(p, S); }
user_super(A) ::= . { A = NEW(p, struct ast_role_options); }
user_super(A) ::= SUPERUSER. { A = NEW(p, struct ast_role_options); A->given = ROLE_SUPERUSER; A->superuser = true; }
user_super(A) ::= NOSUPERUSER. { A = NEW(p, struct ast_role_options); A->given = ROLE_SUPERUSER; }
role_options_opt(A) ::= . { A = NEW(p, struct ast_role_options); }
role_options_opt(A) ::= WITH role_options(B). { A = B; }
role_options(A) ::= role_option(B). { A = cqli_role_options(p, NEW(p, struct ast_role_options), B); }
role_options(A) ::= role_options(B) AND role_option(C). { A = cqli_role_options(p, B, C); }
role_option(A) ::= PASSWORD EQ STRING(S). { A = cqli_role_option(p, ROLE_PASSWORD); A->password = cqli_token_text(p, S); }
role_option(A) ::= HASHED PASSWORD EQ STRING(S). { A = cqli_role_option(p, ROLE_HASHED_PASSWORD); A->password = cqli_token_text(p, S); }
role_option(A) ::= OPTIONS EQ prop_map(M). {
    A = cqli_role_option(p, ROLE_OPTIONS);
    A->options = M;
    cqli_prop_check_map(p, "options", M);
}
role_option(A) ::= SUPERUSER EQ BOOLEAN(B). { A = cqli_role_option(p, ROLE_SUPERUSER); A->superuser = cqli_token_is(B, "true"); }
role_option(A) ::= LOGIN EQ BOOLEAN(B). { A = cqli_role_option(p, ROLE_LOGIN); A->login = cqli_token_is(B, "true"); }
role_option(A) ::= ACCESS TO ALL DATACENTERS. { A = cqli_role_option(p, ROLE_DATACENTERS); A->all_datacenters = true; }
role_option(A) ::= ACCESS TO DATACENTERS LBRACE strings(S) RBRACE. {
    A = cqli_role_option(p, ROLE_DATACENTERS);
    A->n_datacenters = S->n, A->datacenters = S->p;
}
role_option(A) ::= ACCESS FROM ALL CIDRS. { A = cqli_role_option(p, ROLE_CIDRS); A->all_cidrs = true; }
role_option(A) ::= ACCESS FROM CIDRS LBRACE strings(S) RBRACE. {
    A = cqli_role_option(p, ROLE_CIDRS);
    A->n_cidrs = S->n, A->cidrs = S->p;
}
strings(A) ::= STRING(B). { struct slice s = cqli_token_text(p, B); A = cqli_push(p, SEQ(p, struct slice), &s); }
strings(A) ::= strings(B) COMMA STRING(C). { struct slice s = cqli_token_text(p, C); A = cqli_push(p, B, &s); }

%type permission {enum ast_permission}
%type permissions {struct seq *}
%type permission_list {struct ast_permissions}
%type resource {struct ast_resource}
permission(A) ::= CREATE. { A = PERMISSION_CREATE; }
permission(A) ::= ALTER. { A = PERMISSION_ALTER; }
permission(A) ::= DROP. { A = PERMISSION_DROP; }
permission(A) ::= SELECT. { A = PERMISSION_SELECT; }
permission(A) ::= MODIFY. { A = PERMISSION_MODIFY; }
permission(A) ::= AUTHORIZE. { A = PERMISSION_AUTHORIZE; }
permission(A) ::= DESCRIBE. { A = PERMISSION_DESCRIBE; }
permission(A) ::= EXECUTE. { A = PERMISSION_EXECUTE; }
permission(A) ::= UNMASK. { A = PERMISSION_UNMASK; }
permission(A) ::= SELECT_MASKED. { A = PERMISSION_SELECT_MASKED; }
permission_word_opt ::= .
permission_word_opt ::= PERMISSION.
permissions(A) ::= permission(B) permission_word_opt. { A = cqli_push(p, SEQ(p, enum ast_permission), &B); }
permissions(A) ::= permissions(B) COMMA permission(C) permission_word_opt. { A = cqli_push(p, B, &C); }
permission_list(A) ::= ALL. { A = (struct ast_permissions){0}; }
permission_list(A) ::= ALL PERMISSIONS. { A = (struct ast_permissions){0}; }
permission_list(A) ::= permissions(B). { A = (struct ast_permissions){.n = B->n, .items = B->p}; }
resource(A) ::= ALL KEYSPACES. { A = (struct ast_resource){.kind = RESOURCE_ALL_KEYSPACES}; }
resource(A) ::= KEYSPACE keyspace(N). { A = (struct ast_resource){.kind = RESOURCE_KEYSPACE, .name.name = N}; }
resource(A) ::= ALL TABLES IN KEYSPACE keyspace(N). { A = (struct ast_resource){.kind = RESOURCE_ALL_TABLES, .name.name = N}; }
resource(A) ::= COLUMNFAMILY table(N). { A = (struct ast_resource){.kind = RESOURCE_TABLE, .name = N}; }
resource(A) ::= resource_word(N). { A = (struct ast_resource){.kind = RESOURCE_TABLE, .name.name = cqli_ident(p, N)}; }
resource(A) ::= resource_word(K) DOT name(N). { A = (struct ast_resource){.kind = RESOURCE_TABLE, .name = {cqli_ident(p, K), N}}; }
resource(A) ::= table(N). { A = (struct ast_resource){.kind = RESOURCE_TABLE, .name = N}; }
resource(A) ::= ALL ROLES. { A = (struct ast_resource){.kind = RESOURCE_ALL_ROLES}; }
resource(A) ::= ROLE role_name(N). { A = (struct ast_resource){.kind = RESOURCE_ROLE, .name.name = N}; }
resource(A) ::= ALL FUNCTIONS. { A = (struct ast_resource){.kind = RESOURCE_ALL_FUNCTIONS}; }
resource(A) ::= ALL FUNCTIONS IN KEYSPACE keyspace(N). { A = (struct ast_resource){.kind = RESOURCE_ALL_FUNCTIONS_IN, .name.name = N}; }
resource(A) ::= FUNCTION function_name(N) LP types_opt(L) RP. {
    A = (struct ast_resource){.kind = RESOURCE_FUNCTION, .name = N, .n_args = L->n, .arg_types = L->p};
}
resource(A) ::= ALL MBEANS. { A = (struct ast_resource){.kind = RESOURCE_ALL_MBEANS}; }
resource(A) ::= MBEAN STRING(S). { A = (struct ast_resource){.kind = RESOURCE_MBEAN, .mbean = cqli_object_name(p, S, false)}; }
resource(A) ::= MBEANS STRING(S). { A = (struct ast_resource){.kind = RESOURCE_MBEANS, .mbean = cqli_object_name(p, S, true)}; }
%type resource_word {struct token} /* the same of resources */
resource_word(A) ::= ALL(B). { A = B; }
resource_word(A) ::= ROLE(B). { A = B; }
resource_word(A) ::= FUNCTION(B). { A = B; }
resource_word(A) ::= MBEAN(B). { A = B; }
resource_word(A) ::= MBEANS(B). { A = B; }
access(A) ::= GRANT(T) permission_list(L) ON resource(R) TO role_name(N). {
    A = cqli_other(p, STMT_GRANT, T);
    A->other->grant = (struct ast_grant){.permissions = L, .resource = R, .grantee = N};
}
access(A) ::= REVOKE(T) permission_list(L) ON resource(R) FROM role_name(N). {
    A = cqli_other(p, STMT_REVOKE, T);
    A->other->grant = (struct ast_grant){.permissions = L, .resource = R, .grantee = N};
}
%type granted_role {const char *}
granted_role(A) ::= role_name(B). { A = B; }
granted_role(A) ::= ALL(B). { A = cqli_ident(p, B); }
granted_role(A) ::= UNMASK(B). { A = cqli_ident(p, B); }
granted_role(A) ::= SELECT_MASKED(B). { A = cqli_ident(p, B); }
access(A) ::= GRANT(T) granted_role(G) TO role_name(N). {
    A = cqli_other(p, STMT_GRANT, T);
    A->other->grant = (struct ast_grant){.granted_role = G, .grantee = N};
}
access(A) ::= REVOKE(T) granted_role(G) FROM role_name(N). {
    A = cqli_other(p, STMT_REVOKE, T);
    A->other->grant = (struct ast_grant){.granted_role = G, .grantee = N};
}
%type on_opt {struct ast_resource}
%type of_opt {const char *}
%type norecursive {bool}
access(A) ::= LIST(T) permission_list(L) on_opt(R) of_opt(O) norecursive(N). {
    A = cqli_other(p, STMT_LIST, T);
    A->other->list = (struct ast_list){.kind = LIST_PERMISSIONS, .permissions = L, .resource = R, .of = O, .norecursive = N};
}
access(A) ::= LIST(T) ROLES of_opt(O) norecursive(N). {
    A = cqli_other(p, STMT_LIST, T);
    A->other->list = (struct ast_list){.kind = LIST_ROLES, .of = O, .norecursive = N};
}
access(A) ::= LIST(T) USERS. { A = cqli_other(p, STMT_LIST, T); A->other->list.kind = LIST_USERS; }
on_opt(A) ::= . { A = (struct ast_resource){0}; }
on_opt(A) ::= ON resource(B). { A = B; }
of_opt(A) ::= . { A = NULL; }
of_opt(A) ::= OF role_name(B). { A = B; }
norecursive(A) ::= . { A = false; }
norecursive(A) ::= NORECURSIVE. { A = true; }

%type identity {struct token}
identity(A) ::= IDENT(B). { A = B; cqli_no_word(p, B); }
identity(A) ::= STRING(B). { A = B; }
identity(A) ::= QNAME(B). { A = B; cqli_refuse(p, "Quoted strings are are not supported for identity"); }
access(A) ::= ADD(T) IDENTITY if_not_exists(I) identity(U) TO ROLE identity(R). {
    A = cqli_other(p, STMT_ADD_IDENTITY, T);
    A->other->identity = (struct ast_identity){.identity = cqli_token_text(p, U), .role = cqli_exact(p, R), .if_not_exists = I};
}
access(A) ::= DROP(T) IDENTITY if_exists(I) identity(U). {
    A = cqli_other(p, STMT_DROP_IDENTITY, T);
    A->other->identity = (struct ast_identity){.identity = cqli_token_text(p, U), .if_exists = I};
}
