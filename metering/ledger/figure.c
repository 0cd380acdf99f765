#include "metering/ledger/figure.h"

static const struct figure_info infos[] = {
#define FIGURE(id_, scale_, cloudwatch_, unit_, what_) \
    {.id = #id_, .cloudwatch = cloudwatch_, .unit = unit_, .what = what_, .scale = scale_},
#include "metering/ledger/figure.def"
#undef FIGURE
};

static const struct figure_info operation_infos[] = {
#define OPERATION_FIGURE(id_, scale_, cloudwatch_, unit_, what_) \
    {.id = #id_, .cloudwatch = cloudwatch_, .unit = unit_, .what = what_, .scale = scale_},
#include "metering/ledger/operation_figure.def"
#undef OPERATION_FIGURE
};

const struct figure_info *figure_info(enum figure f) { return &infos[f]; }
const struct figure_info *operation_figure_info(enum operation_figure f) { return &operation_infos[f]; }

const char *operation_name(enum operation o) {
    static const char *const names[] = {
#define OPERATION(id) #id,
#include "metering/ledger/operation.def"
#undef OPERATION
    };
    return names[o];
}
