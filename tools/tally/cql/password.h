/* Asks for a password at the terminal, without showing what is typed. */
#pragma once

#include "base/err.h"

/* -1: standard input is no terminal, or has ended, or Ctrl-C. */
int password_ask(char *to, size_t cap, struct err *e) MUST_CHECK;
