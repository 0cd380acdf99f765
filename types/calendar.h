/* Days and dates of the proleptic ISO calendar, for any year that 64 bits of milliseconds can
 * hold. */
#pragma once

#include <stdint.h>

/* Days from 1970-01-01 to a date; month is 1 to 12. */
int64_t calendar_days(int64_t year, int month, int day);
void calendar_date(int64_t days, int64_t *year, int *month, int *day);
int calendar_month_length(int64_t year, int month);
/* The month that a time in milliseconds since 1970 falls into, counted from the year 0, in the
 * calendar of calendar_add_months_ms. */
int64_t calendar_months_ms(int64_t ms);
/* Adds months to a time in milliseconds since 1970. A day past the end of its new month becomes the
 * last day of the month. Cassandra counts in java.util.GregorianCalendar, so dates before 15
 * October 1582 are Julian. The result wraps at 64 bits. */
int64_t calendar_add_months_ms(int64_t ms, int64_t months);
