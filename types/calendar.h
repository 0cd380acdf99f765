/* Days and dates of the proleptic ISO calendar; inside cql only. Any year that 64 bits of milliseconds can hold. */
#pragma once

#include <stdint.h>

/* Days since 1970-01-01; month 1 to 12. */
int64_t calendar_days(int64_t year, int month, int day);
void calendar_date(int64_t days, int64_t *year, int *month, int *day);
int calendar_month_length(int64_t year, int month);
/* Months since year 0 of the one that the time falls into, in the calendar of calendar_add_months_ms. */
int64_t calendar_months_ms(int64_t ms);
/* Adds months, keeping the day within the month it falls into; milliseconds since 1970. As
 * Cassandra counts them, whose calendar is the Julian one before 15 October 1582
 * (java.util.GregorianCalendar). Past what 64 bits hold it wraps. */
int64_t calendar_add_months_ms(int64_t ms, int64_t months);
