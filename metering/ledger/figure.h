/* The counters of a table: those of the table, and those of each operation on it (figure.def,
 * operation_figure.def). Plain sums. */
#pragma once

#include <stdint.h>

enum figure {
#define FIGURE(id, scale, cloudwatch, unit, what) FIGURE_##id,
#include "metering/ledger/figure.def"
#undef FIGURE
    FIGURES
};

enum operation {
#define OPERATION(id) OPERATION_##id,
#include "metering/ledger/operation.def"
#undef OPERATION
    OPERATIONS
};

enum operation_figure {
#define OPERATION_FIGURE(id, scale, cloudwatch, unit, what) OF_##id,
#include "metering/ledger/operation_figure.def"
#undef OPERATION_FIGURE
    OPERATION_FIGURES
};

/* Sums over any span of time. */
struct figures {
    uint64_t n[FIGURES];
    uint64_t of[OPERATIONS][OPERATION_FIGURES];
};

static inline void figures_add(struct figures *to, const struct figures *from) {
    for (int i = 0; i < FIGURES; i++) to->n[i] += from->n[i];
    for (int o = 0; o < OPERATIONS; o++)
        for (int i = 0; i < OPERATION_FIGURES; i++) to->of[o][i] += from->of[o][i];
}

static inline void figures_sub(struct figures *from, const struct figures *what) {
    for (int i = 0; i < FIGURES; i++) from->n[i] -= what->n[i];
    for (int o = 0; o < OPERATIONS; o++)
        for (int i = 0; i < OPERATION_FIGURES; i++) from->of[o][i] -= what->of[o][i];
}

/* A row of figure.def or operation_figure.def. */
struct figure_info {
    const char *id, *cloudwatch, *unit, *what;
    double scale;
};
const struct figure_info *figure_info(enum figure f);
const struct figure_info *operation_figure_info(enum operation_figure f);
const char *operation_name(enum operation o);
