/* Ctrl-C at a terminal: gives up the line that is typed, the request that is under way, or the
 * pages that are still to come, and never the shell itself.
 *
 * A signal handler knows no object, so this state is the process's. SIGINT is blocked but for the
 * time in which the handler is of use: while interrupt_read waits for a key, and between
 * interrupt_begin and interrupt_end. So no Ctrl-C falls between a test of the flag and a wait.
 */
#pragma once

#include <stdbool.h>

/* From now on Ctrl-C is caught. Until then it ends the process, as it should for a script. */
void interrupt_init(void);
/* A statement begins, ends. */
void interrupt_begin(void);
void interrupt_end(void);
/* Has Ctrl-C been pressed since interrupt_begin, or in the last interrupt_read? */
bool interrupt_seen(void);
/* While a request is under way on this socket, Ctrl-C shuts the socket down, which ends the wait
 * for an answer and tells the server that nobody waits; -1: no request is. */
void interrupt_guard(int fd);
/* Waits for a byte of standard input: 0 to 255; -1: there are no more, or Ctrl-C (interrupt_seen). */
int interrupt_read(void);
/* Waits so long, or until Ctrl-C. */
void interrupt_sleep_ms(unsigned ms);
