/* The arithmetic works in eras of 400 years that begin in March, so that the leap day is the last
 * of a year. */
#include "types/calendar.h"

#include <stdbool.h>

enum { DAY_MS = 86400000, CUTOVER = -141427 /* 1582-10-15 */, CUTOVER_YEAR = 1582 };

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/* The number of days between the first of March and a date. */
static int64_t day_of_year(int month, int day) { return (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1; }

static void month_and_day(int64_t of_year, int *month, int *day) {
    int64_t m = (5 * of_year + 2) / 153;
    *day = (int)(of_year - (153 * m + 2) / 5 + 1);
    *month = (int)(m < 10 ? m + 3 : m - 9);
}

int64_t calendar_days(int64_t year, int month, int day) {
    int64_t y = year - (month <= 2), era = floor_div(y, 400), of_era = y - era * 400;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year(month, day) - 719468;
}

void calendar_date(int64_t days, int64_t *year, int *month, int *day) {
    int64_t z = days + 719468, era = floor_div(z, 146097), of_era = z - era * 146097;
    int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    month_and_day(of_era - (365 * y + y / 4 - y / 100), month, day);
    *year = y + era * 400 + (*month <= 2);
}

int calendar_month_length(int64_t year, int month) {
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return lengths[month - 1] + (month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
}

/* Before the cutover the date is Julian: every fourth year is a leap year. */
static void historic_date(int64_t days, int64_t *year, int *month, int *day) {
    if (days >= CUTOVER) {
        calendar_date(days, year, month, day);
        return;
    }
    int64_t z = days + 719470, era = floor_div(z, 1461), of_era = z - era * 1461, y = (of_era - of_era / 1460) / 365;
    month_and_day(of_era - 365 * y, month, day);
    *year = y + era * 4 + (*month <= 2);
}

int64_t calendar_months_ms(int64_t ms) {
    int64_t year;
    int month, day;
    historic_date(floor_div(ms, DAY_MS), &year, &month, &day);
    return year * 12 + month - 1;
}

int64_t calendar_add_months_ms(int64_t ms, int64_t months) {
    int64_t days = floor_div(ms, DAY_MS), rest = ms % DAY_MS + (ms % DAY_MS < 0 ? DAY_MS : 0), year;
    int month, day;
    historic_date(days, &year, &month, &day);
    int64_t total = year * 12 + month - 1 + months;
    year = floor_div(total, 12);
    month = (int)(total - year * 12) + 1;
    bool julian = year <= CUTOVER_YEAR && month == 2;
    int length = julian ? 28 + (year % 4 == 0) : calendar_month_length(year, month);
    if (day > length) day = length;
    days = calendar_days(year, month, day);
    if (days < CUTOVER) {
        int64_t y = year - (month <= 2);
        days = y * 365 + floor_div(y, 4) + day_of_year(month, day) - 719470;
    }
    return (int64_t)((uint64_t)days * DAY_MS + (uint64_t)rest);
}
