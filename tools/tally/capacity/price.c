#include "tools/tally/capacity/price.h"

/* ---- the bill ---- */

/* price * n; unknown when the price is unknown and n is above 0. */
static double times(double price, double n) { return n <= 0 ? 0 : price < 0 ? -1 : price * n; }

/* Unknown when one of the two is. */
static double plus(double a, double b) { return a < 0 || b < 0 ? -1 : a + b; }

bool bill_lacks_use(const struct measure *m, const struct schema_table *t) {
    for (uint32_t i = 0; i < m->n_statements; i++)
        if ((m->statements[i].unknown || (!m->statements[i].refused && !m->statements[i].reads[m->o.model])) &&
            (!m->statements[i].table || m->statements[i].table == t))
            return true;
    return false;
}

static void add_use(double of[BILL_MODES], const struct day_use *u, double unit, double hour, bool unknown) {
    const double hours = 24 * BILL_DAYS;
    const double here[BILL_MODES] = {times(unit, u->total * BILL_DAYS),
                                     u->total <= 0 ? 0 : u->needed ? times(hour, (double)u->needed * hours) : -1,
                                     u->total <= 0 ? 0 : u->usual ? times(hour, (double)u->usual * hours) : -1,
                                     times(hour, u->scaled_unit_hours * BILL_DAYS)};
    for (int i = 0; i < BILL_MODES; i++) of[i] = plus(of[i], unknown ? -1 : here[i]);
}

/* Per cent of use above which provisioned units are cheaper than on demand. */
static double break_even(double unit, double hour) { return unit <= 0 || hour < 0 ? -1 : 100 * hour / (3600 * unit); }

/* Adds the tables of a keyspace, or of all. */
static void add_tables(const struct measure *m, const struct day *days, const struct price_region *r,
                       const struct schema_keyspace *ks, bool reads, struct bill *out) {
    enum { GB = 1000000000 };
    for (uint32_t i = 0; i < m->n_tables; i++) {
        if (ks && m->tables[i].table->keyspace != ks) continue;
        bool unknown = bill_lacks_use(m, m->tables[i].table);
        double stored = measure_storage(&m->tables[i], m->o.model) / GB;
        if (reads) add_use(out->read, &days[i].reads, r->of[PRICE_READ], r->of[PRICE_READ_HOUR], unknown);
        add_use(out->write, &days[i].writes, r->of[PRICE_WRITE], r->of[PRICE_WRITE_HOUR], unknown);
        out->storage = plus(out->storage, stored < 0 ? -1 : times(r->of[PRICE_STORAGE], stored));
        if (m->tables[i].table->settings.point_in_time_recovery)
            out->pitr = plus(out->pitr, stored < 0 ? -1 : times(r->of[PRICE_PITR], stored));
        out->ttl = plus(out->ttl, unknown || days[i].ttl_deletes < 0
                                      ? -1
                                      : times(r->of[PRICE_TTL], days[i].ttl_deletes * BILL_DAYS));
    }
}

static void add_up(struct bill *out) {
    double rest = plus(plus(out->storage, out->pitr), out->ttl);
    for (int i = 0; i < BILL_MODES; i++) out->total[i] = plus(plus(out->read[i], out->write[i]), rest);
}

void bill_of(const struct measure *m, const struct day *days, const struct price_region *r, struct bill *out) {
    *out = (struct bill){0};
    add_tables(m, days, r, NULL, true, out);
    add_up(out);
    out->read_break_even = break_even(r->of[PRICE_READ], r->of[PRICE_READ_HOUR]);
    out->write_break_even = break_even(r->of[PRICE_WRITE], r->of[PRICE_WRITE_HOUR]);
}

void bill_of_keyspace(const struct measure *m, const struct day *days, const struct prices *p,
                      const struct schema_keyspace *ks, struct bill *out) {
    struct price_region unknown = {0};
    for (int i = 0; i < PRICES; i++) unknown.of[i] = -1;
    *out = (struct bill){0};
    for (uint32_t i = 0; i < ks->n_regions; i++) {
        const struct price_region *r = prices_find(p, ks->regions[i].name);
        add_tables(m, days, r ? r : &unknown, ks, i == 0, out);
    }
    add_up(out);
}
