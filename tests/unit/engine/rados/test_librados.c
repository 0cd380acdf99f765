/* The rows of librados.def are declared as Ceph's own header declares them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/rados/librados.h"

#if __has_include(<rados/librados.h>)
#include <rados/librados.h>
#define LIBRADOS(result, name, parameters) \
    _Static_assert(__builtin_types_compatible_p(__typeof__(((struct librados *)0)->name), __typeof__(&rados_##name)), \
                   "rados_" #name);
#include "engine/rados/librados.def"
#undef LIBRADOS
_Static_assert((int)LIBRADOS_EQ == (int)LIBRADOS_CMPXATTR_OP_EQ, "comparison");
_Static_assert(LIBRADOS_EXCLUSIVE == LIBRADOS_CREATE_EXCLUSIVE && LIBRADOS_IDEMPOTENT == LIBRADOS_CREATE_IDEMPOTENT,
               "create");
#endif

static void test_the_library_is_loaded_or_named_as_missing(void **state) {
    (void)state;
    struct err e = {0};
    const struct librados *lib = librados_load(&e);
    if (lib) {
        assert_ptr_equal(librados_load(&e), lib);
        assert_false(e.set);
    } else {
        assert_int_equal(e.code, ERR_CONFIG);
        assert_non_null(strstr(e.text, "librados"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_library_is_loaded_or_named_as_missing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
