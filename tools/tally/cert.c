/* tally cert: makes development certificates: a new authority, one certificate for the server and
 * one for a client. The authority's key is not written, so the folder cannot be used to sign
 * further certificates. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/random.h"
#include "tools/tally/subcommand.h"

enum { DAYS = 365, SERIAL_BYTES = 16, NAMES_MAX = 2048 };

struct cert {
    const char *to, *host, *client;
    uint32_t days;
    bool json;
};

struct pair {
    EVP_PKEY *key;
    X509 *cert;
};

static int no(struct err *e, const char *what) {
    const char *why = ERR_reason_error_string(ERR_get_error());
    return err_set(e, ERR_SERVER, "cannot make %s: %s", what, why ? why : "unknown reason");
}

/* ---- making ---- */

/* Without a signer the certificate is self-signed. */
static int make(struct pair *p, const char *name, uint32_t days, const struct pair *signer,
                const char *const (*extensions)[2], struct err *e) {
    p->key = EVP_EC_gen("P-256");
    p->cert = X509_new();
    unsigned char serial[SERIAL_BYTES];
    if (!p->key || !p->cert) return no(e, "a key");
    if (random_bytes(serial, sizeof(serial), e)) return -1;
    serial[0] &= 0x7f; /* it must not be negative */
    BIGNUM *n = BN_bin2bn(serial, sizeof(serial), NULL);
    bool numbered = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(p->cert));
    BN_free(n);
    X509 *issuer = signer ? signer->cert : p->cert;
    if (!X509_set_version(p->cert, 2) || !numbered || !X509_gmtime_adj(X509_getm_notBefore(p->cert), -3600) ||
        !X509_time_adj_ex(X509_getm_notAfter(p->cert), (int)days, 0, NULL) || !X509_set_pubkey(p->cert, p->key) ||
        !X509_NAME_add_entry_by_txt(X509_get_subject_name(p->cert), "CN", MBSTRING_UTF8, (const unsigned char *)name,
                                    -1, -1, 0) ||
        !X509_set_issuer_name(p->cert, X509_get_subject_name(issuer)))
        return no(e, name);
    for (; (*extensions)[0]; extensions++) {
        X509V3_CTX ctx;
        X509V3_set_ctx(&ctx, issuer, p->cert, NULL, NULL, 0);
        X509_EXTENSION *x = X509V3_EXT_conf_nid(NULL, &ctx, OBJ_txt2nid((*extensions)[0]), (*extensions)[1]);
        bool added = x && X509_add_ext(p->cert, x, -1);
        X509_EXTENSION_free(x);
        if (!added) return no(e, name);
    }
    return X509_sign(p->cert, signer ? signer->key : p->key, EVP_sha256()) ? 0 : no(e, name);
}

static void drop(struct pair *p) {
    EVP_PKEY_free(p->key);
    X509_free(p->cert);
}

/* ---- files ---- */

/* Writes a certificate, or with cert NULL a key. Never overwrites a file, because the existing
 * certificate may be in use. */
static int write_pem(const char *folder, const char *name, X509 *cert, EVP_PKEY *key, struct err *e) {
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, cert ? 0644 : 0600);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f) {
        err_set(e, ERR_CONFIG, "cannot make %s: %s", path, strerror(errno));
        if (fd >= 0) close(fd);
        return -1;
    }
    bool written = cert ? PEM_write_X509(f, cert) : PEM_write_PKCS8PrivateKey(f, key, NULL, NULL, 0, NULL, NULL);
    bool closed = !fclose(f);
    return written && closed ? 0 : err_set(e, ERR_SERVER, "a file could not be written: %s", strerror(errno));
}

static int write_all(const struct cert *c, const struct pair *authority, const struct pair *server,
                     const struct pair *client, struct err *e) {
    if (mkdir(c->to, 0700) && errno != EEXIST)
        return err_set(e, ERR_CONFIG, "cannot make the folder %s: %s", c->to, strerror(errno));
    return write_pem(c->to, "ca.pem", authority->cert, NULL, e) ||
                   write_pem(c->to, "server.pem", server->cert, NULL, e) ||
                   write_pem(c->to, "server-key.pem", NULL, server->key, e) ||
                   write_pem(c->to, "client.pem", client->cert, NULL, e) ||
                   write_pem(c->to, "client-key.pem", NULL, client->key, e)
               ? -1
               : 0;
}

static int run(const struct cert *c, struct err *e) {
    char names[NAMES_MAX];
    struct pair authority = {0}, server = {0}, client = {0};
    /* "db.local,10.0.0.1" as the extension has it: DNS:db.local,IP:10.0.0.1 */
    const char *hosts = c->host;
    size_t n = 0;
    while (*hosts) {
        char name[256];
        unsigned char address[16];
        size_t length = strcspn(hosts, ",");
        if (!length || length >= sizeof(name))
            return err_set(e, ERR_CONFIG, "--host must be names or addresses with commas between them");
        memcpy(name, hosts, length);
        name[length] = 0;
        bool ip = inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
        n += (size_t)snprintf(names + n, NAMES_MAX - n, "%s%s:%s", n ? "," : "", ip ? "IP" : "DNS", name);
        if (n >= NAMES_MAX) return err_set(e, ERR_CONFIG, "--host has too many names");
        hosts += length;
        if (*hosts == ',') hosts++;
    }
    if (!n) return err_set(e, ERR_CONFIG, "--host must not be empty");
    const char *const of_authority[][2] = {{"basicConstraints", "critical,CA:TRUE,pathlen:0"},
                                           {"keyUsage", "critical,keyCertSign,cRLSign"},
                                           {"subjectKeyIdentifier", "hash"},
                                           {0}};
    const char *const of_server[][2] = {{"basicConstraints", "critical,CA:FALSE"},
                                        {"keyUsage", "critical,digitalSignature"},
                                        {"extendedKeyUsage", "serverAuth"},
                                        {"subjectAltName", names},
                                        {"authorityKeyIdentifier", "keyid"},
                                        {0}};
    const char *const of_client[][2] = {{"basicConstraints", "critical,CA:FALSE"},
                                        {"keyUsage", "critical,digitalSignature"},
                                        {"extendedKeyUsage", "clientAuth"},
                                        {"authorityKeyIdentifier", "keyid"},
                                        {0}};
    int rc = make(&authority, "Tally development", c->days, NULL, of_authority, e) ||
                     make(&server, "Tally", c->days, &authority, of_server, e) ||
                     make(&client, c->client, c->days, &authority, of_client, e) ||
                     write_all(c, &authority, &server, &client, e)
                 ? -1
                 : 0;
    drop(&authority), drop(&server), drop(&client);
    return rc;
}

int tally_cert(int argc, char **argv) {
    struct cert c = {.host = "localhost,127.0.0.1,::1", .client = "client", .days = DAYS};
    struct err e = {0};
    const struct flag flags[] = {
        FLAG_TEXT("to", "DIR", c.to,
             "folder for ca.pem, server.pem, server-key.pem, client.pem and client-key.pem; none of them may be there"),
        FLAG_TEXT("host", "NAME,...", c.host, "names and addresses of the server (localhost,127.0.0.1,::1)"),
        FLAG_TEXT("client", "NAME", c.client, "name in the client's certificate (client)"),
        FLAG_NUMBER("days", "N", c.days, "days until they expire (365)"),
        FLAG_ON("json", c.json, "print the result as JSON"),
    };
    int rc = flags_read("cert", argc, argv, flags, ARRAY_LEN(flags));
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (!c.to || !c.days || c.days > 36500) {
        fprintf(stderr, "tally cert: %s; see tally cert --help\n",
                c.to ? "--days must be from 1 to 36500" : "--to says where");
        return EXIT_USAGE;
    }
    if (run(&c, &e)) return say_no(c.json, "cert", &e);
    if (c.json)
        printf("{\"ok\":true,\"ca\":\"ca.pem\",\"cert\":\"server.pem\",\"key\":\"server-key.pem\",\"client_cert\":"
               "\"client.pem\",\"client_key\":\"client-key.pem\"}\n");
    else
        printf("certificates for %s, for %u days, in %s\n  tallyd --tls-cert %s/server.pem --tls-key "
               "%s/server-key.pem\n  clients trust %s/ca.pem\n",
               c.host, c.days, c.to, c.to, c.to, c.to);
    return EXIT_DONE;
}
