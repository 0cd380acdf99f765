/* Ctrl-C at a terminal cancels the typed line, the current request, or the remaining pages, but
 * does not end the shell.
 *
 * A signal handler has no argument for an object, so this state is global. SIGINT is blocked except
 * while interrupt_read waits for a key, and between interrupt_begin and interrupt_end. So no signal
 * is lost between a test of the flag and a wait.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

/* Installs the handler. Without it Ctrl-C ends the process, as a script expects. */
void interrupt_init(void);
/* Mark the beginning and the end of a statement. */
void interrupt_begin(void);
void interrupt_end(void);
/* Has Ctrl-C been pressed since interrupt_begin, or in the last interrupt_read? */
bool interrupt_seen(void);
/* Sets the socket of the current request. Ctrl-C shuts that socket down, which ends the wait for
 * the answer. -1 if no request is running. */
void interrupt_guard(int fd);
/* Waits for a byte of standard input, 0 to 255. Returns -1 at the end of input, or Ctrl-C
 * (interrupt_seen). */
int interrupt_read(void);
/* Sleeps for ms milliseconds, or until Ctrl-C. */
void interrupt_sleep_ms(unsigned ms);
/* Asks for a password at the terminal with echo off. Returns -1 if standard input is no terminal or
 * has ended, or Ctrl-C was pressed. */
int interrupt_read_password(char *to, size_t cap, struct err *e) MUST_CHECK;
