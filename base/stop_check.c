#include "base/patience.h"

#include <stddef.h>

static _Thread_local const struct patience *of_thread;

void patience_set(const struct patience *p) { of_thread = p; }

int patience_ask(void) { return of_thread && of_thread->ask ? of_thread->ask(of_thread->arg) : 0; }
