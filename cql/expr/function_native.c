/* Implementations of native functions: time, uuids, blobs, JSON, tokens. */
#include "base/murmur3.h"
#include "base/random.h"
#include "cql/expr/function.h"
#include "cql/request/db.h"
#include "cql/row/ring.h"
#include "types/calendar.h"
#include "types/duration.h"

enum { DAY_MS = 86400000, DAY_SECONDS = 86400 };
/* 1582-10-15, where the time of a version 1 uuid begins */
static const int64_t gregorian_ms = INT64_C(-12219292800000);

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

static void put_timeuuid(int64_t ticks, uint64_t low, struct buf *out) {
    uint64_t t = (uint64_t)ticks;
    buf_u64(out, t << 32 | (t >> 16 & 0xFFFF0000u) | 0x1000 | t >> 48);
    buf_u64(out, low);
}

int function_uuid(const struct function_in *in, struct buf *out) {
    uint8_t v[16];
    if (random_uuid(v, in->ev->err)) return -1;
    buf_put(out, v, sizeof v);
    return 0;
}

/* Each call is later than the one before it, so that the rows of a batch keep its order. The
 * sequence and the node are random (multicast bit set, RFC 4122 section 4.5): several servers may
 * call at one time. */
int function_now(const struct function_in *in, struct buf *out) {
    struct cql_db *db = in->ev->db;
    uint64_t low;
    if (random_bytes(&low, sizeof low, in->ev->err)) return -1;
    low = (low & 0x3FFFFFFFFFFFFFFFu) | 0x8000010000000000u;
    int64_t now_us = clock_wall_us(db->options.clock), last_us = atomic_load(&db->last_now_us), us;
    do us = now_us > last_us ? now_us : last_us + 1;
    while (!atomic_compare_exchange_weak(&db->last_now_us, &last_us, us));
    put_timeuuid(us * 10 - gregorian_ms * 10000, low, out);
    return 0;
}

static void put_date(int64_t ms, struct buf *out) {
    buf_u32(out, (uint32_t)(floor_div(ms, DAY_MS) + ((int64_t)1 << 31)));
}

/* These, too, read the clock at each call, as in Cassandra. */
int function_current_timestamp(const struct function_in *in, struct buf *out) {
    buf_u64(out, (uint64_t)floor_div(clock_wall_us(in->ev->db->options.clock), 1000));
    return 0;
}

int function_current_date(const struct function_in *in, struct buf *out) {
    put_date(floor_div(clock_wall_us(in->ev->db->options.clock), 1000), out);
    return 0;
}

int function_current_time(const struct function_in *in, struct buf *out) {
    int64_t us = clock_wall_us(in->ev->db->options.clock), day_us = (int64_t)DAY_MS * 1000;
    buf_u64(out, (uint64_t)(us - floor_div(us, day_us) * day_us) * 1000);
    return 0;
}

/* A time out of a timeuuid's range wraps and overflows into its version field (TimeUUID). */
static int put_bound(const struct function_in *in, bool last, struct buf *out) {
    uint64_t ticks = (load_u64(in->args[0].p) - (uint64_t)gregorian_ms) * 10000;
    put_timeuuid((int64_t)(ticks + (last ? 9999 : 0)), last ? 0x7F7F7F7F7F7F7F7Fu : 0x8080808080808080u, out);
    return 0;
}

int function_min_timeuuid(const struct function_in *in, struct buf *out) { return put_bound(in, false, out); }
int function_max_timeuuid(const struct function_in *in, struct buf *out) { return put_bound(in, true, out); }

/* Milliseconds of a timeuuid, timestamp or date. */
static int64_t ms_of(const struct function_in *in, uint32_t i) {
    const uint8_t *p = in->args[i].p;
    if (in->f->args[i]->id == CQL_TIMESTAMP) return (int64_t)load_u64(p);
    if (in->f->args[i]->id == CQL_DATE) return ((int64_t)load_u32(p) - ((int64_t)1 << 31)) * DAY_MS;
    uint64_t m = load_u64(p), ticks = (m & 0x0FFF) << 48 | (m << 16 & 0xFFFF00000000u) | m >> 32;
    return (int64_t)(ticks / 10000) + gregorian_ms;
}

static int64_t to_ms(const struct function_in *in) { return ms_of(in, 0); }

/* For times before 1970 Cassandra rounds down to whole seconds, but towards 1970 to whole days. */
int function_to_date(const struct function_in *in, struct buf *out) {
    put_date(floor_div(to_ms(in), 1000) / DAY_SECONDS * DAY_MS, out);
    return 0;
}

int function_to_timestamp(const struct function_in *in, struct buf *out) {
    buf_u64(out, (uint64_t)to_ms(in));
    return 0;
}

int function_to_unix_timestamp(const struct function_in *in, struct buf *out) { return function_to_timestamp(in, out); }

int function_as_blob(const struct function_in *in, struct buf *out) {
    buf_put_slice(out, value_slice(in->args[0]));
    return 0;
}

int function_from_blob(const struct function_in *in, struct buf *out) {
    struct err e = {0};
    struct slice v = value_slice(in->args[0]);
    if (cql_value_validate(in->f->result, v, &e) < 0) {
        struct buf text;
        buf_init(&text, 1024);
        cql_value_print(cql_type_scalar(CQL_BLOB), v, &text);
        buf_put_str(&text, " is not a valid binary representation for type ");
        cql_type_print(in->f->result, &text);
        struct slice s = buf_slice(&text);
        err_invalid(in->ev->err, "In call to function system.%s, value %.*s", in->f->name, SLICE_FMT(s));
        buf_fini(&text);
        return -1;
    }
    buf_put_slice(out, v);
    return 0;
}

int function_token(const struct function_in *in, struct buf *out) {
    struct buf key;
    buf_init(&key, 1 << 20);
    for (uint32_t i = 0; i < in->n_args; i++) {
        struct slice v = value_slice(in->args[i]);
        if (in->n_args > 1) buf_u16(&key, (uint16_t)v.n);
        buf_put_slice(&key, v);
        if (in->n_args > 1) buf_u8(&key, 0);
    }
    enum partitioner_id p = in->f->result->id == CQL_VARINT ? PARTITIONER_RANDOM : PARTITIONER_MURMUR3;
    struct eng_part part = {.key = buf_slice(&key), .token = murmur3_token(buf_slice(&key))};
    ring_position at = 0;
    int rc = buf_failed(&key) ? err_nomem(in->ev->err) : ring_position_of(p, &part, &at, in->ev->err);
    if (rc == 0) ring_write(p, at, out);
    buf_fini(&key);
    return rc;
}

int function_to_json(const struct function_in *in, struct buf *out) {
    const struct cql_type *t = in->f->args[0];
    /* Cassandra decodes the argument first: an empty value of other types becomes null. */
    bool may_be_empty = t->n_args || t->id == CQL_ASCII || t->id == CQL_TEXT || t->id == CQL_BLOB ||
                        t->id == CQL_EMPTY || t->id == CQL_LEXICAL_UUID || cql_type_is_custom(t);
    if (in->args[0].n == 0 && !may_be_empty) {
        buf_put_str(out, "null");
        return 0;
    }
    if (value_is_null(in->args[0]) || cql_type_has_json(t)) {
        cql_value_json(t, in->args[0], out);
        return 0;
    }
    return err_set(in->ev->err, ERR_SERVER, "java.lang.UnsupportedOperationException");
}

int function_from_json(const struct function_in *in, struct buf *out) {
    struct err e = {0};
    int rc = cql_value_from_json(in->f->result, value_slice(in->args[0]), in->ev->reading, out, &e);
    if (rc >= 0) return rc;
    bool decode = strncmp(e.text, "Could not decode", 16) == 0;
    if (in->f->result->id == CQL_DURATION && strncmp(e.text, "Unable to convert", 17) == 0)
        return err_set(in->ev->err, e.code, "%s", e.text);
    return err_set(in->ev->err, ERR_FUNCTION_FAILURE, decode ? "execution of 'system.from_json[text]' failed: %s"
                          : "org.apache.cassandra.serializers.MarshalException: %s",
                   e.text);
}

int function_to_text(const struct function_in *in, struct buf *out) {
    const struct cql_type *from = in->f->args[0];
    if (from->id == CQL_DECIMAL)
        cql_value_json(from, in->args[0], out); /* scientific, where text would be plain */
    else
        cql_value_text(from, value_slice(in->args[0]), out);
    return 0;
}

int function_concat(const struct function_in *in, struct buf *out) {
    buf_put_slice(out, value_slice(in->args[0]));
    buf_put_slice(out, value_slice(in->args[1]));
    return 0;
}

static int read_duration(const struct function_in *in, struct cql_duration *d) {
    if (cql_duration_read(value_slice(in->args[1]), d) == 0) return 0;
    return err_invalid(in->ev->err, "Expected at least 3 bytes for a duration (%d)", in->args[1].n);
}

static int fail_precision(const struct function_in *in, const char *what, const char *precision) {
    struct buf text;
    buf_init(&text, 256);
    cql_value_text(cql_type_scalar(CQL_DURATION), value_slice(in->args[1]), &text);
    struct slice s = buf_slice(&text);
    err_set(in->ev->err, ERR_FUNCTION_FAILURE,
            "the operation '%s %c duration' failed: The duration must have a %s precision. Was: %.*s", what,
            in->f->op == EXPR_ADD ? '+' : '-', precision, SLICE_FMT(s));
    buf_fini(&text);
    return -1;
}

int function_move_time(const struct function_in *in, struct buf *out) {
    struct cql_duration d;
    bool date = in->f->args[0]->id == CQL_DATE;
    int64_t ms = to_ms(in), sign = in->f->op == EXPR_ADD ? 1 : -1;
    if (read_duration(in, &d)) return -1;
    if (date && d.ns) return fail_precision(in, "date", "day");
    if (d.ns % 1000000) return fail_precision(in, "timestamp", "millisecond");
    if (d.months) ms = calendar_add_months_ms(ms, sign * d.months);
    /* wraps, as Java's does */
    ms = (int64_t)((uint64_t)ms + (uint64_t)(sign * (d.days * (int64_t)DAY_MS + d.ns / 1000000)));
    if (date) put_date(ms, out);
    else buf_u64(out, (uint64_t)ms);
    return 0;
}

/* ---- floor: rounds a time down to a step; the steps are durations from a start time on
 * (Duration.floorTimestamp, floorTime) ---- */

static int refuse_step(const struct function_in *in, const char *which, const char *precision) {
    struct buf text;
    buf_init(&text, 256);
    cql_value_text(cql_type_scalar(CQL_DURATION), value_slice(in->args[1]), &text);
    struct slice s = buf_slice(&text);
    err_invalid(in->ev->err, "The floor %scannot be computed for the %.*s duration as precision is below 1 %s", which,
                SLICE_FMT(s), precision);
    buf_fini(&text);
    return -1;
}

static int refuse_negative(const struct function_in *in, const struct cql_duration *d) {
    bool negative = d->months < 0 || d->days < 0 || d->ns < 0;
    return negative ? err_invalid(in->ev->err, "Negative durations are not supported by the floor function") : 0;
}

int function_floor_time(const struct function_in *in, struct buf *out) {
    struct cql_duration d;
    bool date = in->f->result->id == CQL_DATE;
    int64_t ms = to_ms(in), start = in->n_args > 2 ? ms_of(in, 2) : 0;
    if (read_duration(in, &d)) return -1;
    if (date && d.ns) return refuse_step(in, "on date values ", "day");
    if (d.ns % 1000000) return refuse_step(in, "", "millisecond");
    if (start > ms)
        return err_invalid(in->ev->err, "The floor function starting time is greater than the provided time");
    if (refuse_negative(in, &d)) return -1;
    int64_t step = d.days * (int64_t)DAY_MS + d.ns / 1000000;
    if (d.months) {
        /* The number of steps is estimated from the calendar months between, then lowered while the
         * days and hours of the steps exceed the time. A day that is cut to a month's end on the way
         * stays cut. */
        int64_t steps = (calendar_months_ms(ms) - calendar_months_ms(start)) / d.months;
        int64_t months = calendar_add_months_ms(start, steps * d.months);
        for (; step && months + steps * step > ms; steps--) months = calendar_add_months_ms(months, -d.months);
        ms = step && months + steps * step < start ? start : months + steps * step;
    } else if (step) ms -= (int64_t)(((uint64_t)ms - (uint64_t)start) % (uint64_t)step);
    if (date) put_date(ms, out);
    else buf_u64(out, (uint64_t)ms);
    return 0;
}

int function_floor_time_of_day(const struct function_in *in, struct buf *out) {
    struct cql_duration d;
    int64_t ns = (int64_t)load_u64(in->args[0].p);
    if (read_duration(in, &d) || refuse_negative(in, &d)) return -1;
    if (d.months || d.days || d.ns > DAY_MS * INT64_C(1000000))
        return err_invalid(in->ev->err,
                           "For time values, the floor can only be computed for durations smaller that a day");
    buf_u64(out, (uint64_t)(d.ns ? ns - ns % d.ns : ns));
    return 0;
}
