#include "native_protocol/loop.h"

void npi_loop_wake(struct np_loop *l) { npi_inbox_wake(&l->inbox); }
