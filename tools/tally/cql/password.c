#include "tools/tally/cql/password.h"

#include <stdio.h>
#include <termios.h>
#include <unistd.h>

#include "tools/tally/cql/interrupt.h"

int password_ask(char *to, size_t cap, struct err *e) {
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
