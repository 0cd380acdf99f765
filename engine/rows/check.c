#include "engine/rows/check.h"

#include "engine/rows/key.h"
#include "engine/rows/row_codec.h"
#include "engine/rows/tombstone.h"

int engi_check_record(struct slice key, struct slice value, struct arena *a, struct err *e) {
    size_t n = engi_prefix_len(key);
    struct eng_row row;
    struct engi_tomb tomb;
    int64_t ts, at;
    if (!n || n >= key.n) return err_set(e, ERR_SERVER, "its key is none of a partition");
    struct slice rest = slice_of(key.p + n + 1, key.n - n - 1);
    switch (key.p[n]) {
    case ENGI_PARTITION_DELETION: return engi_tomb_deletion(value, &ts, &at, e);
    case ENGI_RANGE_TOMBSTONE: return engi_tomb_read(rest, value, &tomb, e);
    case ENGI_STATIC: case ENGI_ROW:
        eng_row_init(&row, key.p[n] == ENGI_ROW ? ENG_ROW : ENG_STATIC, rest);
        return eng_row_decode(value, a, &row, e);
    case ENGI_PAST: return 0;
    default: return err_set(e, ERR_SERVER, "its key is of no kind");
    }
}
