#include "tools/tally/cql/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

static volatile sig_atomic_t seen, guarded = -1;
static bool catches;

static void on_interrupt(int signal) {
    int before = errno;
    (void)signal;
    seen = 1;
    if (guarded >= 0) shutdown(guarded, SHUT_RDWR);
    errno = before;
}

static void set_blocked(bool blocked) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigprocmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

void interrupt_init(void) {
    struct sigaction a = {.sa_handler = on_interrupt};
    set_blocked(true);
    sigaction(SIGINT, &a, NULL);
    catches = true;
}

void interrupt_begin(void) {
    seen = 0;
    if (catches) set_blocked(false);
}

void interrupt_end(void) {
    if (catches) set_blocked(true);
}

bool interrupt_seen(void) { return seen != 0; }
void interrupt_guard(int fd) { guarded = fd; }

/* Polls with SIGINT unblocked if the handler is installed. */
static int wait_for(struct pollfd *p, nfds_t n, const struct timespec *time) {
    sigset_t set;
    sigprocmask(SIG_BLOCK, NULL, &set);
    if (catches) sigdelset(&set, SIGINT);
    return ppoll(p, n, time, &set);
}

int interrupt_read(void) {
    unsigned char c;
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    seen = 0;
    for (;;) {
        if (wait_for(&p, 1, NULL) < 0) {
            if (errno != EINTR || seen) return -1;
            continue;
        }
        ssize_t n = read(STDIN_FILENO, &c, 1);
        if (n == 1) return c;
        if (n == 0 || errno != EINTR) return -1;
    }
}

void interrupt_sleep_ms(unsigned ms) {
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    wait_for(NULL, 0, &time);
}

int interrupt_read_password(char *to, size_t cap, struct err *e) {
    struct termios before, silent;
    size_t n = 0;
    int c;
    if (tcgetattr(STDIN_FILENO, &before))
        return err_set(e, ERR_CONFIG, "a password is needed, and there is no terminal to ask for it");
    silent = before;
    silent.c_lflag &= ~(tcflag_t)ECHO;
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent);
    fprintf(stderr, "Password: ");
    while ((c = interrupt_read()) >= 0 && c != '\n')
        if (n + 1 < cap) to[n++] = (char)c;
    to[n] = 0;
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    fprintf(stderr, "\n");
    return c < 0 ? err_set(e, ERR_CONFIG, "no password was given") : 0;
}
