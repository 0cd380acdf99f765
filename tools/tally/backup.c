/* tally backup: requests a backup from the running server over the local socket in its data folder
 * (server/local_socket.h), then verifies the backup. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/backup.h"
#include "tools/tally/subcommand.h"

struct backup {
    const char *data_dir, *to;
    uint32_t keep;
    bool json;
};

/* Asks the server that uses the data folder for a backup. */
static int ask(const struct backup *b, const char *folder, struct buf *answer, struct err *e) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char line[PATH_MAX + 64];
    ssize_t got;
    int data_dir = open(b->data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (data_dir < 0)
        return err_set(e, ERR_CONFIG, "cannot open the data folder %s: %s", b->data_dir, strerror(errno));
    snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/tallyd.sock", data_dir);
    int n = snprintf(line, sizeof(line), "backup %u %s\n", b->keep, folder);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at))) {
        err_set(e, ERR_CONFIG, "no server answers in the data folder %s: %s", b->data_dir, strerror(errno));
    } else if (send(fd, line, (size_t)n, MSG_NOSIGNAL) != n) {
        err_set(e, ERR_SERVER, "the server does not listen: %s", strerror(errno));
    } else {
        do {
            uint8_t *p = buf_reserve(answer, 1024);
            got = p ? read(fd, p, 1024) : 0;
            if (got > 0) buf_advance(answer, (size_t)got);
        } while (got > 0 || (got < 0 && errno == EINTR));
        buf_u8(answer, 0);
        if (buf_failed(answer)) err_nomem(e);
        else if (answer->n <= 1) err_set(e, ERR_SERVER, "the server has gone away in the middle of the backup");
    }
    if (fd >= 0) close(fd);
    close(data_dir);
    return e->set ? -1 : 0;
}

static int make(const struct backup *b, struct eng_backup *made, struct err *e) {
    char folder[PATH_MAX], here[PATH_MAX];
    struct buf answer;
    /* The server has another working directory, so it gets an absolute path. */
    bool whole = b->to[0] == '/';
    if (!whole && !getcwd(here, sizeof(here)))
        return err_set(e, ERR_CONFIG, "the current folder has no path: %s", strerror(errno));
    int n = snprintf(folder, PATH_MAX, "%s%s%s", whole ? "" : here, whole ? "" : "/", b->to);
    if (n >= PATH_MAX || strchr(b->to, '\n')) return err_set(e, ERR_CONFIG, "the path %s cannot be used", b->to);
    buf_init(&answer, 1 << 16);
    int rc = ask(b, folder, &answer, e);
    const char *json = (const char *)answer.p;
    long long at = 0;
    unsigned long long bytes = 0;
    if (!rc && sscanf(json, "{\"ok\":true,\"backup\":%u,\"made\":%lld,\"files\":%u,\"bytes\":%llu}", &made->number, &at,
                      &made->files, &bytes) != 4) {
        /* extract the error text from the server's JSON, which has a fixed form */
        static const char lead[] = "{\"ok\":false,\"error\":\"";
        const char *text = json + sizeof(lead) - 1, *end = strrchr(json, '"');
        rc = strncmp(json, lead, sizeof(lead) - 1) || end < text
                 ? err_set(e, ERR_SERVER, "the server answers in a way that is not known")
                 : err_set(e, ERR_SERVER, "%.*s", (int)(end - text), text);
    }
    made->made_s = at;
    made->bytes = bytes;
    buf_fini(&answer);
    return rc ? -1 : eng_backup_verify(folder, made->number, e);
}

int tally_backup(int argc, char **argv) {
    struct backup b = {.data_dir = "tally-data"};
    struct eng_backup made;
    struct err e = {0};
    const struct flag flags[] = {
        FLAG_TEXT("data-dir", "DIR", b.data_dir, "the running server's data folder (tally-data)"),
        FLAG_TEXT("to", "DIR", b.to,
             "folder of backups, made when it is not there; table files are shared by the backups in it"),
        FLAG_NUMBER("keep", "N", b.keep, "number of the newest backups to keep; 0: all (0)"),
        FLAG_ON("json", b.json, "print the result as JSON"),
    };
    int rc = flags_read("backup", argc, argv, flags, ARRAY_LEN(flags));
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (!b.to) {
        fprintf(stderr, "tally backup: --to says where; see tally backup --help\n");
        return EXIT_USAGE;
    }
    if (make(&b, &made, &e)) return say_no(b.json, "backup", &e);
    if (b.json)
        printf("{\"ok\":true,\"backup\":%u,\"made\":%lld,\"files\":%u,\"bytes\":%llu}\n", made.number,
               (long long)made.made_s, made.files, (unsigned long long)made.bytes);
    else
        printf("backup %u in %s: %u files, %llu bytes, checksums verified\n", made.number, b.to, made.files,
               (unsigned long long)made.bytes);
    return EXIT_DONE;
}
