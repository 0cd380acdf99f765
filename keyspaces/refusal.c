#include "keyspaces/refusal.h"

#include "keyspaces/quota.h"

enum page {
#define PAGE(id, title, address) PAGE_##id,
#include "keyspaces/page.def"
#undef PAGE
};

static const struct {
    const char *title, *address;
} pages[] = {
#define PAGE(id, title, address) {title, address},
#include "keyspaces/page.def"
#undef PAGE
};

static const struct {
    struct refusal refusal;
    enum page page;
} rows[REFUSALS] = {
#define REFUSAL(id, name_, checks_, words_, instead_, code_, page_, confidence_, since_) \
    [REFUSE_##id] = {{.name = name_, \
                      .checks = checks_, \
                      .words = words_, \
                      .instead = instead_, \
                      .code = ERR_##code_, \
                      .confidence = confidence_, \
                      .since = since_}, \
                     PAGE_##page_},
#include "keyspaces/refusal.def"
#undef REFUSAL
};

struct refusal refusal_of(enum refusal_id id) {
    struct refusal r = rows[id].refusal;
    r.page = pages[rows[id].page].title;
    r.address = pages[rows[id].page].address;
    return r;
}

static const struct {
    struct quota quota;
    enum page page;
} quota_rows[] = {
#define QUOTA(id, value_, what_, page_) {{.name = #id, .value = value_, .what = what_}, PAGE_##page_},
#include "keyspaces/quota.def"
#undef QUOTA
};

const char quota_regions[] =
#define REGION(name) ", " name
#include "keyspaces/region.def"
#undef REGION
    ;

bool quota_is_region(const char *name) {
    static const char *const regions[] = {
#define REGION(name) name,
#include "keyspaces/region.def"
#undef REGION
    };
    for (size_t i = 0; i < ARRAY_LEN(regions); i++)
        if (strcmp(regions[i], name) == 0) return true;
    return false;
}

const unsigned n_quotas = ARRAY_LEN(quota_rows);

struct quota quota_of(unsigned i) {
    struct quota q = quota_rows[i].quota;
    q.page = pages[quota_rows[i].page].title;
    q.address = pages[quota_rows[i].page].address;
    return q;
}
