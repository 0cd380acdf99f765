#include "tools/tally/capacity/bill.h"

static double plus(double a, double b) { return a < 0 || b < 0 ? -1 : a + b; }

bool bill_lacks_use(const struct measure *m, const struct schema_table *t) {
    for (uint32_t i = 0; i < m->n_statements; i++)
        if (m->statements[i].unknown && (!m->statements[i].table || m->statements[i].table == t)) return true;
    return false;
}

static void add_use(double of[BILL_MODES], const struct day_use *u, double unit, double hour, bool unknown) {
    double provisioned = u->total <= 0 ? 0 : u->needed ? price_times(hour, (double)u->needed * 24 * BILL_DAYS) : -1;
    const double here[BILL_MODES] = {price_times(unit, u->total * BILL_DAYS), provisioned,
                                     price_times(hour, u->scaled_unit_hours * BILL_DAYS)};
    for (int i = 0; i < BILL_MODES; i++) of[i] = plus(of[i], unknown ? -1 : here[i]);
}

static double break_even(double unit, double hour) { return unit <= 0 || hour < 0 ? -1 : 100 * hour / (3600 * unit); }

void bill_of(const struct measure *m, const struct day *days, const struct price_region *r, struct bill *out) {
    enum { GB = 1000000000 };
    *out = (struct bill){0};
    for (uint32_t i = 0; i < m->n_tables; i++) {
        bool unknown = bill_lacks_use(m, m->tables[i].table);
        double stored = m->tables[i].stored_bytes[m->o.model] / GB;
        add_use(out->read, &days[i].reads, r->of[PRICE_READ], r->of[PRICE_READ_HOUR], unknown);
        add_use(out->write, &days[i].writes, r->of[PRICE_WRITE], r->of[PRICE_WRITE_HOUR], unknown);
        out->storage = plus(out->storage, stored < 0 ? -1 : price_times(r->of[PRICE_STORAGE], stored));
        if (m->tables[i].table->settings.point_in_time_recovery)
            out->pitr = plus(out->pitr, stored < 0 ? -1 : price_times(r->of[PRICE_PITR], stored));
        out->ttl = plus(out->ttl, unknown || days[i].ttl_deletes < 0
                                      ? -1
                                      : price_times(r->of[PRICE_TTL], days[i].ttl_deletes * BILL_DAYS));
    }
    double rest = plus(plus(out->storage, out->pitr), out->ttl);
    for (int i = 0; i < BILL_MODES; i++) out->total[i] = plus(plus(out->read[i], out->write[i]), rest);
    out->read_break_even = break_even(r->of[PRICE_READ], r->of[PRICE_READ_HOUR]);
    out->write_break_even = break_even(r->of[PRICE_WRITE], r->of[PRICE_WRITE_HOUR]);
}
