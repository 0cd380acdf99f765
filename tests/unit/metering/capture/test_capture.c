/* What is recorded is read again; what is damaged is told; and who pays when the recording cannot keep up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "metering/capture/digest.h"
#include "metering/capture/reader.h"
#include "metering/capture/recorder.h"

static char folder[64], path[96];

static int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof(folder), "%s", "/tmp/tally_capture_XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/c.tcap", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    char before[100];
    snprintf(before, sizeof(before), "%s.1", path);
    unlink(path);
    unlink(before);
    return rmdir(folder);
}

static const struct capture_statement statement = {.id = {(const uint8_t *)"0123456789abcdef", 16},
                                                   .keyspace = {(const uint8_t *)"ks", 2},
                                                   .text = {(const uint8_t *)"SELECT 1", 8}};

static struct capture_request request_of(uint64_t n, size_t body) {
    static uint8_t zeros[1 << 20];
    return (struct capture_request){.began_us = clock_wall_us(&clock_real),
                                    .took_us = n,
                                    .connection = n % 7,
                                    .version = 4,
                                    .opcode = 10,
                                    .read_halves = n,
                                    .keyspace = slice_str("ks"),
                                    .body = slice_of(zeros, body)};
}

static struct capture_recorder *recorder(const struct capture_options *o) {
    struct capture_options with = o ? *o : (struct capture_options){0};
    struct err e = {0};
    with.clock = &clock_real;
    struct capture_recorder *r = capture_recorder_new(&with, &e);
    assert_non_null(r);
    return r;
}

/* Reads the file to its end; the requests in it. */
static uint64_t count(uint64_t *dropped, uint64_t *statements) {
    struct capture_reader r;
    struct capture_record record;
    struct err e = {0};
    uint64_t n = 0;
    *dropped = *statements = 0;
    assert_int_equal(capture_reader_open(&r, path, &e), 0);
    enum capture_got got;
    while ((got = capture_reader_next(&r, &record, &e)) == CAPTURE_GOT_RECORD) {
        if (record.kind == CAPTURE_DROPPED) *dropped += record.dropped;
        if (record.kind == CAPTURE_STATEMENT) ++*statements;
        if (record.kind == CAPTURE_REQUEST) n++;
    }
    assert_int_equal(got, CAPTURE_GOT_END);
    capture_reader_close(&r);
    return n;
}

static void test_what_is_recorded_is_read_again(void **state) {
    (void)state;
    struct capture_recorder *r = recorder(NULL);
    struct err e = {0};
    uint64_t dropped, statements;
    struct stat st;
    assert_false(capture_is_on(capture_switch_of(r)));
    assert_int_equal(capture_start(r, path, &(struct capture_wish){0}, &e), 0);
    assert_true(capture_is_on(capture_switch_of(r)));
    for (uint64_t i = 0; i < 1000; i++) {
        struct capture_request q = request_of(i, i);
        capture_post(r, &statement, 1, &q);
    }
    assert_int_equal(capture_stop(r, "enough", &e), 0);
    assert_int_equal(count(&dropped, &statements), 1000);
    assert_int_equal(dropped, 0);
    assert_int_equal(statements, 1);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(capture_stop(r, "again", &e), -1);
    capture_recorder_free(r);
}

/* ---- a disk that does not answer ---- */

static sem_t gate;
static _Atomic bool closed;

static ssize_t write_when_open(int fd, const void *p, size_t n) {
    if (atomic_load(&closed)) {
        sem_wait(&gate);
        sem_post(&gate);
    }
    return write(fd, p, n);
}

/* The one who posts is never kept waiting: it gets through all of its requests while the disk
 * answers none, and what found no room is counted to the last one. */
static void test_a_full_queue_drops_and_counts_and_keeps_nobody_waiting(void **state) {
    (void)state;
    enum { N = 20000, BODY = 200 };
    struct capture_recorder *r = recorder(
        &(struct capture_options){.queue_bytes = 256 << 10, .write = write_when_open});
    struct capture_status s;
    struct err e = {0};
    uint64_t dropped, statements;
    sem_init(&gate, 0, 0);
    atomic_store(&closed, true);
    assert_int_equal(capture_start(r, path, &(struct capture_wish){0}, &e), 0);
    for (uint64_t i = 0; i < N; i++) {
        struct capture_request q = request_of(i, BODY);
        capture_post(r, &statement, 1, &q);
    }
    capture_status_get(r, &s);
    assert_true(s.dropped > N / 2);
    /* the queue's bytes, and those that the writer holds */
    assert_true(s.requests >= 500 && s.requests + s.dropped == N);
    atomic_store(&closed, false);
    sem_post(&gate);
    for (uint64_t i = 0; s.on && i < 10000; i++) { /* there is room again */
        struct capture_request q = request_of(i, BODY);
        uint64_t before = s.requests;
        capture_post(r, &statement, 1, &q);
        capture_status_get(r, &s);
        if (s.requests > before) break;
        usleep(1000);
    }
    assert_int_equal(capture_stop(r, "enough", &e), 0);
    capture_status_get(r, &s);
    assert_int_equal(count(&dropped, &statements), s.requests);
    assert_int_equal(dropped, s.dropped);
    capture_recorder_free(r);
    sem_destroy(&gate);
}

static ssize_t write_never(int fd, const void *p, size_t n) {
    (void)fd, (void)p, (void)n;
    errno = ENOSPC;
    return -1;
}

static void test_a_full_disk_ends_it_with_its_reason(void **state) {
    (void)state;
    struct capture_recorder *r = recorder(&(struct capture_options){.write = write_never});
    struct capture_status s;
    struct err e = {0};
    assert_int_equal(capture_start(r, path, &(struct capture_wish){0}, &e), 0);
    do {
        usleep(1000);
        capture_status_get(r, &s);
    } while (s.on);
    assert_string_equal(s.reason, "No space left on device");
    struct capture_request q = request_of(1, 10);
    capture_post(r, &statement, 1, &q); /* goes nowhere, and harms nobody */
    assert_int_equal(capture_stop(r, "", &e), -1);
    capture_recorder_free(r);
}

static void test_the_bound_of_a_file_holds(void **state) {
    (void)state;
    for (int rotates = 0; rotates < 2; rotates++) {
        struct capture_recorder *r = recorder(NULL);
        struct capture_status s = {.on = true};
        struct err e = {0};
        struct stat st, before = {0};
        char first[100];
        snprintf(first, sizeof(first), "%s.1", path);
        assert_int_equal(capture_start(r, path,
                                       &(struct capture_wish){.max_bytes = CAPTURE_FILE_MIN, .rotates = rotates}, &e),
                         0);
        for (uint64_t i = 0; i < 3000 && s.on; i++) {
            struct capture_request q = request_of(i, 2000);
            capture_post(r, &statement, 1, &q);
            if (i % 50 == 0) usleep(2000);
            capture_status_get(r, &s);
        }
        assert_int_equal(capture_stop(r, "enough", &e), rotates ? 0 : -1);
        capture_status_get(r, &s);
        assert_int_equal(stat(path, &st), 0);
        if (rotates) assert_int_equal(stat(first, &before), 0);
        assert_true(st.st_size + before.st_size <= CAPTURE_FILE_MIN);
        assert_true(rotates ? s.part > 0 : strstr(s.reason, "bound") != NULL);
        uint64_t dropped, statements;
        assert_true(count(&dropped, &statements) > 0);
        assert_int_equal(statements, 1); /* each file stands for itself */
        capture_recorder_free(r);
        unlink(path);
        unlink(first);
    }
    close(open(path, O_CREAT | O_WRONLY, 0600)); /* for the one who tidies up */
}

static void test_a_file_that_is_there_is_not_written_over(void **state) {
    (void)state;
    struct capture_recorder *r = recorder(NULL);
    struct err e = {0};
    close(open(path, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(capture_start(r, path, &(struct capture_wish){0}, &e), -1);
    assert_non_null(strstr(e.text, "is there already"));
    capture_recorder_free(r);
}

/* ---- damage ---- */

static size_t make_file(struct buf *out) {
    const struct capture_header h = {.started_us = 1000000, .size_model = 1, .timestamp_size = 20};
    buf_init(out, 0);
    capture_put_header(out, &h);
    size_t n = 0;
    capture_put_record(out, &h, &(struct capture_record){.kind = CAPTURE_STATEMENT, .statement = statement});
    for (; n < 20; n++) {
        struct capture_request q = request_of(n, n * 3);
        q.began_us = 1000000 + (int64_t)n;
        capture_put_record(out, &h, &(struct capture_record){.kind = CAPTURE_REQUEST, .request = q});
    }
    capture_put_record(out, &h, &(struct capture_record){.kind = CAPTURE_END, .reason = slice_str("done")});
    return n;
}

static enum capture_got read_all(struct slice file, uint64_t *n, struct err *e) {
    struct capture_reader r;
    struct capture_record record;
    *n = 0;
    if (capture_reader_of(&r, "c.tcap", file, e)) return CAPTURE_GOT_DAMAGE;
    enum capture_got got;
    while ((got = capture_reader_next(&r, &record, e)) == CAPTURE_GOT_RECORD) *n += record.kind == CAPTURE_REQUEST;
    return got;
}

/* Cut anywhere it names file and offset, and gives the requests before; nothing that was not written is ever read. */
static void test_cut_anywhere_it_says_where(void **state) {
    (void)state;
    struct buf file;
    uint64_t n, before = 0;
    size_t all = make_file(&file);
    for (size_t at = 0; at < file.n; at++) {
        struct err e = {0};
        assert_int_equal(read_all(slice_of(file.p, at), &n, &e), CAPTURE_GOT_DAMAGE);
        assert_true(!strncmp(e.text, "c.tcap: offset ", 15));
        assert_true(n >= before && n <= all);
        before = n;
    }
    struct err e = {0};
    assert_int_equal(read_all(buf_slice(&file), &n, &e), CAPTURE_GOT_END);
    assert_int_equal(n, all);
    assert_int_equal(before, all);
    buf_fini(&file);
}

static void test_any_flipped_bit_is_found(void **state) {
    (void)state;
    struct buf file;
    uint64_t n;
    make_file(&file);
    for (size_t bit = 0; bit < file.n * 8; bit++) {
        struct err e = {0};
        file.p[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(read_all(buf_slice(&file), &n, &e), CAPTURE_GOT_DAMAGE);
        file.p[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    buf_fini(&file);
}

/* ---- digests ---- */

/* The vector of the paper's appendix A. */
static void test_hash_is_siphash(void **state) {
    (void)state;
    const struct capture_key k = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
    uint8_t message[15];
    for (uint8_t i = 0; i < 15; i++) message[i] = i;
    assert_true(capture_hash(&k, slice_of(message, sizeof(message))) == UINT64_C(0xa129ca6149be45e5));
}

static void test_digest_keeps_lengths_and_equality(void **state) {
    (void)state;
    struct capture_key k;
    struct err e = {0};
    assert_int_equal(capture_key_random(&k, &e), 0);
    struct capture_digest d = {.consistency = 6, .page_size = 100, .n_statements = 2}, got;
    struct capture_digest_statement s;
    struct buf b;
    int32_t n[3];
    uint64_t hash[3];
    buf_init(&b, 0);
    capture_put_digest(&b, &d);
    capture_put_digest_statement(&b, statement.id, (struct slice){0}, 3);
    capture_put_digest_value(&b, &k, 5, (const uint8_t *)"alpha");
    capture_put_digest_value(&b, &k, -1, NULL);
    capture_put_digest_value(&b, &k, 5, (const uint8_t *)"alpha");
    capture_put_digest_statement(&b, (struct slice){0}, slice_str("SELECT ?"), 0);
    struct rd in = rd_of(buf_slice(&b));
    assert_int_equal(capture_get_digest(&in, &got), 0);
    assert_int_equal(got.page_size, 100);
    assert_int_equal(capture_get_digest_statement(&in, &s), 0);
    assert_true(slice_eq(s.id, statement.id));
    for (int i = 0; i < 3; i++) assert_int_equal(capture_get_digest_value(&s.values, &n[i], &hash[i]), 0);
    assert_true(n[0] == 5 && n[1] == -1 && n[2] == 5 && hash[0] == hash[2] && hash[0]);
    assert_int_equal(capture_get_digest_statement(&in, &s), 0);
    assert_true(!s.id.p && slice_is(s.text, "SELECT ?"));
    assert_int_equal(rd_left(&in), 0);
    buf_fini(&b);
}

static void test_a_fifo_is_refused_and_does_not_wait_for_a_writer(void **state) {
    struct capture_reader r;
    struct err e = {0};
    (void)state;
    (void)unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(capture_reader_open(&r, path, &e), -1);
    assert_non_null(strstr(e.text, "it is not a regular file"));
    assert_int_equal(unlink(path), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_recorded_is_read_again, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_a_full_queue_drops_and_counts_and_keeps_nobody_waiting, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_a_full_disk_ends_it_with_its_reason, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_the_bound_of_a_file_holds, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_a_file_that_is_there_is_not_written_over, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_a_fifo_is_refused_and_does_not_wait_for_a_writer, make_folder,
                                        remove_folder),
        cmocka_unit_test(test_cut_anywhere_it_says_where),
        cmocka_unit_test(test_any_flipped_bit_is_found),
        cmocka_unit_test(test_hash_is_siphash),
        cmocka_unit_test(test_digest_keeps_lengths_and_equality),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
