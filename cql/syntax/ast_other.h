/* Statements that are parsed and printed, and refused when they are run, until an issue makes them
 * run; then a struct moves to ast.h.
 *
 * ast_stmt.kind says which member of struct ast_other is in use. All of it lives in the arena of
 * the parse. */
#pragma once

#include "cql/syntax/ast.h"

struct ast_truncate {
    struct ast_name table;
};

enum ast_alter_type_op { ALTER_TYPE_ADD, ALTER_TYPE_ALTER, ALTER_TYPE_RENAME };
struct ast_alter_type {
    struct ast_name name;
    bool if_exists, field_if_exists, field_if_not_exists;
    enum ast_alter_type_op op;
    const char *field; /* ADD, ALTER */
    struct ast_type *type;
    uint32_t n_renames;
    const char **rename_from, **rename_to;
};

struct ast_restore_table {
    struct ast_name table, from;
    struct ast_props props;
};

enum ast_index_target_kind { INDEX_SIMPLE, INDEX_KEYS, INDEX_VALUES, INDEX_ENTRIES, INDEX_FULL };
struct ast_index_target {
    enum ast_index_target_kind kind;
    const char *column;
};
struct ast_create_index {
    struct ast_name name; /* name NULL: not given; keyspace NULL */
    struct ast_name table;
    bool custom, if_not_exists, has_class;
    uint32_t n_targets;
    struct ast_index_target *targets;
    struct slice using_class; /* USING 'class' */
    struct ast_props props;
};

struct ast_create_view {
    struct ast_name name, table;
    bool if_not_exists;
    uint32_t n_selectors;
    struct ast_selector *selectors;
    struct ast_where where;
    uint32_t n_partition_key, n_clustering;
    const char **partition_key, **clustering;
    struct ast_props props;
};
struct ast_alter_view {
    struct ast_name name;
    bool if_exists;
    struct ast_props props;
};

struct ast_create_function {
    struct ast_name name;
    bool or_replace, if_not_exists, called_on_null;
    uint32_t n_args;
    const char **arg_names;
    struct ast_type **arg_types;
    struct ast_type *returns;
    const char *language;
    struct slice body;
};
struct ast_create_aggregate {
    struct ast_name name;
    bool or_replace, if_not_exists;
    uint32_t n_args;
    struct ast_type **arg_types;
    const char *sfunc, *finalfunc; /* finalfunc may be NULL */
    struct ast_type *stype;
    struct ast_expr *initcond; /* or NULL */
};
struct ast_drop_function { /* and aggregate */
    struct ast_name name;
    bool if_exists, has_args;
    uint32_t n_args;
    struct ast_type **arg_types;
};

struct ast_trigger {
    const char *name;
    struct ast_name table;
    bool if_exists, if_not_exists;
    struct slice using_class; /* CREATE */
};

enum ast_role_option {
    ROLE_PASSWORD = 1, ROLE_HASHED_PASSWORD = 2, ROLE_SUPERUSER = 4, ROLE_LOGIN = 8, ROLE_OPTIONS = 16,
    ROLE_DATACENTERS = 32, ROLE_CIDRS = 64,
};
struct ast_role_options {
    uint32_t given; /* of ast_role_option */
    struct slice password;
    bool superuser, login;
    struct ast_prop_value *options;
    bool all_datacenters, all_cidrs;
    uint32_t n_datacenters, n_cidrs;
    struct slice *datacenters, *cidrs;
};
struct ast_role { /* CREATE, ALTER, DROP of ROLE and USER */
    const char *name;
    bool user, if_exists, if_not_exists;
    struct ast_role_options options;
};

enum ast_permission {
    PERMISSION_CREATE, PERMISSION_ALTER, PERMISSION_DROP, PERMISSION_SELECT, PERMISSION_MODIFY, PERMISSION_AUTHORIZE,
    PERMISSION_DESCRIBE, PERMISSION_EXECUTE, PERMISSION_UNMASK, PERMISSION_SELECT_MASKED,
};
struct ast_permissions { /* n 0: ALL PERMISSIONS */
    uint32_t n;
    enum ast_permission *items;
};
enum ast_resource_kind {
    RESOURCE_NONE,
    RESOURCE_ALL_KEYSPACES,
    RESOURCE_KEYSPACE,
    RESOURCE_ALL_TABLES,
    RESOURCE_TABLE,
    RESOURCE_ALL_ROLES,
    RESOURCE_ROLE,
    RESOURCE_ALL_FUNCTIONS,
    RESOURCE_ALL_FUNCTIONS_IN,
    RESOURCE_FUNCTION,
    RESOURCE_ALL_MBEANS,
    RESOURCE_MBEAN,
    RESOURCE_MBEANS,
};
struct ast_resource {
    enum ast_resource_kind kind;
    struct ast_name name; /* a keyspace or a role is in name.name */
    uint32_t n_args;      /* FUNCTION */
    struct ast_type **arg_types;
    struct slice mbean;
};
struct ast_grant { /* GRANT and REVOKE: of a role when granted_role is set, else of permissions on a resource */
    const char *granted_role;
    struct ast_permissions permissions;
    struct ast_resource resource;
    const char *grantee;
};

enum ast_list_kind { LIST_PERMISSIONS, LIST_ROLES, LIST_USERS };
struct ast_list {
    enum ast_list_kind kind;
    struct ast_permissions permissions;
    struct ast_resource resource;
    const char *of; /* role, or NULL */
    bool norecursive;
};

struct ast_identity {
    struct slice identity;
    const char *role; /* ADD */
    bool if_exists, if_not_exists;
};

struct ast_other {
    union {
        struct ast_truncate truncate;
        struct ast_alter_type alter_type;
        struct ast_restore_table restore;
        struct ast_create_index create_index;
        struct ast_create_view create_view;
        struct ast_alter_view alter_view;
        struct ast_create_function create_function;
        struct ast_create_aggregate create_aggregate;
        struct ast_drop_function drop_function;
        struct ast_trigger trigger;
        struct ast_role role;
        struct ast_grant grant;
        struct ast_list list;
        struct ast_identity identity;
    };
};

/* The table or view that a statement of any kind is about, of a batch the first one's; NULL if there
 * is none. */
const struct ast_name *ast_any_table(const struct ast_stmt *s);
