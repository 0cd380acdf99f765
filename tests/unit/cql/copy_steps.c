/* Counts the bytes that our code copies, fills and compares among the steps of base/steps.h: one
 * step for every eight bytes. Linked with --wrap into the tests of cost, which would not see work
 * that is all in memcpy. */
#include <stddef.h>
#include <string.h>

#include "base/steps.h"

#ifdef TALLY_STEPS
#define COUNT(n) steps_add((n) / 8)
#else
#define COUNT(n) ((void)(n))
#endif

void *__real_memcpy(void *to, const void *from, size_t n);
void *__real_memmove(void *to, const void *from, size_t n);
void *__real_memset(void *to, int byte, size_t n);
int __real_memcmp(const void *a, const void *b, size_t n);
void *__wrap_memcpy(void *to, const void *from, size_t n);
void *__wrap_memmove(void *to, const void *from, size_t n);
void *__wrap_memset(void *to, int byte, size_t n);
int __wrap_memcmp(const void *a, const void *b, size_t n);

void *__wrap_memcpy(void *to, const void *from, size_t n) {
    COUNT(n);
    return __real_memcpy(to, from, n);
}

void *__wrap_memmove(void *to, const void *from, size_t n) {
    COUNT(n);
    return __real_memmove(to, from, n);
}

void *__wrap_memset(void *to, int byte, size_t n) {
    COUNT(n);
    return __real_memset(to, byte, n);
}

int __wrap_memcmp(const void *a, const void *b, size_t n) {
    COUNT(n);
    return __real_memcmp(a, b, n);
}
