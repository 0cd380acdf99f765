/* The keyspace system_auth as in Cassandra: tables of the roles. Registered with the catalogue
 * (system_schema/system_tables/virtual.h). In cassandra mode superusers may write can_login, is_superuser
 * and salted_hash of existing roles (cql/permit.c refuses other roles); all else is read-only. */
#pragma once

#include "access/access.h"
#include "system_schema/system_tables/virtual.h"

/* The source of the tables' roles; must outlive the catalogue. access NULL: the server has no
 * logins, and the tables are empty. */
struct system_auth {
    struct access_control *access;
    bool cassandra_mode;
};

enum system_auth_table {
#define AUTH_TABLE(name, comment, columns) AUTH_TABLE_##name,
#include "access/system_auth.def"
#undef AUTH_TABLE
    AUTH_TABLES
};

void system_auth_tables(struct system_auth *a, struct virtual_table tables[AUTH_TABLES]);
