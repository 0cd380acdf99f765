/* system_control.clock: a test freezes, advances, sets and releases the server's clock here
 * (base/clock.h). In memory only: a restart begins with the machine's time. Write timestamps
 * never go back, whatever a test does here (engine/front/write_clock.c). */
#include "system_schema/system_tables/system_table.h"

static const char *const states[] = {[CLOCK_FREE] = "free", [CLOCK_RUNNING] = "running", [CLOCK_FROZEN] = "frozen"};
static const char only_name[] = "server";

YIELDS(control_clock) {
    struct clock_control *clock = context_of(ro->table)->clock_control;
    if (!clock) return 0;
    row_text(ro, "name", only_name);
    row_text(ro, "state", states[clock_control_state(clock)]);
    row_long(ro, "now", clock_wall_us(&clock->clock) / 1000);
    row_long(ro, "ahead_ms", clock_control_ahead_us(clock) / 1000);
    return row_out_emit(ro);
}

struct order {
    bool has_now, has_advance, has_state;
    int64_t now_us, advance_us;
    enum clock_state state;
};

static int take_ms(struct value v, const char *column, bool *has, int64_t *us, struct err *e) {
    if (value_is_unset(v)) return 0;
    int64_t ms = v.n == 8 ? (int64_t)load_u64(v.p) : -1;
    if (ms < 0 || ms > INT64_MAX / 1000)
        return err_invalid(e, "%s of system_control.clock is not a time that the clock can have", column);
    *has = true;
    *us = ms * 1000;
    return 0;
}

/* Reads and checks the whole order first, so that an invalid one changes nothing. */
static int read_order(const struct schema_table *t, const struct virtual_change *change, struct order *o,
                      struct err *e) {
    struct value name = virtual_given(change, t, "name");
    *o = (struct order){0};
    if (change->kind == VIRTUAL_DELETE)
        return err_invalid(e, "Row deletion is not supported by table system_control.clock");
    if (name.n < 0 || !slice_eq(value_slice(name), slice_str(only_name)))
        return err_invalid(e, "There is one clock, and its name is '%s'", only_name);
    if (!value_is_unset(virtual_given(change, t, "ahead_ms")))
        return err_invalid(e, "Column ahead_ms of system_control.clock is read-only");
    if (take_ms(virtual_given(change, t, "now"), "now", &o->has_now, &o->now_us, e) ||
        take_ms(virtual_given(change, t, "advance_ms"), "advance_ms", &o->has_advance, &o->advance_us, e))
        return -1;
    struct value state = virtual_given(change, t, "state");
    o->has_state = !value_is_unset(state);
    if (o->has_state) {
        size_t i = 0;
        while (i < ARRAY_LEN(states) && (state.n <= 0 || !slice_eq(value_slice(state), slice_str(states[i])))) i++;
        if (i == ARRAY_LEN(states)) return err_invalid(e, "The state of the clock is frozen, running or free");
        o->state = (enum clock_state)i;
    }
    if (o->has_now && o->has_advance) return err_invalid(e, "The clock is set to a time or advanced by some, not both");
    return 0;
}

/* Sets the state first: a clock that is frozen then keeps exactly the time that is set. */
WRITES(control_clock) {
    struct clock_control *clock = context_of(table)->clock_control;
    struct order o;
    if (!clock) return err_invalid(ctx->err, "The clock of this server cannot be moved");
    if (read_order(table, change, &o, ctx->err)) return -1;
    if (o.has_state && o.state == CLOCK_FREE) clock_control_free(clock);
    if (o.has_state && o.state == CLOCK_RUNNING) clock_control_run(clock);
    if (o.has_state && o.state == CLOCK_FROZEN) clock_control_freeze(clock);
    if ((o.has_now && clock_control_set(clock, o.now_us)) ||
        (o.has_advance && clock_control_advance(clock, o.advance_us)))
        return err_invalid(ctx->err, "The clock cannot be set so far");
    return 0;
}
