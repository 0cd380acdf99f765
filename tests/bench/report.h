/* The figures as a table for people or as JSON for programs; and as a report: a page of HTML with
 * plots, tables in Markdown, and the JSON. */
#pragma once

#include <stdio.h>

#include "tests/bench/figure.h"

void report_table(const struct report *r);
void report_json(const struct report *r, FILE *to);
/* report.html, report.md and report.json into a folder. 0 / -1, said on stderr. */
int report_write(const struct report *r, const char *dir);
