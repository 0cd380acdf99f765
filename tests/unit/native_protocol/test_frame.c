#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "native_protocol/compress.h"
#include "native_protocol/segment.h"

static struct slice header(uint8_t *p, uint8_t version, uint8_t opcode, uint32_t length) {
    p[0] = version, p[1] = 0, p[2] = 0x12, p[3] = 0x34, p[4] = opcode;
    store_u32(p + 5, length);
    return slice_of(p, NP_HEADER);
}

static void test_envelope_decodes_in_place(void **state) {
    (void)state;
    uint8_t in[16] = {0};
    struct err e = {0};
    struct np_envelope env;
    header(in, 4, NP_QUERY, 5);
    assert_int_equal(np_envelope_decode(slice_of(in, 16), NP_VERSION_MAX, 100, &env, &e), 14);
    assert_int_equal(env.stream, 0x1234);
    assert_int_equal(env.opcode, NP_QUERY);
    assert_ptr_equal(env.body.p, in + 9);
    assert_int_equal(env.body.n, 5);
}

static void test_envelope_needs_more_at_every_cut(void **state) {
    (void)state;
    uint8_t in[14] = {0};
    struct err e = {0};
    struct np_envelope env;
    header(in, 3, NP_QUERY, 5);
    for (size_t n = 0; n < sizeof(in); n++)
        assert_int_equal(np_envelope_decode(slice_of(in, n), NP_VERSION_MAX, 100, &env, &e), NP_NEED_MORE);
    assert_false(e.set);
}

static void test_envelope_version_refused_on_the_first_byte(void **state) {
    (void)state;
    struct err e = {0};
    struct np_envelope env;
    assert_int_equal(np_envelope_decode(slice_of("\x42", 1), NP_VERSION_MAX, 100, &env, &e), NP_BAD);
    assert_int_equal(env.version, 66);
    assert_int_equal(e.code, ERR_PROTOCOL);
    assert_string_equal(e.text,
                        "Invalid or unsupported protocol version (66); supported versions are (3/v3, 4/v4, 5/v5)");
}

static void test_envelope_of_a_version_that_is_not_offered_is_refused(void **state) {
    (void)state;
    uint8_t in[2] = {5, 0};
    struct np_envelope env;
    for (in[0] = 5; in[0] <= NP_VERSION_BETA; in[0]++)
        for (in[1] = 0; in[1] <= NP_FLAG_BETA; in[1] += NP_FLAG_BETA)
            for (size_t n = 1; n <= sizeof(in); n++) {
                struct err e = {0};
                char words[128];
                snprintf(words, sizeof(words),
                         "Invalid or unsupported protocol version (%u); supported versions are (3/v3, 4/v4)", in[0]);
                assert_int_equal(np_envelope_decode(slice_of(in, n), 4, 100, &env, &e), NP_BAD);
                assert_string_equal(e.text, words);
            }
}

static void test_envelope_too_big_keeps_the_header(void **state) {
    (void)state;
    uint8_t in[9];
    struct err e = {0};
    struct np_envelope env;
    assert_int_equal(np_envelope_decode(header(in, 4, NP_QUERY, 101), NP_VERSION_MAX, 100, &env, &e), NP_TOO_BIG);
    assert_int_equal(env.stream, 0x1234);
    assert_int_equal(env.length, 101);
    e.set = false;
    assert_int_equal(np_envelope_decode(header(in, 4, NP_QUERY, 0xffffffff), NP_VERSION_MAX, 100, &env, &e), NP_BAD);
    e.set = false;
    assert_int_equal(np_envelope_decode(header(in, 0x84, NP_QUERY, 0), NP_VERSION_MAX, 100, &env, &e), NP_BAD);
}

/* A header seen on the wire of Cassandra 5.0: a self-contained segment of 9 bytes. */
static void test_crc24_matches_known_header(void **state) {
    (void)state;
    uint8_t h[3] = {0x09, 0x00, 0x02};
    struct buf b;
    buf_init(&b, 0);
    uint8_t env[9] = {0x85, 0, 0, 0, 2, 0, 0, 0, 0};
    uint32_t left = 0;
    np_segment_encode(slice_of(env, 9), false, &left, &b);
    assert_int_equal(b.n, 3 + 3 + 9 + 4);
    assert_memory_equal(b.p, h, 3);
    uint32_t crc = np_crc24(h, 3);
    assert_int_equal(b.p[3] | b.p[4] << 8 | b.p[5] << 16, crc);
    buf_fini(&b);
}

static size_t put_envelope(struct buf *b, size_t n, uint8_t fill) {
    size_t at = np_envelope_begin(b, 5, 7, NP_RESULT);
    uint8_t *p = buf_reserve(b, n ? n : 1);
    for (size_t i = 0; i < n; i++) p[i] = (uint8_t)(fill + i / 1000);
    buf_advance(b, n);
    np_envelope_end(b, at, 0);
    return at;
}

/* Envelopes of several sizes survive the way through segments, whole. */
static void round_trip(bool compressed) {
    struct buf plain, wire, scratch, back;
    struct err e = {0};
    buf_init(&plain, 0), buf_init(&wire, 0), buf_init(&scratch, 0), buf_init(&back, 0);
    size_t sizes[] = {0, 10, NP_SEGMENT_MAX - 9, 3, 400000, 5, NP_SEGMENT_MAX, 1};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) put_envelope(&plain, sizes[i], (uint8_t)i);
    uint32_t left = 0;
    np_segment_encode(buf_slice(&plain), compressed, &left, &wire);
    for (size_t at = 0; at < wire.n;) {
        struct np_segment seg;
        ssize_t n = np_segment_decode(slice_of(wire.p + at, wire.n - at), compressed, &scratch, &seg, &e);
        assert_true(n > 0);
        buf_put_slice(&back, seg.payload);
        at += (size_t)n;
    }
    assert_true(slice_eq(buf_slice(&plain), buf_slice(&back)));
    buf_fini(&plain), buf_fini(&wire), buf_fini(&scratch), buf_fini(&back);
}

static void test_segment_round_trip_plain(void **state) { (void)state, round_trip(false); }
static void test_segment_round_trip_lz4(void **state) { (void)state, round_trip(true); }

/* A large envelope comes in blocks, cut anywhere behind its header; others may share its first and its last block. */
static void test_segments_of_an_envelope_in_blocks(void **state) {
    (void)state;
    enum { LARGE = 700000 };
    for (size_t cut = 1; cut < LARGE; cut += 69997) {
        struct buf plain, wire, scratch, back;
        struct err e = {0};
        uint32_t left = 0;
        bool large = false;
        buf_init(&plain, 0), buf_init(&wire, 0), buf_init(&scratch, 0), buf_init(&back, 0);
        put_envelope(&plain, 10, 1);
        size_t begin = put_envelope(&plain, LARGE, 2) + NP_HEADER;
        put_envelope(&plain, 20, 3);
        size_t ends[] = {begin + cut / 2, begin + cut, plain.n};
        for (size_t i = 0, at = 0; i < 3; at = ends[i++])
            np_segment_encode(slice_of(plain.p + at, ends[i] - at), false, &left, &wire);
        assert_int_equal(left, 0);
        for (size_t at = 0; at < wire.n;) {
            struct np_segment seg;
            ssize_t n = np_segment_decode(slice_of(wire.p + at, wire.n - at), false, &scratch, &seg, &e);
            assert_true(n > 0);
            large = !seg.self_contained;
            assert_int_equal(large, back.n >= begin - NP_HEADER && back.n < begin + LARGE);
            buf_put_slice(&back, seg.payload);
            at += (size_t)n;
        }
        assert_true(slice_eq(buf_slice(&plain), buf_slice(&back)));
        buf_fini(&plain), buf_fini(&wire), buf_fini(&scratch), buf_fini(&back);
    }
}

static void test_segment_every_flipped_bit_is_found(void **state) {
    (void)state;
    struct buf plain, wire, scratch;
    buf_init(&plain, 0), buf_init(&wire, 0), buf_init(&scratch, 0);
    put_envelope(&plain, 20, 1);
    uint32_t left = 0;
    np_segment_encode(buf_slice(&plain), false, &left, &wire);
    for (size_t bit = 0; bit < wire.n * 8; bit++) {
        struct err e = {0};
        struct np_segment seg;
        wire.p[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(np_segment_decode(buf_slice(&wire), false, &scratch, &seg, &e), NP_BAD);
        wire.p[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    buf_fini(&plain), buf_fini(&wire), buf_fini(&scratch);
}

static void compress_round_trip(enum np_compression how) {
    struct buf packed, back;
    struct err e = {0};
    uint8_t body[5000];
    for (size_t i = 0; i < sizeof(body); i++) body[i] = (uint8_t)(i / 100);
    buf_init(&packed, 0), buf_init(&back, 0);
    assert_true(np_body_compress(how, slice_of(body, sizeof(body)), &packed));
    assert_true(packed.n < sizeof(body));
    assert_int_equal(np_body_decompress(how, buf_slice(&packed), 1 << 20, &back, &e), 0);
    assert_true(slice_eq(buf_slice(&back), slice_of(body, sizeof(body))));
    assert_int_equal(np_body_decompress(how, buf_slice(&packed), 4999, &back, &e), -1);
    assert_int_equal(e.code, ERR_INVALID);
    for (size_t cut = 0; cut < packed.n; cut++) { /* never accepted, never out of bounds */
        e.set = false;
        buf_clear(&back, SIZE_MAX);
        assert_int_equal(np_body_decompress(how, slice_of(packed.p, cut), 1 << 20, &back, &e), -1);
    }
    buf_fini(&packed), buf_fini(&back);
}

/* Bodies that do not get smaller are compressed all the same, as Cassandra's are. */
static void compress_small(enum np_compression how) {
    struct buf packed, back;
    struct err e = {0};
    const uint8_t body[] = {0, 0, 0, 1};
    for (size_t n = 0; n <= sizeof(body); n++) {
        buf_init(&packed, 0), buf_init(&back, 0);
        assert_true(np_body_compress(how, slice_of(body, n), &packed));
        assert_true(packed.n > n);
        assert_int_equal(np_body_decompress(how, buf_slice(&packed), 100, &back, &e), 0);
        assert_true(slice_eq(buf_slice(&back), slice_of(body, n)));
        buf_fini(&packed), buf_fini(&back);
    }
}

static void test_compress_small_bodies(void **state) {
    (void)state, compress_small(NP_COMPRESS_LZ4), compress_small(NP_COMPRESS_SNAPPY);
}

static void test_compress_lz4(void **state) { (void)state, compress_round_trip(NP_COMPRESS_LZ4); }
static void test_compress_snappy(void **state) { (void)state, compress_round_trip(NP_COMPRESS_SNAPPY); }

/* Each block is compressed as if it were the first of its thread: after others, and after one that did not fit. */
static void test_blocks_are_independent_of_those_before_them(void **state) {
    uint8_t body[3000];
    uint32_t random = 1;
    (void)state;
    for (int round = 0; round < 300; round++) {
        struct buf packed;
        uint8_t back[sizeof(body)];
        size_t n = 100 + (size_t)round * 9;
        bool is_random = round % 3 == 2;
        buf_init(&packed, 0);
        for (size_t i = 0; i < n; i++) {
            random = random * 1664525 + 1013904223;
            body[i] = is_random ? (uint8_t)(random >> 24) : (uint8_t)(i % 40 + (size_t)round % 2);
        }
        assert_int_equal(np_block_compress(slice_of(body, n), &packed), !is_random);
        if (!is_random) {
            assert_int_equal(np_block_decompress(buf_slice(&packed), n, back), 0);
            assert_memory_equal(back, body, n);
        } else assert_int_equal(packed.n, 0);
        buf_fini(&packed);
    }
}

static void test_compress_lying_length_allocates_nothing(void **state) {
    (void)state;
    struct buf out;
    struct err e = {0};
    buf_init(&out, 0);
    assert_int_equal(np_body_decompress(NP_COMPRESS_LZ4, slice_of("\x00\xff\xff\xff\x10z", 6), 1 << 28, &out, &e), -1);
    assert_int_equal(out.cap, 0);
    assert_int_equal(np_body_decompress(NP_COMPRESS_NONE, slice_of("abc", 3), 100, &out, &e), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_envelope_decodes_in_place),
        cmocka_unit_test(test_envelope_needs_more_at_every_cut),
        cmocka_unit_test(test_envelope_version_refused_on_the_first_byte),
        cmocka_unit_test(test_envelope_of_a_version_that_is_not_offered_is_refused),
        cmocka_unit_test(test_envelope_too_big_keeps_the_header),
        cmocka_unit_test(test_crc24_matches_known_header),
        cmocka_unit_test(test_segment_round_trip_plain),
        cmocka_unit_test(test_segment_round_trip_lz4),
        cmocka_unit_test(test_segments_of_an_envelope_in_blocks),
        cmocka_unit_test(test_segment_every_flipped_bit_is_found),
        cmocka_unit_test(test_compress_small_bodies),
        cmocka_unit_test(test_compress_lz4),
        cmocka_unit_test(test_compress_snappy),
        cmocka_unit_test(test_blocks_are_independent_of_those_before_them),
        cmocka_unit_test(test_compress_lying_length_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
