/* Asks for a password at the terminal with echo off. */
#pragma once

#include "base/err.h"

/* -1: standard input is no terminal or has ended, or Ctrl-C was pressed. */
int password_ask(char *to, size_t cap, struct err *e) MUST_CHECK;
