/* Sharing and claiming the slots of rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/slot.h"

static int setup(void **state) {
    struct engi_slots *s = calloc(1, sizeof(*s));
    engi_slots_init(s);
    return *state = s, 0;
}

static int teardown(void **state) {
    engi_slots_fini(*state);
    free(*state);
    return 0;
}

static void test_only_the_lone_sharer_claims(void **state) {
    struct engi_slots *s = *state;
    engi_slot_share(s, 7);
    engi_slot_share(s, 7 + ENGI_SLOTS); /* another row of the slot */
    assert_false(engi_slot_claim(s, 7));
    engi_slot_leave(s, 7);
    assert_true(engi_slot_claim(s, 7));
    assert_false(engi_slot_claim(s, 7));
    assert_false(engi_slot_claim_free(s, 7));
    engi_slot_share(s, 8); /* a neighbour is free */
    assert_false(engi_slot_claim_free(s, 8));
    engi_slot_leave(s, 8);
    engi_slot_release(s, 7);
    assert_true(engi_slot_claim_free(s, 7));
    engi_slot_release(s, 7);
    assert_int_equal(s->waits, 0);
}

static void test_newest_only_rises(void **state) {
    struct engi_slots *s = *state;
    engi_slot_share(s, 7);
    engi_slot_raise(s, 7, 10);
    engi_slot_raise(s, 7, 5);
    assert_false(engi_slot_before(s, 7, 10));
    assert_true(engi_slot_before(s, 7, 11));
    engi_slot_leave(s, 7);
}

static void *share_and_leave(void *arg) {
    struct engi_slots *s = arg;
    engi_slot_share(s, 7);
    engi_slot_leave(s, 7);
    return NULL;
}

static void test_sharers_wait_for_a_claim_and_are_counted(void **state) {
    struct engi_slots *s = *state;
    pthread_t threads[3];
    assert_true(engi_slot_claim_free(s, 7));
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, share_and_leave, s), 0);
    while (atomic_load(&s->waiting) < 3) usleep(100);
    engi_slot_release(s, 7);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    assert_int_equal(s->waits, 3);
    assert_true(s->waited_us > 0);
    assert_true(engi_slot_claim_free(s, 7));
    engi_slot_release(s, 7);
}

static void test_claims_ended_together_wake_all_who_wait(void **state) {
    struct engi_slots *s = *state;
    pthread_t threads[3];
    for (uint64_t hash = 5; hash < 8; hash++) assert_true(engi_slot_claim_free(s, hash));
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, share_and_leave, s), 0);
    while (atomic_load(&s->waiting) < 3) usleep(100);
    for (uint64_t hash = 5; hash < 8; hash++) engi_slot_end_claim(s, hash);
    engi_slots_wake(s);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    assert_int_equal(s->waits, 3);
    assert_int_equal(atomic_load(&s->waiting), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_only_the_lone_sharer_claims, setup, teardown),
        cmocka_unit_test_setup_teardown(test_newest_only_rises, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sharers_wait_for_a_claim_and_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_claims_ended_together_wake_all_who_wait, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
