#include "tools/tally/prices.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/tally/script.h"

extern const char prices_built_in[]; /* prices.csv, by CMake */

static const char *const columns[PRICES] = {
#define PRICE(id, column, what) [PRICE_##id] = column,
#include "tools/tally/price.def"
#undef PRICE
};

const char *price_column(enum price_item i) { return columns[i]; }

const struct price_region *prices_find(const struct prices *p, const char *region) {
    for (uint32_t i = 0; i < p->n; i++)
        if (!strcmp(p->regions[i].name, region)) return &p->regions[i];
    return NULL;
}

struct price_reader {
    struct arena *a;
    struct prices *out;
    struct err *e;
    uint32_t line, cap;
    int of_column[PRICES + 1]; /* enum price_item; -1 for the first column, the Region */
    uint32_t n_columns;        /* 0 if the line with column names has not come yet */
};

static int bad(const struct price_reader *r, const char *fmt, struct slice what) {
    struct err why = {0};
    err_set(&why, ERR_CONFIG, fmt, SLICE_FMT(what));
    return err_set(r->e, ERR_CONFIG, "%s:%u: %s", r->out->path, r->line, why.text);
}

static int read_region(struct price_reader *r, struct slice line) {
    struct prices *p = r->out;
    if (p->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 32;
        struct price_region *regions = ARENA_ARRAY(r->a, r->cap, struct price_region);
        if (!regions) return err_nomem(r->e);
        if (p->n) memcpy(regions, p->regions, p->n * sizeof(*regions));
        p->regions = regions;
    }
    struct slice whole = line, name = slice_cut(&line, ',');
    struct price_region *region = &p->regions[p->n];
    if (!name.n) return bad(r, "a line begins with a Region, not '%.*s'", whole);
    region->name = (const char *)arena_dup(r->a, name).p;
    if (!region->name) return err_nomem(r->e);
    if (prices_find(p, region->name)) return bad(r, "the Region '%.*s' is there twice", name);
    for (int i = 0; i < PRICES; i++) region->of[i] = -1;
    uint32_t column = 1;
    for (; line.p; column++) {
        struct slice field = slice_cut(&line, ',');
        if (column == r->n_columns) return bad(r, "there are more fields than columns: '%.*s'", field);
        if (!field.n) continue;
        char number[32], *end;
        snprintf(number, sizeof(number), "%.*s", SLICE_FMT(field));
        double price = strtod(number, &end);
        if (field.n >= sizeof(number) || *end || end == number || !isfinite(price) || price < 0)
            return bad(r, "'%.*s' is no price", field);
        region->of[r->of_column[column]] = price;
    }
    if (column != r->n_columns) return bad(r, "there are fewer fields than columns: '%.*s'", whole);
    p->n++;
    return 0;
}

/* A comment, the line with the date, the line with the names of the columns, or a Region's prices. */
static int read_line(struct price_reader *r, struct slice line) {
    struct prices *p = r->out;
    if (line.n && line.p[line.n - 1] == '\r') line.n--;
    if (!line.n || *line.p == '#') return 0;
    struct slice rest = line, first = slice_cut(&rest, ',');
    if (slice_is(first, "date")) {
        struct tm tm = {0};
        if (!rest.p) return bad(r, "the date is missing: '%.*s'", line);
        snprintf(p->date, sizeof(p->date), "%.*s", SLICE_FMT(rest));
        const char *end = strptime(p->date, "%Y-%m-%d", &tm);
        if (rest.n != 10 || !end || *end) return bad(r, "'%.*s' is no date as 2025-11-05", rest);
        p->date_line = r->line;
        p->date_s = timegm(&tm);
        return 0;
    }
    if (!slice_is(first, "region"))
        return r->n_columns ? read_region(r, line)
                            : bad(r, "a line 'region,...' names the columns before the prices come: '%.*s'", line);
    if (r->n_columns) return bad(r, "the columns are named twice: '%.*s'", line);
    r->of_column[0] = -1;
    for (r->n_columns = 1; rest.p; r->n_columns++) {
        struct slice name = slice_cut(&rest, ',');
        int item = 0;
        while (item < PRICES && !slice_is(name, columns[item])) item++;
        if (item == PRICES) return bad(r, "there is no price '%.*s'", name);
        for (uint32_t i = 1; i < r->n_columns; i++)
            if (r->of_column[i] == item) return bad(r, "the column '%.*s' is there twice", name);
        r->of_column[r->n_columns] = item;
    }
    return 0;
}

int prices_parse(struct arena *a, const char *path, struct slice text, struct prices *out, struct err *e) {
    struct price_reader r = {.a = a, .out = out, .e = e};
    *out = (struct prices){.path = path};
    while (text.n) {
        r.line++;
        if (read_line(&r, slice_cut(&text, '\n'))) return -1;
    }
    if (!*out->date)
        return err_set(e, ERR_CONFIG, "%s:%u: no line 'date,2025-11-05' says of which day the prices are", path,
                       r.line);
    return out->n ? 0 : err_set(e, ERR_CONFIG, "%s:%u: there are no prices", path, r.line);
}

int prices_read(struct arena *a, const char *path, struct prices *out, struct err *e) {
    struct script s;
    if (!path) return prices_parse(a, "prices.csv", slice_str(prices_built_in), out, e);
    if (script_open(&s, path, e)) return -1;
    int rc = prices_parse(a, path, s.text, out, e);
    script_close(&s);
    return rc;
}
