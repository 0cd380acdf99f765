/* A running server: engine, ledger, catalogue, roles, database, front, admin port, API and local
 * socket, opened in this order and closed in the reverse one. */
#pragma once

#include "access/credentials.h"
#include "access/system_auth.h"
#include "control_plane/control_plane.h"
#include "keyspaces/report.h"
#include "server/admin.h"
#include "server/admission.h"
#include "server/control_capture.h"
#include "server/control_faults.h"
#include "server/fleet.h"
#include "server/local_socket.h"
#include "server/settings.h"
#include "server/states.h"
#include "server/system_metering.h"
#include "server/system_views.h"

enum { CONTROL_TABLES = 2 }; /* capture, faults */

struct instance {
    struct settings settings;
    struct np_options options;
    struct clock_control clock; /* the clock of the whole server */
    int lock_fd;
    int reserved_fd; /* holds the port until the front listens; then -1 */
    struct compat_report *report; /* --compatibility report */
    struct eng *eng;
    uint8_t incarnation[MEMBER_ID]; /* of this run, among the servers on the store */
    struct membership *membership; /* of the servers on the store; NULL if there is one server */
    struct catalog_listener schema_listener; /* of the membership */
    atomic_bool doubled; /* another server on the store has this one's address, and this one stops */
    struct ledger *ledger;
    struct fleet *fleet; /* the other servers on the store; NULL if there are none */
    struct system_metering metering;
    struct system_auth auth;
    struct capture_recorder *capture;
    struct control_capture control_capture;
    struct faults *faults; /* --control on; NULL means off */
    /* system tables: of system_metering, system_control, system_auth and system_views, in this
     * order */
    struct virtual_table tables[METERING_TABLES + CONTROL_TABLES + AUTH_TABLES + VIEWS_TABLES];
    struct system_views views;
    struct catalog *catalog;
    struct trace_store *traces;
    struct admission *admission;
    struct access_control *access; /* --auth; NULL if none */
    struct access_keys keys;
    struct cql_db *db;
    struct np_tls *tls; /* NULL if none */
    struct np_audit *audit; /* NULL if none */
    _Atomic int64_t slow_us; /* np_options points to it */
    struct np_front *front;
    struct page_history *history; /* of the live page; NULL if the admin port is off */
    struct live_page *page;
    struct admin *admin;
    struct control_plane *control_plane; /* AWS's API; NULL means off */
    struct local_socket *local;
    struct states states;
};

/* Returns -1 if the parts that were opened are closed again. */
int instance_open(struct instance *in, const struct settings *s, struct err *e) MUST_CHECK;
/* Answers the requests in flight, syncs and closes. */
void instance_close(struct instance *in);
