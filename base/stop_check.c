#include "base/stop_check.h"

#include <stddef.h>

static _Thread_local const struct stop_check *of_thread;

void stop_check_set(const struct stop_check *c) { of_thread = c; }

int stop_check_run(void) { return of_thread && of_thread->check ? of_thread->check(of_thread->arg) : 0; }
