/* tally cql: a shell for CQL with cqlsh's options, output and exit codes. */
#include <locale.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/tally/cql/interrupt.h"
#include "tools/tally/cql/run.h"
#include "tools/tally/cql/shell.h"
#include "tools/tally/cql/terminal.h"
#include "tools/tally/remote.h"

enum { CONNECT_TIMEOUT_S = 5, REQUEST_TIMEOUT_S = 10, DAY_S = 86400 };
/* The exit codes of cqlsh; a wrong command line ends with EXIT_USAGE, as in cqlsh. */
enum { ENDS_WELL = 0, ENDS_UNCONNECTED = 1, ENDS_WITH_ERRORS = 2 };

struct cql_flags {
    const char *execute, *file, *keyspace, *host, *user, *password, *ca, *region, *encoding, *cql_version;
    uint32_t port, protocol, connect_timeout, request_timeout;
    bool tls, insecure, sigv4, color, no_color, tty, charge, wait, version, debug;
};

static int read_options(const struct cql_flags *f, struct shell *s, struct err *e) {
    const char *host = f->host ? f->host : getenv("CQLSH_HOST"), *port = getenv("CQLSH_PORT");
    uint32_t number = port ? (uint32_t)strtoul(port, NULL, 10) : f->tls ? REMOTE_TLS_PORT : REMOTE_PORT;
    /* The port is that of --port, else that of HOST:PORT, else CQLSH_PORT. */
    uint16_t at = (uint16_t)number;
    if (number > UINT16_MAX || f->port > UINT16_MAX) number = 0;
    else if (client_address(host ? host : "127.0.0.1", s->host, &at, e)) return -1;
    else number = f->port ? f->port : at;
    if (!number) return err_set(e, ERR_CONFIG, "the port must be 1 to 65535");
    if (f->protocol && (f->protocol < NP_VERSION_MIN || f->protocol > NP_VERSION_MAX))
        return err_set(e, ERR_CONFIG, "--protocol-version must be %d to %d, not %u", NP_VERSION_MIN, NP_VERSION_MAX,
                       f->protocol);
    if (f->connect_timeout > DAY_S || f->request_timeout > DAY_S)
        return err_set(e, ERR_CONFIG, "a timeout must be at most a day");
    if (f->execute && f->file) return err_set(e, ERR_CONFIG, "--execute and --file cannot be given together");
    if (f->keyspace && strlen(f->keyspace) >= sizeof(s->keyspace))
        return err_set(e, ERR_CONFIG, "the name of the keyspace is too long");
    s->options.version = (uint8_t)f->protocol;
    s->options.link = (struct link_options){
        .host = s->host, .port = (uint16_t)number, .tls = f->tls, .insecure = f->insecure,
        .ca = f->ca ? f->ca : getenv("SSL_CERTFILE"),
        .timeout_ms = (f->connect_timeout ? f->connect_timeout : CONNECT_TIMEOUT_S) * 1000,
        .answer_timeout_ms = (f->request_timeout ? f->request_timeout : REQUEST_TIMEOUT_S) * 1000};
    snprintf(s->keyspace, sizeof(s->keyspace), "%s", f->keyspace ? f->keyspace : "");
    struct client_options *o = &s->options;
    const char *password = f->password ? f->password : getenv("TALLY_PASSWORD");
    if (f->password && !f->user) return err_set(e, ERR_CONFIG, "--password needs --username");
    if (f->user) {
        snprintf(s->user, sizeof(s->user), "%s", f->user);
        if (password) snprintf(s->password, sizeof(s->password), "%s", password);
        else if (interrupt_read_password(s->password, sizeof(s->password), e)) return -1;
        o->user = s->user;
        o->password = s->password;
    }
    return f->sigv4 ? remote_read_sigv4(o, f->region, e) : 0;
}

static int run(const struct cql_flags *f, struct shell *s, struct err *e) {
    bool at_terminal = isatty(STDIN_FILENO) && !f->execute && !f->file;
    s->terminal = at_terminal || f->tty;
    s->charge = f->charge || at_terminal;
    const char *wait = getenv("TALLY_CQL_WAIT");
    s->wait = f->wait || (wait && !strcmp(wait, "on"));
    if (shell_connect(s, e)) {
        fprintf(stderr, "Connection error: %s\n", e->text);
        return ENDS_UNCONNECTED;
    }
    int rc = 0;
    if (f->execute) {
        s->source = "<stdin>";
        s->line = 1;
        s->terminal = false;
        run_text(s, slice_str(f->execute), true);
    } else if (at_terminal) {
        rc = terminal_run(s, e);
    } else {
        rc = run_file(s, f->file ? f->file : "-", e);
    }
    if (rc) {
        fprintf(stderr, "tally cql: %s\n", e->text);
        return ENDS_UNCONNECTED;
    }
    return s->failed && !at_terminal ? ENDS_WITH_ERRORS : ENDS_WELL;
}

int tally_cql(int argc, char **argv) {
    struct cql_flags f = {0};
    const struct flag flags[] = {
        {.name = "host", .argument = "HOST[:PORT]", .text = &f.host, .position = 1,
         .help = "the server (CQLSH_HOST of the environment, or 127.0.0.1); also the first argument without a flag"},
        {.name = "port", .argument = "PORT", .number = &f.port, .position = 2,
         .help = "its port (CQLSH_PORT, or 9042, with --ssl 9142); also the second such argument"},
        {.name = "execute", .letter = 'e', .argument = "CQL", .text = &f.execute,
         .help = "runs these statements and exits; also -e"},
        {.name = "file", .letter = 'f', .argument = "FILE", .text = &f.file,
         .help = "runs the statements of a file and exits, - is standard input; also -f"},
        {.name = "keyspace", .letter = 'k', .argument = "NAME", .text = &f.keyspace,
         .help = "enters this keyspace; also -k"},
        {.name = "username", .letter = 'u', .argument = "NAME", .text = &f.user,
         .help = "logs in with a password: --password, TALLY_PASSWORD in the environment, or typed; also -u"},
        {.name = "password", .letter = 'p', .argument = "TEXT", .text = &f.password,
         .help = "others on this machine may see it in the list of processes; also -p"},
        FLAG_ON("sigv4", f.sigv4,
             "logs in with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of the environment"),
        FLAG_TEXT("region", "NAME", f.region, "AWS Region of --sigv4 (AWS_REGION of the environment)"),
        FLAG_ON("ssl", f.tls, "TLS; the server's certificate must be for HOST"),
        FLAG_TEXT("ca", "FILE", f.ca,
             "certificates (PEM) to trust instead of the machine's (SSL_CERTFILE of the environment)"),
        FLAG_ON("insecure", f.insecure, "do not verify the server's certificate"),
        FLAG_NUMBER("protocol-version", "VERSION", f.protocol,
             "3, 4 or 5 of the native protocol (the newest that both speak)"),
        FLAG_NUMBER("connect-timeout", "SECONDS", f.connect_timeout, "for a connection (5)"),
        FLAG_NUMBER("request-timeout", "SECONDS", f.request_timeout, "for an answer (10)"),
        FLAG_ON("wait", f.wait,
             "on Amazon Keyspaces: waits after CREATE, ALTER and DROP until they are carried out (TALLY_CQL_WAIT=on "
             "in the environment)"),
        FLAG_ON("charge", f.charge,
             "shows what each statement was charged; at a terminal it is always shown, until CHARGE OFF"),
        {.name = "tty", .letter = 't', .on = &f.tty,
         .help = "shows results as at a terminal, with ---MORE--- between pages; also -t"},
        FLAG_ON("no-color", f.no_color, "taken for the sake of scripts: the output never has colours"),
        {.name = "color", .letter = 'C', .on = &f.color, .help = "the same"},
        FLAG_TEXT("cqlversion", "VERSION", f.cql_version, "the same: a server has one version of CQL"),
        FLAG_TEXT("encoding", "NAME", f.encoding, "the same: texts are UTF-8"),
        FLAG_ON("debug", f.debug, "the same"),
        {.name = "version", .letter = 'v', .on = &f.version, .help = "prints the version and exits; also -v"}};
    struct err e = {0};
    struct shell s;
    int rc = flags_read("cql", argc, argv, flags, ARRAY_LEN(flags));
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (f.version) {
        printf("tally cql %s\n", TALLY_VERSION);
        return EXIT_DONE;
    }
    setlocale(LC_CTYPE, "C.UTF-8"); /* CQL texts are UTF-8 in every locale */
    shell_init(&s);
    rc = read_options(&f, &s, &e) ? say_wrong(false, "cql", &e) : run(&f, &s, &e);
    shell_fini(&s);
    return rc;
}
