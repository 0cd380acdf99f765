#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/murmur3.h"

/* Recorded from Apache Cassandra 5.0.8: SELECT token(b), b for random blobs of every tail length. */
static const struct {
    const char *hex;
    long long token;
} recorded[] = {
    {"b28cb0d1b358e6baab485565b9f49028d557d7", -8344524776943093396LL},
    {"e37d961445c806f58c7cf2127dfa894f9296fcf33c084099", -7847583724409726834LL},
    {"840876db40b967a9b706535330895749e4dedb3caaa2e474ecde57e21852f2fb003540d61a6a001078f6b5c9ed6e678d669bb67bbbb47f1ff"
     "dcdb249497afac3",
     -7065863001017845758LL},
    {"9a8a0e6451e15c705c15f173541b4438a25cf763", -6999078305572203370LL},
    {"43d33656debe4c1ed79648e856e8f9a2", -6863687070539598037LL},
    {"3f3e70384495e04c5d5ed352226d1637c2248f1d3ccc4405dd2ea1", -6213854176302761467LL},
    {"b6119cba8ff88796ae5b05f280a68ced93b6", -5739694822258478747LL},
    {"7ec2347f06", -5321377157885710781LL},
    {"fafab4bf1c46964d947086207882914478bee8c75b4309ae2b122e3f", -5226330437701063432LL},
    {"e87ac7ecf5a5370fc41b4ddb723b2afb6c47c0b57894aab2c5c145b797", -5209986402053419186LL},
    {"12d4eeb3c2246879bf00b3cf8ed13abf129a3097ad", -4466523353627039680LL},
    {"ff", -4442228696663692417LL},
    {"28cdba9f5eefb99022ef537b596a16dc8a03ec1fe7d2561711b3302479fb2ff1", -4317529445571282218LL},
    {"ffffffffffffffffffffffffffffffffff", -4128212798341382003LL},
    {"b70e", -2897600088890940981LL},
    {"ffffffffffffffffffffffffffffffff", -2824192546314762522LL},
    {"96b442d6d1bdef4850c3f465442eb300c337a648a6c0", -2351774210992120892LL},
    {"ffffffffffffffffffffffffffffff", -2195530867418009455LL},
    {"9b01dd92f19f4954f4fea94ed9182375882b200daadb23cff919", -2119232464096038198LL},
    {"1b7c19fecb1e1882d0e49c1a13635bce60772ba0372c52266d08e1b7f9d8c04306", -1783261287572054772LL},
    {"6b6e545594a06568", -1260365401694515943LL},
    {"8721a99a01ad219eb59c", -618729354039416215LL},
    {"6ed08f5dc751", -125380943269022102LL},
    {"dbdd73fc95f5c2c451859afe80d40aa39dfb9249f40c3e", -64337443218994834LL},
    {"29cf1079b080e9d74a1c10fcab6a42", 635698129112123767LL},
    {"bfc5f04d82388e52927810f610b0bca11e0be9f14f3ca695e87a5311660c76", 803782592995351762LL},
    {"b0b580ec37bc9712dd2e6aaeb9", 1266953152421241572LL},
    {"9de5723b479ff72c86cea0434229f17d2bdb7d8d1ffc7f186692bf3224d7a0c20092430ee2490918da8936c342a4219c564686fea59211200"
     "e0e3e1942b6df",
     1464346622428907022LL},
    {"133056cb329066a5f4f02e65c005355ec70ba20d9fc4f3cce61f4bd5b90a699192270d2cb6d39d078c7824132d99b36af72f3d7aafd8c901c"
     "7c15b6aa4c5a537bf7f336c969c89275527d35e7320d0d576d9f77d9ad68f2ba95fd70f4c3b975ede61a634",
     1757907397555326694LL},
    {"2447e340430002", 2235075917652867317LL},
    {"5039bef0", 2536436966116962960LL},
    {"09d6bbc004e7175c643c7dec", 2650310639822331671LL},
    {"ee7f1a", 2995792290281166222LL},
    {"90ac970dedb3b843120181e9376107dbdaf6c5f3c86497ee21", 3247088766656439388LL},
    {"4bae8d2f9fa29c5a284c9ef75218", 5603207880186104846LL},
    {"ddb9126e5cca203112105f676414faf6b200daf099dba5eeec33624f5124", 5707056292780579720LL},
    {"ffffffffffffffff", 7071048584287372947LL},
    {"82", 7188333716680067347LL},
    {"5d64c4980bb8d4544a", 7628396245054825549LL},
    {"f6a15ef6f15a1d830bb7ce", 8452414501582548595LL},
    {"f58c95f0ce4b39c15bffad5c2dfb8bb820", 8764646055163513509LL},
};

static void test_murmur3_token_is_cassandras(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(recorded); i++) {
        uint8_t key[128];
        size_t n = strlen(recorded[i].hex) / 2;
        for (size_t k = 0; k < n; k++) {
            unsigned byte;
            assert_int_equal(sscanf(recorded[i].hex + 2 * k, "%2x", &byte), 1);
            key[k] = (uint8_t)byte;
        }
        assert_true(murmur3_token(slice_of(key, n)) == recorded[i].token);
    }
}

static void test_murmur3_empty_key_has_the_minimum_token(void **state) {
    (void)state;
    assert_true(murmur3_token(slice_str("")) == INT64_MIN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_murmur3_token_is_cassandras),
        cmocka_unit_test(test_murmur3_empty_key_has_the_minimum_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
