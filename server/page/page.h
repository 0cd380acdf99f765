/* The live page of the admin port: its files, which are compiled in (assets/), the JSON for its
 * pictures (view.h), its login (session.h) and its statements (statement.h).
 *
 * Life of a request: page_answer finds its row in the table of addresses. Quick requests are
 * answered on the port's thread. Three threads take the others: statements; reads of system tables and logins; counts
 * of storage. So a slow SELECT delays neither /health nor /ready, and a count delays no login. Each thread has a
 * queue of PAGE_QUEUE requests, and a further request is answered 503.
 *
 * Security: the listener has refused requests of foreign web pages (server/http/origin.h). A POST
 * also needs the header X-Tally, which a foreign page cannot send without asking. Each answer
 * carries a Content-Security-Policy that allows files of this server alone. With roles, everything
 * but the files and the login needs a session, and pictures need SELECT on system_metering. */
#pragma once

#include "server/http/listener.h"
#include "server/page/session.h"
#include "server/page/statement.h"
#include "server/page/view.h"

enum { PAGE_QUEUE = 8, PAGE_BODY = STATEMENT_TEXT };

struct page_options {
    struct view_options view; /* history is the page's */
    struct statement_options statement;
    struct access_control *access; /* NULL for no roles */
    /* Checks a login of a client; on a thread that may block. */
    int (*login)(void *arg, const struct ip_address *client, const char *role, const char *password,
                 struct err *e);
    void *login_arg;
    struct compat_report *report; /* NULL if there is no migration report */
    bool cassandra;
};

struct live_page;
struct live_page *page_new(const struct page_options *o, struct err *e) MUST_CHECK;
/* Answers all requests that wait. Call it before http_stop. No request may begin afterwards. */
void page_stop(struct live_page *p);
void page_free(struct live_page *p);
/* false: the address is none of the page's. On the listener's thread. */
bool page_answer(struct live_page *p, const struct http_request *q, struct http_answer *out);
/* Waits for the running statements. Later ones wait until page_continue. p may be NULL. */
void page_pause(struct live_page *p);
void page_continue(struct live_page *p);
