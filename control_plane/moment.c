#include "control_plane/moment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Reads an offset: nothing, Z, +HH:MM or +HHMM. *seconds: to be subtracted from the local time. */
static bool offset(const char *at, int *seconds) {
    static const char *const forms[] = {"dd:dd", "dddd"};
    *seconds = 0;
    if (!*at || !strcmp(at, "Z")) return true;
    if (*at != '+' && *at != '-') return false;
    for (size_t f = 0; f < 2; f++) {
        size_t n = strlen(forms[f]), i = 0;
        while (i < n && (forms[f][i] == 'd' ? at[1 + i] >= '0' && at[1 + i] <= '9' : at[1 + i] == forms[f][i])) i++;
        if (i < n || at[1 + n]) continue;
        int hours = (at[1] - '0') * 10 + at[2] - '0', minutes = (at[n - 1] - '0') * 10 + at[n] - '0';
        *seconds = (*at == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
        return true;
    }
    return false;
}

bool moment_read(struct slice text, double *seconds) {
    char copy[64];
    struct tm tm = {0};
    int away;
    if (text.n >= sizeof(copy) || memchr(text.p, 0, text.n)) return false;
    memcpy(copy, text.p, text.n);
    copy[text.n] = 0;
    const char *at = copy[0] >= '0' && copy[0] <= '9' ? strptime(copy, "%Y-%m-%d", &tm) : NULL;
    if (at && (*at == 'T' || *at == ' ')) at = strptime(at + 1, "%H:%M:%S", &tm);
    if (!at) return false;
    double part = 0;
    if (*at == '.' && at[1] >= '0' && at[1] <= '9') {
        char *end;
        part = strtod(at, &end);
        at = end;
    }
    if (!offset(at, &away)) return false;
    *seconds = (double)(timegm(&tm) - away) + part;
    return true;
}

void moment_write(int64_t ms, char out[MOMENT_TEXT]) {
    time_t s = (time_t)(ms / 1000);
    struct tm tm;
    size_t n = strftime(out, MOMENT_TEXT, "%Y-%m-%dT%H:%M:%S", gmtime_r(&s, &tm));
    if (ms % 1000) n += (size_t)snprintf(out + n, MOMENT_TEXT - n, ".%03d", (int)(ms % 1000));
    snprintf(out + n, MOMENT_TEXT - n, "Z");
}
