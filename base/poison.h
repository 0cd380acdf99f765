/* Poisons memory that is free to be used again, so that the address sanitizer reports a pointer
 * that outlived it.
 *
 * The sanitizer alone reports only memory that was given back to malloc. Arenas keep their memory
 * and hand it out again: without poison an old pointer reads another row's bytes, and nothing is
 * reported. In builds without the address sanitizer these functions do nothing.
 */
#pragma once

#include <stddef.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define POISONS 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(POISONS)
#define POISONS 1
#endif
#ifndef POISONS
#define POISONS 0
#endif

#if POISONS
#include <sanitizer/asan_interface.h>
#endif

/* Nothing may read or write [p, p + n) until it is unpoisoned. p is aligned to 8 bytes. */
static inline void poison(const void *p, size_t n) {
#if POISONS
    if (n) ASAN_POISON_MEMORY_REGION(p, n);
#else
    (void)p, (void)n;
#endif
}

/* [p, p + n) may be read and written again. */
static inline void unpoison(const void *p, size_t n) {
#if POISONS
    if (n) ASAN_UNPOISON_MEMORY_REGION(p, n);
#else
    (void)p, (void)n;
#endif
}
