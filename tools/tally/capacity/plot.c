#include "tools/tally/capacity/plot.h"

enum { DAY = 86400, WIDTH = 72, HEIGHT = 6, EIGHTHS = 8 };

static double highest(const double *v, uint32_t n) {
    double most = 0;
    for (uint32_t i = 0; i < n; i++) most = v[i] > most ? v[i] : most;
    return most;
}

void plot_day(struct buf *out, const double *seconds, const int32_t *minutes, const char *what) {
    static const char *const blocks[EIGHTHS + 1] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double used[WIDTH], most[WIDTH];
    /* Averages the day over WIDTH columns. */
    for (uint32_t c = 0; c < WIDTH; c++) {
        double sum = 0;
        for (uint32_t i = 0; i < DAY / WIDTH; i++) sum += seconds[c * (DAY / WIDTH) + i];
        used[c] = sum / (DAY / WIDTH);
        most[c] = 0;
        for (uint32_t i = 0; minutes && i < DAY / 60 / WIDTH; i++)
            most[c] += (double)minutes[c * (DAY / 60 / WIDTH) + i] / (DAY / 60 / WIDTH);
    }
    double top = highest(used, WIDTH), limit = highest(most, WIDTH);
    if (limit > top) top = limit;
    if (top <= 0) return;
    buf_printf(out, "  %s%s\n", what, minutes ? ", - capacity" : "");
    for (int row = HEIGHT - 1; row >= 0; row--) {
        buf_printf(out, "  %9.*f |", top < 10, top * (row + 1) / HEIGHT);
        for (uint32_t c = 0; c < WIDTH; c++) {
            int here = (int)(used[c] / top * HEIGHT * EIGHTHS) - row * EIGHTHS;
            bool line = minutes && (int)(most[c] / top * HEIGHT - 1e-9) == row;
            buf_put_str(out, line && here < EIGHTHS ? "-" : blocks[here < 0 ? 0 : here > EIGHTHS ? EIGHTHS : here]);
        }
        buf_put_str(out, "\n");
    }
    buf_printf(out, "  %9s  0        3        6        9        12       15       18       21       24 h\n", "");
}
