#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

enum { MB = 1 << 20 };

/* ---- files ---- */

struct files {
    char dir[64], cert[96], key[96];
};

static void write_pair(const struct files *f, const char *name) {
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    assert_true(key && cert);
    X509_NAME *subject = X509_get_subject_name(cert);
    assert_true(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0));
    assert_true(X509_set_issuer_name(cert, subject) && X509_gmtime_adj(X509_getm_notBefore(cert), 0) &&
                X509_gmtime_adj(X509_getm_notAfter(cert), 3600) && X509_set_pubkey(cert, key) &&
                X509_sign(cert, key, EVP_sha256()));
    FILE *to_cert = fopen(f->cert, "w"), *to_key = fopen(f->key, "w");
    assert_true(to_cert && to_key && PEM_write_X509(to_cert, cert) &&
                PEM_write_PrivateKey(to_key, key, NULL, NULL, 0, NULL, NULL));
    assert_true(!fclose(to_cert) && !fclose(to_key));
    X509_free(cert);
    EVP_PKEY_free(key);
}

static struct np_tls *open_tls(struct files *f, const char *name) {
    struct err e = {0};
    strcpy(f->dir, "/tmp/tally-tls-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->cert, sizeof(f->cert), "%s/cert.pem", f->dir);
    snprintf(f->key, sizeof(f->key), "%s/key.pem", f->dir);
    write_pair(f, name);
    struct np_tls *t = np_tls_open(&(struct np_tls_options){.cert = f->cert, .key = f->key}, &e);
    assert_non_null(t);
    return t;
}

static void close_tls(struct np_tls *t, const struct files *f) {
    np_tls_close(t);
    unlink(f->cert), unlink(f->key), rmdir(f->dir);
}

/* ---- clients ---- */

struct client {
    SSL_CTX *ctx;
    SSL *ssl;
    int peer;
    struct np_conn *conn;
};

static struct client client_open(struct harness *h, struct np_tls *tls) {
    struct client c = {.ctx = SSL_CTX_new(TLS_client_method())};
    c.conn = harness_connect_by(h, tls, &c.peer);
    c.ssl = SSL_new(c.ctx);
    assert_true(c.ssl && SSL_set_fd(c.ssl, c.peer));
    SSL_set_connect_state(c.ssl);
    return c;
}

static void client_close(struct client *c) {
    SSL_free(c->ssl);
    SSL_CTX_free(c->ctx);
    npi_conn_unref(c->conn);
    close(c->peer);
}

static bool shake(struct client *c) { return SSL_do_handshake(c->ssl) == 1; }

static void shake_to_the_end(struct harness *h, struct client *c) {
    for (int i = 0; i < 20 && !shake(c); i++) harness_crank(h);
    assert_true(SSL_is_init_finished(c->ssl));
    harness_crank(h);
}

static void server_is(const struct client *c, const char *name) {
    char got[64] = "";
    X509 *cert = SSL_get1_peer_certificate(c->ssl);
    assert_non_null(cert);
    X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, got, sizeof(got));
    assert_string_equal(got, name);
    X509_free(cert);
}

/* ---- tests ---- */

static int has_input(int fd) {
    int n = 0;
    assert_int_equal(ioctl(fd, FIONREAD, &n), 0);
    return n;
}

/* However many shake hands at once, a wake-up takes a few steps of it, and whoever else asks is
 * answered in that same wake-up. */
static void test_tls_handshakes_do_not_hold_up_the_loop(void **state) {
    enum { CROWD = 24 };
    (void)state;
    struct harness h;
    struct files f;
    struct client crowd[CROWD];
    struct buf in, out;
    int innocent;
    struct np_tls *tls = open_tls(&f, "one");
    harness_open(&h, MB, MB);
    struct np_conn *c = harness_connect(&h, &innocent);
    harness_startup(&h, innocent, 4);
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = client_open(&h, tls);
        shake(&crowd[i]); /* its hello waits in the socket */
    }
    buf_init(&in, 0), buf_init(&out, 0);
    harness_query(&in, 0, slice_str("e"));
    assert_int_equal(send(innocent, in.p, in.n, 0), in.n);
    int waited = 0;
    for (; !has_input(innocent) && waited < CROWD; waited++) ev_run(h.loop.ev, EVRUN_NOWAIT);
    int answered = 0;
    for (int i = 0; i < CROWD; i++) answered += has_input(crowd[i].peer) > 0;
    assert_true(waited <= 2); /* events of libev that have no order among them */
    assert_true(answered <= waited * NP_HANDSHAKES_MAX);
    for (int i = 0; i < CROWD; i++) shake_to_the_end(&h, &crowd[i]); /* and none of them is forgotten */
    assert_int_equal(h.loop.metrics.counts[NP_METRIC_HANDSHAKES], CROWD);
    for (int i = 0; i < CROWD; i++) client_close(&crowd[i]);
    npi_conn_unref(c);
    close(innocent);
    buf_fini(&in), buf_fini(&out);
    harness_close(&h);
    close_tls(tls, &f);
}

static void test_tls_what_is_no_tls_is_counted_and_closed(void **state) {
    (void)state;
    struct harness h;
    struct files f;
    struct buf out;
    struct np_tls *tls = open_tls(&f, "one");
    harness_open(&h, MB, MB);
    struct client c = client_open(&h, tls);
    buf_init(&out, 0);
    assert_int_equal(send(c.peer, "\4\0\0\0\5\0\0\0\0", 9, 0), 9);
    assert_false(harness_receive_all(&h, c.peer, &out));
    assert_int_equal(h.loop.metrics.counts[NP_METRIC_HANDSHAKES_FAILED], 1);
    client_close(&c);
    buf_fini(&out);
    harness_close(&h);
    close_tls(tls, &f);
}

static void test_tls_files_are_read_anew_and_open_connections_stay(void **state) {
    (void)state;
    struct harness h;
    struct files f;
    struct err e = {0};
    struct np_tls *tls = open_tls(&f, "one");
    harness_open(&h, MB, MB);
    struct client before = client_open(&h, tls);
    shake_to_the_end(&h, &before);
    server_is(&before, "one");
    assert_false(np_tls_changed(tls));
    write_pair(&f, "two");
    assert_true(np_tls_changed(tls));
    assert_int_equal(np_tls_reload(tls, &e), 0);
    assert_false(np_tls_changed(tls));
    struct client after = client_open(&h, tls);
    shake_to_the_end(&h, &after);
    server_is(&after, "two");
    assert_int_equal(before.conn->state, NP_CONN_NEW);
    assert_int_equal(SSL_write(before.ssl, "\4\0\0\0\1\0\0\0\0", 9), 9); /* STARTUP */
    harness_crank(&h);
    assert_int_equal(before.conn->state, NP_CONN_READY);
    client_close(&before), client_close(&after);
    harness_close(&h);
    close_tls(tls, &f);
}

static void test_tls_files_of_no_use_leave_what_was_there(void **state) {
    (void)state;
    struct harness h;
    struct files f;
    struct err e = {0};
    struct np_tls *tls = open_tls(&f, "one");
    harness_open(&h, MB, MB);
    assert_int_equal(truncate(f.key, 10), 0);
    assert_true(np_tls_changed(tls));
    assert_int_equal(np_tls_reload(tls, &e), -1);
    assert_non_null(strstr(e.text, f.key));
    assert_false(np_tls_changed(tls)); /* nor is it tried, and logged, again and again */
    struct client c = client_open(&h, tls);
    shake_to_the_end(&h, &c);
    server_is(&c, "one");
    client_close(&c);
    harness_close(&h);
    close_tls(tls, &f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tls_handshakes_do_not_hold_up_the_loop),
        cmocka_unit_test(test_tls_what_is_no_tls_is_counted_and_closed),
        cmocka_unit_test(test_tls_files_are_read_anew_and_open_connections_stay),
        cmocka_unit_test(test_tls_files_of_no_use_leave_what_was_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
